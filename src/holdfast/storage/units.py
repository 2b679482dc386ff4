"""Units: found, locked, created and changed, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.refusals import DatabaseAway
from holdfast.domain.unit import Standing, Unit
from holdfast.storage import events, projects
from holdfast.storage.database import Connection, KnownProjects
from holdfast.storage.unit_rows import (
    READ_COLUMNS,
    STATE_WRITE_COLUMNS,
    WRITE_COLUMNS,
    is_state_alone,
    row_for,
    state_row_for,
    unit_from,
    written,
)

UnitKey = tuple[UUID, str]
"""(project id, code)"""

LOCKING = "for update"
AS_FOUND = "unit.version = written.found_version"

# One row a wanted key, found or not. Both joins are lateral and so can only be nested loops over
# the keys: PostgreSQL locks in the order of the keys, and gives the rows back in it. A plain join
# with project became a hash join at a thousand keys, which turned that order round. The clock is
# read for each row after its lock, so the last row's time is later than every wait for a lock.
_STAND = """
    select
        clock_timestamp(),
        wanted.place,
        project.version,
        unit.*
    from unnest($1::uuid[], $2::text[]) with ordinality as wanted (project_id, code, place)
    cross join lateral (
        select version from project where project.id = wanted.project_id offset 0
    ) as project
    left join lateral (
        select {columns} from unit
        where unit.project_id = wanted.project_id and unit.code = wanted.code
        {locking}
    ) as unit on true
"""
_UNIT_AT = 3


@cache
def _stand_statement(locking: str) -> str:
    return _STAND.format(columns=READ_COLUMNS, locking=locking)


_FIXED = ("id", "project_id", "code", "created_at")


def _update_statement(kind: str, columns: str) -> str:
    """Stores each unit only if it still is as it was found: nobody's change is ever overwritten."""
    changed = [name for name in columns.split(", ") if name not in _FIXED]
    return f"""
        update unit set {", ".join(f"{name} = {written(name)}" for name in changed)}
        from unnest($1::{kind}[]) as written
        where unit.id = written.id and {AS_FOUND}
        returning unit.id, unit.ref
    """


@cache
def _telling(statement: str) -> str:
    """The same, with the events that tell of it: stored together, or not at all."""
    return f"""
        with stored as ({statement}),
        told as ({events.insert_statement(2, "select id from stored")})
        select id, ref from stored
    """


_INSERT = f"""
    insert into unit ({WRITE_COLUMNS})
    select {", ".join(map(written, WRITE_COLUMNS.split(", ")))} from unnest($1::unit_write[]) as written
    on conflict do nothing
    returning id, ref
"""
_UPDATE = _update_statement("unit_write", WRITE_COLUMNS)
_UPDATE_STATE = _update_statement("unit_state_write", STATE_WRITE_COLUMNS)

_FIND = f"select {READ_COLUMNS} from unit where id = any($1::uuid[])"


class Change(NamedTuple):
    unit: Unit
    """As it is to be stored."""
    found: Unit | None
    """As it was found; None if it is to be created."""


class ProjectGone(DatabaseAway):
    """A project that was there is not: the database under this process was replaced by another."""


Row = tuple[Any, ...]
Refs = dict[UUID, str]
"""The ``ref`` of each unit that was stored, by its id."""


class Stood(NamedTuple):
    now: datetime
    standings: list[Standing]
    """One for each wanted key, in the same order."""


async def stand(
    connection: Connection, known: KnownProjects, keys: Sequence[UnitKey], *, locked: bool
) -> Stood:
    """The units as they are now; ``locked`` keeps them so for the transaction. ``keys`` are sorted."""
    rows = await connection.fetch(
        _stand_statement(LOCKING if locked else ""), [key[0] for key in keys], [key[1] for key in keys]
    )
    if len(rows) < len(keys):
        raise ProjectGone
    versions = {key[0]: row[2] for key, row in zip(keys, rows, strict=True)}
    await projects.make_known(connection, known, versions)
    if [row[1] for row in rows] != list(range(1, len(rows) + 1)):
        raise AssertionError("PostgreSQL gave the rows in another order than that of the keys.")
    standings = [_standing(known[key[0]], row) for key, row in zip(keys, rows, strict=True)]
    return Stood(_whole_milliseconds(rows[-1][0]), standings)


async def store(
    connection: Connection, changes: Sequence[Change], told: Sequence[UnitEvent], stored: Refs
) -> None:
    """Store the changes and their events, and note in ``stored`` what was, statement by statement.

    Not stored is what another transaction has created or changed since it was found. ``changes`` are
    in the order of their keys, so that writers that meet wait for each other in one order.
    """
    rows: dict[str, list[Row]] = {_INSERT: [], _UPDATE: [], _UPDATE_STATE: []}
    for unit, found in changes:
        if found is None:
            rows[_INSERT].append(row_for(unit, 0))
        elif is_state_alone(found, unit):
            rows[_UPDATE_STATE].append(state_row_for(unit, found.version))
        else:
            rows[_UPDATE].append(row_for(unit, found.version))
    for statement, own in rows.items():
        if own:
            stored.update(await _store(connection, statement, own, told))


async def find_stored(connection: Connection, units: Sequence[Unit]) -> Refs:
    """Which of these units stand in the database exactly so; for the outcome of a lost commit.

    All of the unit is compared: another writer may have had the same version in the same millisecond.
    """
    rows = {row[0]: row for row in await connection.fetch(_FIND, [unit.id for unit in units])}
    found = [(unit, unit_from(unit.project_id, tuple(rows[unit.id]))) for unit in units if unit.id in rows]
    return {stored.id: stored.ref for unit, stored in found if stored._replace(ref=unit.ref) == unit}


async def _store(connection: Connection, statement: str, rows: list[Row], told: Sequence[UnitEvent]) -> Refs:
    ids = {row[0] for row in rows}
    own = [event for event in told if event.unit_id in ids]
    if own:
        stored = await connection.fetch(_telling(statement), rows, *events.columns(own))
    else:
        stored = await connection.fetch(statement, rows)
    return {row[0]: row[1] for row in stored}


def _standing(project: Project, row: asyncpg.Record) -> Standing:
    unit = None if row[_UNIT_AT] is None else unit_from(project.id, row[_UNIT_AT:])
    return Standing(project, unit)


def _whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
