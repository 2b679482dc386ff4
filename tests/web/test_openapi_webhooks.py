"""The description of endpoints and deliveries: answers, problems, members, bodies."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from holdfast.domain.delivery import DeliveryStatus, Trigger
from holdfast.domain.endpoint import EndpointState
from holdfast.domain.event import EventName
from holdfast.domain.refusals import InvalidInput
from holdfast.domain.signature import verify
from holdfast.web import strict_json
from holdfast.web.backoffice.endpoint_bodies import (
    ENDPOINT,
    ENDPOINT_NAMES,
    NEW_ENDPOINT,
    NEW_ENDPOINT_NAMES,
    RECOVERY,
    RECOVERY_NAMES,
)
from holdfast.web.checking import valid_body
from holdfast.web.openapi.webhook_bodies import webhook_bodies
from holdfast.web.openapi.webhook_examples import (
    delivery_with_attempts,
    endpoint_with_secret,
    new_endpoint,
    recovery,
)
from tests.support.webhooks import ATTEMPT_FIELDS, DELIVERY_FIELDS, ENDPOINT_FIELDS
from tests.web.reading import named, operations, parameters_of, schema, told, validator

Document = dict[str, Any]

STAFF = {"400", "401", "403", "405", "422", "429", "503"}
BODY = {"413", "415"}
ANSWERS = {
    "listEndpoints": STAFF | {"200"},
    "addEndpoint": STAFF | BODY | {"201", "404"},
    "getEndpoint": STAFF | {"200", "404"},
    "changeEndpoint": STAFF | BODY | {"200", "404"},
    "removeEndpoint": STAFF | {"204", "404"},
    "rotateSecret": STAFF | BODY | {"200", "404"},
    "pingEndpoint": STAFF | BODY | {"202", "404"},
    "recoverDeliveries": STAFF | BODY | {"200", "202", "404"},
    "getReconciliation": STAFF | {"200", "404", "410"},
    "listDeliveries": STAFF | {"200", "404"},
    "getDelivery": STAFF | {"200", "404"},
    "resendDelivery": STAFF | BODY | {"202", "404", "409"},
}
UNKNOWN = {
    "addEndpoint": {"unknown-project"},
    "changeEndpoint": {"unknown-endpoint", "unknown-project"},
    "getDelivery": {"unknown-delivery"},
    "resendDelivery": {"unknown-delivery"},
}
FILTERS = {"endpoint", "event", "unitCode", "status", "code", "since", "until", "cursor", "limit"}

BODIES: dict[str, tuple[TypeAdapter[Any], frozenset[str], dict[str, Any]]] = {
    "NewEndpoint": (NEW_ENDPOINT, NEW_ENDPOINT_NAMES, new_endpoint()),
    "EndpointChange": (ENDPOINT, ENDPOINT_NAMES, {"paused": True, "projects": None}),
    "Recovery": (RECOVERY, RECOVERY_NAMES, recovery()),
}
OF_AN_ENDPOINT: dict[str, list[Any]] = {
    "url": ["https://a.example", "", "x" * 2000, "x" * 2001, "a\x00b", None, 5],
    "description": ["", "x" * 500, "x" * 501, "a\x00b", None, 5],
    "events": [
        [*EventName], ["unit.sold"], [], ["unit.sold", "unit.sold"], ["ping"], ["unit.gone"], [5], None, {},
    ],
    "projects": [None, ["a-b"], ["a-b", "c-d"], ["a-b", "a-b"], [], ["A"], [5], "a-b"],
    "paused": [True, False, None, "true", 1],
    "ordered": [True, None],
    "maxInFlight": [1, 256, 0, 257, 1.0, 1.5, "1", None, True],
}  # fmt: skip
OF_A_RECOVERY: dict[str, list[Any]] = {
    "since": ["2026-11-14T09:30:00.000Z", "2026-11-14", "", None, 5],
    "until": [None, "2026-11-14T09:30:00Z", "soon"],
    "events": [None, ["ping", "unit.sold"], [], ["unit.gone"], ["ping", "ping"]],
    "unitCode": [None, "A-101", "", " A", "x" * 50, "x" * 51, "a\x00b", 5],
    "dryRun": [True, False, None, "true"],
}
FIELDS = [
    (name, field, value)
    for name, values in (
        ("NewEndpoint", OF_AN_ENDPOINT),
        ("EndpointChange", OF_AN_ENDPOINT),
        ("Recovery", OF_A_RECOVERY),
    )
    for field, cases in values.items()
    for value in cases
]


def test_every_operation_on_webhooks_is_in_the_table(document: Document) -> None:
    """A new one must say what it answers."""
    found = {
        operation.body["operationId"]
        for operation in operations(document)
        if operation.body["tags"] == ["Webhooks"]
    }
    assert found == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_possible_answer_is_described(document: Document, name: str) -> None:
    assert set(named(document, name)["responses"]) == ANSWERS[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_operation_is_for_keys_of_the_back_office(document: Document, name: str) -> None:
    assert named(document, name)["security"] == [{"apiKey": ["backoffice"]}]


@pytest.mark.parametrize("name", [name for name, answers in ANSWERS.items() if "404" in answers])
def test_what_may_be_unknown_is_described(document: Document, name: str) -> None:
    assert set(told(document, named(document, name), "404")) == UNKNOWN.get(name, {"unknown-endpoint"})


def test_only_a_resend_finds_its_endpoint_removed(document: Document) -> None:
    ((name, problem),) = told(document, named(document, "resendDelivery"), "409").items()
    assert name == problem["reason"] == "endpoint-removed"
    assert schema(document, "EndpointRemoved")["properties"]["reason"]["const"] == name
    assert "reason" in schema(document, "EndpointRemoved")["required"]


@pytest.mark.parametrize(("name", "status"), [("addEndpoint", "201"), ("rotateSecret", "200")])
def test_a_secret_is_for_no_cache(document: Document, name: str, status: str) -> None:
    assert "Cache-Control" in named(document, name)["responses"][status]["headers"]


def test_every_filter_of_the_log_is_described(document: Document) -> None:
    assert {name for _, name in parameters_of(document, "listDeliveries")} == FILTERS


def test_the_feed_can_be_that_of_an_endpoint(document: Document) -> None:
    assert ("query", "endpoint") in parameters_of(document, "listEvents")


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
    assert schema(document, "EndpointState")["enum"] == [*EndpointState]
    assert schema(document, "DeliveryStatus")["enum"] == [*DeliveryStatus]
    assert schema(document, "AttemptTrigger")["enum"] == [*Trigger]
    assert schema(document, "SentEventName")["enum"] == [*EventName, "ping"]


def test_the_example_delivery_is_signed_with_the_example_secret() -> None:
    secret = endpoint_with_secret()["secret"]
    for attempt in delivery_with_attempts()["attempts"]:
        headers, body = attempt["request"]["headers"], attempt["request"]["body"]
        timestamp, signature = headers["X-Service-Timestamp"], headers["X-Service-Signature"]
        assert verify(secret, timestamp, signature, body.encode(), float(timestamp)) is None
        assert json.loads(body)["id"] == headers["X-Service-Delivery"]


def accepts(name: str, body: Any) -> bool:
    """Whether the server takes the body, as far as the body alone tells."""
    adapter, names, _ = BODIES[name]
    try:
        valid_body(adapter, strict_json.parse(json.dumps(body)), names)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize(("name", "field", "value"), FIELDS)
def test_description_and_server_agree_on(document: Document, name: str, field: str, value: Any) -> None:
    body = BODIES[name][2] | {field: value}
    described = validator(document, {"$ref": f"#/components/schemas/{name}"})
    assert described.is_valid(body) == accepts(name, body)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("body", [{}, [], None, "text", 1, {"color": "blue"}], ids=str)
def test_description_and_server_agree_on_the_whole_body(document: Document, name: str, body: Any) -> None:
    described = validator(document, {"$ref": f"#/components/schemas/{name}"})
    assert described.is_valid(body) == accepts(name, body)


@pytest.mark.parametrize("name", BODIES)
def test_every_name_that_the_server_takes_is_described(name: str) -> None:
    assert set(webhook_bodies()[name]["properties"]) == BODIES[name][1]
