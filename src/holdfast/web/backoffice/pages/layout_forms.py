"""Places as they are typed: each part by itself, and only what differs from what was shown is a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.domain.layout import FLOORS, POSITIONS, Place, Placed
from holdfast.operations.projects import Move
from holdfast.web.backoffice.visits import Visit
from holdfast.web.html.forms import Form
from holdfast.web.refusals import MalformedBody

PARTS = ("building", "floor", "position")
LONGEST_BUILDING = 50
_BOUNDS = {"floor": FLOORS, "position": POSITIONS}


class TypedPlace(NamedTuple):
    texts: Mapping[str, str]
    values: Mapping[str, Any]
    """What was typed; None where nothing was, or nothing that can be read."""
    faults: Mapping[str, str]


class Row(NamedTuple):
    code: str
    typed: TypedPlace
    was: Mapping[str, str]
    is_guessed: bool


def row_of(placed: Placed) -> Row:
    texts = _texts(placed.place)
    return Row(placed.code, TypedPlace(texts, placed.place._asdict(), {}), texts, placed.is_guessed)


def read_rows(visit: Visit, form: Form) -> list[Row]:
    """Everything stands in the form once for each row, in the same order."""
    names = ("code", "guessed", *PARTS, *(f"was-{part}" for part in PARTS))
    columns = [form.all(name) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise MalformedBody("The form does not hold the same number of every field.")
    return [_row(visit, dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def read_place(visit: Visit, texts: Mapping[str, str]) -> TypedPlace:
    faults: dict[str, str] = {}
    values: dict[str, Any] = {"building": _building(visit, texts["building"], faults)}
    for part, bounds in _BOUNDS.items():
        values[part] = _number(visit, part, texts[part], bounds, faults)
    return TypedPlace(texts, values, faults)


def moves_of(rows: Sequence[Row]) -> dict[str, Move | None]:
    """Of each row the parts that are no longer as they were shown."""
    moves: dict[str, Move | None] = {}
    for row in rows:
        differing = [part for part in PARTS if row.typed.texts[part] != row.was[part]]
        if differing:
            moves[row.code] = {part: row.typed.values[part] for part in differing}
    return moves


def _row(visit: Visit, sent: Mapping[str, str]) -> Row:
    typed = read_place(visit, {part: sent[part].strip() for part in PARTS})
    was = {part: sent[f"was-{part}"] for part in PARTS}
    return Row(sent["code"], typed, was, sent["guessed"] == "1")


def _texts(place: Place) -> dict[str, str]:
    return {part: "" if value is None else str(value) for part, value in place._asdict().items()}


def _building(visit: Visit, text: str, faults: dict[str, str]) -> str | None:
    if not text:
        return None
    if len(text) <= LONGEST_BUILDING and text.isprintable():
        return text
    faults["building"] = visit._("A building has a name of at most 50 characters.")
    return None


def _number(
    visit: Visit, part: str, text: str, bounds: tuple[int, int], faults: dict[str, str]
) -> int | None:
    if not text:
        return None
    digits = text.removeprefix("-").removeprefix("\N{MINUS SIGN}")
    value = int(digits) if digits.isdecimal() and len(digits) <= 4 else None
    if value is not None and len(digits) < len(text):
        value = -value
    if value is not None and bounds[0] <= value <= bounds[1]:
        return value
    shown = [visit.language.plain(bound) for bound in bounds]
    faults[part] = visit._(
        "This must be a whole number from %(least)s to %(most)s.", least=shown[0], most=shown[1]
    )
    return None
