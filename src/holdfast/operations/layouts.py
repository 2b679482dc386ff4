"""Layouts of projects, cached: computing one takes longer than the rest of a page."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, ParamSpec, TypeVar
from uuid import UUID

from holdfast.domain.layout import PlacedUnit, Position, arrange, sort_key
from holdfast.storage import boards, layouts
from holdfast.storage.database import Connection

Argument = ParamSpec("Argument")
Computed = TypeVar("Computed")

# Some ten milliseconds' worth of things.
_MANY = 1000


async def run_in_thread(
    things: int, work: Callable[Argument, Computed], *given: Argument.args, **named: Argument.kwargs
) -> Computed:
    """In a thread if there are many things to work on, so that other requests have their turn."""
    if things <= _MANY:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)


# Where the units of projects stand, remembered: to work it out takes longer than all the rest of a page.

REMEMBERED_UNITS = 300_000


class Section(NamedTuple):
    """A building, or what stands in none."""

    name: str | None
    placed: list[PlacedUnit]


class Layout(NamedTuple):
    turn: int
    """Another one after each edit."""
    sections: list[Section]


class _Known(NamedTuple):
    turn: int
    codes: frozenset[str]
    sections: list[Section]


class KnownLayouts:
    """Units stay for good and keep their codes: a layout is the same as long as the project has as many units
    as before, and nobody has edited it. With more units it is the same but for those."""

    def __init__(self) -> None:
        self._known: OrderedDict[UUID, _Known] = OrderedDict()

    async def find(self, connection: Connection, project_id: UUID, units: int) -> Layout:
        turn = await boards.layout_turn(connection, project_id)
        known = self._known.get(project_id)
        if known is None or known.turn != turn:
            known = _Known(turn, frozenset(), [])
        if len(known.codes) != units:
            known = await self._with_new_units(connection, project_id, known)
        self._remember(project_id, known)
        return Layout(turn, known.sections)

    async def _with_new_units(self, connection: Connection, project_id: UUID, known: _Known) -> _Known:
        codes = await layouts.codes(connection, project_id)
        fresh = [code for code in codes if code not in known.codes]
        chosen = await layouts.places(connection, project_id)
        sections = await run_in_thread(len(codes), _arranged, known.sections, fresh, chosen)
        return _Known(known.turn, frozenset(codes), sections)

    def _remember(self, project_id: UUID, known: _Known) -> None:
        self._known[project_id] = known
        self._known.move_to_end(project_id)
        while len(self._known) > 1 and sum(len(one.codes) for one in self._known.values()) > REMEMBERED_UNITS:
            self._known.popitem(last=False)


def _arranged(
    sections: Sequence[Section], fresh: Sequence[str], chosen: Mapping[str, Position]
) -> list[Section]:
    """The buildings with their new units; those that get none stay as they are."""
    by_name = {section.name: section for section in sections}
    for name, group in groupby(arrange(fresh, chosen), key=lambda one: one.place.building):
        placed = list(group)
        if name in by_name:
            placed = sorted([*by_name[name].placed, *placed], key=sort_key)
        by_name[name] = Section(name, placed)
    return sorted(by_name.values(), key=lambda section: sort_key(section.placed[0])[0])


# The codes of a project from the lowest floor up, remembered: floors follow from codes, not from rows.

REMEMBERED_PROJECTS = 20


class _Row(NamedTuple):
    codes: Sequence[str]
    at: dict[str, int]


class FloorOrder(NamedTuple):
    upward: _Row
    downward: _Row

    def after(
        self, code: str | None, *, downward: bool, among: Collection[str] | None = None
    ) -> Sequence[str]:
        """What comes behind the code; all of them where it is not known. ``among``: of these alone."""
        row = self.downward if downward else self.upward
        at = -1 if code is None else row.at.get(code, -1)
        if among is None:
            return row.codes[at + 1 :]
        wanted = sorted(row.at[one] for one in among if one in row.at)
        return [row.codes[one] for one in wanted if one > at]


class FloorOrders:
    def __init__(self) -> None:
        self._known: OrderedDict[UUID, tuple[Sequence[Section], FloorOrder]] = OrderedDict()

    async def find(self, project_id: UUID, layout: Layout) -> FloorOrder:
        known = self._known.get(project_id)
        # A layout that has changed is another list.
        if known is None or known[0] is not layout.sections:
            units = sum(len(section.placed) for section in layout.sections)
            known = layout.sections, await run_in_thread(units, _ordered, layout.sections)
            self._known[project_id] = known
        self._known.move_to_end(project_id)
        while len(self._known) > REMEMBERED_PROJECTS:
            self._known.popitem(last=False)
        return known[1]


def _ordered(sections: Sequence[Section]) -> FloorOrder:
    """What has no floor comes last; on a floor it goes from building to building, by position."""
    placed = [one for section in sections for one in section.placed]
    return FloorOrder(_row(sorted(placed, key=_up)), _row(sorted(placed, key=_down)))


def _row(placed: Sequence[PlacedUnit]) -> _Row:
    codes = [one.code for one in placed]
    return _Row(codes, {code: at for at, code in enumerate(codes)})


def _up(one: PlacedUnit) -> tuple[bool, int]:
    return one.place.floor is None, one.place.floor or 0


def _down(one: PlacedUnit) -> tuple[bool, int]:
    return one.place.floor is None, -(one.place.floor or 0)
