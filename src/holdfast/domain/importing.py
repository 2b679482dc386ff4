"""What a row of a file makes of its unit. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.domain.columns import REQUIRED
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.message import Message
from holdfast.domain.precondition import UNCONDITIONAL
from holdfast.domain.refusals import Fault, InvalidInput
from holdfast.domain.replacing import replace
from holdfast.domain.spelling import camel_case
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import Unit, UnitFields

_TEXTS = ("type", "description")


def bring_in(
    standing: Standing, code: str, values: Mapping[str, Any], status: Status | None, now: datetime
) -> Decision:
    """A PUT of what the row says, with the rest as it stands."""
    unit = standing.unit
    fields = _new_fields(values) if unit is None else _changed_fields(unit.fields, values)
    return replace(standing, code, fields, _status_to_set(unit, status), UNCONDITIONAL, now)


def _new_fields(values: Mapping[str, Any]) -> UnitFields:
    missing = [name for name in REQUIRED if name not in values]
    if missing:
        message = "A new unit needs this, and the file has no column for it."
        raise InvalidInput([Fault(f"/{camel_case(name)}", message) for name in missing])
    return UnitFields(**{name: _tidy(name, value) for name, value in values.items()})


def _changed_fields(stored: UnitFields, values: Mapping[str, Any]) -> UnitFields:
    texts = {
        name: getattr(stored, name)
        if _reads_alike(getattr(stored, name), values[name])
        else _tidy(name, values[name])
        for name in _TEXTS
        if name in values
    }
    return stored._replace(**{**values, **texts})


def _tidy(name: str, value: Any) -> Any:
    """Spaces at the ends of a cell are nobody's wish, unless there is nothing else."""
    return (value.strip() or value) if name in _TEXTS and value is not None else value


def _reads_alike(stored: str | None, said: str | None) -> bool:
    """A cell knows neither spaces at its ends for certain, nor empty text from none."""
    return (stored or "").strip() == (said or "").strip()


def _status_to_set(unit: Unit | None, status: Status | None) -> Status | None:
    """A file that was exported names the status as it was; a booking alone makes these."""
    if status not in LOCKED:
        return status
    if unit is None:
        message = "A new unit cannot be %(unit_status)s: only a booking makes it so."
        raise InvalidInput.at("/status", Message(message, {"unit_status": status}))
    if unit.status is not status:
        message = "The unit is %(unit_status)s; a file cannot make it %(new_status)s, only a booking can."
        parameters = {"unit_status": unit.status, "new_status": status}
        raise InvalidInput.at("/status", Message(message, parameters))
    return None
