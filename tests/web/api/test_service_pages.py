"""What a person or a probe reads: health, metrics, the API description and its examples, problem pages."""

import json
import re
from typing import Any
from uuid import uuid4

import httpx
import pytest

from holdfast.web.api.unit_bodies import UnitReplacement
from holdfast.web.openapi.document import openapi_document
from holdfast.web.openapi.schemas import BOOKING_REFERENCE
from tests.support.backoffice import Desk
from tests.support.bodies import UNIT_FIELDS, full
from tests.support.buying import Buyer
from tests.support.client import JSON, Unit
from tests.support.feed import EVENTS
from tests.support.keys import Keys
from tests.support.payment_system import signed_headers
from tests.support.problems import problem
from tests.web.openapi_reading import Operation, operations

UNIT_ROUTE = r'method="GET",route="/v1/integration/projects/\{slug\}/units/\{code\}"'
FIGURES = [
    rf'holdfast_http_requests_total\{{{UNIT_ROUTE},status="200"\}} (\S+)',
    rf"holdfast_http_request_seconds_count\{{{UNIT_ROUTE}\}} (\S+)",
    rf'holdfast_http_request_seconds_bucket\{{le="\+Inf",{UNIT_ROUTE}\}} (\S+)',
]


def test_probes_need_no_key_and_metrics_are_in_the_format_of_prometheus(public: httpx.Client) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        response = public.get(path)
        assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    assert re.search(r"^# TYPE holdfast_\w+ (counter|gauge|histogram|summary)$", response.text, re.MULTILINE)
    for line in response.text.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-zA-Z_:][\w:]*(\{.*\})? \S+( \d+)?", line), line


def test_metrics_count_every_answer_and_its_time_and_name_nothing_that_callers_make_up(
    http: httpx.Client, stored: Unit
) -> None:
    def figures() -> list[float]:
        found = [re.search(pattern, http.get("/metrics").text) for pattern in FIGURES]
        return [float(one[1]) if one else 0.0 for one in found]

    before, made_up = figures(), uuid4().hex
    for _ in range(5):
        assert stored.get().status_code == 200
    assert [now - then for now, then in zip(figures(), before, strict=True)] == [5, 5, 5]
    http.get(f"/{made_up}")
    http.get(f"/v1/integration/projects/{made_up}/units/{made_up}")
    assert made_up not in http.get("/metrics").text
    assert stored.project.slug not in http.get("/metrics").text


def test_the_description_is_served_as_it_is_tested(public: httpx.Client) -> None:
    response = public.get("/openapi.json")
    assert response.headers["content-type"].split(";")[0] == JSON
    served, tested = response.json(), json.loads(json.dumps(openapi_document()))
    assert (served["paths"], served["webhooks"]) == (tested["paths"], tested["webhooks"])
    assert set(served["components"]["schemas"]["Unit"]["properties"]) == UNIT_FIELDS


def test_every_problem_has_one_title_one_status_and_a_page_that_explains_it(
    stored: Unit, public: httpx.Client, keys: Keys, desk: Desk
) -> None:
    http, unknown = stored.http, Unit(stored.http, stored.project, "A-999")
    payments = {"Authorization": f"Bearer {keys.issue(scopes=['payments']).text}"}
    refusals = [
        public.get(EVENTS),
        public.get(EVENTS, headers={"Authorization": "Bearer nonsense"}),
        public.get(EVENTS, headers=payments),
        http.delete(stored.url),
        stored.put("{}", Content_Type="text/plain"),
        stored.put(" " * (1024 * 1024 + 1)),
        stored.put("{"),
        stored.put({}),
        unknown.get(),
        http.get("/v1/integration/projects/no-such-tower/units"),
        http.get("/nowhere"),
        http.get("/problems/no-such-problem"),
        stored.put(full(), If_Match='"stale"'),
    ]
    desk.held(stored)
    refusals += [stored.patch({"status": "available"}), stored.patch({"priceSar": 1})]
    desk.did(stored, "archive")
    refusals += [stored.patch({"status": "available"})]
    assert all(response.status_code >= 400 for response in refusals)
    bodies = [problem(response, response.status_code) for response in refusals]
    kinds = {(body["type"], body["title"], body["status"]) for body in bodies}
    assert len(kinds) == len({kind for kind, _, _ in kinds})
    for kind, title, _ in kinds:
        page = public.get(kind)
        assert page.status_code == 200, kind
        assert page.headers["content-type"].startswith("text/html")
        assert title in page.text


# Whoever pastes a request body from the API description has it accepted.

CODE = "A-0304"
WITH_BODIES = [one for one in operations(openapi_document()) if "requestBody" in one.body]


@pytest.mark.parametrize("operation", WITH_BODIES, ids=lambda one: one.body["operationId"])
def test_the_example_of_a_body_is_accepted(operation: Operation, stored: Unit, keys: Keys) -> None:
    """It may be refused for what it is sent to: there is no such endpoint, or no deposit is due."""
    unit = Unit(stored.http, stored.project, CODE)
    unit.create(UnitReplacement.example)
    held = Buyer(unit.http).hold(unit)
    path = operation.path.format(slug=unit.project.slug, code=CODE, reference=held.reference, id=uuid4())
    example: Any = operation.body["requestBody"]["content"][JSON]["example"]
    # The callback names the booking in its body.
    content = json.dumps(example).encode().replace(BOOKING_REFERENCE.encode(), held.reference.encode())
    key = keys.issue(scopes=["integration", "admin"]).text
    token = held.token if operation.path.startswith("/v1/storefront") else key
    headers = {"Authorization": f"Bearer {token}", "Content-Type": JSON, **signed_headers(content)}
    response = unit.http.request(operation.method.upper(), path, content=content, headers=headers)
    assert response.status_code not in {400, 413, 415, 422}, response.text
    assert "/problems/invalid-input" not in response.text
    if operation.body["operationId"] == "extendUnit":
        assert response.status_code == 200, response.text
