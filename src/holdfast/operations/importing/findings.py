"""What an import finds in its rows, as it is kept and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from holdfast.domain.cells import media_text, text_of
from holdfast.domain.errors import Conflict, InvalidInput, Refusal
from holdfast.domain.imports import CODE, FIELDS, STATUS, Choice
from holdfast.domain.message import AnyMessage
from holdfast.domain.spelling import camel_case
from holdfast.domain.unit import Unit
from holdfast.operations.importing.commands import RowRead
from holdfast.operations.importing.packing import pack
from holdfast.operations.many_units import OUTCOMES, outcome_name
from holdfast.operations.write_path import Outcome, Written
from holdfast.storage.imports import Result

_SHOWN = 300
_WRITTEN_FIELDS = tuple(field for field in FIELDS if field not in (CODE, STATUS))
_FIELD_NAMED = {camel_case(field): field for field in FIELDS}


class Reason(NamedTuple):
    field: str | None
    """None: the row as a whole."""
    text: str
    """What stands in the cell."""
    message: AnyMessage


class Finding(NamedTuple):
    row: int
    code: str
    reasons: list[Reason]
    """Why it is refused."""
    before: dict[str, Any]
    """What of the unit changes, as it is and as it will be; numbers as text."""
    after: dict[str, Any]


def results_of(
    rows: Sequence[RowRead], outcomes: Sequence[Outcome], choice: Choice, *, stored: bool
) -> list[Result]:
    """Of rows that were brought in, only the refused ones are told: the history has the others."""
    found: dict[str, list[Finding]] = {name: [] for name in OUTCOMES}
    counts = dict.fromkeys(OUTCOMES, 0)
    for row, outcome in zip(rows, outcomes, strict=True):
        name = outcome_name(outcome)
        counts[name] += 1
        if isinstance(outcome, Refusal):
            found[name].append(Finding(row.number, row.code, _reasons(row, outcome, choice), {}, {}))
        elif name != "unchanged" and not stored:
            found[name].append(Finding(row.number, row.code, [], *_differences(outcome)))
    return [
        Result(name, counts[name], pack(found[name]) if found[name] else None)
        for name in OUTCOMES
        if counts[name]
    ]


def _reasons(row: RowRead, refusal: Refusal, choice: Choice) -> list[Reason]:
    if isinstance(refusal, InvalidInput):
        return [
            _reason(row, choice, fault.pointer.strip("/").split("/")[0], fault.message)
            for fault in refusal.faults
        ]
    if isinstance(refusal, Conflict) and refusal.fields:
        return [_reason(row, choice, camel_case(field), refusal.message) for field in refusal.fields]
    return [Reason(None, "", refusal.message)]


def _reason(row: RowRead, choice: Choice, name: str, message: AnyMessage) -> Reason:
    field = _FIELD_NAMED.get(name)
    column = None if field is None else choice.column_of(field)
    text = "" if column is None else text_of(row.cells[column])
    return Reason(field, text[:_SHOWN], message)


def _differences(written: Written) -> tuple[dict[str, Any], dict[str, Any]]:
    before, after = written.before, written.decision.unit
    was, is_now = _values(before) if before is not None else {}, _values(after)
    names = [name for name, value in is_now.items() if value != was.get(name)]
    names += [name for name in was if name not in names and was[name] != is_now.get(name)]
    return (
        {name: was[name] for name in names if name in was},
        {name: is_now[name] for name in names if name in is_now},
    )


def _values(unit: Unit) -> Mapping[str, Any]:
    """What is set, in the order of the columns."""
    values = {name: _shown(getattr(unit.fields, name)) for name in _WRITTEN_FIELDS}
    values[STATUS] = unit.status.value
    return {name: value for name, value in values.items() if value is not None}


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        value = media_text(value) or None
    if isinstance(value, Decimal):
        return format(value, "f")
    return value[:_SHOWN] if isinstance(value, str) else value
