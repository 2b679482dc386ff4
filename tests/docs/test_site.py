"""The documents as a site: built once, without a warning, and complete in itself."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.documents import DOCUMENTS, OF_OTHER_FOLDERS, name_of
from tests.support import chromium
from tests.support.make import make

# What loads something, by element: an <a> only leads somewhere.
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "use": "href"}
STYLES_LOAD = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?!data:|#)([^'\")]+)")
ORDER = [
    "quick-start", "story", "integration-guide", "selling-guide", "payments-guide", "webhooks-guide",
    "back-office-guide", "buyers-guide", "operations", "security-model", "architecture", "state-machine",
    "decisions/README", "glossary", "CHANGELOG",
]  # fmt: skip


class Page(HTMLParser):
    """What a page names: places in it, where it leads, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if LOADING.get(tag, "-") in found and found.get("rel") not in ("index", "search", "next", "prev"):
            self.loads.append(found[LOADING[tag]])


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}

    @cache  # noqa: B019 - there is one site
    def leads_somewhere(self, page: Path, target: str) -> bool:
        parts = urlsplit(target)
        found = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if found.suffix != ".html":
            return found.is_file()
        return found in self.pages and (
            not parts.fragment or unquote(parts.fragment) in self.pages[found].ids
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site").resolve()
    done = make("site", f"SITE={folder}/site")
    assert (done.returncode, done.stderr) == (0, "")
    return Site(folder / "site")


def test_every_link_leads_to_something_that_is_there(site: Site) -> None:
    broken = [
        (path.name, target)
        for path, page in site.pages.items()
        for target in page.links
        if not urlsplit(target).scheme and not site.leads_somewhere(path, target)
    ]
    assert broken == []


def test_every_document_is_a_page_and_stands_in_the_navigation(site: Site) -> None:
    listed = set(_navigation(site))
    expected = {site.folder / f"{name_of(one)[:-3]}.html" for one in (*DOCUMENTS, *OF_OTHER_FOLDERS)}
    assert expected - listed - {site.folder / "docs" / "index.html"} == set()


def test_the_navigation_has_the_order_in_which_it_is_read(site: Site) -> None:
    names = [
        str(path.relative_to(site.folder).with_suffix("")).removeprefix("docs/") for path in _navigation(site)
    ]
    assert [name for name in names if name in ORDER] == [name for name in ORDER if name in names]
    assert len(set(ORDER) & set(names)) >= len(ORDER) - 2


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    loads = [(path.name, target) for path, page in site.pages.items() for target in page.loads]
    assert [(name, target) for name, target in loads if urlsplit(target).netloc] == []
    styles = [(path.name, target) for path in site.folder.rglob("*.css") for target in _of_style(path)]
    assert [(name, target) for name, target in styles if urlsplit(target).netloc] == []
    assert len(loads) > 100


def test_what_is_loaded_is_there(site: Site) -> None:
    missing = [
        (path.name, target)
        for path, page in site.pages.items()
        for target in page.loads
        if not urlsplit(target).scheme and not site.leads_somewhere(path, target.partition("?")[0])
    ]
    assert missing == []


def test_the_front_door_leads_to_the_first_page(site: Site) -> None:
    assert "url=docs/index.html" in (site.folder / "index.html").read_text()


def test_the_search_finds_something_without_a_network(site: Site) -> None:
    if chromium.chromium_path() is None and not chromium.is_required():
        pytest.skip(chromium.MISSING)
    asked: list[str] = []
    with chromium.chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{site.folder}/search.html?q=reconciliation")
        page.wait_for_selector("#search-results li a")
        found = page.locator("#search-results li a").all_inner_texts()
    assert "Webhooks guide" in found
    assert [url for url in asked if not url.startswith("file://")] == []


def _navigation(site: Site) -> Iterator[Path]:
    """The pages below the first one, in their order, as its sidebar has them."""
    first = site.folder / "docs" / "index.html"
    text = first.read_text(encoding="utf-8")
    start = text.index('<div class="sidebar-tree">')
    tree = text[start : text.index("</aside>", start)]
    for target in re.findall(r'class="reference internal" href="([^"#]+)"', tree):
        yield (first.parent / target).resolve()


def _of_style(path: Path) -> list[str]:
    return STYLES_LOAD.findall(path.read_text(encoding="utf-8"))
