"""The description of keys and of the audit trail: answers, problems, members, the body."""

import json
from typing import Any

import pytest

from holdfast.domain.refusals import InvalidInput
from holdfast.web import strict_json
from holdfast.web.backoffice.key_bodies import NEW_KEY, NEW_KEY_NAMES
from holdfast.web.checking import valid_body
from holdfast.web.openapi.administration_schemas import new_key
from tests.web.reading import named, operations, parameters_of, schema, told, validator

Document = dict[str, Any]

ADMIN = {"400", "401", "403", "405", "422", "429", "503"}
ANSWERS = {
    "listKeys": ADMIN | {"200"},
    "issueKey": ADMIN | {"201", "404", "413", "415"},
    "revokeKey": ADMIN | {"204", "404"},
    "listAuditEntries": ADMIN | {"200", "404"},
}
UNKNOWN = {
    "issueKey": {"unknown-project"},
    "revokeKey": {"unknown-key"},
    "listAuditEntries": {"unknown-project"},
}
FIELDS: dict[str, list[Any]] = {
    "name": ["A", "", " A", "A ", "x" * 200, "x" * 201, None, 5],
    "scopes": [["integration"], ["admin", "payments"], [], ["root"], ["admin", "admin"], None, "admin"],
    "projects": [None, ["a-b"], [], ["A"], ["a-b", "a-b"], "a-b"],
    "expiresInDays": [None, 1, 0.5, 36_500, 0, -1, 36_501, "30", True],
    "key": ["hfk_mine"],
}


def test_every_operation_of_administration_is_in_the_table(document: Document) -> None:
    """A new one must say what it answers."""
    found = {
        operation.body["operationId"]
        for operation in operations(document)
        if operation.body["tags"] == ["Administration"] and "Staff" not in operation.body["operationId"]
    }
    assert found == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_possible_answer_is_described(document: Document, name: str) -> None:
    assert set(named(document, name)["responses"]) == ANSWERS[name]


@pytest.mark.parametrize("name", sorted(set(ANSWERS) - {"listAuditEntries"}))
def test_an_admins_key_is_asked_for(document: Document, name: str) -> None:
    operation = named(document, name)
    assert operation["security"] == [{"apiKey": ["admin"]}]
    (problem,) = told(document, operation, "403").values()
    assert "`admin`" in problem["detail"]


def test_the_trail_asks_for_a_key_of_the_back_office(document: Document) -> None:
    assert named(document, "listAuditEntries")["security"] == [{"apiKey": ["backoffice"]}]


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_be_unknown_is_told(document: Document, name: str) -> None:
    assert set(told(document, named(document, name), "404")) == UNKNOWN[name]


def test_every_filter_of_the_trail_is_described(document: Document) -> None:
    filters = {"project", "actor", "action", "subject", "since", "until", "cursor", "limit"}
    assert {name for _, name in parameters_of(document, "listAuditEntries")} == filters


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in FIELDS.items() for value in values],
    ids=lambda value: str(value)[:20],
)
def test_the_description_accepts_what_the_server_accepts(document: Document, field: str, value: Any) -> None:
    body = {**new_key(), field: value}
    sent = strict_json.parse(json.dumps(body))
    try:
        valid_body(NEW_KEY, sent, NEW_KEY_NAMES)
        is_taken = True
    except InvalidInput:
        is_taken = False
    assert validator(document, schema(document, "NewKey")).is_valid(body) == is_taken
