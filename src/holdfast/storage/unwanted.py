"""Queued deliveries that nobody wants any more: their endpoint was removed, or their event unselected."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from holdfast.domain.delivery import ENDPOINT_REMOVED, EVENT_UNSELECTED
from holdfast.storage.database import Connection
from holdfast.storage.records import DELIVERY_COLUMNS, end_of

# What is in flight is left to whoever sends it: it may arrive.
_CANCEL = f"""
    with gone as (
        delete from pending_delivery
        where id = any(array(
            select id from pending_delivery as pending
            where {{which}}
                and not exists (select from in_flight where in_flight.delivery_id = pending.id offset 0)
            {{limit}}
        ))
        returning {DELIVERY_COLUMNS}
    ),
    moved as (
        insert into ended_delivery ({DELIVERY_COLUMNS}, status, reason, ended_at)
        select {DELIVERY_COLUMNS}, 'cancelled', $2, {end_of("clock_timestamp()")} from gone
        returning id
    )
    select count(*) from moved
"""
_CANCEL_NAMED = _CANCEL.format(which="id = any($1::uuid[])", limit="")
_CANCEL_SOME = _CANCEL.format(
    which="""endpoint_id = $1
                and ($3::text[] is null or event = any($3) and (series = 1 or not $4))""",
    limit="order by due_at limit $5",
)
# Nobody claims of it, sends anew, or changes what it wants, until the end of the transaction.
_LOCK_LANE = "select removed_at is not null, events from endpoint where id = $1 for no key update"
_REMOVED_WITH_PENDING = """
    select id from endpoint
    where removed_at is not null
        and (select id from pending_delivery where endpoint_id = endpoint.id limit 1) is not null
"""
_WITH_UNSELECTED = "select id, events from endpoint where has_unwanted and removed_at is null"
# Not before all have come that were told of when the event was still wanted.
_NOTHING_UNSELECTED = """
    update endpoint set has_unwanted = false
    where id = $1 and updated_at < clock_timestamp() - interval '1 minute'
        and not exists (
            select from pending_delivery
            where endpoint_id = $1 and series = 1 and event <> 'ping' and event <> all (endpoint.events)
            offset 0
        )
"""


async def cancel_unselected(connection: Connection, ids: Sequence[UUID]) -> None:
    """By whoever has their lane locked."""
    await connection.fetchval(_CANCEL_NAMED, ids, EVENT_UNSELECTED)


async def cancel_some(
    connection: Connection, endpoint_id: UUID, events: Sequence[str], at_most: int, *, resent_too: bool
) -> int:
    """Within a transaction. All of an endpoint that is removed; of another one those of the ``events``
    that it does not want at this moment."""
    is_removed, wanted = await connection.fetchrow(_LOCK_LANE, endpoint_id) or (False, events)
    if is_removed:
        return int(
            await connection.fetchval(_CANCEL_SOME, endpoint_id, ENDPOINT_REMOVED, None, False, at_most)
        )
    unwanted = [name for name in events if name not in wanted]
    return int(
        await connection.fetchval(
            _CANCEL_SOME, endpoint_id, EVENT_UNSELECTED, unwanted, not resent_too, at_most
        )
    )


async def of_removed_endpoints(connection: Connection) -> list[UUID]:
    """Endpoints whose deliveries came, or came back, when they were already removed."""
    return [row[0] for row in await connection.fetch(_REMOVED_WITH_PENDING)]


async def of_unselected_events(connection: Connection) -> list[tuple[UUID, list[str]]]:
    """Endpoints of which deliveries may be queued that they want no more, with the events that they want."""
    return [(row[0], row[1]) for row in await connection.fetch(_WITH_UNSELECTED)]


async def note_none_unselected(connection: Connection, endpoint_id: UUID) -> None:
    """If it is so."""
    await connection.execute(_NOTHING_UNSELECTED, endpoint_id)
