"""The unit on the wire."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AliasPath, BaseModel, ConfigDict, Field, HttpUrl, PlainSerializer
from pydantic.alias_generators import to_camel

Number = Annotated[Decimal, PlainSerializer(float, return_type=float)]
Percent = Annotated[Decimal, Field(ge=0, le=100, decimal_places=4)]
Rooms = Annotated[int, Field(ge=0, le=999)]


class NamedMedia(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: HttpUrl
    name: str | None = None


Media = Annotated[list[HttpUrl | NamedMedia], Field(max_length=100)]


class UnitFields(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    type: str = Field(min_length=1, max_length=100)
    area_sqm: Annotated[Decimal, Field(gt=0, max_digits=11, decimal_places=4)]
    price_sar: Annotated[Decimal, Field(ge=0, max_digits=14, decimal_places=2)]
    vat_included: bool | None = None
    vat_rate: Percent | None = None
    deposit_percent: Percent | None = None
    bedrooms: Rooms | None = None
    bathrooms: Rooms | None = None
    delivery_year: Annotated[int, Field(ge=1900, le=2200)] | None = None
    description: Annotated[str, Field(max_length=10_000)] | None = None
    images: Media | None = None
    files: Media | None = None
    status: Literal["available", "held", "reserved", "sold", "unavailable"] | None = None
    id: UUID | None = None
    code: str | None = None
    project_id: UUID | None = None
    project_slug: str | None = None
    hold_expires_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    project_name: str | None = None
    ref: str | None = None


class UnitBody(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, from_attributes=True, populate_by_name=True)

    id: UUID
    project_id: UUID
    code: str
    type: str
    area_sqm: Number
    price_sar: Number
    vat_included: bool | None
    vat_rate: Number | None
    deposit_percent: Number | None
    status: str
    bedrooms: int | None
    bathrooms: int | None
    delivery_year: int | None
    description: str | None
    images: list[str | dict[str, str | None]]
    files: list[str | dict[str, str | None]]
    hold_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    project_name: str = Field(validation_alias=AliasPath("project", "name"))
    project_slug: str = Field(validation_alias=AliasPath("project", "slug"))
    ref: str
