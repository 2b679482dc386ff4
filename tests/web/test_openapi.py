"""The API description is valid, whole, and good to generate clients from."""

import re
from typing import Any

import pytest
import schemathesis
import schemathesis.specs.openapi.schemas  # now, as a whole: in the midst of other tests it once failed

from holdfast.domain.event import EventName
from holdfast.web.openapi.document import openapi_json
from tests.web.reading import media_types, operations, references, resolved, shown, validator

Document = dict[str, Any]

WITH_KEY = {"400", "401", "403", "405", "422", "429", "503"}
ANSWERS = {
    "getUnit": {"200", "304", "404"},
    "putUnit": {"200", "201", "404", "409", "412", "413", "415"},
    "patchUnit": {"200", "404", "409", "412", "413", "415"},
    "listUnits": {"200", "404"},
    "putUnits": {"200", "404", "413", "415"},
    "listProjects": {"200"},
    "listEvents": {"200", "404", "410"},
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
    for kind in ("schemas", "responses", "headers", "parameters"):
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


@pytest.mark.parametrize("name", ANSWERS)
def test_every_possible_answer_is_described(document: Document, name: str) -> None:
    operation = next(found.body for found in operations(document) if found.body["operationId"] == name)
    assert set(operation["responses"]) == ANSWERS[name] | WITH_KEY
    assert operation["security"] == [{"apiKey": ["integration"]}]


def test_every_answer_carries_a_request_id(document: Document) -> None:
    for operation in operations(document):
        for answer in operation.body["responses"].values():
            assert "X-Request-Id" in resolved(document, answer)["headers"]


@pytest.mark.parametrize(
    ("status", "header"),
    [("401", "WWW-Authenticate"), ("405", "Allow"), ("429", "Retry-After"), ("503", "Retry-After")],
)
def test_answers_that_bring_a_header_say_so(document: Document, status: str, header: str) -> None:
    for operation in operations(document):
        if answer := operation.body["responses"].get(status):
            assert header in resolved(document, answer)["headers"]


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
    for schema in document["components"]["schemas"].values():
        assert "title" not in schema
        assert all(not isinstance(part.get("title"), str) for part in schema.get("properties", {}).values())


def test_the_description_is_small_enough_to_read() -> None:
    assert len(openapi_json()) < 300_000
