"""What the operations of the API description are made of."""

from __future__ import annotations

from typing import Any

from holdfast.domain.access import Scope
from holdfast.web.call import JSON
from holdfast.web.openapi.forms import Schema, reference

Operation = dict[str, Any]
Paths = dict[str, dict[str, Operation]]


def operation(name: str, tag: str, summary: str, *parameters: str, **members: Any) -> Operation:
    references = [{"$ref": f"#/components/parameters/{parameter}"} for parameter in parameters]
    found = {"operationId": name, "tags": [tag], "summary": summary, **members}
    return found | ({"parameters": references} if references else {})


def key_with(*scopes: Scope) -> list[dict[str, list[str]]]:
    """A key with one of the scopes; OpenAPI 3.1 lets every kind of scheme name what it asks for."""
    return [{"apiKey": [str(scope)]} for scope in scopes]


def json_body(schema: Schema, *, required: bool = True, **shown: tuple[str, Any]) -> dict[str, Any]:
    """``shown``: examples, each with its summary."""
    found = {name: {"summary": summary, "value": value} for name, (summary, value) in shown.items()}
    return {"required": required, "content": {JSON: {"schema": schema, "examples": found}}}


def body_of(name: str, *, required: bool = True, **shown: tuple[str, Any]) -> dict[str, Any]:
    return json_body(reference(name), required=required, **shown)
