"""The API description is valid, whole, true to the routes, and good to generate clients from."""

import json
import re

import pytest
import schemathesis
import schemathesis.specs.openapi.schemas  # now, as a whole: in the midst of other tests it once failed
from starlette.applications import Starlette

from holdfast.demo import project as demo
from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus, Trigger
from holdfast.domain.endpoint import EndpointState
from holdfast.domain.event import EventName
from holdfast.domain.transitions import TRANSITIONS, Action, Caller
from holdfast.web.api.models import UnitDocument
from holdfast.web.api.routes import ApiPath
from holdfast.web.openapi.document import openapi_json
from holdfast.web.openapi.schemas import PROJECT, UNIT, first_put
from holdfast.web.problems import MEDIA_TYPE, PROBLEM_OF, PROBLEM_TYPES
from tests.support.in_process import all_routes
from tests.support.webhooks import ATTEMPT_FIELDS, DELIVERY_FIELDS, ENDPOINT_FIELDS
from tests.web import openapi_reading as reading
from tests.web.openapi_reading import Document, named, operations, parameters_of, resolved, schema, told

PUBLIC = {"400", "405", "413", "422", "429", "503"}
OWN = PUBLIC | {"401", "404"}
WITH_KEY = PUBLIC | {"401", "403"}
BODY = {"415"}
CHANGE = WITH_KEY | BODY | {"200", "404", "409"}
INTEGRATION = {"getUnit", "putUnit", "patchUnit", "listUnits", "putUnits", "listProjects", "listEvents"}
ADMIN = {
    "listKeys", "issueKey", "revokeKey", "listStaff", "addStaff", "changeStaff", "resetStaff", "revokeSale",
}  # fmt: skip
ACTIONS = {
    "openUnit", "extendUnit", "cancelHold", "confirmDepositOfUnit", "cancelReservation", "closeSale",
    "putOnSale", "takeOffSale", "archiveUnit", "revokeSale",
}  # fmt: skip
BOOKING_ACTIONS = {"cancelBooking", "closeSaleOfBooking", "extendBooking", "markRefunded", "eraseBuyer"}
LISTS_OF_ALL = {"listProjects", "listKeys", "listStaff", "listStaffProjects", "listEndpoints", "getSeller"}
READ = {
    "listUnits", "listBookings", "getBooking", "listStaffUnits", "getUnitHistory", "getProject", "getLayout",
    "getEndpoint", "listDeliveries", "getDelivery", "listAuditEntries", "getProjectSeller",
}  # fmt: skip
WITHOUT_CONFLICTS = {
    "putUnits", "resetStaff", "reissueLink", "changeProject", "putLayout", "changeEndpoint", "rotateSecret",
    "changeSeller", "changeProjectSeller",
}  # fmt: skip
ANSWERS = {
    **dict.fromkeys(LISTS_OF_ALL, WITH_KEY | {"200"}),
    **dict.fromkeys(READ, WITH_KEY | {"200", "404"}),
    **dict.fromkeys(WITHOUT_CONFLICTS, CHANGE - {"409"}),
    **dict.fromkeys(BOOKING_ACTIONS | {"confirmDeposit", "changeStaff"}, CHANGE),
    **dict.fromkeys(ACTIONS | {"patchUnit"}, CHANGE | {"412"}),
    **dict.fromkeys(("getUnit", "getStaffUnit"), WITH_KEY | {"200", "304", "404"}),
    **dict.fromkeys(("issueKey", "addEndpoint"), WITH_KEY | BODY | {"201", "404", "409"}),
    **dict.fromkeys(("revokeKey", "removeEndpoint"), WITH_KEY | {"204", "404"}),
    **dict.fromkeys(("listUnitsOnSale", "getUnitOnSale"), PUBLIC | {"200", "404"}),
    **dict.fromkeys(("listEvents", "getReconciliation"), WITH_KEY | {"200", "404", "410"}),
    "putUnit": CHANGE | {"201", "412"},
    "addStaff": WITH_KEY | BODY | {"201", "409"},
    "addProject": WITH_KEY | BODY | {"201", "404", "409"},
    "holdUnit": PUBLIC | BODY | {"200", "201", "403", "404", "409"},
    "getOwnBooking": OWN | {"200"},
    "signBooking": OWN | BODY | {"200", "409"},
    "cancelOwnBooking": OWN | {"204", "409"},
    "pingEndpoint": WITH_KEY | BODY | {"202", "404"},
    "recoverDeliveries": WITH_KEY | BODY | {"200", "202", "404"},
    "resendDelivery": WITH_KEY | BODY | {"202", "404", "409"},
}
NOT_ALLOWED = "transition-not-allowed"
CONFLICTS = {
    "holdUnit": {"not-available", "hold-lapsed", "idempotency-key-used"},
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
    **{name: {"unknown-project"} for name in ("addEndpoint", "issueKey", "listAuditEntries")},
    **{name: {"unknown-endpoint"} for name in ("getEndpoint", "removeEndpoint")},
    **{name: {"unknown-delivery"} for name in ("getDelivery", "resendDelivery")},
    **{name: {"unknown-staff"} for name in ("changeStaff", "resetStaff")},
    "changeEndpoint": {"unknown-endpoint", "unknown-project"},
    "revokeKey": {"unknown-key"},
    "changeSeller": {"not-found"},
}
FILTERS = {
    "listDeliveries": {
        "endpoint", "event", "unitCode", "status", "code", "since", "until", "cursor", "limit",
    },
    "listAuditEntries": {"project", "actor", "action", "subject", "since", "until", "cursor", "limit"},
    "listEvents": {"after", "limit", "endpoint"},
}  # fmt: skip
SERVICE_HEADERS = {
    "User-Agent", "X-Service-Event", "X-Service-Delivery", "X-Service-Timestamp", "X-Service-Signature",
}  # fmt: skip
KEPT = {"getUnitOnSale", "listUnitsOnSale", "getHealth", "getReadiness", "getMetrics"}
SURFACES = ("/v1/integration", "/v1/storefront", "/v1/backoffice")
SEEN_BY_BUYERS = ["available", "held", "reserved", "sold"]


def by_name(document: Document) -> dict[str, Document]:
    """The operations that must be in the tables above."""
    found = (one for one in operations(document) if one.path.startswith(SURFACES))
    return {one.body["operationId"]: one.body for one in found}


def with_header(document: Document, header: str) -> set[tuple[str, str]]:
    """The operations and statuses whose answer brings this header."""
    return {
        (operation.body["operationId"], status)
        for operation in operations(document)
        for status, answer in operation.body["responses"].items()
        if header in resolved(document, answer)["headers"]
    }


def test_the_description_is_valid_openapi_3_1_and_small_enough_to_read(document: Document) -> None:
    schemathesis.openapi.from_dict(document).validate()
    assert re.fullmatch(r"3\.1\.\d", document["openapi"])
    assert len(openapi_json()) < 300_000


def test_every_reference_leads_somewhere_and_every_component_is_used(document: Document) -> None:
    used = {node["$ref"] for node in reading.nodes(document) if isinstance(node.get("$ref"), str)}
    assert all(resolved(document, {"$ref": reference}) for reference in used)
    for kind in ("schemas", "responses", "headers"):
        assert {f"#/components/{kind}/{name}" for name in document["components"][kind]} <= used


def test_every_operation_has_a_clean_name_of_its_own_and_a_described_group(document: Document) -> None:
    found = [*operations(document), *operations(document, "webhooks")]
    names = [operation.body["operationId"] for operation in found]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name) for name in names)
    groups = {tag["name"] for tag in document["tags"]}
    assert all(set(operation.body["tags"]) <= groups for operation in operations(document))


def test_every_operation_describes_all_its_answers_and_credentials(document: Document) -> None:
    found = by_name(document)
    assert {name: set(operation["responses"]) for name, operation in found.items()} == ANSWERS
    security = {name: SECURITY.get(name, [{"apiKey": []}]) for name in found}
    assert {name: operation["security"] for name, operation in found.items()} == security
    for path, others in (("/healthz", set[str]()), ("/readyz", {"503"}), ("/metrics", {"401", "429"})):
        assert set(document["paths"][path]["get"]["responses"]) == {"200", "405", "413"} | others


def test_every_operation_names_the_scopes_that_open_it(document: Document) -> None:
    for name in ANSWERS.keys() - SECURITY.keys() - {"confirmDeposit"}:
        scope = "integration" if name in INTEGRATION else "admin" if name in ADMIN else "backoffice"
        assert f"Requires a key of scope `{scope}`" in named(document, name)["description"]
    description = named(document, "confirmDeposit")["description"]
    assert "Requires a key of scope `payments`, `backoffice` or `admin`." in description
    text = document["components"]["securitySchemes"]["apiKey"]["description"]
    assert all(f"`{scope}`" in text for scope in ("integration", "payments", "backoffice", "admin"))


def test_answers_name_the_headers_that_they_bring(document: Document) -> None:
    everywhere = {
        (operation.body["operationId"], status)
        for operation in operations(document)
        for status in operation.body["responses"]
    }
    assert with_header(document, "X-Request-Id") == everywhere
    for status, header in (
        ("401", "WWW-Authenticate"), ("405", "Allow"), ("429", "Retry-After"), ("503", "Retry-After"),
    ):  # fmt: skip
        assert {one for one in everywhere if one[1] == status} <= with_header(document, header)
    no_hint = {(name, "409") for name in ("addProject", "addStaff", "resendDelivery", "confirmDeposit")}
    assert no_hint.isdisjoint(with_header(document, "Retry-After"))
    assert ("holdUnit", "403") not in with_header(document, "WWW-Authenticate")
    named_kept = {name for name, _ in everywhere - with_header(document, "Cache-Control") if _[0] == "2"}
    assert named_kept == KEPT


@pytest.mark.parametrize(
    ("name", "limit"),
    [("putUnit", "1 MiB"), ("putUnits", "32 MiB"), ("signBooking", "16 KiB"), ("reportPayment", "64 KiB")],
)
def test_an_operation_says_how_large_its_body_may_be(document: Document, name: str, limit: str) -> None:
    assert f"The body has at most {limit}." in named(document, name)["description"]


def test_parameters_that_the_server_refuses_are_refused_by_their_schema(document: Document) -> None:
    for name, parameter in (("listUnits", "cursor"), ("listEvents", "after"), ("listAuditEntries", "actor")):
        described = reading.validator(document, parameters_of(document, name)["query", parameter]["schema"])
        assert not any(described.is_valid(value) for value in ("", "a\tb"))


def test_parameters_are_described_where_they_count(document: Document) -> None:
    for name in ANSWERS:
        described = [resolved(document, found) for found in named(document, name).get("parameters", ())]
        conditions = {found["name"] for found in described if found["in"] == "header"} - {"Idempotency-Key"}
        expected = {"If-Match", "If-None-Match"} if name in ACTIONS | {"putUnit", "patchUnit"} else set()
        if name in ("getStaffUnit", "getUnit"):
            expected = {"If-None-Match"}
        assert conditions == expected, name
    assert {(name, "200") for name in ACTIONS} <= with_header(document, "ETag")
    assert ("cookie", "holdfast_visitor") in parameters_of(document, "holdUnit")
    filters = {name: {parameter for _, parameter in parameters_of(document, name)} for name in FILTERS}
    assert filters == FILTERS


def test_examples_obey_their_schemas(document: Document) -> None:
    found = [node for node in reading.nodes(document) if "schema" in node and reading.examples(node)]
    assert found
    for media_type in found:
        described = reading.validator(document, media_type["schema"])
        for example in reading.examples(media_type):
            described.validate(example)


def test_every_event_is_a_webhook_with_the_headers_of_a_delivery(document: Document) -> None:
    assert set(document["webhooks"]) == {*EventName, "ping"}
    for operation in operations(document, "webhooks"):
        assert {header["name"] for header in operation.body["parameters"]} == SERVICE_HEADERS
        example = operation.body["requestBody"]["content"]["application/json"]["example"]
        assert example["type"] == operation.path
        assert (example["data"]["unit"] is None) == (operation.path == "ping")
        with_booking = operation.path in (EventName.RESERVED, EventName.SOLD)
        assert (example["data"]["booking"] is not None) == with_booking


def test_no_title_would_name_a_class_of_a_generated_client(document: Document) -> None:
    for found in document["components"]["schemas"].values():
        assert "title" not in found
        assert all(not isinstance(part.get("title"), str) for part in found.get("properties", {}).values())


def test_every_conflict_of_an_operation_is_described_with_its_reason(document: Document) -> None:
    conflicts = {name: told(document, named(document, name), "409") for name in CONFLICTS}
    assert {name: set(problems) for name, problems in conflicts.items()} == CONFLICTS
    for name in CONFLICTS.keys() - {"addProject", "resendDelivery", "addStaff", "changeStaff"}:
        for reason, problem in conflicts[name].items():
            assert problem["reason"] == reason
            assert problem["currentStatus"]
    reasons = {
        problem["reason"]
        for operation in operations(document)
        if "409" in operation.body["responses"]
        for problem in told(document, operation.body, "409").values()
        if "reason" in problem
    }
    assert set(schema(document, "Problem")["properties"]["reason"]["enum"]) == reasons


def test_what_may_be_unknown_or_too_many_is_described(document: Document) -> None:
    assert {name: set(told(document, named(document, name), "404")) for name in UNKNOWN} == UNKNOWN
    limits = told(document, named(document, "holdUnit"), "429")
    assert set(limits) == {"too-many-holds", "held-too-recently", "too-many-requests"}


def test_the_schemas_have_the_members_of_the_contract_and_leave_none_out(document: Document) -> None:
    members = {
        "Booking": BOOKING,
        "Terms": TERMS,
        "Buyer": list(schema(document, "Buyer")["properties"]),
        "Unit": list(UnitDocument.__struct_encode_fields__),
        "Endpoint": ENDPOINT_FIELDS,
        "EndpointWithSecret": [*ENDPOINT_FIELDS, "secret"],
        "Delivery": DELIVERY_FIELDS,
        "DeliveryWithAttempts": [*DELIVERY_FIELDS, "body", "attempts"],
        "Attempt": ATTEMPT_FIELDS,
    }
    for name, fields in members.items():
        assert list(schema(document, name)["properties"]) == fields == schema(document, name)["required"]


def test_the_names_of_states_are_those_of_the_code(document: Document) -> None:
    for name, states in (
        ("BookingStatus", BookingStatus), ("EndpointState", EndpointState),
        ("DeliveryStatus", DeliveryStatus), ("Trigger", Trigger),
    ):  # fmt: skip
        assert set(schema(document, name)["enum"]) == set(states)
    assert schema(document, "Delivery")["properties"]["event"]["enum"] == [*EventName, "ping"]
    text = schema(document, "HistoryEntry")["properties"]["action"]["description"]
    others = ("create", "change", "sign", "mark-refunded", "reissue-link", "erase-buyer")
    assert all(f"`{name}`" in text for name in others)


def test_buyers_see_nothing_of_the_back_office(document: Document) -> None:
    seen = schema(document, "UnitOnSale")["properties"]
    inner = {"id", "projectId", "ref", "createdAt", "updatedAt", "archived", "reservedUntil"}
    assert inner.isdisjoint(seen)
    status = parameters_of(document, "listUnitsOnSale")["query", "status"]
    assert seen["status"]["enum"] == status["schema"]["enum"] == SEEN_BY_BUYERS
    assert schema(document, "Hold")["properties"]["holdExpiresAt"]["type"] == "string"


def test_every_route_is_described_but_those_of_the_clock_alone(document: Document, app: Starlette) -> None:
    """Actions that the status table gives to nobody else are there, and always refused."""
    paths = [route.endpoint for route in all_routes(app.routes) if isinstance(route.endpoint, ApiPath)]
    served = {path.path: set(path.operations) - {"HEAD"} for path in paths}
    of_staff = {row.action for row in TRANSITIONS if row.callers & {Caller.STAFF, Caller.ADMIN}}
    prefix = "/v1/backoffice/projects/{slug}/units/{code}"
    for action in set(Action) - of_staff:
        del served[f"{prefix}/{action}"]
    described = {path: {method.upper() for method in item} for path, item in document["paths"].items()}
    of_operators = {path: {"GET"} for path in ("/healthz", "/readyz", "/metrics")}
    assert described == served | of_operators


def test_examples_name_a_unit_of_the_demo_and_the_first_put_makes_another_than_the_demo_s() -> None:
    assert UNIT.code in {unit.code for unit in demo.demo_units()}
    assert PROJECT.slug == demo.SLUG
    assert f"/projects/{demo.SLUG}/units/" in first_put()
    assert demo.EXAMPLE_PATH not in first_put()
    assert first_put().endswith(f"-d '{json.dumps(demo.EXAMPLE_BODY)}'")


def test_every_problem_is_described_under_its_own_status(document: Document) -> None:
    by_command_only = {"secrets-unreadable"}
    outside_of_every_operation = {"internal-error", "not-permitted"}
    on_pages_only = {"sign-in-refused", "second-factor-needed", "setup-link-refused", "too-many-attempts"}
    found = {
        (int(status), name)
        for operation in operations(document)
        for status, answer in operation.body["responses"].items()
        for name in resolved(document, answer).get("content", {}).get(MEDIA_TYPE, {}).get("examples", ())
    }
    expected = PROBLEM_TYPES.keys() - by_command_only - outside_of_every_operation - on_pages_only
    assert found == {(PROBLEM_TYPES[name].status, name) for name in expected}
    assert {status for status, _ in found} == {kind.status for kind in PROBLEM_OF.values()}
