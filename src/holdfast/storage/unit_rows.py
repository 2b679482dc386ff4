"""How a unit stands in a row, and back."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from holdfast.domain.status import Status
from holdfast.domain.unit import Media, Unit, UnitFields

FIELD_COLUMNS = (
    "type, area_sqm, price_sar, vat_included, vat_rate, deposit_percent, bedrooms, bathrooms, "
    "delivery_year, description, images, files"
)
STATE_COLUMNS = "status, archived, hold_expires_at, reserved_until, version, created_at, updated_at"

# Numbers travel as text, both ways: the driver takes three times as long for PostgreSQL's binary
# form, and the text of a number is exact. Without zeros at its end it has one form only.
_NUMBERS = ("area_sqm", "price_sar", "vat_rate", "deposit_percent")


def _as_text(columns: str) -> str:
    return ", ".join(
        f"trim_scale({name})::text" if name in _NUMBERS else name for name in columns.split(", ")
    )


READ_COLUMNS = f"id, code, ref, {STATE_COLUMNS}, {_as_text(FIELD_COLUMNS)}"
"""In the order in which ``unit_from`` takes them."""

WRITE_COLUMNS = f"id, project_id, code, {FIELD_COLUMNS}, {STATE_COLUMNS}"
"""In the order of the database's type ``unit_write``, which has ``found_turn`` behind them."""

STATE_WRITE_COLUMNS = "id, price_sar, status, archived, hold_expires_at, reserved_until, version, updated_at"
"""In the order of the database's type ``unit_state_write``, likewise."""


def written(name: str) -> str:
    """A column of what a write sends, as the table takes it."""
    return f"written.{name}::numeric" if name in _NUMBERS else f"written.{name}"


_NO_MEDIA = "[]"
# A third of the time that the class's own constructor takes, which matters where thousands are read.
_new = tuple.__new__
_STATUS = {str(status): status for status in Status}


def unit_from(project_id: UUID, columns: tuple[Any, ...]) -> Unit:
    """From the values of ``READ_COLUMNS``."""
    (
        unit_id, code, ref,
        status, archived, hold_expires_at, reserved_until, version, created_at, updated_at,
        type_name, area, price, vat_included, vat_rate, deposit, bedrooms, bathrooms, year, description,
        images, files,
    ) = columns  # fmt: skip
    fields = _new(UnitFields, (
        type_name, Decimal(area), Decimal(price), vat_included, vat_rate and Decimal(vat_rate),
        deposit and Decimal(deposit), bedrooms, bathrooms, year, description,
        _media_from(images), _media_from(files),
    ))  # fmt: skip
    return _new(Unit, (
        unit_id, project_id, code, ref, fields,
        _STATUS[status], archived, hold_expires_at, reserved_until, version, created_at, updated_at,
    ))  # fmt: skip


def row_for(unit: Unit, found_turn: int) -> tuple[Any, ...]:
    """The value of the database's type ``unit_write``."""
    (
        type_name, area, price, vat_included, vat_rate, deposit, bedrooms, bathrooms, year, description,
        images, files,
    ) = unit.fields  # fmt: skip
    return (
        unit.id, unit.project_id, unit.code,
        type_name, str(area), str(price), vat_included, vat_rate if vat_rate is None else str(vat_rate),
        deposit if deposit is None else str(deposit), bedrooms, bathrooms, year, description,
        _media_for(images), _media_for(files),
        *unit[5:],
        found_turn,
    )  # fmt: skip


def state_row_for(unit: Unit, found_turn: int) -> tuple[Any, ...]:
    """The value of the database's type ``unit_state_write``."""
    return (
        unit.id,
        str(unit.fields.price_sar),
        unit.status,
        unit.archived,
        unit.hold_expires_at,
        unit.reserved_until,
        unit.version,
        unit.updated_at,
        found_turn,
    )


def is_state_alone(before: Unit, after: Unit) -> bool:
    """Whether a change is within ``unit_state_write``."""
    old, new = before.fields, after.fields
    return old is new or (old[:2] == new[:2] and old[3:] == new[3:])


def _media_from(text: str) -> tuple[Media, ...]:
    return () if text == _NO_MEDIA else tuple(msgspec.json.decode(text))


def _media_for(media: tuple[Media, ...]) -> str:
    return msgspec.json.encode(media).decode() if media else _NO_MEDIA
