"""A row of a file, and the command that brings its unit in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.audit import Author
from holdfast.domain.cells import Cell
from holdfast.domain.decision import Decision, Standing, Wanted
from holdfast.domain.errors import Refusal
from holdfast.domain.imports import Choice, Row, bring_in
from holdfast.domain.status import Status
from holdfast.operations.command import NOTHING
from holdfast.storage.units import UnitKey


class ImportUnit(NamedTuple):
    key: UnitKey
    values: Mapping[str, Any]
    """What the row says, in the domain's names; what it does not name stays as it is."""
    status: Status | None
    author: Author

    @property
    def wanted(self) -> Wanted:
        return NOTHING

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return bring_in(standing, self.key[1], self.values, self.status, now)


class RowRead(NamedTuple):
    number: int
    code: str
    cells: list[Cell]
    command: ImportUnit | Refusal


ReadRow = Callable[[Row], RowRead]
RowReader = Callable[[UUID, str, Choice, Author], ReadRow]
"""For a project (its id and slug): reads rows in their order, and refuses what the bulk route would."""
