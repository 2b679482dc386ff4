"""Pages of other sites: those named may call the API from a browser, without cookies; others may not."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.client import Project, integration_client
from tests.support.installation import Installation, installed
from tests.support.keys import Keys
from tests.support.problems import problem
from tests.support.projects import add_project

SITE = "https://www.narjis.example"
OTHER = "http://localhost:3000"
STRANGER = "https://evil.example"
SETTINGS = {"HOLDFAST_CORS_ORIGINS": f" https://WWW.narjis.example:443 , {OTHER}"}

ALLOW_ORIGIN = "access-control-allow-origin"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[Installation]:
    with installed(module_postgres_url, SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def own_project(shared: Installation) -> Project:
    return add_project(shared.sql)


@pytest.fixture
def browser(shared: Installation) -> Iterator[httpx.Client]:
    with integration_client(shared.address, None) as http:
        yield http


@pytest.fixture
def key(shared: Installation, module_postgres_url: str) -> str:
    return Keys(shared.sql, module_postgres_url).issue().text


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
    assert names(answer.headers["access-control-allow-headers"]) >= {
        "authorization",
        "content-type",
        "if-match",
    }
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "origin" in names(answer.headers["vary"])


def test_what_a_page_reads_is_shown_to_its_site_alone(
    browser: httpx.Client, own_project: Project, key: str
) -> None:
    headers = {"Origin": SITE, "Authorization": f"Bearer {key}"}
    for path in (
        "/openapi.json",
        f"/v1/storefront/projects/{own_project.slug}/units",
        "/v1/integration/projects",
    ):
        answer = browser.get(path, headers=headers)
        assert answer.status_code == 200
        assert answer.headers.get_list(ALLOW_ORIGIN) == [SITE]
        assert names(answer.headers["access-control-expose-headers"]) >= {
            "etag",
            "x-request-id",
            "retry-after",
        }
        assert "origin" in names(answer.headers["vary"])


def test_refusals_are_shown_as_well(browser: httpx.Client) -> None:
    answer = browser.get("/v1/backoffice/keys", headers={"Origin": SITE})
    problem(answer, 401)
    assert answer.headers[ALLOW_ORIGIN] == SITE


@pytest.mark.parametrize("origin", [STRANGER, "null", SITE + ":8443", SITE.replace("https", "http"), "*"])
def test_other_sites_are_shown_nothing(browser: httpx.Client, own_project: Project, origin: str) -> None:
    answer = browser.get(f"/v1/storefront/projects/{own_project.slug}/units", headers={"Origin": origin})
    asked = preflight(browser, "/v1/integration/projects", origin)
    assert (answer.status_code, asked.status_code) == (200, 400)
    for each in (answer, asked):
        assert ALLOW_ORIGIN not in each.headers
        assert "origin" in names(each.headers["vary"])


def test_cookies_are_never_allowed(browser: httpx.Client, own_project: Project) -> None:
    path = f"/v1/storefront/projects/{own_project.slug}/units"
    for answer in (preflight(browser, path, SITE), browser.get(path, headers={"Origin": SITE})):
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("path", ["/backoffice", "/backoffice/sign-in", "/", "/docs", "/metrics", "/readyz"])
def test_pages_are_nobodys_to_read(browser: httpx.Client, path: str) -> None:
    for answer in (preflight(browser, path, SITE, "GET"), browser.get(path, headers={"Origin": SITE})):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_an_ordinary_options_request_is_none_of_a_browser(browser: httpx.Client, key: str) -> None:
    problem(browser.options("/v1/integration/projects", headers={"Origin": SITE}), 401)
    problem(browser.options("/v1/integration/projects", headers={"Authorization": f"Bearer {key}"}), 405)


def test_where_no_site_is_named_nothing_is_said_of_origins(
    http: httpx.Client, anonymous: httpx.Client
) -> None:
    answer = http.get("/v1/integration/projects", headers={"Origin": SITE})
    asked = preflight(anonymous, "/v1/integration/projects", SITE)
    problem(asked, 401)
    for each in (answer, asked):
        assert ALLOW_ORIGIN not in each.headers
        assert "origin" not in names(each.headers.get("vary", ""))


# A hold needs no body, so a browser asks nobody before it sends one


def hold_from(http: httpx.Client, own_project: Project, code: str, **headers: str) -> httpx.Response:
    return http.post(f"/v1/storefront/projects/{own_project.slug}/units/{code}/hold", headers=headers)


@pytest.mark.parametrize("origin", [STRANGER, "null"])
def test_a_site_that_is_not_named_has_no_browser_hold_a_unit(
    browser: httpx.Client, own_project: Project, origin: str
) -> None:
    answer = hold_from(browser, own_project, "A-1", origin=origin, **{"sec-fetch-site": "cross-site"})
    assert "another site" in problem(answer, 403)["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": SITE, "sec-fetch-site": "cross-site"},
        {"origin": STRANGER},
        {"sec-fetch-site": "same-origin"},
    ],
)
def test_a_site_that_is_named_and_what_is_no_site_may_hold(
    browser: httpx.Client, own_project: Project, headers: dict[str, str]
) -> None:
    """There is no such unit, which is told to those who may."""
    problem(hold_from(browser, own_project, "A-1", **headers), 404)
