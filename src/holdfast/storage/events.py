"""Events: written with the change, numbered after its commit, read as a feed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.event import EventName, UnitEvent
from holdfast.domain.status import Status
from holdfast.storage.database import Connection, fetch_one

_COLUMNS = ", ".join(UnitEvent._fields)
"""In the order of the database's type ``event_write``, too."""

_ANY_UNNUMBERED = "select exists (select from event where position is null)"

# Events are numbered when they are committed, never when they are written: a number taken inside
# a transaction would let a reader pass an event that commits late. The lock on the one row of
# event_feed serialises; the next statement then sees all that its former holder numbered.
_TAKE_TURN = "select last_position from event_feed for update"
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
_MOVE_END = "update event_feed set last_position = last_position + $1"

_ENDS = "select last_position, trimmed_position from event_feed"

_PAGE_COLUMNS = """
    event.position, event.id, event.type, event.created_at, event.status, event.previous_status,
    event.booking_reference, unit.id, unit.code, project.slug
"""
_PAGE = f"""
    select {_PAGE_COLUMNS}
    from event join unit on unit.id = event.unit_id join project on project.id = event.project_id
    where event.position > $1 and event.position <= $2
    order by event.position limit $3
"""
_PAGE_OF_PROJECTS = f"""
    select {_PAGE_COLUMNS}
    from project
    cross join lateral (
        select * from event
        where event.project_id = project.id and event.position > $1 and event.position <= $2
        order by event.position limit $3
    ) as event
    join unit on unit.id = event.unit_id
    where project.slug = any($4::text[])
    order by event.position limit $3
"""

# Only from the old end, up to the first event that is still kept: places are not in the order of
# times, and no kept event may end up behind a forgotten one.
_TRIM = """
    with oldest as (
        select position, created_at < clock_timestamp() - $1::interval as is_old
        from event where position is not null order by position limit $2
    ), gone as (
        delete from event using oldest
        where event.position = oldest.position
            and oldest.position < coalesce((select min(position) from oldest where not is_old), $3 + 1)
        returning event.position
    )
    select count(*), max(position) from gone
"""
_MOVE_START = "update event_feed set trimmed_position = greatest(trimmed_position, $1)"


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


def insert_statement(argument: int, stored: str) -> str:
    """For the statement that stores the units: the events of those units that it did store.

    Takes them as they are; ``stored`` is a subquery of unit ids.
    """
    return f"""
        insert into event ({_COLUMNS})
        select {_COLUMNS} from unnest(${argument}::event_write[]) as told where told.unit_id in ({stored})
    """


async def any_unnumbered(connection: Connection) -> bool:
    return bool(await connection.fetchval(_ANY_UNNUMBERED))


async def number(connection: Connection, limit: int) -> int:
    """Give the next positions to committed events, each unit's in its own order."""
    last_position = await connection.fetchval(_TAKE_TURN)
    tag = await connection.execute(_NUMBER, last_position, limit)
    count = int(tag.rpartition(" ")[2])
    if count:
        await connection.execute(_MOVE_END, count)
    return count


async def ends(connection: Connection) -> FeedEnds:
    return FeedEnds(*await fetch_one(connection, _ENDS))


async def page(
    connection: Connection, after: int, upto: int, limit: int, slugs: tuple[str, ...] | None
) -> list[FeedItem]:
    if slugs is None:
        rows = await connection.fetch(_PAGE, after, upto, limit)
    else:
        rows = await connection.fetch(_PAGE_OF_PROJECTS, after, upto, limit, slugs)
    return [FeedItem(*row) for row in rows]


async def trim(connection: Connection, older_than: timedelta, limit: int) -> int:
    """Forget the oldest events of the feed, and remember up to where they are forgotten."""
    last_position = await connection.fetchval(_TAKE_TURN)
    count, position = await fetch_one(connection, _TRIM, older_than, limit, last_position)
    if count:
        await connection.execute(_MOVE_START, position)
    return int(count)
