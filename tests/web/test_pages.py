"""What people read: welcome, the API, the problems, and the files that these load."""

import re
from pathlib import Path

import httpx
import pytest

from holdfast.web.pages.templates import STATIC, code_spans
from holdfast.web.problems import PROBLEM_TYPES

HTML_PAGES = ["/", "/docs", "/problems", *(kind.path for kind in PROBLEM_TYPES.values())]
FIRST_PAGES = ["/", "/docs", "/problems", "/problems/terms-locked", "/openapi.json"]
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
}
LOADED = re.compile(r"""(?:src|href)="(/static/[^"]+)\"""")


async def test_a_page_of_an_error_is_not_kept_and_has_no_revision(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/nowhere", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["cache-control"]) == (404, "no-store")
    assert "etag" not in page.headers


@pytest.mark.parametrize("path", HTML_PAGES)
async def test_every_page_is_strict_about_what_it_loads(browser: httpx.AsyncClient, path: str) -> None:
    page = await browser.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert set(page.headers["content-security-policy"].split("; ")) == POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-request-id"]


@pytest.mark.parametrize("path", HTML_PAGES)
async def test_no_page_has_code_or_style_of_its_own(browser: httpx.AsyncClient, path: str) -> None:
    text = (await browser.get(path)).text
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)


@pytest.mark.parametrize("path", HTML_PAGES)
async def test_no_page_names_another_host(browser: httpx.AsyncClient, path: str) -> None:
    text = (await browser.get(path)).text
    assert not re.search(r"""(?:src|href|action)="(?:https?:)?//""", text)


@pytest.mark.parametrize("path", HTML_PAGES)
async def test_every_page_finds_what_it_loads(browser: httpx.AsyncClient, path: str) -> None:
    addresses = LOADED.findall((await browser.get(path)).text)
    assert addresses
    for address in addresses:
        assert (await browser.get(address)).status_code == 200, address


@pytest.mark.parametrize("path", FIRST_PAGES)
async def test_a_page_that_is_known_is_not_sent_again(browser: httpx.AsyncClient, path: str) -> None:
    first = await browser.get(path)
    assert first.headers["cache-control"] == "no-cache"
    again = await browser.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", FIRST_PAGES)
async def test_a_page_can_be_asked_for_its_head(browser: httpx.AsyncClient, path: str) -> None:
    assert (await browser.head(path)).status_code == 200


@pytest.mark.parametrize("path", FIRST_PAGES)
async def test_a_page_is_only_for_reading(browser: httpx.AsyncClient, path: str) -> None:
    refused = await browser.post(path)
    assert refused.status_code == 405
    assert refused.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/openapiXjson", "/openapi/json", "/docs/", "//docs", "/problems/x/y"])
async def test_a_path_that_is_nearly_a_page_is_none(browser: httpx.AsyncClient, path: str) -> None:
    assert (await browser.get(f"{browser.base_url}".rstrip("/") + path)).status_code == 404


async def test_the_welcome_leads_on(browser: httpx.AsyncClient) -> None:
    text = (await browser.get("/")).text
    for path in ("/backoffice", "/docs", "/problems", "/readyz"):
        assert f'href="{path}"' in text


async def test_the_list_of_problems_names_each(browser: httpx.AsyncClient) -> None:
    text = (await browser.get("/problems")).text
    for kind in PROBLEM_TYPES.values():
        assert f'href="{kind.path}"' in text
        assert kind.title in text


@pytest.mark.parametrize("name", PROBLEM_TYPES)
async def test_the_page_of_a_problem_explains_it(browser: httpx.AsyncClient, name: str) -> None:
    kind = PROBLEM_TYPES[name]
    text = (await browser.get(kind.path)).text
    assert f"<h1>{kind.title}</h1>" in text
    assert code_spans(kind.explanation) in text
    assert code_spans(kind.remedy) in text
    assert f"HTTP/1.1 {kind.status} " in text


async def test_the_page_of_a_problem_leads_to_the_calls_that_give_it(browser: httpx.AsyncClient) -> None:
    text = (await browser.get("/problems/cursor-expired")).text
    assert 'href="/docs#/Events/listEvents"' in text
    assert "putUnit" not in text


@pytest.mark.parametrize(
    "name", ["no-such-problem", "", "%FF", "..%2Fopenapi.json", "Terms-Locked", "terms-locked/"]
)
async def test_a_problem_that_does_not_exist_has_no_page(browser: httpx.AsyncClient, name: str) -> None:
    answer = await browser.get(f"/problems/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_description_is_json(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["info"]["title"] == "Holdfast"


def test_what_stands_between_backticks_is_code_and_the_rest_is_escaped() -> None:
    assert code_spans("a <b> `<c>` d") == "a &lt;b&gt; <code>&lt;c&gt;</code> d"


async def test_files_of_a_version_are_kept_by_the_browser(browser: httpx.AsyncClient) -> None:
    address = LOADED.findall((await browser.get("/docs")).text)[0]
    answer = await browser.get(address)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await browser.get(address.partition("?")[0])).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["nothing.css", "", "vendor", "../app.py", "..%2Fapp.py", "%00", "x" * 5000])
async def test_a_file_that_does_not_exist_is_not_found(browser: httpx.AsyncClient, path: str) -> None:
    answer = await browser.get(f"/static/{path}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_file_is_only_for_reading(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/static/holdfast.css")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_every_vendored_folder_is_accounted_for() -> None:
    account = (STATIC / "vendor" / "README.md").read_text()
    folders = [path for path in (STATIC / "vendor").iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        assert f"`{folder.name}`" in account
        assert (folder / "LICENSE").is_file()


def test_no_file_asks_for_a_source_map() -> None:
    for path in filter(Path.is_file, STATIC.rglob("*")):
        assert path.suffix != ".map"
        assert b"sourceMappingURL=" not in path.read_bytes()[-500:]


def test_our_styles_know_no_left_and_right() -> None:
    """Right-to-left then needs nothing more than ``dir``."""
    sided = re.compile(
        r"(margin|padding|border|inset)-(left|right)|(?<![-\w])(left|right)\s*:|text-align:\s*(left|right)"
    )
    for path in STATIC.glob("*.css"):
        assert not sided.search(path.read_text()), path.name
