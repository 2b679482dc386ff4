"""Who waited for an earlier event of its unit, and need not any more, is due at once.

Each statement looks at what was committed before it: so it follows whatever may have ended the waiting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from holdfast.storage.database import Connection
from holdfast.storage.waiting import must_wait

Place = tuple[UUID, UUID]
"""An endpoint and a unit."""
FIRST_PLACE: Place = (UUID(int=0), UUID(int=0))
_LAST_ENDPOINT = UUID(int=2**128 - 1)

# Whether it still waits is asked of the row as it is when it is its turn: it may have been sent meanwhile.
_LET_GO = """
    update pending_delivery set due_at = statement_timestamp(), postponed = false
    where postponed and id = any(array({which}))
"""
_FREE = f"""
    select next.id from {{next}}
    where not {must_wait("next", "endpoint.ordered")}
    order by next.id
"""
_NEXT_OF_UNITS = """
    unnest($1::uuid[], $2::uuid[]) as sent (endpoint_id, unit_id)
    join endpoint on endpoint.id = sent.endpoint_id
    cross join lateral (
        select * from pending_delivery as waiting
        where waiting.endpoint_id = sent.endpoint_id and waiting.unit_id = sent.unit_id and waiting.postponed
        order by unit_version limit 1
    ) as next
"""
_LET_NEXT_GO = _LET_GO.format(which=_FREE.format(next=_NEXT_OF_UNITS))
# Of each unit only the first that waits: the others wait for that one.
_LET_SOME_GO = f"""
    with next as materialized (
        select distinct on (endpoint_id, unit_id) id, endpoint_id, unit_id, unit_version
        from pending_delivery
        where postponed and (endpoint_id, unit_id) > ($1, $2) and endpoint_id <= $3
        order by endpoint_id, unit_id, unit_version limit $4
    ),
    freed as (
        {_LET_GO.format(which=_FREE.format(next="next join endpoint on endpoint.id = next.endpoint_id"))}
        returning id
    )
    select endpoint_id, unit_id, (select count(*) from next) < $4, (select count(*) from freed)
    from next order by endpoint_id desc, unit_id desc limit 1
"""
_TRY_TO_LOOK = "select pg_try_advisory_xact_lock(x'686f6c67'::bigint)"


class Looked(NamedTuple):
    place: Place | None
    """Where the next look goes on; None after the last unit that had to be looked at."""
    freed: int


async def let_next_go(connection: Connection, places: Iterable[Place]) -> None:
    """The next event of each unit, when the one before it was sent (or, in an ordered lane, has ended)."""
    sent = sorted(set(places))
    if sent:
        await connection.execute(_LET_NEXT_GO, [place[0] for place in sent], [place[1] for place in sent])


async def let_some_go(connection: Connection, after: Place, units: int) -> Looked:
    """Within a transaction, by one process at a time; another one is told that there is nothing to do."""
    if not await connection.fetchval(_TRY_TO_LOOK):
        return Looked(None, 0)
    return await _let_some_go(connection, after, _LAST_ENDPOINT, units)


async def let_some_of_endpoint_go(connection: Connection, after: Place, units: int) -> Looked:
    return await _let_some_go(connection, after, after[0], units)


async def _let_some_go(connection: Connection, after: Place, last_endpoint: UUID, units: int) -> Looked:
    row = await connection.fetchrow(_LET_SOME_GO, *after, last_endpoint, units)
    if row is None:
        return Looked(None, 0)
    endpoint_id, unit_id, were_the_last, freed = row
    return Looked(None if were_the_last else (endpoint_id, unit_id), freed)
