"""What writers find: units as they are now, locked or not, and what their buyers hold already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.decision import Standing
from holdfast.domain.errors import DatabaseAway
from holdfast.domain.hold_limits import LiveHold
from holdfast.domain.project import Project
from holdfast.storage import projects
from holdfast.storage.database import Connection, KnownProjects
from holdfast.storage.unit_rows import READ_COLUMNS, unit_from

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
_STAND = """
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
def _stand_statement(locking: str, places: str) -> str:
    return _STAND.format(columns=READ_COLUMNS, locking=locking, places=places)


class ProjectGone(DatabaseAway):
    """A project that was there is not: the database under this process was replaced by another."""


class Counted(NamedTuple):
    """Holders whose live holds count."""

    addresses: Sequence[UUID] = ()
    visitors: Sequence[UUID] = ()


class Stood(NamedTuple):
    now: datetime
    standings: list[Standing]
    """One for each wanted key, in the same order."""


NOBODY_COUNTED = Counted()


async def stand(
    connection: Connection,
    known: KnownProjects,
    keys: Sequence[UnitKey],
    *,
    locked: bool,
    counted: Counted = NOBODY_COUNTED,
) -> Stood:
    """The units as they are now; ``locked`` keeps them so for the transaction. ``keys`` are sorted."""
    counts = counted != NOBODY_COUNTED
    at_once = counts and not locked
    rows = await connection.fetch(
        _stand_statement(LOCKING if locked else "", _WITH_PLACES if at_once else ""),
        [key[0] for key in keys],
        [key[1] for key in keys],
        *(counted if at_once else ()),
    )
    if len(rows) < len(keys):
        raise ProjectGone
    turns = {key[0]: row[2] for key, row in zip(keys, rows, strict=True)}
    await projects.make_known(connection, known, turns)
    if [row[1] for row in rows] != list(range(1, len(rows) + 1)):
        raise AssertionError("PostgreSQL gave the rows in another order than that of the keys.")
    now = _whole_milliseconds(rows[-1][0])
    live_holds = await _live_holds(connection, counted, rows[0][_PLACES_AT:], now) if counts else {}
    standings = [_standing(known[key[0]], row, live_holds) for key, row in zip(keys, rows, strict=True)]
    return Stood(now, standings)


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


def _standing(project: Project, row: asyncpg.Record, live_holds: LiveHolds) -> Standing:
    if row[_UNIT_AT] is None:
        return Standing(project, None, live_holds=live_holds)
    unit = unit_from(project.id, row[_UNIT_AT:_PLACES_AT])
    return Standing(project, unit, live_holds=live_holds, turn=row[_TURN_AT])


def _whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
