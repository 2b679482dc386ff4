"""Units: found, locked, created and changed, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.audit import Entry
from holdfast.domain.booking import Booking
from holdfast.domain.decision import Standing
from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.refusals import DatabaseAway
from holdfast.domain.unit import Unit
from holdfast.storage import audit, booking_rows, bookings, events, projects
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

LOCKING = "for no key update"
AS_FOUND = "unit.turn = written.found_turn"
# What was decided on a hold that was live, or over, is stored only while it still is so.
_ENDS_AT = "coalesce(unit.hold_expires_at, unit.reserved_until)"
_AS_LATE_AS_DECIDED = f"({_ENDS_AT} is null or ({_ENDS_AT} <= $2) = ({_ENDS_AT} <= clock_timestamp()))"

# One row a wanted key, found or not. Both joins are lateral and so can only be nested loops over
# the keys: PostgreSQL locks in the order of the keys, and gives the rows back in it. A plain join
# with project became a hash join at a thousand keys, which turned that order round. The clock is
# read for each row after its lock, so the last row's time is later than every wait for a lock.
_STAND = """
    select
        clock_timestamp(),
        wanted.place,
        project.turn,
        unit.*
    from unnest($1::uuid[], $2::text[]) with ordinality as wanted (project_id, code, place)
    cross join lateral (
        select turn from project where project.id = wanted.project_id offset 0
    ) as project
    left join lateral (
        select turn, {columns} from unit
        where unit.project_id = wanted.project_id and unit.code = wanted.code
        {locking}
    ) as unit on true
"""
_TURN_AT, _UNIT_AT = 3, 4


@cache
def _stand_statement(locking: str) -> str:
    return _STAND.format(columns=READ_COLUMNS, locking=locking)


_FIXED = ("id", "project_id", "code", "created_at")


def _update_statement(kind: str, columns: str) -> str:
    """Stores each unit only if it still is as it was found: nobody's change is ever overwritten."""
    changed = [name for name in columns.split(", ") if name not in _FIXED]
    return f"""
        update unit set turn = unit.turn + 1, {", ".join(f"{name} = {written(name)}" for name in changed)}
        from unnest($1::{kind}[]) as written
        where unit.id = written.id and {AS_FOUND} and {_AS_LATE_AS_DECIDED}
        returning unit.id, unit.ref
    """


@cache
def _with_what_belongs_to_it(statement: str, told: bool, changed: bool, begun: bool) -> str:
    """The same, with its audit entries, events and bookings: stored together, or not at all."""
    stored = "select id from stored"
    parts = [f"noted as ({audit.insert_statement(3, stored)})"]
    if told:
        parts.append(f"told as ({events.insert_statement(4, stored)})")
    if changed:
        parts.append(f"changed as ({booking_rows.update_statement(4 + told, stored)})")
    if begun:
        after = "(select count(*) from changed) >= 0" if changed else "true"
        statement_for_new = booking_rows.insert_statement(4 + told + changed, stored, after)
        parts.append(f"begun as ({statement_for_new})")
    return f"with stored as ({statement}), {', '.join(parts)} select id, ref from stored"


# Takes the time of the decision as the updates do: a new unit has no end that it could miss.
_INSERT = f"""
    insert into unit ({WRITE_COLUMNS})
    select {", ".join(map(written, WRITE_COLUMNS.split(", ")))} from unnest($1::unit_write[]) as written
    where $2::timestamptz is not null
    on conflict do nothing
    returning id, ref
"""
_UPDATE = _update_statement("unit_write", WRITE_COLUMNS)
_UPDATE_STATE = _update_statement("unit_state_write", STATE_WRITE_COLUMNS)

# Something to commit: what is seen here may wait for a standby still, and the commit waits for it too.
_OUTLAST = "select pg_logical_emit_message(true, 'holdfast', 'looked')"

_FIND = f"select {READ_COLUMNS} from unit where id = any($1::uuid[])"


class Change(NamedTuple):
    unit: Unit
    """As it is to be stored."""
    found: Unit | None
    """As it was found; None if it is to be created."""
    found_turn: int = 0
    begun: tuple[Booking, ...] = ()
    """New bookings of this unit."""
    changed: tuple[Booking, ...] = ()
    """Bookings of this unit that were there, as they are to be stored."""


class Told(NamedTuple):
    """What is stored with the units that it is about."""

    entries: list[Entry]
    events: list[UnitEvent]


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
    turns = {key[0]: row[2] for key, row in zip(keys, rows, strict=True)}
    await projects.make_known(connection, known, turns)
    if [row[1] for row in rows] != list(range(1, len(rows) + 1)):
        raise AssertionError("PostgreSQL gave the rows in another order than that of the keys.")
    standings = [_standing(known[key[0]], row) for key, row in zip(keys, rows, strict=True)]
    return Stood(_whole_milliseconds(rows[-1][0]), standings)


async def store(
    connection: Connection, changes: Sequence[Change], told: Told, decided_at: datetime, stored: Refs
) -> None:
    """Store the changes and what belongs to them, and note in ``stored`` what was, statement by statement.

    Not stored is what another transaction has created or changed since it was found. ``changes`` are
    in the order of their keys, so that writers that meet wait for each other in one order.
    """
    kinds: dict[str, list[Change]] = {_INSERT: [], _UPDATE: [], _UPDATE_STATE: []}
    for change in changes:
        kinds[_statement_for(change)].append(change)
    for statement, own in kinds.items():
        if own:
            stored.update(await _store(connection, statement, own, told, decided_at))


async def find_stored(connection: Connection, changes: Sequence[Change]) -> Refs:
    """Which of these changes stand in the database exactly so; for the outcome of a lost commit.

    All of it is compared: another writer may have had the same version in the same millisecond. Within a
    transaction, whose commit vouches for what was found.
    """
    await connection.execute(_OUTLAST)
    rows = {row[0]: row for row in await connection.fetch(_FIND, [change.unit.id for change in changes])}
    numbers = [booking.number for change in changes for booking in change.begun + change.changed]
    found = await bookings.concerning(connection, [], numbers) if numbers else []
    made = {booking.number: booking for _, booking in found}
    return {
        change.unit.id: rows[change.unit.id][2]
        for change in changes
        if change.unit.id in rows and _stands(change, rows[change.unit.id], made)
    }


def _stands(change: Change, row: asyncpg.Record, made: Mapping[int, Booking]) -> bool:
    unit = unit_from(change.unit.project_id, tuple(row))
    same = unit._replace(ref=change.unit.ref) == change.unit
    bookings_made = change.begun + change.changed
    return same and all(made.get(booking.number) == booking for booking in bookings_made)


def _statement_for(change: Change) -> str:
    if change.found is None:
        return _INSERT
    return _UPDATE_STATE if is_state_alone(change.found, change.unit) else _UPDATE


def _row(statement: str, change: Change) -> Row:
    make = state_row_for if statement is _UPDATE_STATE else row_for
    return make(change.unit, change.found_turn)


async def _store(
    connection: Connection, statement: str, changes: list[Change], told: Told, decided_at: datetime
) -> Refs:
    ids = {change.unit.id for change in changes}
    arguments: list[Any] = [
        [_row(statement, change) for change in changes],
        decided_at,
        [audit.row_for(entry) for entry in told.entries if entry.subject_id in ids],
    ]
    own = [event for event in told.events if event.unit_id in ids]
    changed = [booking_rows.row_for(booking) for change in changes for booking in change.changed]
    begun = [booking_rows.row_for(booking) for change in changes for booking in change.begun]
    arguments += [rows for rows in (own, changed, begun) if rows]
    whole = _with_what_belongs_to_it(statement, bool(own), bool(changed), bool(begun))
    return {row[0]: row[1] for row in await connection.fetch(whole, *arguments)}


def _standing(project: Project, row: asyncpg.Record) -> Standing:
    if row[_UNIT_AT] is None:
        return Standing(project, None)
    return Standing(project, unit_from(project.id, row[_UNIT_AT:]), turn=row[_TURN_AT])


def _whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
