"""The bodies of PUT and PATCH: the contract's table of fields, as pydantic checks it.

Numbers arrive as ``Decimal`` (see ``strict_json``), so that strict mode tells a number from text.
Names are the domain's here, and camelCase on the wire.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, NotRequired, Required

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
    with_config,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from holdfast.domain.unit import STATUS_MESSAGE
from holdfast.web.wire import camel_case

LONGEST_URL = 2048
LONGEST_MEDIA_NAME = 500
MEDIA_AT_MOST = 100

AS_URL, AS_OBJECT = "<url>", "<object>"
"""The two forms of an element of images and files; pydantic names them in the place of a fault."""

_NO_NUL = r"^[^\x00]*$"
WEB_ADDRESS = r"^(?i:https?)://([^\s\p{C}/?#@]+@)?(\[[0-9A-Fa-f:.]+\]|[^\s\p{C}/?#@:\[\]]+)(:[0-9]{1,5})?([/?#][^\s\p{C}]*)?$"
_STRICT = ConfigDict(strict=True, extra="forbid", alias_generator=camel_case)


def _canonical(number: Decimal) -> Decimal:
    """One form for one value (1.50 and 1.5, 1e2 and 100, -0 and 0), so that equal units look equal."""
    return number.normalize() + 0


def _whole(number: Decimal) -> int:
    whole = int(number)
    if whole != number:
        raise PydanticCustomError("whole_number", "This must be a whole number.")
    return whole


def _number_schema(minimum: str, maximum: str, decimals: int, *, exclusive: bool = False) -> WithJsonSchema:
    lower = "exclusiveMinimum" if exclusive else "minimum"
    return WithJsonSchema(
        {
            "type": "number",
            lower: float(minimum),
            "maximum": float(maximum),
            "description": f"An exact decimal with at most {decimals} decimals.",
        }
    )


def _whole_schema(minimum: int, maximum: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": minimum, "maximum": maximum})


Area = Annotated[
    Decimal,
    Field(gt=0, le=Decimal("9999999.9999"), decimal_places=4),
    AfterValidator(_canonical),
    _number_schema("0", "9999999.9999", 4, exclusive=True),
]
Price = Annotated[
    Decimal,
    Field(ge=0, le=Decimal("999999999999.99"), decimal_places=2),
    AfterValidator(_canonical),
    _number_schema("0", "999999999999.99", 2),
]
Percentage = Annotated[
    Decimal,
    Field(ge=0, le=100, decimal_places=4),
    AfterValidator(_canonical),
    _number_schema("0", "100", 4),
]
RoomCount = Annotated[Decimal, Field(ge=0, le=999), AfterValidator(_whole), _whole_schema(0, 999)]
Year = Annotated[Decimal, Field(ge=1900, le=2200), AfterValidator(_whole), _whole_schema(1900, 2200)]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_NO_NUL)]
Description = Annotated[str, StringConstraints(max_length=10_000, pattern=_NO_NUL)]
Url = Annotated[str, StringConstraints(max_length=LONGEST_URL, pattern=WEB_ADDRESS)]
MediaName = Annotated[str, StringConstraints(max_length=LONGEST_MEDIA_NAME, pattern=_NO_NUL)]


@with_config(_STRICT)
class MediaObject(TypedDict):
    url: Url
    name: NotRequired[MediaName | None]


MediaElement = Annotated[
    Annotated[Url, Tag(AS_URL)] | Annotated[MediaObject, Tag(AS_OBJECT)],
    Discriminator(lambda element: AS_OBJECT if isinstance(element, dict) else AS_URL),
    WithJsonSchema({"$ref": "#/components/schemas/Media"}),
]
MediaList = Annotated[list[MediaElement], Field(max_length=MEDIA_AT_MOST), AfterValidator(tuple)]


def _check_status(value: Any) -> Any:
    """The names that only the service gives are told apart later, when the unit is known."""
    if value not in ("available", "unavailable", "held", "reserved", "sold"):
        raise PydanticCustomError("status", STATUS_MESSAGE)
    return value


StatusName = Annotated[
    Any,
    PlainValidator(_check_status),
    WithJsonSchema({"type": "string", "enum": ["available", "unavailable"]}),
]


def _check_text(value: Any) -> Any:
    if isinstance(value, str) and ("\x00" in value or (not value.isascii() and _has_surrogate(value))):
        raise PydanticCustomError("text", "This text holds a character that cannot be stored.")
    return value


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


SentBack = Annotated[
    Any, PlainValidator(_check_text), WithJsonSchema({"description": "May be sent back; ignored."})
]
Identity = Annotated[
    Any, WithJsonSchema({"type": "string", "description": "May be sent back; must be the addressed unit's."})
]


class _Optional(TypedDict, total=False):
    vat_included: bool | None
    vat_rate: Percentage | None
    deposit_percent: Percentage | None
    bedrooms: RoomCount | None
    bathrooms: RoomCount | None
    delivery_year: Year | None
    description: Description | None
    images: MediaList | None
    files: MediaList | None
    status: StatusName
    id: Identity
    code: Identity
    project_id: Identity
    project_slug: Identity
    hold_expires_at: SentBack
    created_at: SentBack
    updated_at: SentBack
    project_name: SentBack
    ref: SentBack


@with_config(_STRICT)
class ReplaceBody(_Optional):
    type: Required[TypeName]
    area_sqm: Required[Area]
    price_sar: Required[Price]


@with_config(_STRICT)
class PatchBody(_Optional, total=False):
    type: TypeName
    area_sqm: Area
    price_sar: Price
