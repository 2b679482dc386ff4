"""Sums over time. Events are summed hour by hour after they have their positions, each of them once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from holdfast.domain.reports import StatusPair
from holdfast.domain.status import Status
from holdfast.storage.database import Connection, fetch_one

KEPT_DAYS = 400

_HOUR = "date_trunc('hour', created_at at time zone 'UTC') at time zone 'UTC'"

# Lock the sums; while another process sums, there is nothing to wait for. Positions are given after the
# commit, so none is missing up to the last one.
_LOCK_SUMS = "select summed_position from event_sums for update skip locked"
_UNSUMMED = "select last_position - summed_position from event_feed, event_sums"
# The number of events to be summed next, and up to which position: after a recovery there is a wide gap.
_NEXT = """
    select
        count(*),
        case when count(*) < $2 then (select last_position from event_feed) else max(position) end
    from (select position from event where position > $1 order by position limit $2) as next
"""
_SUM = f"""
    insert into event_hour (project_id, hour, previous_status, status, steps)
    select project_id, {_HOUR} as hour, previous_status, status, count(*)
    from event where position > $1 and position <= $2
    group by project_id, hour, previous_status, status
    order by project_id, hour, previous_status, status
    on conflict (project_id, hour, previous_status, status)
    do update set steps = event_hour.steps + excluded.steps
"""

_STEPS = f"""
    with sums as (select summed_position from event_sums), taken as (
        select hour, previous_status, status, steps from event_hour where project_id = $1 and hour >= $2
        union all
        select {_HOUR}, previous_status, status, 1 from event, sums
        where project_id = $1 and position > summed_position
        union all
        select {_HOUR}, previous_status, status, 1 from event
        where project_id = $1 and position is null
    )
    select (hour at time zone $3)::date, previous_status, status, sum(steps)::bigint
    from taken group by 1, 2, 3
"""

# A unit that never changed has the status that it was created with; of another, its first event has it.
_RECOUNT = f"""
    insert into created_hour (project_id, hour, status, units)
    select $1, hour, status, count(*) from (
        select {_HOUR} as hour, case
            when version = 1 or created_at < now() - make_interval(days => $2) then status
            else coalesce(
                (
                    select previous_status from event where event.unit_id = unit.id
                    order by unit_version limit 1
                ),
                status
            )
        end as status
        from unit where project_id = $1
    ) as created group by hour, status
"""
_LOCK = "select pg_advisory_xact_lock(hashtextextended('created_hour ' || $1::uuid, 0))"
_COUNTED = "select coalesce(sum(units), 0)::bigint from created_hour where project_id = $1"
# The comparison reads all units, so one worker makes it, and seldom.
_TAKE_COMPARISON = """
    update event_sums set units_compared_at = clock_timestamp() where only_row = (
        select only_row from event_sums where units_compared_at <= clock_timestamp() - $1::interval
        for update skip locked
    )
    returning true
"""
_MISCOUNTED = """
    select id from project
    left join (select project_id, count(*) as units from unit group by project_id) as present
        on present.project_id = id
    left join (select project_id, sum(units) as units from created_hour group by project_id) as counted
        on counted.project_id = id
    where coalesce(present.units, 0) <> coalesce(counted.units, 0)
"""
_CREATED = """
    select (hour at time zone $3)::date, status, sum(units)::bigint from created_hour
    where project_id = $1 and hour >= $2 group by 1, 2
"""

_STORED_COUNTS = """
    select status, count(*) from unit where project_id = $1 and status = any($2::text[]) group by status
"""
_SOLD = """
    select (closed_at at time zone $3)::date, count(*), sum(price_sar) from booking
    where project_id = $1 and status = 'sold' and closed_at >= $2 group by 1
"""
_TODAY = "select (statement_timestamp() at time zone $1)::date"


async def sum_events(connection: Connection, limit: int) -> int:
    """Sum the next events of the feed; return how many. 0 while another process sums them."""
    summed = await connection.fetchval(_LOCK_SUMS)
    if summed is None:
        return 0
    count, last = await fetch_one(connection, _NEXT, summed, limit)
    if last > summed:
        await connection.execute(_SUM, summed, last)
        await connection.execute("update event_sums set summed_position = $1", last)
    return int(count)


async def unsummed(connection: Connection) -> int:
    return int(await connection.fetchval(_UNSUMMED))


async def counted_units(connection: Connection, project_id: UUID) -> int:
    return int(await connection.fetchval(_COUNTED, project_id))


async def take_comparison(connection: Connection, pause: timedelta) -> bool:
    """Return whether the caller is to compare, since nobody has done so for ``pause``."""
    return bool(await connection.fetchval(_TAKE_COMPARISON, pause))


async def miscounted(connection: Connection) -> list[UUID]:
    """Return the projects whose number of units differs from the count."""
    return [row[0] for row in await connection.fetch(_MISCOUNTED)]


async def recount(connection: Connection, project_id: UUID) -> None:
    await connection.execute(_LOCK, project_id)
    await connection.execute("delete from created_hour where project_id = $1", project_id)
    await connection.execute(_RECOUNT, project_id, KEPT_DAYS)


async def today(connection: Connection, zone: str) -> date:
    day: date = await connection.fetchval(_TODAY, zone)
    return day


async def stored_counts(connection: Connection, project_id: UUID) -> dict[Status, int]:
    """Count units by the status that is stored, which is the one that events lead to."""
    rows = await connection.fetch(_STORED_COUNTS, project_id, list(Status))
    return {**dict.fromkeys(Status, 0), **{Status(status): number for status, number in rows}}


async def steps(
    connection: Connection, project_id: UUID, since: date, zone: str
) -> Mapping[date, Mapping[StatusPair, int]]:
    found: dict[date, dict[StatusPair, int]] = {}
    for day, source, target, number in await connection.fetch(_STEPS, project_id, _from(since), zone):
        found.setdefault(day, {})[Status(source), Status(target)] = number
    return found


async def created(
    connection: Connection, project_id: UUID, since: date, zone: str
) -> Mapping[date, Mapping[Status, int]]:
    found: dict[date, dict[Status, int]] = {}
    for day, status, number in await connection.fetch(_CREATED, project_id, _from(since), zone):
        found.setdefault(day, {})[Status(status)] = number
    return found


async def sold(
    connection: Connection, project_id: UUID, since: date, zone: str
) -> Mapping[date, tuple[int, Decimal]]:
    rows = await connection.fetch(_SOLD, project_id, _from(since), zone)
    return {day: (number, value) for day, number, value in rows}


def _from(since: date) -> datetime:
    """A day earlier, so that no time zone begins before it."""
    return datetime.combine(since - timedelta(days=1), time(), UTC)
