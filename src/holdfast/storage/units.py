"""Units: locked, created and changed, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.unit import Standing, Unit
from holdfast.storage import events
from holdfast.storage.database import Connection
from holdfast.storage.unit_rows import (
    READ_COLUMNS,
    STATE_WRITE_COLUMNS,
    WRITE_COLUMNS,
    row_for,
    state_row_for,
    unit_from,
)

UnitKey = tuple[UUID, str]
"""(project id, code)"""

LOCKING = "for update"

# One row a wanted key, found or not. Both joins are lateral and so can only be nested loops over
# the keys: PostgreSQL locks in the order of the keys, and gives the rows back in it. A plain join
# with project became a hash join at a thousand keys, which turned that order round. The clock is
# read for each row after its lock, so the last row's time is later than every wait for a lock.
_STAND = """
    select
        clock_timestamp(),
        project.*,
        unit.*
    from unnest($1::uuid[], $2::text[]) as wanted (project_id, code)
    cross join lateral (
        select id, slug, name, version, created_at from project where project.id = wanted.project_id offset 0
    ) as project
    left join lateral (
        select {columns} from unit
        where unit.project_id = wanted.project_id and unit.code = wanted.code
        {locking}
    ) as unit on true
"""
_UNIT_AT = 6

_INSERT = f"""
    insert into unit ({WRITE_COLUMNS})
    select {WRITE_COLUMNS} from unnest($1::unit_write[])
    on conflict on constraint unit_of_project do nothing
    returning id, ref
"""

_FIXED = ("id", "project_id", "code", "created_at")


def _update_statement(kind: str, columns: str) -> str:
    changed = [name for name in columns.split(", ") if name not in _FIXED]
    return f"""
        update unit set {", ".join(f"{name} = written.{name}" for name in changed)}
        from unnest($1::{kind}[]) as written
        where unit.id = written.id
    """


_UPDATE = _update_statement("unit_write", WRITE_COLUMNS)
_UPDATE_STATE = _update_statement("unit_state_write", STATE_WRITE_COLUMNS)
_UPDATE_STATE_AND_TELL = f"with updated as ({_UPDATE_STATE}) {events.insert_statement(first_argument=2)}"

_COUNT_STORED = """
    select count(*)
    from unnest($1::uuid[], $2::bigint[], $3::timestamptz[]) as expected (id, version, updated_at)
    join unit using (id, version, updated_at)
"""


class Stood(NamedTuple):
    now: datetime
    standings: list[Standing]
    """One for each wanted key, in the same order."""


class CreatedMeanwhile(Exception):
    """Another transaction created one of the units first; everything must be decided anew."""


async def stand(connection: Connection, keys: Sequence[UnitKey], *, locked: bool) -> Stood:
    """The units as they are now, locked for the rest of the transaction. ``keys`` are sorted."""
    statement = _STAND.format(columns=READ_COLUMNS, locking=LOCKING if locked else "")
    rows = await connection.fetch(statement, [key[0] for key in keys], [key[1] for key in keys])
    standings = [_standing(key, row) for key, row in zip(keys, rows, strict=True)]
    return Stood(_whole_milliseconds(rows[-1][0]), standings)


async def insert(connection: Connection, units: Sequence[Unit]) -> dict[UUID, str]:
    """Create the units and give the ``ref`` that each was issued. ``units`` are sorted by key."""
    rows = await connection.fetch(_INSERT, [row_for(unit) for unit in units])
    if len(rows) < len(units):
        raise CreatedMeanwhile
    return {row[0]: row[1] for row in rows}


async def update(connection: Connection, units: Sequence[Unit]) -> None:
    await connection.execute(_UPDATE, [row_for(unit) for unit in units])


async def update_state(connection: Connection, units: Sequence[Unit], told: Sequence[UnitEvent]) -> None:
    """Store price, status and version of the units, and the events, in one round trip."""
    rows = [state_row_for(unit) for unit in units]
    if told:
        await connection.execute(_UPDATE_STATE_AND_TELL, rows, *events.columns(told))
    else:
        await connection.execute(_UPDATE_STATE, rows)


async def are_stored(connection: Connection, units: Sequence[Unit]) -> bool:
    """Whether exactly these versions stand in the database; for the outcome of a lost commit."""
    found = await connection.fetchval(
        _COUNT_STORED,
        [unit.id for unit in units],
        [unit.version for unit in units],
        [unit.updated_at for unit in units],
    )
    return bool(found == len(units))


def _standing(key: UnitKey, row: asyncpg.Record) -> Standing:
    project = Project(*row[1:_UNIT_AT])
    unit = None if row[_UNIT_AT] is None else unit_from(row, _UNIT_AT)
    if project.id != key[0] or (unit is not None and unit.code != key[1]):
        raise AssertionError("PostgreSQL gave the rows in another order than that of the keys.")
    return Standing(project, unit)


def _whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
