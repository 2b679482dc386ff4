"""Positions of units in buildings: guessed from their codes, unless staff set them; and boards.

A guess is made only where a code has one likely reading. A unit without a place is seen and placed by
staff; one in the wrong place is seen by a buyer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.status import Status

FLOORS = (-9, 200)
POSITIONS = (1, 999)


class Position(NamedTuple):
    building: str | None
    floor: int | None
    position: int | None


class PlacedUnit(NamedTuple):
    code: str
    place: Position
    is_guessed: bool
    """Whether the place comes from the code alone; false where staff set it, be it to nowhere."""


NOWHERE = Position(None, None, None)

# Digits and letters of any script: أ-١٢٠٣ is A-1203. A longer word (VILLA-101) names a kind, not a building.
_LETTER = r"[^\W\d_]"
_LETTERS = rf"(?!GF(?!{_LETTER})){_LETTER}{{1,3}}"
_BUILDING = rf"(?P<building>{_LETTERS}\d{{0,2}}|\d{{1,2}})"
_FLOOR = r"(?P<floor>\d{1,3}|GF?)"
_SEPARATOR = r"[-/._ ]"

_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # A-1203, T2-1503, 2-305, 1203
        rf"(?:{_BUILDING}{_SEPARATOR})?(?P<floor>\d{{1,3}})(?P<position>\d\d)",
        # A1203, but not T11503, which may be T1-1503 as well
        rf"(?P<building>{_LETTERS})(?P<floor>\d{{1,2}})(?P<position>\d\d)",
        # A-12-03, A/G/5
        rf"{_BUILDING}{_SEPARATOR}{_FLOOR}{_SEPARATOR}(?P<position>\d{{1,2}})",
        # A-12-1203
        rf"{_BUILDING}{_SEPARATOR}(?P<floor>\d{{1,3}}){_SEPARATOR}(?P=floor)(?P<position>\d\d)",
        # A-G01; G01 alone is rather the first villa of a row G
        rf"{_BUILDING}{_SEPARATOR}(?P<floor>GF?)(?P<position>\d{{1,2}})",
        # 12-03; 12-3 may be the third villa of a street 12
        rf"(?P<floor>\d{{1,3}}|GF){_SEPARATOR}(?P<position>\d\d)",
        # GF05
        r"(?P<floor>GF)(?P<position>\d\d)",
    )
)


def guess_position(code: str) -> Position:
    for form in _FORMS:
        if found := form.fullmatch(code):
            parts = found.groupdict()
            return _within_bounds(parts.get("building"), _floor(parts["floor"]), int(parts["position"]))
    return NOWHERE


def arrange(codes: Iterable[str], edited: Mapping[str, Position]) -> list[PlacedUnit]:
    """Building by building, from the lowest floor up; what is not known of a place comes last."""
    return sorted((_placed(code, edited.get(code)) for code in codes), key=sort_key)


def _placed(code: str, edited: Position | None) -> PlacedUnit:
    return PlacedUnit(code, guess_position(code), True) if edited is None else PlacedUnit(code, edited, False)


def _floor(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _within_bounds(building: str | None, floor: int, position: int) -> Position:
    fits = FLOORS[0] <= floor <= FLOORS[1] and POSITIONS[0] <= position <= POSITIONS[1]
    return Position(building, floor, position) if fits else NOWHERE


def sort_key(placed: PlacedUnit) -> tuple[Any, ...]:
    """To be sorted by."""
    building, floor, position = placed.place
    return (
        (building is None, _natural(building or "")),
        (floor is None, floor or 0),
        (position is None, position or 0),
        (_natural(placed.code), placed.code),
    )


def _natural(text: str) -> list[str | int]:
    """T2 before T10: text and numbers take turns, so that like is compared with like."""
    parts = re.split(r"(\d+)", text)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)]


# What a board shows: units where they stand, how many of each status, and which of them are looked for.

WIDEST_FLOOR = 60
"""Positions beyond are shown one after the other: a gap of hundreds of cells tells nobody anything."""


class BoardUnit(NamedTuple):
    """A unit as it is seen at one moment, with what a board shows of it."""

    id: UUID
    code: str
    type: str
    area_sqm: Decimal
    price_sar: Decimal
    bedrooms: int | None
    status: Status
    archived: bool
    ends_at: datetime | None
    """Of its hold or reservation."""
    version: int

    @property
    def sqm_price_sar(self) -> Decimal:
        return (self.price_sar / self.area_sqm).quantize(Decimal("0.01"))


class Counts(NamedTuple):
    by_status: Mapping[Status, int]

    @property
    def total(self) -> int:
        return sum(self.by_status.values())


class BoardFilter(NamedTuple):
    """Which units are looked for; None and nothing stand for any."""

    statuses: frozenset[Status] = frozenset()
    type: str | None = None
    price_from: Decimal | None = None
    price_to: Decimal | None = None
    bedrooms: int | None = None
    sqm_price_from: Decimal | None = None
    sqm_price_to: Decimal | None = None

    def match(self, unit: BoardUnit) -> bool:
        return (
            (not self.statuses or unit.status in self.statuses)
            and self.type in (None, unit.type)
            and self.bedrooms in (None, unit.bedrooms)
            and is_between(unit.price_sar, self.price_from, self.price_to)
            # As the database compares them: without the rounding of a quotient.
            and (self.sqm_price_from is None or unit.price_sar >= self.sqm_price_from * unit.area_sqm)
            and (self.sqm_price_to is None or unit.price_sar <= self.sqm_price_to * unit.area_sqm)
        )


NO_FILTERS = BoardFilter()


class Floor(NamedTuple):
    number: int | None
    units: Sequence[BoardUnit | None]
    """From the first position on; None where no unit stands."""


class Building(NamedTuple):
    name: str | None
    floors: Sequence[Floor]
    """From the top; what has no floor comes last."""


def picture(units: Iterable[BoardUnit], placed: Iterable[PlacedUnit]) -> list[Building]:
    """Building by building; of ``placed`` only what is among the units."""
    by_code = {unit.code: unit for unit in units}
    shown = [one for one in placed if one.code in by_code]
    return [
        Building(name, _floors(list(of_building), by_code))
        for name, of_building in groupby(shown, key=lambda one: one.place.building)
    ]


def _floors(placed: Sequence[PlacedUnit], by_code: Mapping[str, BoardUnit]) -> list[Floor]:
    floors = [
        Floor(number, _in_position(list(of_floor), by_code))
        for number, of_floor in groupby(placed, key=lambda one: one.place.floor)
    ]
    nowhere = [floor for floor in floors if floor.number is None]
    return [floor for floor in reversed(floors) if floor.number is not None] + nowhere


def _in_position(placed: Sequence[PlacedUnit], by_code: Mapping[str, BoardUnit]) -> list[BoardUnit | None]:
    row: list[BoardUnit | None] = []
    has_floor = placed[0].place.floor is not None
    for one in placed:
        position = one.place.position
        if has_floor and position is not None and position <= WIDEST_FLOOR:
            row.extend([None] * (position - 1 - len(row)))
        row.append(by_code[one.code])
    return row


def is_between(value: Decimal, least: Decimal | None, most: Decimal | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)
