"""The API description is valid, whole, true to the routes, and good to generate clients from."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import schemathesis
import schemathesis.specs.openapi.schemas  # now, as a whole: in the midst of other tests it once failed
from starlette.applications import Starlette

from holdfast.demo import project as demo
from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus, Trigger
from holdfast.domain.endpoint import EndpointState
from holdfast.domain.event import EventName
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller
from holdfast.operations.events import event_document
from holdfast.storage.events import FeedItem
from holdfast.web.api.models import UnitDocument
from holdfast.web.api.routes import ApiPath
from holdfast.web.openapi.document import openapi_json
from holdfast.web.openapi.schemas import PROJECT, UNIT, as_json, first_put
from holdfast.web.problems import MEDIA_TYPE, PROBLEM_OF, PROBLEM_TYPES
from tests.support.in_process import all_routes
from tests.support.webhooks import ATTEMPT_FIELDS, DELIVERY_FIELDS, ENDPOINT_FIELDS
from tests.web.openapi_reading import (
    media_types,
    named,
    operations,
    parameters_of,
    references,
    resolved,
    schema,
    shown,
    told,
    validator,
)

Document = dict[str, Any]

PUBLIC = {"400", "405", "413", "422", "429", "503"}
OWN = PUBLIC | {"401", "404"}
WITH_KEY = PUBLIC | {"401", "403"}
BODY = {"415"}
CHANGE = WITH_KEY | BODY | {"200", "404", "409"}
ACTIONS = {
    "openUnit", "extendUnit", "cancelHold", "confirmDepositOfUnit", "cancelReservation", "closeSale",
    "putOnSale", "takeOffSale", "archiveUnit", "revokeSale",
}  # fmt: skip
BOOKING_ACTIONS = {"cancelBooking", "closeSaleOfBooking", "extendBooking", "markRefunded", "eraseBuyer"}
INTEGRATION = {
    "getUnit": WITH_KEY | {"200", "304", "404"},
    "putUnit": CHANGE | {"201", "412"},
    "patchUnit": CHANGE | {"412"},
    "listUnits": WITH_KEY | {"200", "404"},
    "putUnits": CHANGE - {"409"},
    "listProjects": WITH_KEY | {"200"},
    "listEvents": WITH_KEY | {"200", "404", "410"},
}
ADMIN = {
    "listKeys": WITH_KEY | {"200"},
    "issueKey": WITH_KEY | BODY | {"201", "404"},
    "revokeKey": WITH_KEY | {"204", "404"},
    "listStaff": WITH_KEY | {"200"},
    "addStaff": WITH_KEY | BODY | {"201", "409"},
    "changeStaff": CHANGE,
    "resetStaff": CHANGE - {"409"},
    "revokeSale": CHANGE | {"412"},
}
ANSWERS = {
    **INTEGRATION,
    **ADMIN,
    "listUnitsOnSale": PUBLIC | {"200", "404"},
    "getUnitOnSale": PUBLIC | {"200", "404"},
    "holdUnit": PUBLIC | BODY | {"200", "201", "403", "404", "409"},
    "getOwnBooking": OWN | {"200"},
    "signBooking": OWN | BODY | {"200", "409"},
    "cancelOwnBooking": OWN | {"204", "409"},
    "listBookings": WITH_KEY | {"200", "404"},
    "getBooking": WITH_KEY | {"200", "404"},
    "confirmDeposit": CHANGE,
    "reissueLink": CHANGE - {"409"},
    **dict.fromkeys(BOOKING_ACTIONS, CHANGE),
    **dict.fromkeys(ACTIONS, CHANGE | {"412"}),
    "listStaffUnits": WITH_KEY | {"200", "404"},
    "getStaffUnit": WITH_KEY | {"200", "304", "404"},
    "getUnitHistory": WITH_KEY | {"200", "404"},
    "listStaffProjects": WITH_KEY | {"200"},
    "addProject": WITH_KEY | BODY | {"201", "404", "409"},
    "getProject": WITH_KEY | {"200", "404"},
    "changeProject": CHANGE - {"409"},
    "getLayout": WITH_KEY | {"200", "404"},
    "putLayout": CHANGE - {"409"},
    "listEndpoints": WITH_KEY | {"200"},
    "addEndpoint": WITH_KEY | BODY | {"201", "404"},
    "getEndpoint": WITH_KEY | {"200", "404"},
    "changeEndpoint": CHANGE - {"409"},
    "removeEndpoint": WITH_KEY | {"204", "404"},
    "rotateSecret": CHANGE - {"409"},
    "pingEndpoint": WITH_KEY | BODY | {"202", "404"},
    "recoverDeliveries": WITH_KEY | BODY | {"200", "202", "404"},
    "getReconciliation": WITH_KEY | {"200", "404", "410"},
    "listDeliveries": WITH_KEY | {"200", "404"},
    "getDelivery": WITH_KEY | {"200", "404"},
    "resendDelivery": WITH_KEY | BODY | {"202", "404", "409"},
    "listAuditEntries": WITH_KEY | {"200", "404"},
}
NOT_ALLOWED = "transition-not-allowed"
CONFLICTS = {
    "holdUnit": {"not-available", "hold-lapsed", NOT_ALLOWED},
    "signBooking": {"hold-lapsed", NOT_ALLOWED},
    "cancelOwnBooking": {"hold-lapsed", NOT_ALLOWED},
    "confirmDeposit": {"not-signed"},
    **{name: {NOT_ALLOWED} for name in ACTIONS | BOOKING_ACTIONS},
    "confirmDepositOfUnit": {"not-signed", NOT_ALLOWED},
    "addProject": {"project-exists"},
    "resendDelivery": {"endpoint-removed"},
    "addStaff": {"staff-exists"},
    "changeStaff": {"last-admin"},
}
SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "listUnitsOnSale": [],
    "getUnitOnSale": [],
    "holdUnit": [{}, {"bookingToken": []}],
    **{name: [{"bookingToken": []}] for name in ("getOwnBooking", "signBooking", "cancelOwnBooking")},
}
BOOKING = [
    "reference", "status", "unitCode", "projectSlug", "holdExpiresAt", "reservedUntil", "terms", "buyer",
    "signedAt", "depositConfirmedAt", "closedAt", "buyerErasedAt",
]  # fmt: skip
TERMS = ["priceSar", "vatIncluded", "vatRate", "totalSar", "depositPercent", "depositSar"]


UNKNOWN = {
    "addEndpoint": {"unknown-project"},
    "changeEndpoint": {"unknown-endpoint", "unknown-project"},
    "getEndpoint": {"unknown-endpoint"},
    "removeEndpoint": {"unknown-endpoint"},
    "getDelivery": {"unknown-delivery"},
    "resendDelivery": {"unknown-delivery"},
    "issueKey": {"unknown-project"},
    "revokeKey": {"unknown-key"},
    "listAuditEntries": {"unknown-project"},
    "changeStaff": {"unknown-staff"},
    "resetStaff": {"unknown-staff"},
}
FILTERS = {
    "listDeliveries": {
        "endpoint",
        "event",
        "unitCode",
        "status",
        "code",
        "since",
        "until",
        "cursor",
        "limit",
    },
    "listAuditEntries": {"project", "actor", "action", "subject", "since", "until", "cursor", "limit"},
    "listEvents": {"after", "limit", "endpoint"},
}

SERVICE_HEADERS = {
    "User-Agent",
    "X-Service-Event",
    "X-Service-Delivery",
    "X-Service-Timestamp",
    "X-Service-Signature",
}


def test_the_description_is_valid_openapi(document: Document) -> None:
    schemathesis.openapi.from_dict(document).validate()


def test_the_description_is_openapi_3_1(document: Document) -> None:
    assert re.fullmatch(r"3\.1\.\d", document["openapi"])


def test_every_reference_leads_somewhere(document: Document) -> None:
    for reference in references(document):
        assert resolved(document, {"$ref": reference})


def test_every_component_is_used(document: Document) -> None:
    used = set(references(document))
    for kind in ("schemas", "responses", "headers"):
        for name in document["components"][kind]:
            assert f"#/components/{kind}/{name}" in used, name


def test_every_operation_has_a_clean_name_of_its_own(document: Document) -> None:
    names = [
        operation.body["operationId"]
        for section in ("paths", "webhooks")
        for operation in operations(document, section)
    ]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name) for name in names)


def test_every_operation_belongs_to_a_described_group(document: Document) -> None:
    groups = {tag["name"] for tag in document["tags"]}
    assert all(set(operation.body["tags"]) <= groups for operation in operations(document))


def test_every_operation_is_in_the_table(document: Document) -> None:
    """A new one must say what it answers."""
    found = {
        operation.body["operationId"]
        for operation in operations(document)
        if operation.path.startswith(("/v1/integration", "/v1/storefront", "/v1/backoffice"))
    }
    assert found == set(ANSWERS)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_possible_answer_is_described(document: Document, name: str) -> None:
    assert set(named(document, name)["responses"]) == ANSWERS[name]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_operation_names_its_credentials(document: Document, name: str) -> None:
    assert named(document, name)["security"] == SECURITY.get(name, [{"apiKey": []}])


@pytest.mark.parametrize("name", sorted(set(ANSWERS) - set(SECURITY)))
def test_every_operation_names_the_scope_that_it_asks_for(document: Document, name: str) -> None:
    scope = "backoffice"
    if name in INTEGRATION:
        scope = "integration"
    elif name in ADMIN:
        scope = "admin"
    elif name == "confirmDeposit":
        scope = "payments"
    assert f"Requires a key of scope `{scope}`" in named(document, name)["description"]


def test_an_operation_names_every_scope_that_opens_it(document: Document) -> None:
    description = named(document, "confirmDeposit")["description"]
    assert "Requires a key of scope `payments`, `backoffice` or `admin`." in description


def test_every_answer_carries_a_request_id(document: Document) -> None:
    for operation in operations(document):
        for answer in operation.body["responses"].values():
            assert "X-Request-Id" in resolved(document, answer)["headers"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_status_routes_name_what_they_refuse(document: Document, path: str) -> None:
    unready = {"503"} if path == "/readyz" else set()
    assert set(document["paths"][path]["get"]["responses"]) == {"200", "405", "413"} | unready


@pytest.mark.parametrize(
    ("status", "header"),
    [("401", "WWW-Authenticate"), ("405", "Allow"), ("429", "Retry-After"), ("503", "Retry-After")],
)
def test_answers_that_bring_a_header_say_so(document: Document, status: str, header: str) -> None:
    for operation in operations(document):
        if answer := operation.body["responses"].get(status):
            assert header in resolved(document, answer)["headers"]


@pytest.mark.parametrize(
    ("name", "status", "header"),
    [
        ("holdUnit", "403", "WWW-Authenticate"),
        ("addProject", "409", "Retry-After"),
        ("addStaff", "409", "Retry-After"),
        ("resendDelivery", "409", "Retry-After"),
        ("confirmDeposit", "409", "Retry-After"),
        ("getBooking", "200", "Cache-Control"),
    ],
)
def test_answers_name_no_header_that_they_never_bring(
    document: Document, name: str, status: str, header: str
) -> None:
    assert header not in resolved(document, named(document, name)["responses"][status])["headers"]


def test_answers_that_may_not_be_kept_say_so(document: Document) -> None:
    said = {
        operation.body["operationId"]
        for operation in operations(document)
        for answer in operation.body["responses"].values()
        if "Cache-Control" in resolved(document, answer)["headers"]
    }
    assert said == {
        "holdUnit", "getOwnBooking", "signBooking", "reissueLink", "addEndpoint", "rotateSecret", "issueKey",
        "addStaff", "resetStaff", "reportPayment",
    }  # fmt: skip


def test_a_hold_takes_the_cookie_of_the_visitor(document: Document) -> None:
    assert ("cookie", "holdfast_visitor") in parameters_of(document, "holdUnit")


@pytest.mark.parametrize(
    ("name", "limit"),
    [("putUnit", "1 MiB"), ("putUnits", "32 MiB"), ("signBooking", "16 KiB"), ("reportPayment", "64 KiB")],
)
def test_an_operation_says_how_large_its_body_may_be(document: Document, name: str, limit: str) -> None:
    assert f"The body has at most {limit}." in named(document, name)["description"]


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("listUnits", "cursor"), ("listEvents", "after"), ("listAuditEntries", "actor")],
)
@pytest.mark.parametrize("value", ["", "a\tb"])
def test_parameters_that_the_server_refuses_are_refused_by_their_schema(
    document: Document, name: str, parameter: str, value: str
) -> None:
    described = parameters_of(document, name)["query", parameter]["schema"]
    assert not validator(document, described).is_valid(value)


def test_examples_obey_their_schemas(document: Document) -> None:
    found = list(media_types(document))
    assert found
    for media_type in found:
        for example in shown(media_type):
            validator(document, media_type["schema"]).validate(example)


def test_every_event_is_a_webhook(document: Document) -> None:
    assert set(document["webhooks"]) == {*EventName, "ping"}


def test_webhooks_describe_the_headers_of_a_delivery(document: Document) -> None:
    for operation in operations(document, "webhooks"):
        assert {header["name"] for header in operation.body["parameters"]} == SERVICE_HEADERS


@pytest.mark.parametrize("name", EventName)
def test_only_reserved_and_sold_carry_a_booking(document: Document, name: EventName) -> None:
    body = document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert body["type"] == name
    assert (body["data"]["booking"] is not None) == (name in (EventName.RESERVED, EventName.SOLD))


def test_a_ping_carries_nothing(document: Document) -> None:
    body = document["webhooks"]["ping"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert body["data"] == {"unit": None, "booking": None}


def test_no_title_would_name_a_class_of_a_generated_client(document: Document) -> None:
    for found in document["components"]["schemas"].values():
        assert "title" not in found
        assert all(not isinstance(part.get("title"), str) for part in found.get("properties", {}).values())


def test_the_description_is_small_enough_to_read() -> None:
    assert len(openapi_json()) < 300_000


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_conditions_are_described_where_they_count(document: Document, name: str) -> None:
    parameters = [resolved(document, found) for found in named(document, name).get("parameters", ())]
    conditions = {found["name"] for found in parameters if found["in"] == "header"} - {"Idempotency-Key"}
    if name in ("getStaffUnit", "getUnit"):
        assert conditions == {"If-None-Match"}
    else:
        counts = name in ACTIONS | {"putUnit", "patchUnit"}
        assert conditions == ({"If-Match", "If-None-Match"} if counts else set())


@pytest.mark.parametrize("name", sorted(CONFLICTS))
def test_every_conflict_of_an_operation_is_described(document: Document, name: str) -> None:
    assert set(told(document, named(document, name), "409")) == CONFLICTS[name]


def test_a_conflict_explains_itself_by_reason_and_status(document: Document) -> None:
    for name in CONFLICTS.keys() - {"addProject", "resendDelivery", "addStaff", "changeStaff"}:
        for reason, problem in told(document, named(document, name), "409").items():
            assert problem["reason"] == reason
            assert problem["currentStatus"]


def test_the_reasons_of_conflicts_are_listed(document: Document) -> None:
    reasons = {
        problem["reason"]
        for operation in operations(document)
        if "409" in operation.body["responses"]
        for problem in told(document, operation.body, "409").values()
        if "reason" in problem
    }
    assert set(schema(document, "Problem")["properties"]["reason"]["enum"]) == reasons


def test_a_hold_can_be_too_many_or_too_soon(document: Document) -> None:
    limits = told(document, named(document, "holdUnit"), "429")
    assert set(limits) == {"too-many-holds", "held-too-recently", "too-many-requests"}


def test_the_scopes_of_keys_are_told_in_words(document: Document) -> None:
    text = document["components"]["securitySchemes"]["apiKey"]["description"]
    assert all(f"`{scope}`" in text for scope in ("integration", "payments", "backoffice", "admin"))


@pytest.mark.parametrize("name", ["Booking", "Terms", "Buyer"])
def test_nothing_of_a_booking_is_ever_left_out(document: Document, name: str) -> None:
    assert schema(document, name)["required"] == list(schema(document, name)["properties"])


def test_a_booking_has_the_members_of_the_contract_and_no_others(document: Document) -> None:
    assert list(schema(document, "Booking")["properties"]) == BOOKING
    assert list(schema(document, "Terms")["properties"]) == TERMS


def test_a_booking_has_one_of_eight_statuses(document: Document) -> None:
    assert set(schema(document, "BookingStatus")["enum"]) == set(BookingStatus)


def test_buyers_ask_only_for_statuses_that_they_see(document: Document) -> None:
    status = parameters_of(document, "listUnitsOnSale")["query", "status"]
    assert status["schema"]["enum"] == ["available", "held", "reserved", "sold"]


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_an_action_on_a_unit_can_be_bound_to_its_state(document: Document, name: str) -> None:
    assert ("header", "If-Match") in parameters_of(document, name)
    assert "ETag" in named(document, name)["responses"]["200"]["headers"]


def test_what_was_done_to_a_unit_includes_what_other_systems_do(document: Document) -> None:
    text = schema(document, "HistoryEntry")["properties"]["action"]["description"]
    others = ("create", "change", "sign", "mark-refunded", "reissue-link", "erase-buyer")
    assert all(f"`{name}`" in text for name in others)


def test_a_unit_on_sale_is_never_unavailable(document: Document) -> None:
    status = schema(document, "UnitOnSale")["properties"]["status"]
    assert status["enum"] == ["available", "held", "reserved", "sold"]


def test_a_hold_has_an_end(document: Document) -> None:
    assert schema(document, "Hold")["properties"]["holdExpiresAt"]["type"] == "string"


def test_buyers_see_nothing_of_the_back_office(document: Document) -> None:
    inner = {"id", "projectId", "ref", "createdAt", "updatedAt", "archived", "reservedUntil"}
    assert inner.isdisjoint(schema(document, "UnitOnSale")["properties"])


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_what_may_be_unknown_is_described(document: Document, name: str) -> None:
    assert set(told(document, named(document, name), "404")) == UNKNOWN[name]


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_every_filter_is_described(document: Document, name: str) -> None:
    assert {parameter for _, parameter in parameters_of(document, name)} == FILTERS[name]


def test_the_schemas_have_the_members_of_the_contract(document: Document) -> None:
    members = {
        "Endpoint": ENDPOINT_FIELDS,
        "EndpointWithSecret": [*ENDPOINT_FIELDS, "secret"],
        "Delivery": DELIVERY_FIELDS,
        "DeliveryWithAttempts": [*DELIVERY_FIELDS, "body", "attempts"],
        "Attempt": ATTEMPT_FIELDS,
    }
    for name, fields in members.items():
        assert list(schema(document, name)["properties"]) == fields == schema(document, name)["required"]


def test_the_names_of_states_are_those_of_the_code(document: Document) -> None:
    assert set(schema(document, "EndpointState")["enum"]) == {*EndpointState}
    assert set(schema(document, "DeliveryStatus")["enum"]) == {*DeliveryStatus}
    assert set(schema(document, "Trigger")["enum"]) == {*Trigger}
    assert schema(document, "Delivery")["properties"]["event"]["enum"] == [*EventName, "ping"]


def paths_of_the_clock() -> set[str]:
    """The actions that the status table gives to nobody else: they are there, and always refused."""
    of_staff = {row.action for row in TRANSITIONS if row.callers & {Caller.STAFF, Caller.ADMIN}}
    prefix = "/v1/backoffice/projects/{slug}/units/{code}"
    return {f"{prefix}/{action}" for action in set(Action) - of_staff}


def served(app: Starlette) -> dict[str, set[str]]:
    """The methods of every path of the API that the application routes."""
    paths = [route.endpoint for route in all_routes(app.routes) if isinstance(route.endpoint, ApiPath)]
    return {path.path: set(path.operations) - {"HEAD"} for path in paths}


def test_every_route_is_described_and_nothing_else(document: Document, app: Starlette) -> None:
    assert paths_of_the_clock() < served(app).keys()
    described = {
        path: {method.upper() for method in item}
        for path, item in document["paths"].items()
        if path not in ("/healthz", "/readyz", "/metrics")
    }
    assert described == {
        path: methods for path, methods in served(app).items() if path not in paths_of_the_clock()
    }


def test_examples_name_a_unit_of_the_demo_and_the_first_put_is_the_demo_s() -> None:
    assert UNIT.code in {unit.code for unit in demo.demo_units()}
    assert PROJECT.slug == demo.SLUG
    assert demo.EXAMPLE_PATH in first_put()
    assert first_put().endswith(f"-d '{json.dumps(demo.EXAMPLE_BODY)}'")


def described_problems(document: Document) -> set[tuple[int, str]]:
    """Status and name of every problem that some operation shows."""
    return {
        (int(status), name)
        for operation in operations(document)
        for status, answer in operation.body["responses"].items()
        for name in resolved(document, answer).get("content", {}).get(MEDIA_TYPE, {}).get("examples", ())
    }


def test_every_status_of_a_problem_is_described(document: Document) -> None:
    described = {status for status, _ in described_problems(document)}
    assert {kind.status for kind in PROBLEM_OF.values()} == described


def test_every_problem_is_described(document: Document) -> None:
    by_command_only = {"secrets-unreadable"}
    outside_of_every_operation = {"internal-error", "not-permitted"}
    on_pages_only = {"sign-in-refused", "second-factor-needed", "setup-link-refused", "too-many-attempts"}
    names = {name for _, name in described_problems(document)}
    assert names == set(PROBLEM_TYPES) - by_command_only - outside_of_every_operation - on_pages_only


def test_every_problem_stands_under_its_own_status(document: Document) -> None:
    for status, name in described_problems(document):
        assert PROBLEM_TYPES[name].status == status


def test_a_unit_has_the_fields_of_the_wire(document: Document) -> None:
    schema = document["components"]["schemas"]["Unit"]
    assert list(schema["properties"]) == list(UnitDocument.__struct_encode_fields__) == schema["required"]


@pytest.mark.parametrize("reference", [None, "Q39-4F6-4K6"])
def test_events_of_the_feed_obey_their_schema(document: Document, reference: str | None) -> None:
    item = FeedItem(
        position=1,
        id=UUID(int=1),
        type=EventName.SOLD,
        created_at=datetime(2026, 11, 14, tzinfo=UTC),
        status=Status.SOLD,
        previous_status=Status.RESERVED,
        booking_reference=reference,
        unit_id=UUID(int=2),
        unit_code="A-1203",
        project_slug="marina-heights",
    )
    event = as_json(event_document(item, item.project_slug))
    validator(document, {"$ref": "#/components/schemas/UnitEvent"}).validate(event)
    assert list(event) == list(document["components"]["schemas"]["UnitEvent"]["properties"])
    assert list(event["data"]["unit"]) == list(document["components"]["schemas"]["UnitChange"]["properties"])
