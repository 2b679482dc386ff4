"""Layouts of projects, cached: computing one takes longer than the rest of a page."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, ParamSpec, TypeVar
from uuid import UUID

from holdfast.domain.layout import LayoutUnit, PlacedUnit, arrange, sort_key
from holdfast.storage import boards, layouts
from holdfast.storage.database import Connection

Argument = ParamSpec("Argument")
Computed = TypeVar("Computed")

CACHED_UNITS = 300_000
# Some ten milliseconds' worth of units.
_MANY = 1000


async def run_in_thread(
    units: int, work: Callable[Argument, Computed], *args: Argument.args, **kwargs: Argument.kwargs
) -> Computed:
    """Work on many units in a thread, so that other requests have their turn, and on few at once."""
    if units <= _MANY:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


class Section(NamedTuple):
    """A building, or the units that are in none."""

    name: str | None
    placed: list[PlacedUnit]


class FloorOrder(NamedTuple):
    codes: Sequence[str]
    ranks: Mapping[str, int]
    """The place of each code in the order."""

    def after(self, code: str | None, among: Collection[str] | None = None) -> Sequence[str]:
        """Return the codes after this one, or all if it is not known, as far as they are ``among`` these."""
        start = -1 if code is None else self.ranks.get(code, -1)
        if among is None:
            return self.codes[start + 1 :]
        ranks = sorted(self.ranks[one] for one in among if one in self.ranks)
        return [self.codes[rank] for rank in ranks if rank > start]


@dataclass
class Layout:
    turn: int
    """Another one after each edit, and after a change of a unit's floor."""
    codes: frozenset[str] = frozenset()
    sections: Sequence[Section] = ()
    _orders: dict[bool, FloorOrder] = field(default_factory=dict)
    _floors: dict[int, list[str]] | None = None

    def choose(self, section: int, whole_up_to: int) -> tuple[Sequence[Section], int, list[PlacedUnit]]:
        """Return the buildings to choose from, unless there are few units; the chosen one, and its units."""
        if len(self.codes) <= whole_up_to:
            return (), 0, [one for building in self.sections for one in building.placed]
        section = section if 0 <= section < len(self.sections) else 0
        return self.sections, section, self.sections[section].placed

    async def by_floor(self, *, downward: bool) -> FloorOrder:
        if downward not in self._orders:
            ordered = await run_in_thread(len(self.codes), _order_by_floor, self.sections, downward)
            self._orders[downward] = ordered
        return self._orders[downward]

    async def codes_by_floor(self) -> Mapping[int, Sequence[str]]:
        if self._floors is None:
            self._floors = await run_in_thread(len(self.codes), _codes_by_floor, self.sections)
        return self._floors


class LayoutCache:
    """Units stay for good and keep their codes: a layout is the same as long as the project has as many units
    and the same turn as before. With more units it is the same but for those."""

    def __init__(self) -> None:
        self._layouts: OrderedDict[UUID, Layout] = OrderedDict()

    async def find(self, connection: Connection, project_id: UUID, units: int) -> Layout:
        turn = (await boards.layout_turns(connection, [project_id]))[project_id]
        layout = self._layouts.get(project_id)
        if layout is None or layout.turn != turn:
            layout = Layout(turn)
        if len(layout.codes) != units:
            found = await layouts.list_units(connection, project_id)
            new = [unit for unit in found if unit.code not in layout.codes]
            sections = await run_in_thread(len(found), _add_units, layout.sections, new)
            layout = Layout(turn, frozenset(unit.code for unit in found), sections)
        self._layouts[project_id] = layout
        self._layouts.move_to_end(project_id)
        while len(self._layouts) > 1 and sum(len(one.codes) for one in self._layouts.values()) > CACHED_UNITS:
            self._layouts.popitem(last=False)
        return layout


def _codes_by_floor(sections: Sequence[Section]) -> dict[int, list[str]]:
    floors: dict[int, list[str]] = {}
    for section in sections:
        for one in section.placed:
            if one.placement.floor is not None:
                floors.setdefault(one.placement.floor, []).append(one.code)
    return floors


def _add_units(sections: Sequence[Section], new: Sequence[LayoutUnit]) -> list[Section]:
    """Return the buildings with their new units; those that get none stay as they are."""
    by_name = {section.name: section for section in sections}
    for name, group in groupby(arrange(new), key=lambda one: one.placement.building):
        placed = list(group)
        if name in by_name:
            placed = sorted([*by_name[name].placed, *placed], key=sort_key)
        by_name[name] = Section(name, placed)
    return sorted(by_name.values(), key=lambda section: sort_key(section.placed[0])[0])


def _order_by_floor(sections: Sequence[Section], downward: bool) -> FloorOrder:
    """Go from building to building on each floor, by position. Units without a floor come last."""
    sign = -1 if downward else 1
    placed = [one for section in sections for one in section.placed]
    placed.sort(key=lambda one: (one.placement.floor is None, sign * (one.placement.floor or 0)))
    codes = [one.code for one in placed]
    return FloorOrder(codes, {code: at for at, code in enumerate(codes)})
