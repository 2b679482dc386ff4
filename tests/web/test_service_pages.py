"""What people read: welcome, the API, the problems, and the files that these load."""

import re
from html import unescape
from pathlib import Path

import httpx
import pytest

from holdfast.web.pages.templates import STATIC, code_spans
from holdfast.web.problems import PROBLEM_TYPES
from tests.support.in_process import app_with, client_of
from tests.support.problems import problem

HTML_PAGES = ["/", "/docs", "/problems", *(kind.path for kind in PROBLEM_TYPES.values())]
FIRST_PAGES = ["/", "/docs", "/problems", "/problems/terms-locked", "/openapi.json"]
POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'",
    "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
}  # fmt: skip
INLINE = re.compile(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)")
ELSEWHERE = re.compile(r"""(?:src|href|action)="(?:https?:)?//""")
LOADED = re.compile(r"""(?:src|href)="(/static/[^"]+)\"""")


async def test_a_page_of_an_error_is_not_kept_and_has_no_revision(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/nowhere", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["cache-control"]) == (404, "no-store")
    assert "etag" not in page.headers


@pytest.mark.parametrize("path", HTML_PAGES)
async def test_every_page_loads_files_of_ours_alone_and_they_are_there(
    browser: httpx.AsyncClient, path: str
) -> None:
    page = await browser.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert set(page.headers["content-security-policy"].split("; ")) == POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-request-id"]
    assert not INLINE.search(page.text)
    assert not ELSEWHERE.search(page.text)
    addresses = LOADED.findall(page.text)
    assert addresses
    for address in addresses:
        assert (await browser.head(address)).status_code == 200, address


@pytest.mark.parametrize("path", FIRST_PAGES)
async def test_a_page_is_only_for_reading_and_not_sent_again_if_it_is_known(
    browser: httpx.AsyncClient, path: str
) -> None:
    first = await browser.get(path)
    assert first.headers["cache-control"] == "no-cache"
    again = await browser.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await browser.head(path)).status_code == 200
    refused = await browser.post(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_a_path_that_is_nearly_that_of_a_page_or_problem_or_file_is_none(
    browser: httpx.AsyncClient,
) -> None:
    for path in ("/openapiXjson", "/openapi/json", "/docs/", "//docs", "/problems/x/y", "/problems/nothing"):
        assert (await browser.get(f"{browser.base_url}".rstrip("/") + path)).status_code == 404
    for name in ("", "%FF", "..%2Fopenapi.json", "Terms-Locked", "terms-locked/"):
        problem(await browser.get(f"/problems/{name}"), 404)
    for name in ("nothing.css", "", "vendor", "../app.py", "..%2Fapp.py", "%00", "x" * 5000):
        problem(await browser.get(f"/static/{name}"), 404)


async def test_the_welcome_and_the_list_of_problems_lead_on(browser: httpx.AsyncClient) -> None:
    text = (await browser.get("/")).text
    for path in ("/backoffice", "/docs", "/problems", "/readyz"):
        assert f'href="{path}"' in text
    text = (await browser.get("/problems")).text
    for kind in PROBLEM_TYPES.values():
        assert f'href="{kind.path}"' in text
        assert kind.title in text


async def test_the_welcome_and_the_api_document_show_the_address_of_the_server() -> None:
    async with client_of(app_with(public_url="http://127.0.0.1:8123")) as client:
        text = unescape((await client.get("/")).text)
        about = (await client.get("/openapi.json")).json()["info"]["description"]
    for shown in (text, about):
        assert "curl -X PUT http://127.0.0.1:8123/v1/integration/projects/" in shown
    assert text.index("holdfast project add ") < text.index("holdfast key add ") < text.index("curl ")


async def test_the_page_of_a_problem_explains_it_and_leads_to_the_calls_that_give_it(
    browser: httpx.AsyncClient,
) -> None:
    for kind in PROBLEM_TYPES.values():
        text = (await browser.get(kind.path)).text
        assert f"<h1>{kind.title}</h1>" in text
        assert code_spans(kind.explanation) in text
        assert code_spans(kind.remedy) in text
        assert f"HTTP/1.1 {kind.status} " in text
    text = (await browser.get("/problems/cursor-expired")).text
    assert 'href="/docs#/Events/listEvents"' in text
    assert "putUnit" not in text
    text = (await browser.get("/problems/schema-not-current")).text
    assert "/readyz" in text
    assert 'href="/docs#/Operation/getReadiness"' in text


def test_what_stands_between_backticks_is_code_and_the_rest_is_escaped() -> None:
    assert code_spans("a <b> `<c>` d") == "a &lt;b&gt; <code>&lt;c&gt;</code> d"


async def test_a_file_is_only_for_reading_and_kept_by_the_browser_for_its_version(
    browser: httpx.AsyncClient,
) -> None:
    address = LOADED.findall((await browser.get("/docs")).text)[0]
    answer = await browser.get(address)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await browser.get(address.partition("?")[0])).headers["cache-control"] == "no-cache"
    refused = await browser.post("/static/holdfast.css")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


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
