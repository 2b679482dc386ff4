"""The forms that the schemas of the API description are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from holdfast.domain.project import SLUG_LENGTH, SLUG_PATTERN
from holdfast.domain.reference import SYMBOLS
from holdfast.domain.unit import CODE_LENGTH

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/{model}"

# Control characters, separators other than the space, and invisible signs. No pattern language that all
# validators share can tell every printable character, so the pattern lets through a little too much.
UNPRINTABLE = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb"
)
CODE_PATTERN = f"^[^ {UNPRINTABLE}]([^{UNPRINTABLE}]*[^ {UNPRINTABLE}])?$"
URL_PATTERN = f"^[Hh][Tt][Tt][Pp][Ss]?://[^ /?#{UNPRINTABLE}][^ {UNPRINTABLE}]*$"

# The same again for what names a buyer: unlike a code, a name may have spaces of every kind and joiners
# inside, and a phone number the digits of every script.
INVISIBLE = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u180e\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
# What is dropped at the ends of all three: spaces of every kind, and marks of direction.
_ENDS = (
    r"[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u200e\u200f"
    r"\u2028-\u202f\u205f\u2066-\u2069\u3000]*"
)
BUYER_NAME_PATTERN = f"^{_ENDS}[^ {UNPRINTABLE}]([^{INVISIBLE}]*[^ {UNPRINTABLE}])?{_ENDS}$"
EMAIL_PATTERN = f"^{_ENDS}[^ @{UNPRINTABLE}]+@[^ @{UNPRINTABLE}]+{_ENDS}$"
PHONE_PATTERN = f"^{_ENDS}[+]?[^+A-Za-z@{UNPRINTABLE}]+{_ENDS}$"

_WRITTEN = f"[{SYMBOLS}]{{3}}"
_TYPED = f"[{''.join(sorted({*SYMBOLS, *SYMBOLS.lower()}))}]{{3}}"

TEXT: Schema = {"type": "string"}
UUID: Schema = TEXT | {"format": "uuid"}
TIME: Schema = TEXT | {"format": "date-time"}
READ_CODE: Schema = TEXT | {"minLength": CODE_LENGTH[0], "maxLength": CODE_LENGTH[1]}
CODE: Schema = READ_CODE | {"pattern": CODE_PATTERN}
SLUG: Schema = TEXT | {"minLength": SLUG_LENGTH[0], "maxLength": SLUG_LENGTH[1], "pattern": SLUG_PATTERN}
BOOKING_REFERENCE: Schema = TEXT | {"pattern": f"^{_WRITTEN}-{_WRITTEN}-{_WRITTEN}$"}
TYPED_REFERENCE: Schema = TEXT | {"pattern": f"^{_TYPED}-?{_TYPED}-?{_TYPED}$"}
"""As people may write it."""
CURSOR: Schema = TEXT | {"minLength": 1, "pattern": "^[A-Za-z0-9_-]+$"}
AMOUNT: Schema = {"type": "number", "minimum": 0}


def reference(name: str) -> Schema:
    return {"$ref": REFERENCE.format(model=name)}


def either_or_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def page(plural: str, item: str) -> Schema:
    cursor = either_or_null(TEXT) | {"description": "The `cursor` of the next page; null on the last."}
    return record({plural: {"type": "array", "items": reference(item)}, "nextCursor": cursor})


def untitled(schema: Schema) -> Schema:
    """Without the titles that pydantic makes of the names: generators would name classes after them."""
    return {name: value for name, value in schema.items() if name != "title"}


def described(schema: Schema, text: str) -> Schema:
    """A field as pydantic tells it, with our words."""
    schema = untitled(schema)
    match schema.get("anyOf"):
        case [first, {"type": "null"}]:
            schema = either_or_null(first)
    own = schema.get("description")
    return schema | {"description": f"{text} {own}" if own else text}


def body_schema(
    adapter: TypeAdapter[Any], told: Mapping[str, str], patterns: Mapping[str, str] | None = None
) -> Schema:
    """A body as pydantic tells it, in our words; ``patterns``: in place of those that few validators know."""
    found = adapter.json_schema(ref_template=REFERENCE)
    own = patterns or {}
    properties = {
        name: described(schema, told[name]) | ({"pattern": own[name]} if name in own else {})
        for name, schema in found["properties"].items()
    }
    shape = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": found["required"]} if "required" in found else {})


def record(properties: dict[str, Schema], optional: tuple[str, ...] = (), **more: Any) -> Schema:
    """An object of an answer. Later releases may add members; readers pass over what they do not know."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **more}


def parameter(place: str, name: str, schema: Any, description: str, example: Any = None) -> dict[str, Any]:
    found = {"name": name, "in": place, "description": description, "schema": schema}
    if place == "path":
        found["required"] = True
    return found if example is None else found | {"example": example}
