"""The bodies of PUT and PATCH: the contract's table of fields, as pydantic checks it.

Names are the domain's here, and camelCase on the wire.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, NotRequired, Required

from pydantic import (
    AfterValidator,
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

from holdfast.domain.replacing import STATUS_MESSAGE
from holdfast.web.fields import (
    NO_NUL,
    STRICT,
    WEB_ADDRESS,
    canonical,
    check_text,
    number_schema,
    whole,
    within,
)
from holdfast.web.unit_bounds import (
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
)

AS_URL, AS_OBJECT = "<url>", "<object>"
"""The two forms of an element of images and files; pydantic names them in the place of a fault."""

Area = Annotated[Decimal, within(AREA), AfterValidator(canonical), number_schema(AREA)]
Price = Annotated[Decimal, within(PRICE), AfterValidator(canonical), number_schema(PRICE)]
Percentage = Annotated[Decimal, within(PERCENTAGE), AfterValidator(canonical), number_schema(PERCENTAGE)]
RoomCount = Annotated[Decimal, within(ROOMS), AfterValidator(whole), number_schema(ROOMS)]
Year = Annotated[Decimal, within(YEAR), AfterValidator(whole), number_schema(YEAR)]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=TYPE_LENGTH, pattern=NO_NUL)]
Description = Annotated[str, StringConstraints(max_length=DESCRIPTION_LENGTH, pattern=NO_NUL)]
Url = Annotated[str, StringConstraints(max_length=LONGEST_URL, pattern=WEB_ADDRESS)]
MediaName = Annotated[str, StringConstraints(max_length=LONGEST_MEDIA_NAME, pattern=NO_NUL)]


@with_config(STRICT)
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


SentBack = Annotated[
    Any, PlainValidator(check_text), WithJsonSchema({"description": "May be sent back; ignored."})
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


@with_config(STRICT)
class ReplaceBody(_Optional):
    type: Required[TypeName]
    area_sqm: Required[Area]
    price_sar: Required[Price]


@with_config(STRICT)
class PatchBody(_Optional, total=False):
    type: TypeName
    area_sqm: Area
    price_sar: Price
