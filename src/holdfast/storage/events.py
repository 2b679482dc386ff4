"""Events: written with the change, numbered after its commit, read as a feed."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.event import EventName, UnitEvent
from holdfast.domain.status import Status
from holdfast.storage.database import Connection, execute_and_count, fetch_one

_COLUMNS = ", ".join(UnitEvent._fields[:-2])
"""In the order of the database's type ``event_write``, which ends with the unit's code and the payload."""

# The payload begins with the id of the event, which is that of the delivery for each receiver.
_PAYLOAD_ID_AT = len('{"id":"') + 1

_WANTED = """
    endpoint.removed_at is null and new_event.type = any(endpoint.events)
    and (endpoint.project_ids is null or new_event.project_id = any(endpoint.project_ids))
"""

# Part of the statements that store units, after their parts `stored` and `new_event`: insert the new events
# of the units that were stored, and a delivery of each for every endpoint that is subscribed to it. Both see
# the same endpoints, as one statement does.
INSERT_EVENTS_AND_DELIVERIES = f"""
    inserted_event as (
        insert into event ({_COLUMNS}, endpoint_ids)
        select {_COLUMNS}, array(select id from endpoint where {_WANTED})
        from new_event
        where new_event.unit_id in (select id from stored)
    ),
    inserted_delivery as (
        insert into pending_delivery (
            id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, due_at, body
        )
        select
            delivery.id, endpoint.id, new_event.type, new_event.project_id, new_event.unit_id,
            new_event.unit_version, new_event.unit_code, new_event.created_at,
            least(new_event.created_at, statement_timestamp()),
            overlay(new_event.payload placing delivery.id::text from {_PAYLOAD_ID_AT} for 36)
        from new_event
        join endpoint on {_WANTED}
        cross join lateral (select delivery_id(new_event.id, endpoint.id) as id offset 0) as delivery
        where new_event.unit_id in (select id from stored)
        returning id
    )
"""


# Events are numbered when they are committed, never when they are written: a number taken inside
# a transaction would let a reader pass an event that commits late. The lock on the one row of
# event_feed serializes; the next statement then sees all that its former holder numbered.
_LOCK_FEED = "select last_position from event_feed for update"
_NUMBER = """
    with numbered as (
        select unit_id, unit_version, $1 + row_number() over (order by created_at, unit_id) as position
        from (
            select unit_id, unit_version, created_at from event where position is null
            order by created_at, unit_id limit $2
        ) as unnumbered
    )
    update event set position = numbered.position from numbered
    where event.unit_id = numbered.unit_id and event.unit_version = numbered.unit_version
"""


_PAGE_COLUMNS = """
    event.position, case when $4::uuid is null then event.id else delivery_id(event.id, $4) end,
    event.type, event.created_at, event.status, event.previous_status,
    event.booking_reference, unit.id, unit.code, project.slug
"""
_OF_ENDPOINT = "($4::uuid is null or event.endpoint_ids @> array[$4::uuid])"
_PAGE = f"""
    select {_PAGE_COLUMNS}
    from event join unit on unit.id = event.unit_id join project on project.id = event.project_id
    where event.position > $1 and event.position <= $2 and {_OF_ENDPOINT}
    order by event.position limit $3
"""
_PAGE_OF_PROJECTS = f"""
    select {_PAGE_COLUMNS}
    from project
    cross join lateral (
        select * from event
        where event.project_id = project.id and event.position > $1 and event.position <= $2
            and {_OF_ENDPOINT}
        order by event.position limit $3
    ) as event
    join unit on unit.id = event.unit_id
    where project.slug = any($5::text[])
    order by event.position limit $3
"""

# Forget the oldest events, at most $2. Only from the old end, up to the first event that is still kept:
# places are not in the order of times, and no kept event may end up behind a forgotten one. Nor is one
# forgotten before it is summed. Scans begin where the last one ended: deleted rows are in the index until a
# vacuum. The feed is locked only at the end, so that its readers do not wait.
TRIM = """
    with oldest as (
        select position, created_at < statement_timestamp() - $1::interval as is_old
        from event where position > (select trimmed_position from event_feed) order by position limit $2
    ), gone as (
        delete from event
        where position > (select trimmed_position from event_feed)
            and position < (
                select coalesce(min(position) filter (where not is_old), max(position) + 1) from oldest
            )
            and position <= (select summed_position from event_sums)
        returning position
    ), moved as (
        update event_feed
        set trimmed_position = greatest(trimmed_position, (select max(position) from gone))
        where exists (select from gone)
    )
    select from gone
"""


class FeedEnds(NamedTuple):
    last: int
    trimmed: int


class FeedItem(NamedTuple):
    position: int
    id: UUID
    type: EventName
    created_at: datetime
    status: Status
    previous_status: Status
    booking_reference: str | None
    unit_id: UUID
    unit_code: str
    project_slug: str


async def any_unnumbered(connection: Connection) -> bool:
    return bool(await connection.fetchval("select exists (select from event where position is null)"))


async def number(connection: Connection, limit: int) -> int:
    """Give the next positions to committed events, each unit's in its own order."""
    last_position = await connection.fetchval(_LOCK_FEED)
    count = await execute_and_count(connection, _NUMBER, last_position, limit)
    if count:
        await connection.execute("update event_feed set last_position = last_position + $1", count)
    return count


async def ends(connection: Connection) -> FeedEnds:
    return FeedEnds(*await fetch_one(connection, "select last_position, trimmed_position from event_feed"))


async def page(
    connection: Connection,
    after: int,
    upto: int,
    limit: int,
    slugs: tuple[str, ...] | None,
    endpoint_id: UUID | None = None,
) -> list[FeedItem]:
    """With an endpoint: those that were fanned out to it, under the ids of its deliveries."""
    if slugs is None:
        rows = await connection.fetch(_PAGE, after, upto, limit, endpoint_id)
    else:
        rows = await connection.fetch(_PAGE_OF_PROJECTS, after, upto, limit, endpoint_id, slugs)
    return [FeedItem(*row) for row in rows]
