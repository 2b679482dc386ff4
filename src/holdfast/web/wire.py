"""How our things are written in JSON."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from holdfast.domain.project import Project
from holdfast.domain.spelling import camel_case as camel_case
from holdfast.domain.status import Status
from holdfast.domain.unit import Media, Unit

_ENCODER = msgspec.json.Encoder(decimal_format="number")

encode = _ENCODER.encode


def time_text(moment: datetime) -> str:
    """What ``domain.spelling.moment_text`` writes, in a quarter of its time: every answer has several."""
    text = encode(moment).decode()
    # The encoder writes microseconds if there are any: "2026-11-14T09:30:00.123000Z", quotes included.
    return f"{text[1:24]}Z" if moment.microsecond else f"{text[1:20]}.000Z"


def optional_time_text(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment)


class UnitDocument(msgspec.Struct, rename="camel", gc=False):
    id: UUID
    project_id: UUID
    code: str
    type: str
    area_sqm: Decimal
    price_sar: Decimal
    vat_included: bool | None
    vat_rate: Decimal | None
    deposit_percent: Decimal | None
    status: Status
    bedrooms: int | None
    bathrooms: int | None
    delivery_year: int | None
    description: str | None
    images: tuple[Media, ...]
    files: tuple[Media, ...]
    hold_expires_at: str | None
    created_at: str
    updated_at: str
    project_name: str
    project_slug: str
    ref: str


def unit_document(unit: Unit, project: Project) -> UnitDocument:
    (
        type_name, area, price, vat_included, vat_rate, deposit, bedrooms, bathrooms, year, description,
        images, files,
    ) = unit.fields  # fmt: skip
    return UnitDocument(
        unit.id, unit.project_id, unit.code,
        type_name, area, price, vat_included, vat_rate, deposit, unit.status,
        bedrooms, bathrooms, year, description, images, files,
        optional_time_text(unit.hold_expires_at), time_text(unit.created_at), time_text(unit.updated_at),
        project.name, project.slug, unit.ref,
    )  # fmt: skip


def project_document(project: Project) -> dict[str, Any]:
    return {
        "id": project.id,
        "slug": project.slug,
        "name": project.name,
        "createdAt": time_text(project.created_at),
    }
