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
from holdfast.domain.event import UnitEvent
from holdfast.domain.unit import Unit
from holdfast.storage import audit, booking_rows, bookings, events
from holdfast.storage.database import Connection
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

AS_FOUND = "unit.turn = written.found_turn"
# What was decided on a hold that was live, or over, is stored only while it still is so.
_ENDS_AT = "coalesce(unit.hold_expires_at, unit.reserved_until)"
_AS_LATE_AS_DECIDED = f"({_ENDS_AT} is null or ({_ENDS_AT} <= $2) = ({_ENDS_AT} <= clock_timestamp()))"

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
        parts.append(events.told_and_fanned_out(4, stored))
    if changed:
        parts.append(f"changed as ({booking_rows.update_statement(4 + told, stored)})")
    if begun:
        after = "(select count(*) from changed) >= 0" if changed else "true"
        statement_for_new = booking_rows.insert_statement(4 + told + changed, stored, after)
        parts.append(f"begun as ({statement_for_new})")
    deliveries = "(select count(*) from fanned_out)" if told else "0"
    return f"with stored as ({statement}), {', '.join(parts)} select id, ref, {deliveries} from stored"


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


Row = tuple[Any, ...]
Refs = dict[UUID, str]
"""The ``ref`` of each unit that was stored, by its id."""


async def store(
    connection: Connection, changes: Sequence[Change], told: Told, decided_at: datetime, stored: Refs
) -> int:
    """Store the changes and what belongs to them, and note in ``stored`` what was, statement by statement.
    Says how many deliveries were made of it.

    Not stored is what another transaction has created or changed since it was found. ``changes`` are
    in the order of their keys, so that writers that meet wait for each other in one order.
    """
    kinds: dict[str, list[Change]] = {_INSERT: [], _UPDATE: [], _UPDATE_STATE: []}
    for change in changes:
        kinds[_statement_for(change)].append(change)
    deliveries = 0
    for statement, own in kinds.items():
        if own:
            rows = await _store(connection, statement, own, told, decided_at)
            stored.update((row[0], row[1]) for row in rows)
            deliveries += rows[0][2] if rows else 0
    return deliveries


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
) -> list[asyncpg.Record]:
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
    return await connection.fetch(whole, *arguments)
