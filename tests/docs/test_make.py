"""`make site` builds the documents, complete in themselves; `make serve` is what they begin with."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from tests.docs.documents import DOCUMENTS, OF_OTHER_FOLDERS, name_of
from tests.support import chromium, commands
from tests.support.client import NO_TLS
from tests.support.make import ROOT, make, make_command, outside_of_make
from tests.support.server import environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")]
OF_OTHER_TESTS = ("HOLDFAST_ALLOWED_NETWORKS", "HOLDFAST_ENCRYPTION_KEYS")
# What a page loads. An <a> only leads somewhere, and Sphinx has warned if it does not.
LOAD = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*?\bsrc="([^"]*)"'
    r'|<(?:link(?![^>]*\brel="(?:index|search|next|prev)")|use)\b[^>]*?\bhref="([^"]*)"'
)
STYLES_LOAD = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?!data:|#)([^'\")]+)")
ORDER = [
    "quick-start", "story", "integration-guide", "selling-guide", "payments-guide", "webhooks-guide",
    "back-office-guide", "buyers-guide", "operations", "security-model", "architecture", "state-machine",
    "decisions/README", "glossary", "CHANGELOG",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site").resolve() / "site"
    done = make("site", f"SITE={folder}")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_whatever_a_page_loads_is_there_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    loads = {
        (path, unescape(one[1] or one[2])) for path, text in pages.items() for one in LOAD.finditer(text)
    }
    assert len(loads) > 100
    for path, target in loads:
        parts = urlsplit(target)
        assert not parts.netloc, target
        if parts.path and not parts.scheme:
            assert (path.parent / unquote(parts.path)).is_file(), (path, target)
    for path in site.rglob("*.css"):
        loaded = STYLES_LOAD.findall(path.read_text(encoding="utf-8"))
        assert [target for target in loaded if urlsplit(target).netloc] == [], path.name
    assert "url=docs/index.html" in pages[site / "index.html"]


def test_every_document_stands_in_the_navigation_in_the_order_in_which_it_is_read(site: Path) -> None:
    listed = list(_navigation(site))
    expected = {site / f"{name_of(one)[:-3]}.html" for one in (*DOCUMENTS, *OF_OTHER_FOLDERS)}
    assert expected - set(listed) - {site / "docs" / "index.html"} == set()
    names = [str(path.relative_to(site).with_suffix("")).removeprefix("docs/") for path in listed]
    assert [name for name in names if name in ORDER] == [name for name in ORDER if name in names]
    assert len(set(ORDER) & set(names)) >= len(ORDER) - 2


def test_the_search_finds_something_without_a_network(site: Path) -> None:
    asked: list[str] = []
    with chromium.chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{site}/search.html?q=reconciliation")
        page.wait_for_selector("#search-results li a")
        found = page.locator("#search-results li a").all_inner_texts()
    assert "Webhooks guide" in found
    assert [url for url in asked if not url.startswith("file://")] == []


def _navigation(site: Path) -> Iterator[Path]:
    """The pages below the first one, in their order, as its sidebar has them."""
    first = site / "docs" / "index.html"
    text = first.read_text(encoding="utf-8")
    start = text.index('<div class="sidebar-tree">')
    tree = text[start : text.index("</aside>", start)]
    for target in re.findall(r'class="reference internal" href="([^"#]+)"', tree):
        yield (first.parent / target).resolve()


@contextmanager
def make_serve(data: Path) -> Iterator[dict[str, Any]]:
    """What it prints, with a port and a data directory of its own; it is stopped as Ctrl-C does."""
    variables = outside_of_make({**environment({}), **dict.fromkeys(OF_OTHER_TESTS, "")})
    command = make_command("serve", f"ARGS=--port 0 --json --data {data}")
    with (data.parent / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, (data.parent / "log").read_text()[-5000:]
        yield json.loads(first)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=120)


def test_make_serve_leaves_the_database_alone_that_the_shell_exports(postgres_url: str) -> None:
    settings = {"HOLDFAST_DATABASE_URL": postgres_url}
    commands.run(settings, "key", "add", "--name", "The ERP")
    command = make_command("serve", "ARGS=--port 0")
    variables = outside_of_make(environment(settings))
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "was not filled by the demo" in done.stderr) == (2, True)
    assert len(commands.run_for_json(settings, "key", "list")["keys"]) == 1


def test_make_serve_runs_a_server_with_the_demo_and_prints_a_key_that_opens_it(tmp_path: Path) -> None:
    with (
        make_serve(tmp_path / "data") as printed,
        httpx.Client(verify=NO_TLS, follow_redirects=True, timeout=60) as client,
    ):
        assert client.get(f"{printed['url']}/readyz").status_code == 200
        units = client.get(
            f"{printed['url']}/v1/integration/projects/narjis-heights/units",
            headers={"Authorization": f"Bearer {printed['key']}"},
        )
        assert len(units.json()["units"]) == 100
        assert client.get(printed["signIn"]["url"]).status_code == 200
