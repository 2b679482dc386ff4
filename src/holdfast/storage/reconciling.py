"""The feed held against the deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from holdfast.storage.database import Connection, fetch_one
from holdfast.storage.projects import within

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


class Tally(NamedTuple):
    events: int
    """Of the feed, for this endpoint."""
    delivered: int
    pending: int
    failed: int
    cancelled: int
    forgotten: int
    """Older than the log is kept."""
    missing: int
    """Never anything but 0."""


async def tally(
    connection: Connection, endpoint_id: UUID, project_ids: Sequence[UUID] | None, after: int, upto: int
) -> Tally:
    """A stretch at a time: the feed may be long."""
    total = Tally(0, 0, 0, 0, 0, 0, 0)
    for start in range(after, upto, EVENTS_AT_ONCE):
        end = min(start + EVENTS_AT_ONCE, upto)
        part = await fetch_one(connection, _TALLY, endpoint_id, start, end, project_ids)
        total = Tally(*(one + more for one, more in zip(total, part, strict=True)))
    return total
