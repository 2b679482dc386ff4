"""Types of fields that bodies of several nouns have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from holdfast.domain.errors import Fault
from holdfast.domain.message import Message
from holdfast.domain.project import NAME_LENGTH, SLUG_LENGTH, SLUG_PATTERN
from holdfast.domain.unit import CODE_LENGTH
from holdfast.web.fields import TIME_MESSAGE, field_error, read_time

PROJECTS_AT_MOST = 1000
LEFT_OUT: Any = Field(default_factory=lambda: None)
"""For a field that may be left out but not be null: it has no default that the JSON schema could name."""

# Control characters, separators other than the space, and invisible signs. No pattern language that all
# validators share can tell every printable character, so the pattern lets through a little too much.
UNPRINTABLE = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb"
)
PRINTABLE_PATTERN = f"^[^ {UNPRINTABLE}]([^{UNPRINTABLE}]*[^ {UNPRINTABLE}])?$"
"""Of printable text with no space at either end, for the OpenAPI document."""


def check_moment(value: Any) -> datetime:
    moment = read_time(value) if isinstance(value, str) and "T" in value else None
    if moment is None:
        raise PydanticCustomError("time", TIME_MESSAGE)
    return moment


def check_printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise PydanticCustomError("printable", "This must be printable text with no space at either end.")
    return text


def without_fault(fault_of: Callable[[str], Fault | None]) -> AfterValidator:
    """Refuse text in which a check of the domain finds a fault."""

    def check(text: str) -> str:
        fault = fault_of(text)
        if fault is not None:
            raise field_error(fault.message)
        return text

    return AfterValidator(check)


def check_each_once(values: list[str]) -> list[str]:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise field_error(Message("%(value)s stands twice in this list.", {"value": twice}))
    return values


def as_sorted_tuple(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


Moment = Annotated[
    datetime, PlainValidator(check_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]
ProjectName = Annotated[
    str,
    StringConstraints(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1]),
    AfterValidator(check_printable),
    Field(json_schema_extra={"pattern": PRINTABLE_PATTERN}),
]
Slug = Annotated[
    str, StringConstraints(min_length=SLUG_LENGTH[0], max_length=SLUG_LENGTH[1], pattern=SLUG_PATTERN)
]
Code = Annotated[str, StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1])]
ProjectSlugs = Annotated[
    list[Slug],
    Field(min_length=1, max_length=PROJECTS_AT_MOST, json_schema_extra={"uniqueItems": True}),
    AfterValidator(check_each_once),
    AfterValidator(as_sorted_tuple),
]
