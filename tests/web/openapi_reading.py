"""Ways to walk through the API description."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jsonschema_rs

from holdfast.web.problems import MEDIA_TYPE

Document = dict[str, Any]


class Operation(NamedTuple):
    method: str
    path: str
    body: dict[str, Any]


def operations(document: Document, section: str = "paths") -> list[Operation]:
    return [
        Operation(method, path, body)
        for path, item in document[section].items()
        for method, body in item.items()
    ]


def resolved(document: Document, node: dict[str, Any]) -> Any:
    """The node, or what it refers to."""
    if "$ref" not in node:
        return node
    found: Any = document
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def nodes(node: Any) -> Iterator[Document]:
    """Every object of the description, however deep."""
    if isinstance(node, dict):
        yield node
    if isinstance(node, dict | list):
        for value in node.values() if isinstance(node, dict) else node:
            yield from nodes(value)


def validator(document: Document, schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {"components": document["components"], "allOf": [schema]}, validate_formats=True
    )


def examples(media_type: Document) -> list[Any]:
    if "example" in media_type:
        return [media_type["example"]]
    return [example["value"] for example in media_type.get("examples", {}).values()]


def named(document: Document, name: str) -> Document:
    return next(found.body for found in operations(document) if found.body["operationId"] == name)


def schema(document: Document, name: str) -> Document:
    found: Document = document["components"]["schemas"][name]
    return found


def told(document: Document, operation: Document, status: str) -> dict[str, Any]:
    """The problems that an operation shows under a status."""
    answer = resolved(document, operation["responses"][status])
    examples: dict[str, Any] = answer["content"][MEDIA_TYPE]["examples"]
    return {name: example["value"] for name, example in examples.items()}


def parameters_of(document: Document, name: str) -> dict[tuple[str, str], Document]:
    found = [resolved(document, parameter) for parameter in named(document, name)["parameters"]]
    return {(parameter["in"], parameter["name"]): parameter for parameter in found}
