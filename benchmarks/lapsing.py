"""How late lapsed holds are released, as another connection sees it: by the database's clock, never early.

What is measured is when a release can be seen, which is later than its commit by up to one look.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from benchmarks.wrk import InvalidRun

LOOK_EVERY_SECONDS = 0.02
LOOK_CLOSELY_EVERY_SECONDS = 0.001
# Until vacuum comes, a look for the oldest end passes by all that were released: it is not for nothing.
LOOK_FOR_THE_LAST_EVERY_SECONDS = 0.1
GIVE_UP_AFTER_SECONDS = 120

_ENDS_AT = "coalesce(hold_expires_at, reserved_until)"
HELD = "select code, hold_expires_at from unit where status = 'held' order by hold_expires_at"
# First the time up to which ends are due, last the time by which all of this has been seen.
UNRELEASED = f"""
    select statement_timestamp(),
        array(select code::text from unit where {_ENDS_AT} <= statement_timestamp()),
        clock_timestamp()
"""
LOOK = f"""
    select clock_timestamp(), (select last_value from audit_entry_id_seq),
        (select {_ENDS_AT} from unit where {_ENDS_AT} is not null order by {_ENDS_AT} limit 1)
"""
RELEASED = """
    select clock_timestamp(), exists (
        select from event where unit_id = $1 and type = 'unit.released' and created_at = $2
    )
"""
UNIT_ID = "select id from unit where code = $1"


class Hold(NamedTuple):
    code: str
    ends_at: datetime


class Look(NamedTuple):
    at: datetime
    entries: int
    """Audit entries written up to then: one for each release, one for each PUT."""
    oldest_end: datetime | None
    """None: nothing is held or reserved."""


async def held(connection: asyncpg.Connection) -> list[Hold]:
    return [Hold(*row) for row in await connection.fetch(HELD)]


async def each_lag(connection: asyncpg.Connection, holds: Sequence[Hold]) -> list[float]:
    """Seconds from the end of each hold to the look that found it released."""
    lags: list[float] = []
    waiting: dict[str, datetime] = {}
    due = 0
    while len(lags) < len(holds):
        until, unreleased, seen_at = await _row(connection, UNRELEASED)
        while due < len(holds) and holds[due].ends_at <= until:
            waiting[holds[due].code] = holds[due].ends_at
            due += 1
        released = waiting.keys() - set(unreleased)
        lags += [(seen_at - waiting.pop(code)).total_seconds() for code in released]
        _refuse_waiting_for_ever(seen_at, holds[-1].ends_at)
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    return lags


async def lag_of_one(connection: asyncpg.Connection, hold: Hold) -> float:
    """Looks as often as it can without taking a processor for itself; the event is what it looks for."""
    unit_id = await connection.fetchval(UNIT_ID, hold.code)
    await sleep_until(connection, hold.ends_at - timedelta(seconds=LOOK_EVERY_SECONDS))
    while True:
        seen_at, released = await _row(connection, RELEASED, unit_id, hold.ends_at)
        if released:
            return float((seen_at - hold.ends_at).total_seconds())
        _refuse_waiting_for_ever(seen_at, hold.ends_at)
        await asyncio.sleep(LOOK_CLOSELY_EVERY_SECONDS)


async def look(connection: asyncpg.Connection) -> Look:
    return Look(*await _row(connection, LOOK))


async def until_all_released(connection: asyncpg.Connection, last_end: datetime) -> Look:
    while (seen := await look(connection)).oldest_end is not None:
        _refuse_waiting_for_ever(seen.at, last_end)
        await asyncio.sleep(LOOK_FOR_THE_LAST_EVERY_SECONDS)
    return seen


async def sleep_until(connection: asyncpg.Connection, moment: datetime) -> None:
    """By the database's clock."""
    seconds = (moment - await connection.fetchval("select clock_timestamp()")).total_seconds()
    await asyncio.sleep(max(0.0, seconds))


async def _row(connection: asyncpg.Connection, query: str, *arguments: Any) -> asyncpg.Record:
    row = await connection.fetchrow(query, *arguments)
    assert row is not None
    return row


def _refuse_waiting_for_ever(now: datetime, last_end: datetime) -> None:
    if now > last_end + timedelta(seconds=GIVE_UP_AFTER_SECONDS):
        raise InvalidRun(f"{GIVE_UP_AFTER_SECONDS} s after the last end not all holds are released.")
