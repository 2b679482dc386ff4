"""The codes of a project from the lowest floor up, remembered: floors follow from codes, not from rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.layout import Placed
from holdfast.operations.known_layouts import Layout, Section
from holdfast.operations.long_work import worked_out

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
            known = layout.sections, await worked_out(units, _ordered, layout.sections)
            self._known[project_id] = known
        self._known.move_to_end(project_id)
        while len(self._known) > REMEMBERED_PROJECTS:
            self._known.popitem(last=False)
        return known[1]


def _ordered(sections: Sequence[Section]) -> FloorOrder:
    """What has no floor comes last; on a floor it goes from building to building, by position."""
    placed = [one for section in sections for one in section.placed]
    return FloorOrder(_row(sorted(placed, key=_up)), _row(sorted(placed, key=_down)))


def _row(placed: Sequence[Placed]) -> _Row:
    codes = [one.code for one in placed]
    return _Row(codes, {code: at for at, code in enumerate(codes)})


def _up(one: Placed) -> tuple[bool, int]:
    return one.place.floor is None, one.place.floor or 0


def _down(one: Placed) -> tuple[bool, int]:
    return one.place.floor is None, -(one.place.floor or 0)
