"""How a unit stands in a row, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain.audit import AuditEntry
from holdfast.domain.booking import Booking, LiveHold
from holdfast.domain.decision import UnitSnapshot
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Media, Unit, UnitFields
from holdfast.storage import audit, bookings, events, projects
from holdfast.storage.database import Connection, ProjectCache

FIELD_COLUMNS = (
    "type, area_sqm, price_sar, vat_included, vat_rate, deposit_percent, bedrooms, bathrooms, "
    "delivery_year, description, images, files"
)
STATE_COLUMNS = "status, archived, hold_expires_at, reserved_until, version, created_at, updated_at"

# Numbers travel as text, both ways: the driver takes three times as long for PostgreSQL's binary
# form, and the text of a number is exact. Without zeros at its end it has one form only.
_NUMBERS = ("area_sqm", "price_sar", "vat_rate", "deposit_percent")


def _numbers_as_text(columns: str) -> str:
    return ", ".join(
        f"trim_scale({name})::text" if name in _NUMBERS else name for name in columns.split(", ")
    )


READ_COLUMNS = f"id, code, ref, {STATE_COLUMNS}, {_numbers_as_text(FIELD_COLUMNS)}"
"""In the order in which ``unit_from`` takes them."""

WRITE_COLUMNS = f"id, project_id, code, {FIELD_COLUMNS}, {STATE_COLUMNS}"
"""In the order of the database's type ``unit_write``, which has ``found_turn`` behind them."""

STATE_WRITE_COLUMNS = "id, price_sar, status, archived, hold_expires_at, reserved_until, version, updated_at"
"""In the order of the database's type ``unit_state_write``, likewise."""


def unit_columns_written(name: str) -> str:
    """A column of what a write sends, as the table takes it."""
    return f"written.{name}::numeric" if name in _NUMBERS else f"written.{name}"


_NO_MEDIA = "[]"
# A third of the time that the class's own constructor takes, which matters where thousands are read.
_new = tuple.__new__
_STATUS = {str(status): status for status in Status}


def unit_from(project_id: UUID, columns: tuple[Any, ...]) -> Unit:
    """From the values of ``READ_COLUMNS``."""
    (
        unit_id, code, ref,
        status, archived, hold_expires_at, reserved_until, version, created_at, updated_at,
        type_name, area, price, vat_included, vat_rate, deposit, bedrooms, bathrooms, year, description,
        images, files,
    ) = columns  # fmt: skip
    fields = _new(UnitFields, (
        type_name, Decimal(area), Decimal(price), vat_included, vat_rate and Decimal(vat_rate),
        deposit and Decimal(deposit), bedrooms, bathrooms, year, description,
        _media_from(images), _media_from(files),
    ))  # fmt: skip
    return _new(Unit, (
        unit_id, project_id, code, ref, fields,
        _STATUS[status], archived, hold_expires_at, reserved_until, version, created_at, updated_at,
    ))  # fmt: skip


def unit_row(unit: Unit, found_turn: int) -> tuple[Any, ...]:
    """The value of the database's type ``unit_write``."""
    (
        type_name, area, price, vat_included, vat_rate, deposit, bedrooms, bathrooms, year, description,
        images, files,
    ) = unit.fields  # fmt: skip
    return (
        unit.id, unit.project_id, unit.code,
        type_name, str(area), str(price), vat_included, vat_rate if vat_rate is None else str(vat_rate),
        deposit if deposit is None else str(deposit), bedrooms, bathrooms, year, description,
        _media_for(images), _media_for(files),
        *unit[5:],
        found_turn,
    )  # fmt: skip


def unit_state_row(unit: Unit, found_turn: int) -> tuple[Any, ...]:
    """The value of the database's type ``unit_state_write``."""
    return (
        unit.id,
        str(unit.fields.price_sar),
        unit.status,
        unit.archived,
        unit.hold_expires_at,
        unit.reserved_until,
        unit.version,
        unit.updated_at,
        found_turn,
    )


def is_state_alone(before: Unit, after: Unit) -> bool:
    """Whether a change is within ``unit_state_write``."""
    old, new = before.fields, after.fields
    return old is new or (old[:2] == new[:2] and old[3:] == new[3:])


def _media_from(text: str) -> tuple[Media, ...]:
    return () if text == _NO_MEDIA else tuple(msgspec.json.decode(text))


def _media_for(media: tuple[Media, ...]) -> str:
    return msgspec.json.encode(media).decode() if media else _NO_MEDIA


# Units: found, locked, created and changed, many at a time.

AS_FOUND = "unit.turn = written.found_turn"
# What was decided on a hold that was live, or over, is stored only while it still is so.
_ENDS_AT = "coalesce(unit.hold_expires_at, unit.reserved_until)"
_AS_LATE_AS_DECIDED = f"({_ENDS_AT} is null or ({_ENDS_AT} <= $2) = ({_ENDS_AT} <= clock_timestamp()))"

_FIXED = ("id", "project_id", "code", "created_at")


def _update_statement(kind: str, columns: str) -> str:
    """Stores each unit only if it still is as it was found: nobody's change is ever overwritten."""
    changed = [name for name in columns.split(", ") if name not in _FIXED]
    assignments = ", ".join(f"{name} = {unit_columns_written(name)}" for name in changed)
    return f"""
        update unit set turn = unit.turn + 1, {assignments}
        from unnest($1::{kind}[]) as written
        where unit.id = written.id and {AS_FOUND} and {_AS_LATE_AS_DECIDED}
        returning unit.id, unit.ref
    """


@cache
def _with_side_effects(statement: str, told: bool, changed: bool, begun: bool) -> str:
    """The same, with its audit entries, events and bookings: stored together, or not at all."""
    stored = "select id from stored"
    parts = [f"noted as ({audit.insert_statement(3, stored)})"]
    if told:
        parts.append(events.insert_events_and_deliveries(4, stored))
    if changed:
        parts.append(f"changed as ({bookings.booking_update(4 + told, stored)})")
    if begun:
        after = "(select count(*) from changed) >= 0" if changed else "true"
        statement_for_new = bookings.booking_insert(4 + told + changed, stored, after)
        parts.append(f"begun as ({statement_for_new})")
    deliveries = "(select count(*) from fanned_out)" if told else "0"
    return f"with stored as ({statement}), {', '.join(parts)} select id, ref, {deliveries} from stored"


# Takes the time of the decision as the updates do: a new unit has no end that it could miss.
_INSERT = f"""
    insert into unit ({WRITE_COLUMNS})
    select {", ".join(map(unit_columns_written, WRITE_COLUMNS.split(", ")))}
    from unnest($1::unit_write[]) as written
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


class SideEffects(NamedTuple):
    """What is stored with the units that it is about."""

    entries: list[AuditEntry]
    events: list[UnitEvent]


Row = tuple[Any, ...]
Refs = dict[UUID, str]
"""The ``ref`` of each unit that was stored, by its id."""


async def store(
    connection: Connection, changes: Sequence[Change], told: SideEffects, decided_at: datetime, stored: Refs
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


def _row_for(statement: str, change: Change) -> Row:
    make = unit_state_row if statement is _UPDATE_STATE else unit_row
    return make(change.unit, change.found_turn)


async def _store(
    connection: Connection, statement: str, changes: list[Change], told: SideEffects, decided_at: datetime
) -> list[asyncpg.Record]:
    ids = {change.unit.id for change in changes}
    arguments: list[Any] = [
        [_row_for(statement, change) for change in changes],
        decided_at,
        [audit.row_for(entry) for entry in told.entries if entry.subject_id in ids],
    ]
    own = [event for event in told.events if event.unit_id in ids]
    changed = [bookings.booking_row(booking) for change in changes for booking in change.changed]
    begun = [bookings.booking_row(booking) for change in changes for booking in change.begun]
    arguments += [rows for rows in (own, changed, begun) if rows]
    whole = _with_side_effects(statement, bool(own), bool(changed), bool(begun))
    return await connection.fetch(whole, *arguments)


# What writers find: units as they are now, locked or not, and what their buyers hold already.

UnitKey = tuple[UUID, str]
"""(project id, code)"""

LiveHolds = dict[UUID, list[LiveHold]]
"""By holder; for one that has none an empty list, to be added to."""

Place = tuple[UUID, int, datetime]
"""(holder, place, end of the hold that has it)"""

LOCKING = "for no key update"

# One row a wanted key, found or not. Both joins are lateral and, with their offset, can only be nested
# loops over the keys: PostgreSQL locks in the order of the keys, and gives the rows back in it. A plain join
# became a hash join at a thousand keys and few units, which turned that order round. The clock is
# read for each row after its lock, so the last row's time is later than every wait for a lock.
_LOAD = """
    select
        clock_timestamp(),
        wanted.place,
        project.turn,
        unit.*
        {places}
    from unnest($1::uuid[], $2::text[]) with ordinality as wanted (project_id, code, place)
    cross join lateral (
        select turn from project where project.id = wanted.project_id offset 0
    ) as project
    left join lateral (
        select turn, {columns} from unit
        where unit.project_id = wanted.project_id and unit.code = wanted.code
        offset 0 {locking}
    ) as unit on true
"""
_TURN_AT, _UNIT_AT = 3, 4
_PLACES_AT = _UNIT_AT + len(READ_COLUMNS.split(", "))

_PLACES = """
    select row(address_id, address_slot, hold_expires_at) from booking
    where address_id = any({addresses}::uuid[]) and address_slot is not null
    union all
    select row(visitor_id, visitor_slot, hold_expires_at) from booking
    where visitor_id = any({visitors}::uuid[]) and visitor_slot is not null
"""
# With the first row: a question of its own would cost each batch of holds a way to the database and back.
_WITH_PLACES = f", case when wanted.place = 1 then array({_PLACES.format(addresses='$3', visitors='$4')}) end"
_PLACES_ALONE = _PLACES.format(addresses="$1", visitors="$2")

# A hold that has lapsed has no place any more, though its end may not be written yet. Places alone are
# given up here, and none that somebody has locked is waited for: that one is being ended.
_GIVE_UP_PLACES = """
    update booking set address_slot = null, visitor_slot = null
    where number in (
        select number from booking
        where (address_id = any($1::uuid[]) and address_slot is not null
                or visitor_id = any($2::uuid[]) and visitor_slot is not null)
            and hold_expires_at <= clock_timestamp()
        for no key update skip locked
    )
"""


@cache
def _load_statement(locking: str, places: str) -> str:
    return _LOAD.format(columns=READ_COLUMNS, locking=locking, places=places)


class ProjectGone(DatabaseUnavailable):
    """A project that was there is not: the database under this process was replaced by another."""


class Counted(NamedTuple):
    """Holders whose live holds count."""

    addresses: Sequence[UUID] = ()
    visitors: Sequence[UUID] = ()


class LoadedUnits(NamedTuple):
    now: datetime
    snapshots: list[UnitSnapshot]
    """One for each wanted key, in the same order."""


NOBODY_COUNTED = Counted()


async def load_for_update(
    connection: Connection,
    known: ProjectCache,
    keys: Sequence[UnitKey],
    *,
    locked: bool,
    counted: Counted = NOBODY_COUNTED,
) -> LoadedUnits:
    """The units as they are now; ``locked`` keeps them so for the transaction. ``keys`` are sorted."""
    counts = counted != NOBODY_COUNTED
    at_once = counts and not locked
    rows = await connection.fetch(
        _load_statement(LOCKING if locked else "", _WITH_PLACES if at_once else ""),
        [key[0] for key in keys],
        [key[1] for key in keys],
        *(counted if at_once else ()),
    )
    if len(rows) < len(keys):
        raise ProjectGone
    turns = {key[0]: row[2] for key, row in zip(keys, rows, strict=True)}
    await projects.refresh_project_cache(connection, known, turns)
    if [row[1] for row in rows] != list(range(1, len(rows) + 1)):
        raise AssertionError("PostgreSQL gave the rows in another order than that of the keys.")
    now = _whole_milliseconds(rows[-1][0])
    live_holds = await _live_holds(connection, counted, rows[0][_PLACES_AT:], now) if counts else {}
    snapshots = [_snapshot(known[key[0]], row, live_holds) for key, row in zip(keys, rows, strict=True)]
    return LoadedUnits(now, snapshots)


async def _places(connection: Connection, counted: Counted) -> list[Place]:
    """As they are after every wait for a lock."""
    return [row[0] for row in await connection.fetch(_PLACES_ALONE, *counted)]


async def _live_holds(
    connection: Connection, counted: Counted, brought: Sequence[Sequence[Place]], now: datetime
) -> LiveHolds:
    """``brought``: the places, if they came with the units."""
    places = brought[0] if brought else await _places(connection, counted)
    if any(expires_at <= now for _, _, expires_at in places):
        await connection.execute(_GIVE_UP_PLACES, *counted)
        places = await _places(connection, counted)
    found: LiveHolds = {holder: [] for holders in counted for holder in holders}
    for holder, slot, expires_at in places:
        found[holder].append(LiveHold(slot, expires_at))
    return found


def _snapshot(project: Project, row: asyncpg.Record, live_holds: LiveHolds) -> UnitSnapshot:
    if row[_UNIT_AT] is None:
        return UnitSnapshot(project, None, live_holds=live_holds)
    unit = unit_from(project.id, row[_UNIT_AT:_PLACES_AT])
    return UnitSnapshot(project, unit, live_holds=live_holds, turn=row[_TURN_AT])


def _whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
