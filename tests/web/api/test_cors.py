"""Pages of other sites: those named may call the API from a browser, without cookies; others may not."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.app import running_app
from tests.support.buying import offers_url
from tests.support.client import Project, integration_client
from tests.support.problems import problem

SITE = "https://www.narjis.example"
OTHER = "http://localhost:3000"
STRANGER = "https://evil.example"
SETTINGS = {"HOLDFAST_CORS_ORIGINS": f" https://WWW.narjis.example:443 , {OTHER}"}

ALLOW_ORIGIN = "access-control-allow-origin"


@pytest.fixture(scope="module")
def browser(database_url: str) -> Iterator[httpx.Client]:
    settings = {"HOLDFAST_DATABASE_URL": database_url, **SETTINGS}
    with (
        running_app(settings, background_work=False) as app,
        integration_client(app.address, None) as http,
    ):
        yield http


def preflight(http: httpx.Client, path: str, origin: str, method: str = "PUT") -> httpx.Response:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return http.options(path, headers=headers)


def names(value: str) -> set[str]:
    return {name.strip().lower() for name in value.split(",")}


@pytest.mark.parametrize("origin", [SITE, OTHER])
@pytest.mark.parametrize("surface", ["storefront", "integration", "backoffice"])
def test_a_browser_may_ask_beforehand_without_a_key(browser: httpx.Client, surface: str, origin: str) -> None:
    answer = preflight(browser, f"/v1/{surface}/projects", origin)
    assert answer.status_code == 200
    assert answer.headers[ALLOW_ORIGIN] == origin
    assert names(answer.headers["access-control-allow-methods"]) >= {"get", "put", "patch", "post", "delete"}
    allowed = names(answer.headers["access-control-allow-headers"])
    assert allowed >= {"authorization", "content-type", "if-match"}
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "origin" in names(answer.headers["vary"])
    assert "access-control-allow-credentials" not in answer.headers


def test_what_a_page_reads_is_shown_to_its_site_alone_and_so_are_refusals(
    browser: httpx.Client, project: Project, api_key: str
) -> None:
    headers = {"Origin": SITE, "Authorization": f"Bearer {api_key}"}
    paths = ("/openapi.json", offers_url(project), "/v1/integration/projects")
    answers = [browser.get(path, headers=headers) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * 3
    refused = browser.get("/v1/backoffice/keys", headers={"Origin": SITE})
    problem(refused, 401)
    for answer in (*answers, refused):
        assert answer.headers.get_list(ALLOW_ORIGIN) == [SITE]
        exposed = names(answer.headers["access-control-expose-headers"])
        assert exposed >= {"etag", "x-request-id", "retry-after"}
        assert "origin" in names(answer.headers["vary"])
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", [STRANGER, "null", SITE + ":8443", SITE.replace("https", "http"), "*"])
def test_other_sites_are_shown_nothing(browser: httpx.Client, project: Project, origin: str) -> None:
    answer = browser.get(offers_url(project), headers={"Origin": origin})
    asked = preflight(browser, "/v1/integration/projects", origin)
    assert (answer.status_code, asked.status_code) == (200, 400)
    for each in (answer, asked):
        assert ALLOW_ORIGIN not in each.headers
        assert "origin" in names(each.headers["vary"])


@pytest.mark.parametrize("path", ["/backoffice", "/backoffice/sign-in", "/", "/docs", "/metrics", "/readyz"])
def test_pages_are_nobodys_to_read(browser: httpx.Client, path: str) -> None:
    for answer in (preflight(browser, path, SITE, "GET"), browser.get(path, headers={"Origin": SITE})):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_an_ordinary_options_request_is_none_of_a_browser(browser: httpx.Client, api_key: str) -> None:
    problem(browser.options("/v1/integration/projects", headers={"Origin": SITE}), 401)
    headers = {"Authorization": f"Bearer {api_key}"}
    problem(browser.options("/v1/integration/projects", headers=headers), 405)


def test_where_no_site_is_named_nothing_is_said_of_origins(http: httpx.Client, public: httpx.Client) -> None:
    answer = http.get("/v1/integration/projects", headers={"Origin": SITE})
    asked = preflight(public, "/v1/integration/projects", SITE)
    problem(asked, 401)
    for each in (answer, asked):
        assert ALLOW_ORIGIN not in each.headers
        assert "origin" not in names(each.headers.get("vary", ""))


# A hold needs no body, so a browser asks nobody before it sends one


@pytest.mark.parametrize(
    ("headers", "may_hold"),
    [
        ({"origin": STRANGER, "sec-fetch-site": "cross-site"}, False),
        ({"origin": "null", "sec-fetch-site": "cross-site"}, False),
        ({"origin": SITE, "sec-fetch-site": "cross-site"}, True),
        ({"origin": STRANGER}, True),
        ({"sec-fetch-site": "same-origin"}, True),
    ],
)
def test_only_a_site_that_is_named_and_what_is_no_site_may_hold(
    browser: httpx.Client, project: Project, headers: dict[str, str], may_hold: bool
) -> None:
    """There is no such unit, which is told to those who may."""
    answer = browser.post(f"{offers_url(project)}/A-1/hold", headers=headers)
    refused = problem(answer, 404 if may_hold else 403)
    assert may_hold or "another site" in refused["detail"]
