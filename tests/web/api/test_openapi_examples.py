"""Whoever pastes a request body from the API description has it accepted."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from holdfast.web.api.unit_bodies import UnitReplacement
from holdfast.web.openapi.document import openapi_document
from holdfast.web.openapi.schemas import BOOKING_REFERENCE
from tests.support.buying import Buyer
from tests.support.client import JSON, Project, Unit
from tests.support.keys import Keys
from tests.support.payment_system import signed_headers
from tests.web.openapi_reading import Operation, operations

CODE = "A-0304"
REFUSED = {400, 413, 415, 422}


def with_bodies() -> list[Operation]:
    return [one for one in operations(openapi_document()) if "requestBody" in one.body]


def example_of(operation: Operation) -> bytes:
    example: Any = operation.body["requestBody"]["content"][JSON]["example"]
    return json.dumps(example).encode()


@pytest.fixture
def unit(http: httpx.Client, project: Project) -> Unit:
    unit = Unit(http, project, CODE)
    unit.create(UnitReplacement.example)
    return unit


@pytest.mark.parametrize("operation", with_bodies(), ids=lambda one: one.body["operationId"])
def test_the_example_of_a_body_is_accepted(operation: Operation, unit: Unit, keys: Keys) -> None:
    """It may be refused for what it is sent to: there is no such endpoint, or no deposit is due."""
    held = Buyer(unit.http).hold(unit)
    path = operation.path.format(slug=unit.project.slug, code=CODE, reference=held.reference, id=uuid4())
    # The callback names the booking in its body.
    content = example_of(operation).replace(BOOKING_REFERENCE.encode(), held.reference.encode())
    key = keys.issue(scopes=["integration", "admin"]).text
    token = held.token if operation.path.startswith("/v1/storefront") else key
    headers = {"Authorization": f"Bearer {token}", "Content-Type": JSON, **signed_headers(content)}
    response = unit.http.request(operation.method.upper(), path, content=content, headers=headers)
    assert response.status_code not in REFUSED, response.text
    assert "/problems/invalid-input" not in response.text


def test_the_example_of_extending_is_carried_out(unit: Unit, keys: Keys) -> None:
    Buyer(unit.http).hold(unit)
    (operation,) = [one for one in with_bodies() if one.body["operationId"] == "extendUnit"]
    path = operation.path.format(slug=unit.project.slug, code=CODE)
    key = keys.issue(scopes=["backoffice"]).text
    headers = {"Authorization": f"Bearer {key}", "Content-Type": JSON}
    response = unit.http.request("POST", path, content=example_of(operation), headers=headers)
    assert response.status_code == 200, response.text
