"""How many deliveries ended in each of the last hours, endpoint by endpoint.

Counted apart from the record, which must not wait for it, and once: in an hour there may be a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.storage.database import Connection

HOURS = 24

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
_COUNT = """
    insert into delivery_hour as known (endpoint_id, hour, delivered, failed)
    select endpoint_id, date_trunc('hour', ended_at, 'UTC'), count(*) filter (where status = 'delivered'),
        count(*) filter (where status = 'failed')
    from ended_delivery
    where ended_at > $1 and ended_at <= $2 and status <> 'cancelled'
    group by 1, 2
    on conflict (endpoint_id, hour) do update
    set delivered = known.delivered + excluded.delivered, failed = known.failed + excluded.failed
"""
_NOTE_COUNTED = "update installation set deliveries_counted_upto = $1"
_FORGET = "delete from delivery_hour where hour < statement_timestamp() - interval '25 hours'"
_HOURS = f"""
    select endpoint_id, hour, delivered, failed from delivery_hour
    where endpoint_id = any($1::uuid[])
        and hour > date_trunc('hour', statement_timestamp(), 'UTC') - interval '{HOURS} hours'
    order by endpoint_id, hour
"""


class Hour(NamedTuple):
    endpoint_id: UUID
    begins_at: datetime
    delivered: int
    failed: int


class Stretch(NamedTuple):
    since: datetime
    settled: datetime


async def lock_uncounted(connection: Connection, lag: timedelta) -> Stretch | None:
    """What is still to be counted; None while another process is at it. Within a transaction."""
    row = await connection.fetchrow(_LOCK_COUNTED, lag)
    return Stretch(*row) if row else None


async def count(connection: Connection, since: datetime, upto: datetime) -> None:
    await connection.execute(_COUNT, since, upto)
    await connection.execute(_NOTE_COUNTED, upto)
    await connection.execute(_FORGET)


async def of_endpoints(connection: Connection, endpoint_ids: Sequence[UUID]) -> list[Hour]:
    """Of the last ``HOURS``, the present one included; those in which nothing ended are left out."""
    return [Hour(*row) for row in await connection.fetch(_HOURS, endpoint_ids)]
