"""Types of the fields of bodies, and the checks that parameters and forms share with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pydantic
from pydantic_core import CoreSchema, core_schema

from holdfast.domain.errors import Fault, Message
from holdfast.domain.errors import FieldError as FieldError
from holdfast.domain.project import NAME_LENGTH, SLUG_LENGTH, SLUG_PATTERN
from holdfast.domain.unit import CODE_LENGTH
from holdfast.web.json import camel_case

TIME_MESSAGE = "This must be a time such as 2026-11-14T09:30:00.000Z."

_NOT_STORABLE = re.compile(r"[\x00\ud800-\udfff]")
# The library passes over a NUL and all that follows it.
_CHARACTERS = re.compile(r"[0-9A-Za-z:.,+-]+")

MAX_PROJECTS = 1000
LEFT_OUT: Any = pydantic.Field(default_factory=lambda: None)
"""For a field that may be left out but not be null: it has no default that the JSON schema could name."""

# Control characters, separators other than the space, and invisible signs. No pattern language that all
# validators share can tell every printable character, so the pattern lets through a little too much.
UNPRINTABLE = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb"
)
PRINTABLE_PATTERN = f"^[^ {UNPRINTABLE}]([^{UNPRINTABLE}]*[^ {UNPRINTABLE}])?$"
"""Of printable text with no space at either end, for the OpenAPI document."""

STRICT = pydantic.ConfigDict(strict=True, extra="forbid", alias_generator=camel_case)
"""Of a body: names are the domain's in the code and camelCase on the wire, and no others are taken."""

NO_NUL = r"^[^\x00]*$"
WEB_ADDRESS = r"^(?i:https?)://([^\s\p{C}/?#@]+@)?(\[[0-9A-Fa-f:.]+\]|[^\s\p{C}/?#@:\[\]]+)(:[0-9]{1,5})?([/?#][^\s\p{C}]*)?$"

# Generous on purpose: a name or number that is turned away is a sale that is turned away.
# Inside of a name there may be the joiners that Persian and Indian scripts are written with.
_IN_NAMES = r"[[^\p{C}]\x{200C}\x{200D}]*"
BUYER_NAME = rf"^([^\s\p{{C}}]{_IN_NAMES})?\p{{L}}{_IN_NAMES}\p{{L}}({_IN_NAMES}[^\s\p{{C}}])?$"
EMAIL_ADDRESS = r"^[^\s\p{C}@]+@[^\s\p{C}@]+$"
# E.164 has at most 15 digits; + or 00 before them leads abroad.
_IN_NUMBERS = r"[ ()./\x{A0}\x{202F}\x{2010}-\x{2013}-]*"
PHONE_NUMBER = rf"^(\+|[0\x{{660}}\x{{6F0}}]{{2}})?({_IN_NUMBERS}\p{{Nd}}){{7,15}}{_IN_NUMBERS}$"

PATTERN_MESSAGES = {
    BUYER_NAME: "This must be a name of at least two letters.",
    EMAIL_ADDRESS: "This must be an e-mail address.",
    PHONE_NUMBER: "A phone number has 7 to 15 digits; spaces and hyphens may stand between them.",
    NO_NUL: "This text contains the character U+0000, which cannot be stored.",
    WEB_ADDRESS: "This must be an http or https URL.",
}
"""A pattern cannot say what it asks for, so each has its sentence here."""


class Bounds(NamedTuple):
    """The bounds of a number, as the metadata of a field. Without decimals ``3.0`` comes as an ``int``."""

    least: Decimal
    most: Decimal
    decimals: int
    least_is_out: bool = False

    def __get_pydantic_core_schema__(self, _: Any, __: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        schema = core_schema.decimal_schema(
            strict=True,
            gt=self.least if self.least_is_out else None,
            ge=None if self.least_is_out else self.least,
            le=self.most,
            decimal_places=self.decimals or None,
        )
        convert = canonical if self.decimals else whole
        return core_schema.no_info_after_validator_function(convert, schema)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        lower = "exclusiveMinimum" if self.least_is_out else "minimum"
        if not self.decimals:
            return {"type": "integer", lower: int(self.least), "maximum": int(self.most)}
        return {
            "type": "number",
            lower: float(self.least),
            "maximum": float(self.most),
            "description": f"An exact decimal with at most {self.decimals} decimals.",
        }


class OneOf:
    """The choices for a text, as the metadata of a field: ``Annotated[str, OneOf(Scope)]``."""

    def __init__(self, choices: Iterable[str]) -> None:
        self._choices = {str(choice): choice for choice in choices}

    def __get_pydantic_core_schema__(self, _: Any, __: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.parse, core_schema.str_schema(strict=True))

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return self.schema

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self._choices)}

    def parse(self, text: str) -> str:
        if text not in self._choices:
            raise FieldError(
                Message("This must be one of %(choices)s.", {"choices": ", ".join(self._choices)})
            )
        return self._choices[text]


def parse_time(text: str) -> datetime | None:
    """Return the time in UTC and in whole milliseconds; without an offset it is taken for UTC."""
    if not _CHARACTERS.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text)
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def parse_time_field(value: Any) -> datetime:
    time = parse_time(value) if isinstance(value, str) and "T" in value else None
    if time is None:
        raise FieldError(TIME_MESSAGE)
    return time


def canonical(number: Decimal) -> Decimal:
    """Return one form for one value (1.50 and 1.5, 1e2 and 100, -0 and 0)."""
    return number.normalize() + 0


def whole(number: Decimal) -> int:
    integer = int(number)
    if integer != number:
        raise FieldError("This must be a whole number.")
    return integer


def check_text(value: Any) -> Any:
    """Reject text with characters that cannot be stored; other values pass."""
    if isinstance(value, str) and _NOT_STORABLE.search(value):
        raise FieldError("This text contains a character that cannot be stored.")
    return value


def check_printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise FieldError("This must be printable text with no space at either end.")
    return text


def check_each_once(values: list[str]) -> list[str]:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise FieldError(Message("%(value)s is given twice in this list.", {"value": twice}))
    return values


def checked_by(find_fault: Callable[[str], Fault | None]) -> Callable[[str], str]:
    def check(text: str) -> str:
        fault = find_fault(text)
        if fault is not None:
            raise FieldError(fault.message)
        return text

    return check


SORTED = pydantic.AfterValidator(lambda values: tuple(sorted(values)))
TimeField = Annotated[
    datetime,
    pydantic.PlainValidator(parse_time_field),
    pydantic.WithJsonSchema({"type": "string", "format": "date-time"}),
]
ProjectName = Annotated[
    str,
    pydantic.StringConstraints(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1]),
    pydantic.AfterValidator(check_printable),
    pydantic.Field(json_schema_extra={"pattern": PRINTABLE_PATTERN}),
]
Slug = Annotated[
    str,
    pydantic.StringConstraints(min_length=SLUG_LENGTH[0], max_length=SLUG_LENGTH[1], pattern=SLUG_PATTERN),
]
Code = Annotated[str, pydantic.StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1])]
ProjectSlugs = Annotated[
    list[Slug],
    pydantic.Field(min_length=1, max_length=MAX_PROJECTS, json_schema_extra={"uniqueItems": True}),
    pydantic.AfterValidator(check_each_once),
    SORTED,
]
