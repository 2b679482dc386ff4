"""Placements of units in buildings: guessed from their codes, unless staff set them.

A guess is made only where a code has one likely reading. A unit without a place is seen and placed by
staff; one in the wrong place is seen by a buyer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

FLOORS = (-9, 200)
POSITIONS = (1, 999)


class Placement(NamedTuple):
    building: str | None
    floor: int | None
    position: int | None


class LayoutUnit(NamedTuple):
    code: str
    chosen: Placement | None = None
    floor: int | None = None

    @property
    def placement(self) -> Placement:
        """Staff decide, then the floor that was sent; what neither says is guessed from the code."""
        if self.chosen is not None:
            return self.chosen
        guess = guess_placement(self.code)
        return guess if self.floor is None else guess._replace(floor=self.floor)


class PlacedUnit(NamedTuple):
    code: str
    placement: Placement
    is_guessed: bool
    """Whether staff left the place to the code and the unit's floor; false where they set it to nowhere."""


NO_PLACEMENT = Placement(None, None, None)

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


def guess_placement(code: str) -> Placement:
    for form in _FORMS:
        if found := form.fullmatch(code):
            parts = found.groupdict()
            floor = int(parts["floor"]) if parts["floor"].isdecimal() else 0
            position = int(parts["position"])
            fits = FLOORS[0] <= floor <= FLOORS[1] and POSITIONS[0] <= position <= POSITIONS[1]
            return Placement(parts.get("building"), floor, position) if fits else NO_PLACEMENT
    return NO_PLACEMENT


def arrange(units: Iterable[LayoutUnit]) -> list[PlacedUnit]:
    """Building by building, from the lowest floor up; what is not known of a place comes last."""
    return sorted(
        (PlacedUnit(unit.code, unit.placement, unit.chosen is None) for unit in units), key=sort_key
    )


def sort_key(placed: PlacedUnit) -> tuple[Any, ...]:
    building, floor, position = placed.placement
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
