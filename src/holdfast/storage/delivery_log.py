"""The log: deliveries, pending and ended alike, and their attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain.delivery import (
    HOURS,
    Attempt,
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    HourlyDeliveries,
    ReconciliationCounts,
    Trigger,
)
from holdfast.domain.event import PING
from holdfast.domain.unit import Unit
from holdfast.storage.database import Connection, fetch_one
from holdfast.storage.deliveries import ATTEMPT_COLUMNS, decode_optional_message
from holdfast.storage.projects import within

_SHARED = """
    id, endpoint_id, event, unit_code, created_at, attempts, last_status_code, last_cause,
    last_cause_message, body
"""
_PENDING = f"{_SHARED}, 'pending' as status, null as reason, due_at, null::timestamptz as ended_at"
_ENDED = f"{_SHARED}, status, reason, null::timestamptz as due_at, ended_at"

_FIND_PENDING = f"select {_PENDING} from pending_delivery where id = $1 and {within(2)}"
_FIND_ENDED = f"""
    select {_ENDED} from ended_delivery where id = $1 and {within(2)}
    order by ended_at desc limit 1
"""
_ATTEMPTS = f"""
    select {ATTEMPT_COLUMNS} from attempt where delivery_id = $1
    order by number desc, started_at desc limit $2
"""

_FILTERS = f"""
    ($6::text[] is null or event = any($6)) and ($7::text is null or unit_code = $7)
    and ($8::int is null or last_status_code between $8 * 100 and $8 * 100 + 99)
    and ($9::boolean is null or (last_status_code is null) = $9)
    and {within(11)}
"""
# The latest first, endpoint by endpoint along its index, then together. $1 endpoints, $2 and $3 the place of
# the last item of the page before, $4 and $5 the time.
_OF_ENDPOINTS = f"""
    select found.* from unnest($1::uuid[]) as wanted (endpoint_id)
    cross join lateral (
        select {{columns}} from {{table}} as delivery
        where delivery.endpoint_id = wanted.endpoint_id and (created_at, id) < ($2, $3)
            and created_at >= $4 and created_at < $5 and {{more}} and {_FILTERS}
        order by created_at desc, id desc limit $10
    ) as found
"""
_OF_PENDING = _OF_ENDPOINTS.format(columns=_PENDING, table="pending_delivery", more="true")
# It ended after it was made: days before that hold nothing of it.
_OF_ENDED = _OF_ENDPOINTS.format(
    columns=_ENDED,
    table="ended_delivery",
    more="ended_at >= $4 and ($12::text is null or status = $12)",
)
# What was not delivered is little, and has an index of its own.
_OF_UNDELIVERED = _OF_ENDPOINTS.format(
    columns=_ENDED,
    table="ended_delivery",
    more="ended_at >= $4 and status <> 'delivered' and ($12::text is null or status = $12)",
)
_OF_UNIT = f"""
    select {_ENDED} from ended_delivery
    where unit_code = $7 and endpoint_id = any($1::uuid[]) and (created_at, id) < ($2, $3)
        and created_at >= $4 and created_at < $5 and ended_at >= $4 and ($12::text is null or status = $12)
        and {_FILTERS}
    order by created_at desc, id desc limit $10
"""
# Those of no unit, along the index by unit.
_OF_PINGS = _OF_UNIT.replace("unit_code = $7 and", "unit_code is null and", 1)


def _together(ended: str) -> str:
    return f"({_OF_PENDING}) union all ({ended})"


_OF_ALL = _together(_OF_ENDED)
# A planner that expects nearly nothing of a filter would rather read and sort all there is, once for each
# endpoint. Along the index it ends when it has found enough, or all of the time that was asked for.
_ALONG_INDEXES = """
    set local enable_sort = off; set local enable_seqscan = off; set local enable_bitmapscan = off
"""
# For the statements after it, which the planner knows better how to answer.
_AS_PLANNED = """
    set local enable_sort = default; set local enable_seqscan = default; set local enable_bitmapscan = default
"""
_ENDPOINT_IDS = """
    select id from endpoint
    where $1::text[] is null or project_ids <@ array(select id from project where slug = any($1))
"""
_WAITING = """
    select wanted.endpoint_id, (
        select count(*) from (
            select from pending_delivery where endpoint_id = wanted.endpoint_id limit $2
        ) as counted
    )
    from unnest($1::uuid[]) as wanted (endpoint_id)
"""


_BEHIND_ALL = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_ANY = (None, None, None, None)
"""DeliveryFilter that are off: events, unit, class of the answer, answered or not."""


async def find(
    connection: Connection, delivery_id: UUID, project_ids: Sequence[UUID] | None = None
) -> Delivery | None:
    row = await connection.fetchrow(_FIND_PENDING, delivery_id, project_ids)
    row = row or await connection.fetchrow(_FIND_ENDED, delivery_id, project_ids)
    return _delivery(row) if row else None


async def attempts(connection: Connection, delivery_id: UUID, at_most: int | None = None) -> list[Attempt]:
    """In their order; of more than ``at_most`` the latest."""
    rows = await connection.fetch(_ATTEMPTS, delivery_id, at_most)
    return [_attempt(row) for row in reversed(rows)]


async def endpoint_ids(connection: Connection, slugs: tuple[str, ...] | None) -> list[UUID]:
    """Of all endpoints that a key may see, removed ones included."""
    return [row[0] for row in await connection.fetch(_ENDPOINT_IDS, slugs)]


async def page(
    connection: Connection,
    endpoints: Sequence[UUID],
    project_ids: Sequence[UUID] | None,
    before: tuple[datetime, UUID],
    filters: DeliveryFilter,
    limit: int,
) -> list[Delivery]:
    """The latest first. Within a transaction of one moment: a delivery may end, or be sent anew, between two
    looks."""
    arguments = (
        endpoints, *before, filters.since, filters.until, filters.events, filters.unit_code,
        filters.code_class, filters.unanswered, limit, project_ids,
    )  # fmt: skip
    if filters.status is DeliveryStatus.PENDING:
        rows = await _along_indexes(connection, _OF_PENDING, *arguments)
    else:
        rows = await _along_indexes(connection, _statement(filters), *arguments, filters.status)
    found = [_delivery(row) for row in rows]
    return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]


async def latest(
    connection: Connection, endpoints: Sequence[UUID], filters: DeliveryFilter
) -> dict[UUID, Delivery]:
    """The latest of each endpoint that has one. Within a transaction."""
    arguments = (endpoints, *_BEHIND_ALL, filters.since, filters.until, *_ANY, 1, None)
    rows = await _along_indexes(connection, _OF_ALL, *arguments, None)
    found = sorted(map(_delivery, rows), key=lambda one: (one.created_at, one.id))
    return {one.endpoint_id: one for one in found}


async def waiting(connection: Connection, endpoints: Sequence[UUID], at_most: int) -> dict[UUID, int]:
    """How many are pending for each endpoint, counted up to ``at_most``."""
    return {row[0]: row[1] for row in await connection.fetch(_WAITING, endpoints, at_most)}


async def _along_indexes(connection: Connection, statement: str, *arguments: object) -> list[asyncpg.Record]:
    await connection.execute(_ALONG_INDEXES)
    rows: list[asyncpg.Record] = await connection.fetch(statement, *arguments)
    await connection.execute(_AS_PLANNED)
    return rows


def _statement(filters: DeliveryFilter) -> str:
    ended = _ended_statement(filters)
    return _together(ended) if filters.status is None else ended


def _ended_statement(filters: DeliveryFilter) -> str:
    """Along the index that leaves out the most."""
    if filters.unit_code is not None:
        return _OF_UNIT
    if filters.events == (PING,):
        return _OF_PINGS
    is_failure = filters.unanswered or filters.code_class not in (None, 2)
    is_undelivered = filters.status in (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)
    return _OF_UNDELIVERED if is_failure or is_undelivered else _OF_ENDED


def _delivery(row: asyncpg.Record) -> Delivery:
    return Delivery(
        id=row["id"],
        endpoint_id=row["endpoint_id"],
        event=row["event"],
        unit_code=row["unit_code"],
        status=DeliveryStatus(row["status"]),
        reason=row["reason"],
        created_at=row["created_at"],
        next_attempt_at=row["due_at"],
        ended_at=row["ended_at"],
        attempts=row["attempts"],
        last_status_code=row["last_status_code"],
        last_cause=decode_optional_message(row["last_cause"], row["last_cause_message"]),
        body=row["body"],
    )


def _attempt(row: asyncpg.Record) -> Attempt:
    found = Attempt(*row[:-1])
    return found._replace(
        cause=decode_optional_message(row["cause"], row["cause_message"]),
        trigger=Trigger(found.trigger),
        request_headers=msgspec.json.decode(row["request_headers"], type=list[tuple[str, str]]),
        response_headers=msgspec.json.decode(row["response_headers"], type=list[tuple[str, str]]),
    )


# How many deliveries ended in each of the last hours, endpoint by endpoint.
#
# Counted apart from the record, which must not wait for it, and once: in an hour there may be a million.

# What ended a moment ago may not have been recorded yet. What is recorded even later, because the database
# was away, is missing here; the log has it.
_LOCK_COUNTED = """
    select
        greatest(
            deliveries_counted_upto,
            date_trunc('hour', statement_timestamp(), 'UTC') - interval '23 hours'
        ) as since,
        date_trunc('milliseconds', statement_timestamp() - $1::interval) as settled
    from installation for no key update skip locked
"""
_COUNT_HOURS = """
    insert into delivery_hour as known (endpoint_id, hour, delivered, failed)
    select endpoint_id, date_trunc('hour', ended_at, 'UTC'), count(*) filter (where status = 'delivered'),
        count(*) filter (where status = 'failed')
    from ended_delivery
    where ended_at > $1 and ended_at <= $2 and status <> 'cancelled'
    group by 1, 2
    on conflict (endpoint_id, hour) do update
    set delivered = known.delivered + excluded.delivered, failed = known.failed + excluded.failed
"""
_MOVE_COUNTED = "update installation set deliveries_counted_upto = $1"
_DELETE_OLD_HOURS = "delete from delivery_hour where hour < statement_timestamp() - interval '25 hours'"
_HOURS = f"""
    select endpoint_id, hour, delivered, failed from delivery_hour
    where endpoint_id = any($1::uuid[])
        and hour > date_trunc('hour', statement_timestamp(), 'UTC') - interval '{HOURS} hours'
    order by endpoint_id, hour
"""


class UncountedPeriod(NamedTuple):
    start: datetime
    end: datetime


async def lock_uncounted(connection: Connection, lag: timedelta) -> UncountedPeriod | None:
    """Return the period still to be counted; None while another process counts. Within a transaction."""
    row = await connection.fetchrow(_LOCK_COUNTED, lag)
    return UncountedPeriod(*row) if row else None


async def count_hours(connection: Connection, since: datetime, upto: datetime) -> None:
    await connection.execute(_COUNT_HOURS, since, upto)
    await connection.execute(_MOVE_COUNTED, upto)
    await connection.execute(_DELETE_OLD_HOURS)


async def hours_of_endpoints(connection: Connection, endpoint_ids: Sequence[UUID]) -> list[HourlyDeliveries]:
    """Of the last ``HOURS``, the present one included; those in which nothing ended are left out."""
    return [HourlyDeliveries(*row) for row in await connection.fetch(_HOURS, endpoint_ids)]


# The latest deliveries of one unit, with where they go.

_SHARED_OF_UNIT = "id, endpoint_id, event, created_at, attempts, last_status_code"
_PENDING_OF_UNIT = f"select {_SHARED_OF_UNIT}, 'pending' as status, due_at from pending_delivery"

# A dead endpoint may have a long queue. Its own part of it a unit finds along the three indexes that together
# know every pending delivery by its unit; $1 the unit, $2 its code, $3 how many.
_LATEST_OF_UNIT = f"""
    select delivery.*, endpoint.url, endpoint.description, endpoint.removed_at is not null
    from (
        select found.* from endpoint cross join lateral (
            {_PENDING_OF_UNIT}
            where endpoint_id = endpoint.id and unit_id = $1 and holds_back and attempts = 0
            union all
            {_PENDING_OF_UNIT}
            where endpoint_id = endpoint.id and unit_id = $1 and holds_back and attempts > 0
        ) as found
        where endpoint.removed_at is null
        union all
        {_PENDING_OF_UNIT} where unit_id = $1 and not holds_back
        union all
        (
            select {_SHARED_OF_UNIT}, status, null::timestamptz from ended_delivery
            where unit_code = $2 and unit_id = $1 order by created_at desc, id desc limit $3
        )
    ) as delivery
    join endpoint on endpoint.id = delivery.endpoint_id
    order by delivery.created_at desc, delivery.id desc limit $3
"""


class UnitDelivery(NamedTuple):
    id: UUID
    endpoint_id: UUID
    event: str
    created_at: datetime
    attempts: int
    last_status_code: int | None
    status: DeliveryStatus
    next_attempt_at: datetime | None
    endpoint_url: str
    endpoint_description: str
    is_endpoint_removed: bool


async def latest_of_unit(connection: Connection, unit: Unit, limit: int) -> list[UnitDelivery]:
    rows = await connection.fetch(_LATEST_OF_UNIT, unit.id, unit.code, limit)
    found = [UnitDelivery(*row) for row in rows]
    return [one._replace(status=DeliveryStatus(one.status)) for one in found]


# The feed held against the deliveries.

EVENTS_AT_ONCE = 200_000

# Whom an event was fanned out to stands with the event; what became of it, with its delivery. Events from
# before the log begins have no delivery any more, whatever became of it.
_TALLY = f"""
    with wanted as (
        select delivery_id(event.id, $1) as id, created_at from event
        where position > $2 and position <= $3 and endpoint_ids @> array[$1::uuid] and {within(4)}
    ),
    known as (
        select id, 'pending' as status from pending_delivery
        where endpoint_id = $1 and created_at >= (select min(created_at) from wanted)
            and created_at <= (select max(created_at) from wanted)
        union all
        select id, status from ended_delivery
        where endpoint_id = $1 and created_at >= (select min(created_at) from wanted)
            and created_at <= (select max(created_at) from wanted)
            and ended_at >= (select min(created_at) from wanted)
    )
    select
        count(*),
        count(*) filter (where status = 'delivered'),
        count(*) filter (where status = 'pending'),
        count(*) filter (where status = 'failed'),
        count(*) filter (where status = 'cancelled'),
        count(*) filter (where status is null and wanted.created_at < log.begins_at),
        count(*) filter (where status is null and wanted.created_at >= log.begins_at)
    from wanted
    left join known on known.id = wanted.id
    cross join (
        select coalesce(
            to_date(right(min(part.relname), 8), 'YYYYMMDD')::timestamp at time zone 'UTC', '-infinity'
        ) as begins_at
        from pg_inherits join pg_class as part on part.oid = inhrelid
        where inhparent = 'ended_delivery'::regclass and not inhdetachpending
    ) as log
"""


async def count_reconciled(
    connection: Connection, endpoint_id: UUID, project_ids: Sequence[UUID] | None, after: int, upto: int
) -> ReconciliationCounts:
    """A stretch at a time: the feed may be long."""
    total = ReconciliationCounts(0, 0, 0, 0, 0, 0, 0)
    for start in range(after, upto, EVENTS_AT_ONCE):
        end = min(start + EVENTS_AT_ONCE, upto)
        part = await fetch_one(connection, _TALLY, endpoint_id, start, end, project_ids)
        total = ReconciliationCounts(*(one + more for one, more in zip(total, part, strict=True)))
    return total
