"""How a unit stands in a row, and back."""

from decimal import Decimal
from typing import Any

import asyncpg
import msgspec

from holdfast.domain.status import Status
from holdfast.domain.unit import Media, Unit, UnitFields

FIELD_COLUMNS = (
    "type, area_sqm, price_sar, vat_included, vat_rate, deposit_percent, bedrooms, bathrooms, "
    "delivery_year, description, images, files"
)
STATE_COLUMNS = "status, archived, hold_expires_at, reserved_until, version, created_at, updated_at"

READ_COLUMNS = f"id, project_id, code, ref, {STATE_COLUMNS}, {FIELD_COLUMNS}"
"""In the order in which ``unit_from`` takes them."""

WRITE_COLUMNS = f"id, project_id, code, {FIELD_COLUMNS}, {STATE_COLUMNS}"
"""In the order of the database's type ``unit_write``, which has ``found_version`` behind them."""

STATE_WRITE_COLUMNS = "id, price_sar, status, archived, hold_expires_at, reserved_until, version, updated_at"
"""In the order of the database's type ``unit_state_write``, likewise."""

READ_COLUMN_COUNT = READ_COLUMNS.count(",") + 1

_NO_MEDIA = "[]"
_STATUS = {str(status): status for status in Status}


def unit_from(row: asyncpg.Record, start: int = 0) -> Unit:
    """A row whose columns from ``start`` on are ``READ_COLUMNS``."""
    (
        unit_id, project_id, code, ref,
        status, archived, hold_expires_at, reserved_until, version, created_at, updated_at,
        type_name, area, price, vat_included, vat_rate, deposit, bedrooms, bathrooms, year, description,
        images, files,
    ) = row[start : start + READ_COLUMN_COUNT]  # fmt: skip
    return Unit(
        unit_id, project_id, code, ref,
        UnitFields(
            type_name, _plain(area), _plain(price), vat_included, vat_rate and _plain(vat_rate),
            deposit and _plain(deposit), bedrooms, bathrooms, year, description,
            _media_from(images), _media_from(files),
        ),
        _STATUS[status], archived, hold_expires_at, reserved_until, version, created_at, updated_at,
    )  # fmt: skip


def row_for(unit: Unit, found_version: int) -> tuple[Any, ...]:
    """The value of the database's type ``unit_write``."""
    fields = unit.fields
    return (
        unit.id,
        unit.project_id,
        unit.code,
        *fields[:-2],
        _media_for(fields.images),
        _media_for(fields.files),
        *unit[5:],
        found_version,
    )


def state_row_for(unit: Unit, found_version: int) -> tuple[Any, ...]:
    """The value of the database's type ``unit_state_write``."""
    return (
        unit.id,
        unit.fields.price_sar,
        unit.status,
        unit.archived,
        unit.hold_expires_at,
        unit.reserved_until,
        unit.version,
        unit.updated_at,
        found_version,
    )


def is_state_alone(before: Unit, after: Unit) -> bool:
    """Whether a change is within ``unit_state_write``."""
    old, new = before.fields, after.fields
    return old is new or (old[:2] == new[:2] and old[3:] == new[3:])


def _plain(number: Decimal) -> Decimal:
    """The driver gives a million as 1.00E+6, which is the same number and another text."""
    whole = int(number)
    return Decimal(whole) if whole == number else number


def _media_from(text: str) -> tuple[Media, ...]:
    return () if text == _NO_MEDIA else tuple(msgspec.json.decode(text))


def _media_for(media: tuple[Media, ...]) -> str:
    return msgspec.json.encode(media).decode() if media else _NO_MEDIA
