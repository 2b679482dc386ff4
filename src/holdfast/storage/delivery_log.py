"""The log: deliveries, pending and ended alike, and their attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain import delivery
from holdfast.domain.delivery import Attempt, Delivery, DeliveryFilter, DeliveryStatus
from holdfast.domain.endpoint import EndpointLabel
from holdfast.domain.event import PING
from holdfast.domain.unit import Unit
from holdfast.storage.database import Connection, fetch_one
from holdfast.storage.deliveries import ATTEMPT_COLUMNS, decode_message

# In the order of the fields of Delivery.
_PENDING = """
    id, endpoint_id, event, unit_code, 'pending' as status, null as reason, created_at, due_at,
    null::timestamptz as ended_at, attempts, last_status_code, last_cause, body, last_cause_message
"""
_ENDED = """
    id, endpoint_id, event, unit_code, status, reason, created_at, null::timestamptz as due_at, ended_at,
    attempts, last_status_code, last_cause, body, last_cause_message
"""

_FIND_PENDING = f"""
    select {_PENDING} from pending_delivery
    where id = $1 and ($2::uuid[] is null or project_id is null or project_id = any($2))
"""
_FIND_ENDED = f"""
    select {_ENDED} from ended_delivery
    where id = $1 and ($2::uuid[] is null or project_id is null or project_id = any($2))
    order by ended_at desc limit 1
"""
_LIST_ATTEMPTS = f"""
    select {ATTEMPT_COLUMNS} from attempt where delivery_id = $1
    order by number desc, started_at desc limit $2
"""
# Lists of deliveries, the latest first: of the endpoints $1, after the place ($2, $3) of the last item of the
# page before, created from $4 until $5, at most $10; $12 is a status. A delivery ends after its creation, so
# the partitions of days before $4 are left out.
_FILTERS = """
    ($6::text[] is null or event = any($6)) and ($7::text is null or unit_code = $7)
    and ($8::int is null or last_status_code between $8 * 100 and $8 * 100 + 99)
    and ($9::boolean is null or (last_status_code is null) = $9)
    and ($11::uuid[] is null or project_id is null or project_id = any($11))
"""
_LIST = """
    select found.* from unnest($1::uuid[]) as listed (endpoint_id)
    cross join lateral (
        select {columns} from {table} as delivery
        where delivery.endpoint_id = listed.endpoint_id and (created_at, id) < ($2, $3)
            and created_at >= $4 and created_at < $5 and {condition}
        order by created_at desc, id desc limit $10
    ) as found
"""
_LIST_PENDING = _LIST.format(columns=_PENDING, table="pending_delivery", condition=_FILTERS)
_HAS_ENDED = f"ended_at >= $4 and ($12::text is null or status = $12) and {_FILTERS}"
_LIST_ENDED = _LIST.format(columns=_ENDED, table="ended_delivery", condition=_HAS_ENDED)
# Undelivered ones are few, and have an index of their own.
_LIST_UNDELIVERED = _LIST.format(
    columns=_ENDED, table="ended_delivery", condition=f"status <> 'delivered' and {_HAS_ENDED}"
)
_LIST_OF_UNIT = f"""
    select {_ENDED} from ended_delivery
    where unit_code = $7 and endpoint_id = any($1::uuid[]) and (created_at, id) < ($2, $3)
        and created_at >= $4 and created_at < $5 and {_HAS_ENDED}
    order by created_at desc, id desc limit $10
"""
# Pings have no unit, and are found along the index by unit.
_LIST_PINGS = _LIST_OF_UNIT.replace("unit_code = $7", "unit_code is null", 1)
# If the planner expects hardly any matches it reads and sorts all rows of each endpoint. Along an index, the
# scan ends when it has found enough.
_ALONG_INDEXES = """
    set local enable_sort = off; set local enable_seqscan = off; set local enable_bitmapscan = off
"""
_AS_PLANNED = """
    set local enable_sort = default; set local enable_seqscan = default; set local enable_bitmapscan = default
"""
# All endpoints that a key may see, removed ones included.
_LIST_ENDPOINT_IDS = """
    select id from endpoint
    where $1::text[] is null or project_ids <@ array(select id from project where slug = any($1))
"""
_COUNT_PENDING = """
    select listed.endpoint_id, (
        select count(*) from (
            select from pending_delivery where endpoint_id = listed.endpoint_id limit $2
        ) as counted
    )
    from unnest($1::uuid[]) as listed (endpoint_id)
"""

_NO_CURSOR = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


async def find(
    connection: Connection, delivery_id: UUID, project_ids: Sequence[UUID] | None = None
) -> Delivery | None:
    row = await connection.fetchrow(_FIND_PENDING, delivery_id, project_ids)
    row = row or await connection.fetchrow(_FIND_ENDED, delivery_id, project_ids)
    return _delivery(row) if row else None


async def list_attempts(
    connection: Connection, delivery_id: UUID, at_most: int | None = None
) -> list[Attempt]:
    """Return the latest attempts, in their order."""
    rows = await connection.fetch(_LIST_ATTEMPTS, delivery_id, at_most)
    return [_attempt(row) for row in reversed(rows)]


async def list_endpoint_ids(connection: Connection, slugs: tuple[str, ...] | None) -> list[UUID]:
    return [row[0] for row in await connection.fetch(_LIST_ENDPOINT_IDS, slugs)]


async def list_deliveries(
    connection: Connection,
    endpoints: Sequence[UUID],
    project_ids: Sequence[UUID] | None,
    before: tuple[datetime, UUID],
    filters: DeliveryFilter,
    limit: int,
    *,
    of_each_endpoint: bool = False,
) -> list[Delivery]:
    """Return the latest first, at most ``limit`` in all, or so many pending and ended ones of each endpoint.

    In a transaction with one snapshot: a delivery may end, or be sent again, between two statements.
    """
    arguments = [
        endpoints, *before, filters.since, filters.until, filters.events, filters.unit_code,
        filters.code_class, filters.unanswered, limit, project_ids,
    ]  # fmt: skip
    if filters.status is DeliveryStatus.PENDING:
        statement = _LIST_PENDING
    else:
        ended = _choose_statement(filters)
        statement = ended if filters.status is not None else f"({_LIST_PENDING}) union all ({ended})"
        arguments.append(filters.status)
    await connection.execute(_ALONG_INDEXES)
    rows = await connection.fetch(statement, *arguments)
    # The planner finds the best plans of other statements itself.
    await connection.execute(_AS_PLANNED)
    found = sorted(map(_delivery, rows), key=lambda one: (one.created_at, one.id), reverse=True)
    return found if of_each_endpoint else found[:limit]


async def find_latest(
    connection: Connection, endpoints: Sequence[UUID], filters: DeliveryFilter
) -> dict[UUID, Delivery]:
    """Return the latest delivery of each endpoint that has one, within a transaction."""
    found = await list_deliveries(connection, endpoints, None, _NO_CURSOR, filters, 1, of_each_endpoint=True)
    return {one.endpoint_id: one for one in reversed(found)}


async def count_pending(connection: Connection, endpoints: Sequence[UUID], at_most: int) -> dict[UUID, int]:
    """Return how many are pending for each endpoint, counted up to ``at_most``."""
    return {row[0]: row[1] for row in await connection.fetch(_COUNT_PENDING, endpoints, at_most)}


def _choose_statement(filters: DeliveryFilter) -> str:
    """Choose the index that leaves out the most."""
    if filters.unit_code is not None:
        return _LIST_OF_UNIT
    if filters.events == (PING,):
        return _LIST_PINGS
    is_failure = filters.unanswered or filters.code_class not in (None, 2)
    is_undelivered = filters.status in (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)
    return _LIST_UNDELIVERED if is_failure or is_undelivered else _LIST_ENDED


def _delivery(row: asyncpg.Record) -> Delivery:
    cause = decode_message(row["last_cause"], row["last_cause_message"])
    return Delivery(*row[: len(Delivery._fields)])._replace(
        status=DeliveryStatus(row["status"]), last_cause=cause
    )


def _attempt(row: asyncpg.Record) -> Attempt:
    attempt = Attempt(*row[:-1])
    return attempt._replace(
        cause=decode_message(row["cause"], row["cause_message"]),
        trigger=delivery.Trigger(attempt.trigger),
        request_headers=msgspec.json.decode(row["request_headers"], type=list[tuple[str, str]]),
        response_headers=msgspec.json.decode(row["response_headers"], type=list[tuple[str, str]]),
    )


# Ended deliveries are counted by hour, once, and apart from the record, which must not wait for it: there may
# be a million in an hour.

# The period that is not counted yet. It ends before now: what ended just now may not be recorded yet. What
# is recorded later, because the database was away, is missing from the counts; the log has it.
_LOCK_UNCOUNTED = """
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
_DELETE_OLD_HOURS = "delete from delivery_hour where hour < statement_timestamp() - interval '25 hours'"
_LIST_HOURS = f"""
    select endpoint_id, hour, delivered, failed from delivery_hour
    where endpoint_id = any($1::uuid[])
        and hour > date_trunc('hour', statement_timestamp(), 'UTC') - interval '{delivery.HOURS} hours'
    order by endpoint_id, hour
"""


async def lock_uncounted(connection: Connection, lag: timedelta) -> tuple[datetime, datetime] | None:
    """Return the period still to be counted, or None while another process counts. In a transaction."""
    row = await connection.fetchrow(_LOCK_UNCOUNTED, lag)
    return (row["since"], row["settled"]) if row else None


async def count_hours(connection: Connection, since: datetime, upto: datetime) -> None:
    await connection.execute(_COUNT_HOURS, since, upto)
    await connection.execute("update installation set deliveries_counted_upto = $1", upto)
    await connection.execute(_DELETE_OLD_HOURS)


async def list_hours(connection: Connection, endpoint_ids: Sequence[UUID]) -> list[delivery.HourlyDeliveries]:
    """Return the last ``HOURS`` including the present one, without those in which nothing ended."""
    return [delivery.HourlyDeliveries(*row) for row in await connection.fetch(_LIST_HOURS, endpoint_ids)]


# The latest deliveries of one unit, with their endpoints.

# $1 the unit, $2 its code, $3 how many. The queue of an endpoint may be long. Three indexes together contain
# every pending delivery by its unit; each has its own select.
_LIST_LATEST_OF_UNIT = f"""
    select delivery.*, endpoint.url, endpoint.description, endpoint.removed_at is not null
    from (
        select found.* from endpoint cross join lateral (
            select {_PENDING} from pending_delivery
            where endpoint_id = endpoint.id and unit_id = $1 and holds_back and attempts = 0
            union all
            select {_PENDING} from pending_delivery
            where endpoint_id = endpoint.id and unit_id = $1 and holds_back and attempts > 0
        ) as found
        where endpoint.removed_at is null
        union all
        select {_PENDING} from pending_delivery where unit_id = $1 and not holds_back
        union all
        (
            select {_ENDED} from ended_delivery
            where unit_code = $2 and unit_id = $1 order by created_at desc, id desc limit $3
        )
    ) as delivery
    join endpoint on endpoint.id = delivery.endpoint_id
    order by delivery.created_at desc, delivery.id desc limit $3
"""


async def list_latest_of_unit(
    connection: Connection, unit: Unit, limit: int
) -> list[tuple[Delivery, EndpointLabel]]:
    rows = await connection.fetch(_LIST_LATEST_OF_UNIT, unit.id, unit.code, limit)
    return [(_delivery(row), EndpointLabel(row["endpoint_id"], *row[-3:])) for row in rows]


# Reconciliation: the events of the feed compared with the deliveries.

EVENTS_AT_ONCE = 200_000

# An event names the endpoints that it was sent to; its delivery has the status. Events from before the log
# begins have no delivery any more.
_COUNT_RECONCILED = """
    with expected as (
        select delivery_id(event.id, $1) as id, created_at from event
        where position > $2 and position <= $3 and endpoint_ids @> array[$1::uuid]
            and ($4::uuid[] is null or project_id is null or project_id = any($4))
    ),
    known as (
        select id, 'pending' as status from pending_delivery
        where endpoint_id = $1 and created_at >= (select min(created_at) from expected)
            and created_at <= (select max(created_at) from expected)
        union all
        select id, status from ended_delivery
        where endpoint_id = $1 and created_at >= (select min(created_at) from expected)
            and created_at <= (select max(created_at) from expected)
            and ended_at >= (select min(created_at) from expected)
    )
    select
        count(*),
        count(*) filter (where status = 'delivered'),
        count(*) filter (where status = 'pending'),
        count(*) filter (where status = 'failed'),
        count(*) filter (where status = 'cancelled'),
        count(*) filter (where status is null and expected.created_at < log.begins_at),
        count(*) filter (where status is null and expected.created_at >= log.begins_at)
    from expected
    left join known on known.id = expected.id
    cross join (
        select coalesce(
            to_date(right(min(part.relname), 8), 'YYYYMMDD')::timestamp at time zone 'UTC', '-infinity'
        ) as begins_at
        from pg_inherits join pg_class as part on part.oid = inhrelid
        where inhparent = 'ended_delivery'::regclass and not inhdetachpending
    ) as log
"""


# Positions are not counted: they have gaps where the database was recovered.
_END_OF_PART = """
    select coalesce((
        select position from event where position > $1 and position <= $2
        order by position offset $3 - 1 limit 1
    ), $2)
"""
_LATEST_EVENTS = """
    select coalesce(min(position) - 1, $2), count(*) from (
        select position from event where position > $1 and position <= $2 order by position desc limit $3
    ) as latest
"""


async def count_reconciled(
    connection: Connection, endpoint_id: UUID, project_ids: Sequence[UUID] | None, after: int, upto: int
) -> delivery.ReconciliationCounts:
    """Count in parts: the feed may be long."""
    total = delivery.ReconciliationCounts(0, 0, 0, 0, 0, 0, 0)
    while after < upto:
        end = await connection.fetchval(_END_OF_PART, after, upto, EVENTS_AT_ONCE)
        part = await fetch_one(connection, _COUNT_RECONCILED, endpoint_id, after, end, project_ids)
        total = delivery.ReconciliationCounts(*(one + more for one, more in zip(total, part, strict=True)))
        after = end
    return total


async def find_latest_events(connection: Connection, after: int, upto: int, limit: int) -> tuple[int, int]:
    """Return the position after which the latest events of the feed follow, and how many they are."""
    start, count = await fetch_one(connection, _LATEST_EVENTS, after, upto, limit)
    return int(start), int(count)
