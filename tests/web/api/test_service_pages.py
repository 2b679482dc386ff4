"""What a person or a probe reads: health, metrics, the API description, its pages."""

import re
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import states
from tests.support.bodies import UNIT_FIELDS, full
from tests.support.client import Unit
from tests.support.feed import EVENTS
from tests.support.keys import Keys
from tests.support.problems import problem
from tests.support.sql import Sql

FOREIGN = re.compile(r"""(?:src|href|action|url)\s*[=:(]\s*["']?\s*(?:https?:)?//""", re.IGNORECASE)
ASSETS = re.compile(r"""(?:src|href)\s*=\s*["']([^"'#]+)["']""", re.IGNORECASE)
EVENT_NAMES = {
    "unit.held",
    "unit.released",
    "unit.reserved",
    "unit.sold",
    "unit.available",
    "unit.unavailable",
    "ping",
}
ROUTES = {
    "/v1/integration/projects/{slug}/units/{code}": {"get", "put", "patch"},
    "/v1/integration/projects/{slug}/units": {"get", "put"},
    "/v1/integration/projects": {"get"},
    "/v1/integration/events": {"get"},
}
METHODS = {"get", "put", "patch", "post", "delete", "head", "options"}


@pytest.fixture
def description(anonymous: httpx.Client) -> dict[str, Any]:
    response = anonymous.get("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"].split(";")[0] == "application/json"
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_need_no_key(anonymous: httpx.Client, path: str) -> None:
    assert anonymous.get(path).status_code == 200


def test_metrics_are_in_the_format_of_prometheus(http: httpx.Client, stored: Unit) -> None:
    response = http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert re.search(r"^# TYPE holdfast_\w+ (counter|gauge|histogram|summary)$", response.text, re.MULTILINE)
    for line in response.text.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-zA-Z_:][\w:]*(\{.*\})? \S+( \d+)?", line), line


def test_metrics_count_every_answer_and_its_time(http: httpx.Client, stored: Unit) -> None:
    def figures() -> tuple[float, float, float]:
        text = http.get("/metrics").text
        labels = r'method="GET",route="/v1/integration/projects/\{slug\}/units/\{code\}"'
        patterns = (
            rf'holdfast_http_requests_total\{{{labels},status="200"\}} (\S+)',
            rf"holdfast_http_request_seconds_count\{{{labels}\}} (\S+)",
            rf'holdfast_http_request_seconds_bucket\{{le="\+Inf",{labels}\}} (\S+)',
        )
        found = [re.search(pattern, text) for pattern in patterns]
        requests, times, slowest = (float(one[1]) if one else 0.0 for one in found)
        return requests, times, slowest

    before = figures()
    for _ in range(5):
        assert stored.get().status_code == 200
    assert [now - then for now, then in zip(figures(), before, strict=True)] == [5, 5, 5]


def test_metrics_do_not_name_units_or_slugs(http: httpx.Client, stored: Unit) -> None:
    assert stored.project.slug not in http.get("/metrics").text


def test_the_description_is_openapi_3_1(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")


def test_every_route_is_described(description: dict[str, Any]) -> None:
    described = {path: METHODS & set(item) for path, item in description["paths"].items()}
    assert ROUTES.items() <= described.items()


def test_every_event_is_described_as_a_webhook(description: dict[str, Any]) -> None:
    assert set(description["webhooks"]) == EVENT_NAMES


def operations(description: dict[str, Any]) -> list[dict[str, Any]]:
    return [item[method] for item in description["paths"].values() for method in METHODS & set(item)]


def test_every_operation_has_a_name_of_its_own(description: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(description)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", ROUTES)
def test_every_call_that_needs_a_key_says_so(description: dict[str, Any], path: str) -> None:
    for method in ROUTES[path]:
        operation = description["paths"][path][method]
        assert operation.get("security", description.get("security"))
        assert {"401", "403"} <= set(operation["responses"])


def test_the_documentation_loads_nothing_from_elsewhere(anonymous: httpx.Client) -> None:
    response = anonymous.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert not FOREIGN.search(response.text)


def test_everything_the_documentation_loads_is_there(anonymous: httpx.Client) -> None:
    page = anonymous.get("/docs")
    assets = [path for path in ASSETS.findall(page.text) if not path.startswith("data:")]
    assert assets
    for path in assets:
        assert anonymous.get(str(page.url.join(path))).status_code == 200, path


def every_refusal(stored: Unit, anonymous: httpx.Client, keys: Keys, sql: Sql) -> list[httpx.Response]:
    http = stored.http
    unknown = Unit(http, stored.project, "A-999")
    payments = {"Authorization": f"Bearer {keys.issue(scopes=['payments']).text}"}
    refusals = [
        anonymous.get(EVENTS),
        anonymous.get(EVENTS, headers={"Authorization": "Bearer nonsense"}),
        anonymous.get(EVENTS, headers=payments),
        http.delete(stored.url),
        stored.put("{}", Content_Type="text/plain"),
        stored.put(" " * (1024 * 1024 + 1)),
        stored.put("{"),
        stored.put({}),
        unknown.get(),
        http.get("/v1/integration/projects/no-such-tower/units"),
        http.get("/nowhere"),
        stored.put(full(), If_Match='"stale"'),
    ]
    states.hold(sql, stored)
    refusals += [stored.patch({"status": "available"}), stored.patch({"priceSar": 1})]
    states.archive(sql, stored)
    return [*refusals, stored.patch({"status": "available"})]


def test_every_problem_has_a_page_that_explains_it(
    stored: Unit, anonymous: httpx.Client, keys: Keys, sql: Sql
) -> None:
    refusals = every_refusal(stored, anonymous, keys, sql)
    assert all(response.status_code >= 400 for response in refusals)
    bodies = [problem(response, response.status_code) for response in refusals]
    for kind, title in {(body["type"], body["title"]) for body in bodies}:
        page = anonymous.get(kind)
        assert page.status_code == 200, kind
        assert page.headers["content-type"].startswith("text/html")
        assert title in page.text
        assert not FOREIGN.search(page.text)


def test_one_kind_of_problem_has_one_title_and_one_status(
    stored: Unit, anonymous: httpx.Client, keys: Keys, sql: Sql
) -> None:
    bodies = [response.json() for response in every_refusal(stored, anonymous, keys, sql)]
    kinds = {(body["type"], body["title"], body["status"]) for body in bodies}
    assert len(kinds) == len({kind for kind, _, _ in kinds})


def test_a_problem_that_does_not_exist_has_no_page(anonymous: httpx.Client) -> None:
    problem(anonymous.get("/problems/no-such-problem"), 404)


def test_the_page_of_a_problem_names_the_status_routes_too(anonymous: httpx.Client) -> None:
    page = anonymous.get("/problems/schema-not-current").text
    assert "/readyz" in page
    assert "/docs#/Operation/getReadiness" in page


def test_metrics_do_not_grow_with_what_callers_make_up(http: httpx.Client) -> None:
    made_up = uuid4().hex
    http.get(f"/{made_up}")
    http.get(f"/v1/integration/projects/{made_up}/units/{made_up}")
    assert made_up not in http.get("/metrics").text


def test_a_unit_in_the_description_has_exactly_its_fields(description: dict[str, Any]) -> None:
    assert set(description["components"]["schemas"]["Unit"]["properties"]) == UNIT_FIELDS
