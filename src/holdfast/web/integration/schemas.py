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
from holdfast.web.integration.bounds import (
    AREA,
    DESCRIPTION_LENGTH,
    LONGEST_MEDIA_NAME,
    LONGEST_URL,
    MEDIA_AT_MOST,
    PERCENTAGE,
    PRICE,
    ROOMS,
    TYPE_LENGTH,
    YEAR,
    Bounds,
    canonical,
)
from holdfast.web.wire import camel_case

AS_URL, AS_OBJECT = "<url>", "<object>"
"""The two forms of an element of images and files; pydantic names them in the place of a fault."""

_NO_NUL = r"^[^\x00]*$"
WEB_ADDRESS = r"^(?i:https?)://([^\s\p{C}/?#@]+@)?(\[[0-9A-Fa-f:.]+\]|[^\s\p{C}/?#@:\[\]]+)(:[0-9]{1,5})?([/?#][^\s\p{C}]*)?$"
_STRICT = ConfigDict(strict=True, extra="forbid", alias_generator=camel_case)


def _whole(number: Decimal) -> int:
    whole = int(number)
    if whole != number:
        raise PydanticCustomError("whole_number", "This must be a whole number.")
    return whole


def _within(bounds: Bounds) -> Any:
    return Field(
        gt=bounds.least if bounds.least_is_out else None,
        ge=None if bounds.least_is_out else bounds.least,
        le=bounds.most,
        decimal_places=bounds.decimals or None,
    )


def _schema(bounds: Bounds) -> WithJsonSchema:
    lower = "exclusiveMinimum" if bounds.least_is_out else "minimum"
    if not bounds.decimals:
        return WithJsonSchema({"type": "integer", lower: int(bounds.least), "maximum": int(bounds.most)})
    return WithJsonSchema(
        {
            "type": "number",
            lower: float(bounds.least),
            "maximum": float(bounds.most),
            "description": f"An exact decimal with at most {bounds.decimals} decimals.",
        }
    )


Area = Annotated[Decimal, _within(AREA), AfterValidator(canonical), _schema(AREA)]
Price = Annotated[Decimal, _within(PRICE), AfterValidator(canonical), _schema(PRICE)]
Percentage = Annotated[Decimal, _within(PERCENTAGE), AfterValidator(canonical), _schema(PERCENTAGE)]
RoomCount = Annotated[Decimal, _within(ROOMS), AfterValidator(_whole), _schema(ROOMS)]
Year = Annotated[Decimal, _within(YEAR), AfterValidator(_whole), _schema(YEAR)]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=TYPE_LENGTH, pattern=_NO_NUL)]
Description = Annotated[str, StringConstraints(max_length=DESCRIPTION_LENGTH, pattern=_NO_NUL)]
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
