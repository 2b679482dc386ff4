"""Units as rows: loaded for commands, and stored with their side effects, many at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain.audit import AuditEntry
from holdfast.domain.booking import Booking, LiveHold
from holdfast.domain.decision import UnitSnapshot
from holdfast.domain.email import NewEmail
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields, fields_of_type
from holdfast.storage import audit, bookings, emails, events, projects
from holdfast.storage.database import Connection, ProjectCache, wait_for_standby

FIELD_COLUMNS = ", ".join(UnitFields._fields)
STATE_COLUMNS = "status, archived, hold_expires_at, reserved_until, version, created_at, updated_at"

# Numbers are sent as text, both ways: the driver takes three times as long for PostgreSQL's binary form, and
# the text of a number is exact. Without zeros at its end it has one form only.
_DECIMALS = fields_of_type(Decimal)
_DECIMAL_INDEXES = [UnitFields._fields.index(name) for name in sorted(_DECIMALS)]
_MEDIA_INDEXES = [UnitFields._fields.index(name) for name in sorted(fields_of_type(tuple))]
_NO_MEDIA = "[]"
_all_but_price = attrgetter(*(name for name in UnitFields._fields if name != "price_sar"))

_FIELD_READ_COLUMNS = ", ".join(
    f"trim_scale({name})::text" if name in _DECIMALS else name for name in UnitFields._fields
)

READ_COLUMNS = f"id, code, ref, {STATE_COLUMNS}, {_FIELD_READ_COLUMNS}"
"""In the order in which ``unit_from`` takes them."""

WRITE_COLUMNS = f"id, project_id, code, {FIELD_COLUMNS}, {STATE_COLUMNS}"
"""In the order of the database's type ``unit_write``, which has ``found_turn`` behind them."""

_STATUS = {str(status): status for status in Status}


def unit_from(project_id: UUID, columns: Iterable[Any]) -> Unit:
    """Build a unit from the values of ``READ_COLUMNS``."""
    (
        own_id, code, ref, status, archived, hold_expires_at, reserved_until, version, created_at, updated_at,
        *fields,
    ) = columns  # fmt: skip
    for index in _DECIMAL_INDEXES:
        if fields[index] is not None:
            fields[index] = Decimal(fields[index])
    for index in _MEDIA_INDEXES:
        fields[index] = () if fields[index] == _NO_MEDIA else tuple(msgspec.json.decode(fields[index]))
    return Unit(
        own_id, project_id, code, ref, UnitFields._make(fields), _STATUS[status], archived, hold_expires_at,
        reserved_until, version, created_at, updated_at,
    )  # fmt: skip


def _unit_row(unit: Unit, found_turn: int) -> tuple[Any, ...]:
    """Return the value of the database's type ``unit_write``."""
    values: list[Any] = list(unit.fields)
    for index in _DECIMAL_INDEXES:
        if values[index] is not None:
            values[index] = str(values[index])
    for index in _MEDIA_INDEXES:
        values[index] = msgspec.json.encode(values[index]).decode() if values[index] else _NO_MEDIA
    return (
        unit.id, unit.project_id, unit.code, *values, unit.status, unit.archived, unit.hold_expires_at,
        unit.reserved_until, unit.version, unit.created_at, unit.updated_at, found_turn,
    )  # fmt: skip


def _unit_state_row(unit: Unit, found_turn: int) -> tuple[Any, ...]:
    """Return the value of the database's type ``unit_state_write``."""
    return (
        unit.id, str(unit.fields.price_sar), unit.status, unit.archived, unit.hold_expires_at,
        unit.reserved_until, unit.version, unit.updated_at, found_turn,
    )  # fmt: skip


def _written(name: str) -> str:
    """Return the column of a sent row, as the table takes it."""
    return f"written.{name}::numeric" if name in _DECIMALS else f"written.{name}"


# Store units ($2) as decided at a time ($3) with their audit entries ($1), and with their events ($4),
# changed ($5) and new bookings ($6), and e-mails ($7) about these, if there are any: all of a unit, or
# nothing. Return what was stored.
# The parts for events and bookings take time to start even if they have nothing to do: without them a lone
# PUT is 1.14 times as fast (make bench ARGS=before, 2 vCPU, 2026-11-17).
_STORED_EVENTS = f"""
    new_event as (select * from unnest($4::event_write[])),
    {events.INSERT_EVENTS_AND_DELIVERIES}
"""
_STORED_BOOKINGS = f"""
    updated_bookings as ({bookings.UPDATE_BOOKINGS}),
    inserted_bookings as ({bookings.INSERT_BOOKINGS}),
    inserted_emails as ({emails.INSERT_EMAILS})
"""


class _StoreStatement(NamedTuple):
    units: str
    with_events: str
    with_bookings: str


def _store_statement(store_units: str) -> _StoreStatement:
    units = f"""
        with stored as ({store_units} returning unit.id, unit.ref),
        inserted_entries as ({audit.INSERT_ENTRIES})
    """
    count = "(select count(*) from inserted_delivery)"
    return _StoreStatement(
        f"{units} select id, ref, 0 from stored",
        f"{units}, {_STORED_EVENTS} select id, ref, {count} from stored",
        f"{units}, {_STORED_EVENTS}, {_STORED_BOOKINGS} select id, ref, {count} from stored",
    )


# A new unit has no end that the time of the decision could miss.
_INSERT = _store_statement(
    f"""
        insert into unit ({WRITE_COLUMNS})
        select {", ".join(map(_written, WRITE_COLUMNS.split(", ")))}
        from unnest($2::unit_write[]) as written
        where $3::timestamptz is not null
        on conflict do nothing
    """
)

# A unit is updated only if it still is as it was loaded, so that no other change is overwritten, and while a
# hold that was live, or over, for the decision still is so.
_IF_UNCHANGED = """
    where unit.id = written.id and unit.turn = written.found_turn and (
        coalesce(unit.hold_expires_at, unit.reserved_until) is null
        or (coalesce(unit.hold_expires_at, unit.reserved_until) <= $3)
            = (coalesce(unit.hold_expires_at, unit.reserved_until) <= clock_timestamp())
    )
"""
_STATE = """
    status = written.status, archived = written.archived,
    hold_expires_at = written.hold_expires_at, reserved_until = written.reserved_until,
    version = written.version, updated_at = written.updated_at
"""
# In a small table PostgreSQL would rather read all units in the order of their ids, and lock them so, than
# look up the ten that it expects of any array. Of an unknown limit it expects a tenth of these: one unit.
_UPDATE = _store_statement(
    f"""
        update unit set
            turn = unit.turn + 1,
            {", ".join(f"{name} = {_written(name)}" for name in UnitFields._fields)},
            {_STATE}
        from (select * from unnest($2::unit_write[]) limit cardinality($2)) as written
        {_IF_UNCHANGED}
    """
)

# Most changes are a new price or status: these send few columns.
_UPDATE_STATE = _store_statement(
    f"""
        update unit set
            turn = unit.turn + 1, price_sar = written.price_sar::numeric,
            {_STATE}
        from (select * from unnest($2::unit_state_write[]) limit cardinality($2)) as written
        {_IF_UNCHANGED}
    """
)

_FIND = f"select {READ_COLUMNS} from unit where id = any($1::uuid[])"


class UnitWrite(NamedTuple):
    unit: Unit
    """As it is to be stored."""
    found: Unit | None
    """As it was loaded; None if it is to be created."""
    found_turn: int = 0
    new_bookings: tuple[Booking, ...] = ()
    changed_bookings: tuple[Booking, ...] = ()


class SideEffects(NamedTuple):
    entries: list[AuditEntry]
    events: list[UnitEvent]
    emails: list[NewEmail]


Refs = dict[UUID, str]
"""The ``ref`` of each unit that was stored, by its id."""


class Stored(NamedTuple):
    refs: Refs
    deliveries: int


async def store(
    connection: Connection, changes: Sequence[UnitWrite], effects: SideEffects, decided_at: datetime
) -> AsyncIterator[Stored]:
    """Store the changes with their side effects. Yield after each statement: without a transaction it stays
    stored when a later one fails.

    A unit that another transaction has created or changed since it was loaded is not stored. ``changes`` are
    in the order of their keys, so that concurrent writers wait for each other in one order.
    """
    kinds: dict[_StoreStatement, list[UnitWrite]] = {_INSERT: [], _UPDATE: [], _UPDATE_STATE: []}
    for change in changes:
        kinds[_statement_for(change)].append(change)
    for statement, own in kinds.items():
        if own:
            rows = await _store(connection, statement, own, effects, decided_at)
            yield Stored({row[0]: row[1] for row in rows}, rows[0][2] if rows else 0)


async def _store(
    connection: Connection,
    statement: _StoreStatement,
    changes: list[UnitWrite],
    effects: SideEffects,
    decided_at: datetime,
) -> list[asyncpg.Record]:
    ids = {change.unit.id for change in changes}
    entries = [audit.row_for(entry) for entry in effects.entries if entry.subject_id in ids]
    make_row = _unit_state_row if statement is _UPDATE_STATE else _unit_row
    rows = [make_row(change.unit, change.found_turn) for change in changes]
    new_events = [event for event in effects.events if event.unit_id in ids]
    changed = [bookings.booking_row(booking) for change in changes for booking in change.changed_bookings]
    new = [bookings.booking_row(booking) for change in changes for booking in change.new_bookings]
    if changed or new:
        new_emails = [email for email in effects.emails if email.unit_id in ids]
        return await connection.fetch(
            statement.with_bookings, entries, rows, decided_at, new_events, changed, new, new_emails
        )
    if new_events:
        return await connection.fetch(statement.with_events, entries, rows, decided_at, new_events)
    return await connection.fetch(statement.units, entries, rows, decided_at)


async def find_stored(connection: Connection, changes: Sequence[UnitWrite]) -> Refs:
    """Return which of these changes are in the database exactly so, after a commit with unknown outcome.

    Everything is compared: another writer may have had the same version in the same millisecond. Call it
    within a transaction: its commit makes what was found durable.
    """
    await wait_for_standby(connection)
    rows = {row[0]: row for row in await connection.fetch(_FIND, [change.unit.id for change in changes])}
    numbers = [booking.number for change in changes for booking in _bookings_of(change)]
    found = await bookings.load_related(connection, [], numbers) if numbers else []
    by_number = {booking.number: booking for _, booking in found}
    stored: Refs = {}
    for change in changes:
        if row := rows.get(change.unit.id):
            unit = unit_from(change.unit.project_id, row)._replace(ref=change.unit.ref)
            own = _bookings_of(change)
            if unit == change.unit and all(by_number.get(booking.number) == booking for booking in own):
                stored[unit.id] = row[2]
    return stored


def _bookings_of(change: UnitWrite) -> tuple[Booking, ...]:
    return change.new_bookings + change.changed_bookings


def _statement_for(change: UnitWrite) -> _StoreStatement:
    if change.found is None:
        return _INSERT
    old, new = change.found.fields, change.unit.fields
    return _UPDATE_STATE if old is new or _all_but_price(old) == _all_but_price(new) else _UPDATE


# Units for commands: as they are now, locked or not, with the live holds of the buyers who ask for them.

UnitKey = tuple[UUID, str]
"""(project id, code)"""

# One row for each key, whether there is such a unit or not. Both joins are lateral and, with their offset,
# can only be nested loops over the keys: PostgreSQL locks and returns the rows in the order of the keys. A
# plain join became a hash join at a thousand keys and few units, which reversed that order. The clock is read
# for each row after its lock, so the last row's time is later than every wait for a lock.
_LOAD = f"""
    select
        clock_timestamp(), wanted.place, project.turn,
        (select current_setting('synchronous_standby_names') <> ''), unit.*
    from unnest($1::uuid[], $2::text[]) with ordinality as wanted (project_id, code, place)
    cross join lateral (
        select turn from project where project.id = wanted.project_id offset 0
    ) as project
    left join lateral (
        select turn, {READ_COLUMNS} from unit
        where unit.project_id = wanted.project_id and unit.code = wanted.code
        offset 0
    ) as unit on true
"""
_LOAD_LOCKED = _LOAD.replace("offset 0\n    ) as unit", "offset 0 for no key update\n    ) as unit")
_TURN_AT, _UNIT_AT = 4, 5

_HAS_SLOT = {
    kind: f"{kind}_id = any(${parameter}::uuid[]) and {kind}_slot is not null"
    for parameter, kind in enumerate(bookings.SLOT_KINDS, 1)
}
_HELD_SLOTS = " union all ".join(
    f"select {kind}_id, {kind}_slot, hold_expires_at from booking where {has_slot}"
    for kind, has_slot in _HAS_SLOT.items()
)

# An expired hold has no slot any more, though its end may not be written yet. Only slots are cleared here,
# and no locked booking is waited for: that one is being ended.
_CLEAR_EXPIRED_SLOTS = f"""
    update booking set {bookings.CLEAR_SLOTS}
    where number in (
        select number from booking
        where ({" or ".join(_HAS_SLOT.values())})
            and hold_expires_at <= clock_timestamp()
        for no key update skip locked
    )
"""


class ProjectGone(DatabaseUnavailable):
    """A project that was there is not: the database under this process was replaced by another."""


class Loaded(NamedTuple):
    at: datetime
    snapshots: list[UnitSnapshot]
    """One for each key, in the same order."""
    has_standby: bool
    """Whether commits wait for a synchronous standby. It may not have yet what was loaded."""


async def load_for_update(
    connection: Connection,
    project_cache: ProjectCache,
    keys: Sequence[UnitKey],
    *,
    locked: bool,
) -> Loaded:
    """Load the units as they are now; ``locked`` locks them for the transaction. ``keys`` are sorted."""
    project_ids, codes = [key[0] for key in keys], [key[1] for key in keys]
    rows = await connection.fetch(_LOAD_LOCKED if locked else _LOAD, project_ids, codes)
    if len(rows) < len(keys):
        raise ProjectGone
    turns = {key[0]: row[2] for key, row in zip(keys, rows, strict=True)}
    await projects.refresh_project_cache(connection, project_cache, turns)
    if [row[1] for row in rows] != list(range(1, len(rows) + 1)):
        raise AssertionError("PostgreSQL gave the rows in another order than that of the keys.")
    last_read_at = rows[-1][0]
    now = last_read_at.replace(microsecond=last_read_at.microsecond // 1000 * 1000)
    snapshots = [_snapshot(project_cache[key[0]], row) for key, row in zip(keys, rows, strict=True)]
    return Loaded(now, snapshots, rows[-1][3])


async def load_live_holds(
    connection: Connection, holders: Sequence[Collection[UUID]], now: datetime, *, clear: bool
) -> dict[UUID, list[LiveHold]]:
    """Return the holds of each of these holders, in the order of ``Slots``; ``clear`` frees expired slots."""
    slots = await connection.fetch(_HELD_SLOTS, *holders)
    if clear and any(expires_at <= now for _, _, expires_at in slots):
        await connection.execute(_CLEAR_EXPIRED_SLOTS, *holders)
        slots = await connection.fetch(_HELD_SLOTS, *holders)
    found: dict[UUID, list[LiveHold]] = {holder: [] for kind in holders for holder in kind}
    for holder, slot, expires_at in slots:
        found[holder].append(LiveHold(slot, expires_at))
    return found


def _snapshot(project: Project, row: asyncpg.Record) -> UnitSnapshot:
    if row[_UNIT_AT] is None:
        return UnitSnapshot(project, None)
    return UnitSnapshot(project, unit_from(project.id, row[_UNIT_AT:]), turn=row[_TURN_AT])
