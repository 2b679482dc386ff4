"""Boards: units by building and floor, how many have each status, and filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.layout import PlacedUnit
from holdfast.domain.status import ON_SALE, Status

WIDEST_FLOOR = 60
"""Positions beyond are shown one after the other: a gap of hundreds of cells tells nobody anything."""


class BoardUnit(NamedTuple):
    id: UUID
    code: str
    type: str
    area_sqm: Decimal
    price_sar: Decimal
    bedrooms: int | None
    status: Status
    archived: bool
    ends_at: datetime | None
    version: int

    @property
    def sqm_price_sar(self) -> Decimal:
        return (self.price_sar / self.area_sqm).quantize(Decimal("0.01"))


class Counts(NamedTuple):
    by_status: Mapping[Status, int]

    @property
    def total(self) -> int:
        return sum(self.by_status.values())

    @property
    def on_sale(self) -> Counts:
        """Return the counts of the units that buyers see."""
        return Counts({status: units for status, units in self.by_status.items() if status in ON_SALE})


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


def arrange_buildings(units: Iterable[BoardUnit], placed: Iterable[PlacedUnit]) -> list[Building]:
    """Building by building; of ``placed`` only what is among the units."""
    by_code = {unit.code: unit for unit in units}
    shown = [one for one in placed if one.code in by_code]
    return [
        Building(name, _floors(list(of_building), by_code))
        for name, of_building in groupby(shown, key=lambda one: one.placement.building)
    ]


def _floors(placed: Sequence[PlacedUnit], by_code: Mapping[str, BoardUnit]) -> list[Floor]:
    floors = [
        Floor(number, _in_position(list(of_floor), by_code))
        for number, of_floor in groupby(placed, key=lambda one: one.placement.floor)
    ]
    nowhere = [floor for floor in floors if floor.number is None]
    return [floor for floor in reversed(floors) if floor.number is not None] + nowhere


def _in_position(placed: Sequence[PlacedUnit], by_code: Mapping[str, BoardUnit]) -> list[BoardUnit | None]:
    row: list[BoardUnit | None] = []
    has_floor = placed[0].placement.floor is not None
    for one in placed:
        position = one.placement.position
        if has_floor and position is not None and position <= WIDEST_FLOOR:
            row.extend([None] * (position - 1 - len(row)))
        row.append(by_code[one.code])
    return row


def is_between(value: Decimal, least: Decimal | None, most: Decimal | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)
