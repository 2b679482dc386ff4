"""Times as callers write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from holdfast.domain.message import AnyMessage, Message
from holdfast.web.json import camel_case

TIME_MESSAGE = "This must be a time such as 2026-11-14T09:30:00.000Z."

# The library passes over a NUL and all that follows it.
_CHARACTERS = re.compile(r"[0-9A-Za-z:.,+-]+")


def read_time(text: str) -> datetime | None:
    """In UTC, which a time without an offset is taken for, and in whole milliseconds, as all are kept."""
    if not _CHARACTERS.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


# What fields of a body are made of, for the bodies of every surface.
#
# Numbers arrive as ``Decimal`` (see ``strict_json``), so that strict mode tells a number from text.

STRICT = ConfigDict(strict=True, extra="forbid", alias_generator=camel_case)
"""Of a body: names are the domain's in the code and camelCase on the wire, and no others are taken."""

NO_NUL = r"^[^\x00]*$"
WEB_ADDRESS = r"^(?i:https?)://([^\s\p{C}/?#@]+@)?(\[[0-9A-Fa-f:.]+\]|[^\s\p{C}/?#@:\[\]]+)(:[0-9]{1,5})?([/?#][^\s\p{C}]*)?$"

# Generous on purpose: a name or number that is turned away is a sale that is turned away.
# Inside of one there may be the joiners that Persian and Indian scripts are written with.
BUYER_NAME = r"^[^\s\p{C}]([[^\p{C}]\x{200C}\x{200D}]*[^\s\p{C}])?$"
EMAIL_ADDRESS = r"^[^\s\p{C}@]+@[^\s\p{C}@]+$"
PHONE_NUMBER = r"^\+?[\p{Nd} ()./-]*\p{Nd}[\p{Nd} ()./-]*$"

PATTERN_MESSAGES = {
    BUYER_NAME: "This must be printable text.",
    EMAIL_ADDRESS: "This must be an e-mail address.",
    PHONE_NUMBER: "This must be a phone number: digits, with a + before them if you like.",
    NO_NUL: "This text holds the character U+0000, which cannot be stored.",
    WEB_ADDRESS: "This must be an http or https URL.",
}
"""A pattern cannot say what it asks for, so each has its sentence here."""


class Bounds(NamedTuple):
    """The bounds of a number, as the metadata of a field: ``Annotated[Decimal, Bounds(...)]``.

    Without decimals it is a whole number, for which ``3.0`` may be sent, too, and comes as an ``int``.
    """

    least: Decimal
    most: Decimal
    decimals: int
    least_is_out: bool = False

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        schema = core_schema.decimal_schema(
            strict=True,
            gt=self.least if self.least_is_out else None,
            ge=None if self.least_is_out else self.least,
            le=self.most,
            decimal_places=self.decimals or None,
        )
        convert = canonical if self.decimals else whole
        return core_schema.no_info_after_validator_function(convert, schema)

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> dict[str, Any]:
        lower = "exclusiveMinimum" if self.least_is_out else "minimum"
        if not self.decimals:
            return {"type": "integer", lower: int(self.least), "maximum": int(self.most)}
        return {
            "type": "number",
            lower: float(self.least),
            "maximum": float(self.most),
            "description": f"An exact decimal with at most {self.decimals} decimals.",
        }


def field_error(message: AnyMessage) -> PydanticCustomError:
    """An error of a field that keeps its message, for ``api.bodies`` to find."""
    return PydanticCustomError("message", "{message}", {"message": message})


def not_one_of(choices: Iterable[str]) -> PydanticCustomError:
    return field_error(Message("This must be one of %(choices)s.", {"choices": ", ".join(choices)}))


def canonical(number: Decimal) -> Decimal:
    """One form for one value (1.50 and 1.5, 1e2 and 100, -0 and 0), so that equal things look equal."""
    return number.normalize() + 0


def whole(number: Decimal) -> int:
    integer = int(number)
    if integer != number:
        raise PydanticCustomError("parse_whole_number", "This must be a whole number.")
    return integer


def check_text(value: Any) -> Any:
    """For a value of any kind: if it is text, then of characters that can be stored."""
    if isinstance(value, str) and ("\x00" in value or (not value.isascii() and _has_surrogate(value))):
        raise PydanticCustomError("text", "This text holds a character that cannot be stored.")
    return value


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
