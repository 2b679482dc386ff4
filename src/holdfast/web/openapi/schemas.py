"""JSON schemas of request and response models, as one set of components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from holdfast.domain.status import SettableStatus
from holdfast.web.api.bodies import component_name
from holdfast.web.api.field_types import UNPRINTABLE
from holdfast.web.api.models import FIELD_TEXTS
from holdfast.web.api.unit_bodies import MediaObject, Url
from holdfast.web.fields import BUYER_NAME, EMAIL_ADDRESS, NO_NUL, PHONE_NUMBER, WEB_ADDRESS

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/"

_INVISIBLE = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u180e\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
# What is dropped at the ends of a buyer's details: spaces of every kind, and marks of direction.
_ENDS = (
    r"[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u200e\u200f"
    r"\u2028-\u202f\u205f\u2066-\u2069\u3000]*"
)
MEDIA_URL_PATTERN = f"^[Hh][Tt][Tt][Pp][Ss]?://[^ /?#{UNPRINTABLE}][^ {UNPRINTABLE}]*$"
_PATTERNS = {
    NO_NUL: r"^[^\u0000]*$",
    WEB_ADDRESS: MEDIA_URL_PATTERN,
    BUYER_NAME: f"^{_ENDS}[^ {UNPRINTABLE}]([^{_INVISIBLE}]*[^ {UNPRINTABLE}])?{_ENDS}$",
    EMAIL_ADDRESS: f"^{_ENDS}[^ @{UNPRINTABLE}]+@[^ @{UNPRINTABLE}]+{_ENDS}$",
    PHONE_NUMBER: f"^{_ENDS}[+]?[^+A-Za-z@{UNPRINTABLE}]+{_ENDS}$",
}
"""The patterns of our models, which are for Rust's regex engine, in syntax that every validator supports."""

_SETTABLE_STATUS = {"type": "string", "enum": list(get_args(SettableStatus))}


def component_schemas(responses: Iterable[Any], bodies: Iterable[type[BaseModel]]) -> dict[str, Schema]:
    _, structs = msgspec.json.schema_components(list(responses), ref_template=REFERENCE + "{name}")
    models = models_json_schema(
        [(model, "validation") for model in bodies], ref_template=REFERENCE + "{model}"
    )
    found = {**structs, **models[1].get("$defs", {}), **_media(), "SettableStatus": _SETTABLE_STATUS}
    return {component_name(name): _tidy(schema) for name, schema in sorted(found.items())}


def schema_of(kind: type) -> Schema:
    """A reference to the component of a response model."""
    return {"$ref": REFERENCE + component_name(kind.__name__)}


def _media() -> dict[str, Schema]:
    file = TypeAdapter(MediaObject).json_schema()
    url = TypeAdapter(Url).json_schema()
    return {
        "Media": {
            "anyOf": [url, {"$ref": REFERENCE + "MediaFile"}],
            "description": "An http(s) URL, or an object with `url` and `name`; given back as it was sent.",
        },
        "MediaFile": file,
    }


def _tidy(schema: Any) -> Any:
    """Decimals are numbers on the wire, null is one of the types, and generators name no class by a title."""
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {
        name: _tidied_member(name, value) for name, value in schema.items() if not _is_noise(name, value)
    }
    if tidied.get("format") == "decimal":
        tidied = {**tidied, "type": "number"}
        del tidied["format"]
    if "allOf" in tidied:
        # A reference to a component that pydantic does not know.
        (own,) = tidied.pop("allOf")
        tidied = {**own, **tidied}
    if "enum" in tidied and "type" not in tidied:
        tidied["type"] = "string"
    if "$ref" in tidied:
        tidied["$ref"] = REFERENCE + component_name(tidied["$ref"].removeprefix(REFERENCE))
    pattern = tidied.get("pattern")
    if pattern in _PATTERNS:
        tidied = _translated(tidied, pattern)
    return _with_null(tidied)


def _is_noise(name: str, value: Any) -> bool:
    return (name == "title" and isinstance(value, str)) or (name == "default" and value is None)


def _tidied_member(name: str, value: Any) -> Any:
    if name == "properties":
        texts = FIELD_TEXTS if "areaSqm" in value else {}
        return {member: _described(_tidy(schema), texts.get(member)) for member, schema in value.items()}
    return value if name in ("enum", "const", "example", "examples", "required", "default") else _tidy(value)


def _described(schema: Schema, text: str | None) -> Schema:
    return schema if text is None or "description" in schema else {**schema, "description": text}


def _translated(schema: Schema, pattern: str) -> Schema:
    return {**schema, "pattern": _PATTERNS[pattern]}


def _with_null(schema: Schema) -> Schema:
    """``anyOf`` of a simple type and null is a list of types, which more generators know."""
    alternatives = schema.get("anyOf")
    if not isinstance(alternatives, list) or {"type": "null"} not in alternatives:
        return schema
    others = [one for one in alternatives if one != {"type": "null"}]
    if len(others) != 1 or not isinstance(others[0].get("type"), str) or "enum" in others[0]:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**others[0], **rest, "type": [others[0]["type"], "null"]}


def objects(value: Any) -> Iterator[Schema]:
    """Every object in a document."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(one)
