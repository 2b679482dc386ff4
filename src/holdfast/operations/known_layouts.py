"""Where the units of projects stand, remembered: to work it out takes longer than all the rest of a page."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.layout import Place, Placed, arrange, order_of
from holdfast.operations.long_work import worked_out
from holdfast.storage import boards, layouts
from holdfast.storage.database import Connection

REMEMBERED_UNITS = 300_000


class Section(NamedTuple):
    """A building, or what stands in none."""

    name: str | None
    placed: list[Placed]


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
        sections = await worked_out(len(codes), _arranged, known.sections, fresh, chosen)
        return _Known(known.turn, frozenset(codes), sections)

    def _remember(self, project_id: UUID, known: _Known) -> None:
        self._known[project_id] = known
        self._known.move_to_end(project_id)
        while len(self._known) > 1 and sum(len(one.codes) for one in self._known.values()) > REMEMBERED_UNITS:
            self._known.popitem(last=False)


def _arranged(
    sections: Sequence[Section], fresh: Sequence[str], chosen: Mapping[str, Place]
) -> list[Section]:
    """The buildings with their new units; those that get none stay as they are."""
    by_name = {section.name: section for section in sections}
    for name, group in groupby(arrange(fresh, chosen), key=lambda one: one.place.building):
        placed = list(group)
        if name in by_name:
            placed = sorted([*by_name[name].placed, *placed], key=order_of)
        by_name[name] = Section(name, placed)
    return sorted(by_name.values(), key=lambda section: order_of(section.placed[0])[0])
