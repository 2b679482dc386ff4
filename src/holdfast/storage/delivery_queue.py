"""The queue of deliveries: the order of a unit's events, claims and leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.delivery import ClaimedDelivery, ExpiredLease, Progress, SealedSecret
from holdfast.storage import deliveries
from holdfast.storage.database import Connection

_EARLIER = """
    select {what} from pending_delivery as earlier
    where earlier.endpoint_id = {delivery}.endpoint_id and earlier.unit_id = {delivery}.unit_id
        and earlier.unit_version < {delivery}.unit_version and earlier.holds_back
        and earlier.attempts {attempts}
"""


def must_wait(delivery: str, ordered: str) -> str:
    """Return the condition under which a delivery waits for an earlier event of its unit: for its first
    attempt, or on an ordered endpoint for its end. Each part has an index: there may be many retries."""
    return f"""(
        exists ({_earlier(delivery, "= 0")}) or {ordered} and exists ({_earlier(delivery, "> 0")})
    )"""


def latest_retry(delivery: str, ordered: str) -> str:
    """Return the time at which the last of the retries that it waits for is due, or null."""
    return f"case when {ordered} then ({_earlier(delivery, '> 0', 'max(earlier.due_at)')}) end"


def _earlier(delivery: str, attempts: str, what: str = "") -> str:
    return _EARLIER.format(delivery=delivery, attempts=attempts, what=what)


# A delivery that no longer waits for an earlier event of its unit is due at once. Each of these statements
# sees what was committed before it, so it runs after the change that may have ended the wait.

UnitQueue = tuple[UUID, UUID]
"""The events of one unit for one endpoint: (endpoint id, unit id)."""
FIRST_UNIT_QUEUE: UnitQueue = (UUID(int=0), UUID(int=0))
_LAST_ENDPOINT = UUID(int=2**128 - 1)

# The update checks `postponed` again on the row that it locks: it may have been sent meanwhile.
_UNBLOCK = """
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
_UNBLOCK_NEXT = _UNBLOCK.format(which=_FREE.format(next=_NEXT_OF_UNITS))
# Of each unit only the first that waits: the others wait for that one.
_UNBLOCK_SOME = f"""
    with next as materialized (
        select distinct on (endpoint_id, unit_id) id, endpoint_id, unit_id, unit_version
        from pending_delivery
        where postponed and (endpoint_id, unit_id) > ($1, $2) and endpoint_id <= $3
        order by endpoint_id, unit_id, unit_version limit $4
    ),
    freed as (
        {_UNBLOCK.format(which=_FREE.format(next="next join endpoint on endpoint.id = next.endpoint_id"))}
        returning id
    )
    select endpoint_id, unit_id, (select count(*) from next) < $4, (select count(*) from freed)
    from next order by endpoint_id desc, unit_id desc limit 1
"""
_TRY_TO_LOCK_SCAN = "select pg_try_advisory_xact_lock(x'686f6c67'::bigint)"


class UnblockResult(NamedTuple):
    last: UnitQueue | None
    """Where the next call continues; None if this was the end."""
    unblocked: int


async def unblock_next_delivery(connection: Connection, queues: Iterable[UnitQueue]) -> None:
    """Make the next event of each unit due if the one before it was sent, or ended on ordered endpoints."""
    ordered = sorted(set(queues))
    if ordered:
        endpoint_ids, unit_ids = zip(*ordered, strict=True)
        await connection.execute(_UNBLOCK_NEXT, endpoint_ids, unit_ids)


async def unblock_some(connection: Connection, after: UnitQueue, units: int) -> UnblockResult:
    """Within a transaction, by one process at a time; another one finds nothing to do."""
    if not await connection.fetchval(_TRY_TO_LOCK_SCAN):
        return UnblockResult(None, 0)
    return await _unblock_some(connection, after, _LAST_ENDPOINT, units)


async def unblock_some_of_endpoint(connection: Connection, after: UnitQueue, units: int) -> UnblockResult:
    return await _unblock_some(connection, after, after[0], units)


async def _unblock_some(
    connection: Connection, after: UnitQueue, last_endpoint: UUID, units: int
) -> UnblockResult:
    row = await connection.fetchrow(_UNBLOCK_SOME, *after, last_endpoint, units)
    if row is None:
        return UnblockResult(None, 0)
    endpoint_id, unit_id, is_end, count = row
    return UnblockResult(None if is_end else (endpoint_id, unit_id), count)


# Claims. The row of an endpoint is the lock of its lane. Whoever has it sees every earlier claim, and takes
# what is due in order, up to the cap of the endpoint.

LANES_AT_ONCE = 256
EXTRA_CANDIDATES = 8
"""Read from each lane beyond its share, since other lanes may not use theirs."""
FAILING_LANE_CAP = 8
"""In flight at most to an endpoint whose last attempt failed: enough to see when that ends."""
POSTPONED_AT_ONCE = 5000
POSTPONED_FOR_SECONDS = 10.0
"""A postponed delivery is unblocked when the earlier one ends; this is the latest time to check again."""

_CAP = f"case when failing_since is null then max_in_flight else least(max_in_flight, {FAILING_LANE_CAP}) end"
# One value and not EXISTS, which the planner would turn into a join with all that is due. So is it with the
# offsets: what stands before them is looked up row by row, however large it seems.
_NOT_IN_FLIGHT = "not exists (select from in_flight where in_flight.delivery_id = pending.id offset 0)"
_FIRST_DUE = f"""
    select due_at from pending_delivery as pending
    where pending.endpoint_id = endpoint.id and {_NOT_IN_FLIGHT}
    order by due_at limit 1
"""
# A locked lane is being claimed from. Lanes are taken in turn, from where this process last stopped.
_LOCK_LANES = f"""
    select id, url, ordered, {_CAP}, secret_id, secret_sealed from endpoint
    where removed_at is null and not paused
        and (select count(*) from in_flight where in_flight.endpoint_id = endpoint.id) < least({_CAP}, $3)
        and ({_FIRST_DUE}) <= statement_timestamp()
    order by id > $1 desc, id limit $2
    for no key update skip locked
"""

# A statement of its own: it sees all claims that were made before the lanes were locked. A first attempt
# waits for the first attempts of its unit's earlier events; in an ordered lane everything but a resend
# waits for all of them. Lanes with little in flight come first; among equals chance decides, so that none is
# always the last.
_TAKE = f"""
    with candidate as (
        select due.*, lane.busy + row_number() over (partition by lane.id order by due.due_at) as place
        from (
            select
                lane.id, lane.ordered, endpoint.events, lane.max_in_flight,
                (select count(*) from in_flight where in_flight.endpoint_id = lane.id) as busy
            from unnest($1::uuid[], $2::boolean[], $3::int[]) as lane (id, ordered, max_in_flight)
            join endpoint on endpoint.id = lane.id
            offset 0
        ) as lane
        cross join lateral (
            select
                id, endpoint_id, unit_id, unit_version, event, body, series, tried, attempts, due_at,
                case
                    when series > 1 or event = 'ping' then 'send'
                    when event <> all (lane.events) then 'unselected'
                    when (attempts = 0 or lane.ordered) and {must_wait("pending", "lane.ordered")} then 'wait'
                    else 'send'
                end as verdict
            from pending_delivery as pending
            where endpoint_id = lane.id and due_at <= statement_timestamp()
                and {_NOT_IN_FLIGHT}
            order by due_at
            limit greatest(least(lane.max_in_flight - lane.busy, $6), 0)
        ) as due
    ),
    ranked as (
        select *, row_number() over (partition by verdict order by place, random()) as turn from candidate
    ),
    claim as materialized (select nextval('claim_token') as token),
    taken as (
        insert into in_flight (delivery_id, endpoint_id, token, claimed_at, lease_until)
        select id, endpoint_id, (select token from claim), statement_timestamp(), statement_timestamp() + $5
        from ranked where verdict = 'send' and turn <= $4
    )
    select
        id, endpoint_id, verdict, event, case when verdict = 'send' then body end, unit_id, series, tried,
        attempts, (select token from claim), statement_timestamp()
    from ranked where verdict <> 'send' or turn <= $4
    order by turn
"""

# Postpones also the events behind them, so that a long backlog of one unit is postponed at once.
_POSTPONE = f"""
    update pending_delivery as pending
    set postponed = true,
        due_at = greatest(statement_timestamp() + $2, {latest_retry("pending", "waiting.ordered")})
    from (
        select behind.id, endpoint.ordered
        from (
            select endpoint_id, unit_id, min(unit_version) as unit_version
            from (select * from pending_delivery where id = any($1::uuid[]) offset 0) as named
            group by endpoint_id, unit_id
        ) as waiting
        join endpoint on endpoint.id = waiting.endpoint_id
        cross join lateral (
            select id from pending_delivery as untried
            where untried.endpoint_id = waiting.endpoint_id and untried.unit_id = waiting.unit_id
                and untried.unit_version >= waiting.unit_version and untried.holds_back
                and untried.attempts = 0 and untried.series = 1 and untried.due_at <= statement_timestamp()
            order by unit_version limit {POSTPONED_AT_ONCE}
        ) as behind
        union
        select id, true from pending_delivery where id = any($1::uuid[]) and attempts > 0
        order by id
    ) as waiting
    where pending.id = waiting.id
"""

_NEXT_DUE = f"""
    select extract(epoch from min(({_FIRST_DUE})) - clock_timestamp())::float8
    from endpoint
    where removed_at is null and not paused
        and (select count(*) from in_flight where in_flight.endpoint_id = endpoint.id) < least({_CAP}, $1)
"""

_PAGES = "select pg_relation_size('pending_delivery') / 8192"
_LOAD_SEALED = "select secret_id, secret_sealed from endpoint where id = $1"
# Each row is written, so that somebody who wants one sent anew at this moment is waited for.
_GIVE_BACK = """
    with returned as (
        delete from in_flight using unnest($1::uuid[], $2::bigint[]) as own (delivery_id, token)
        where in_flight.delivery_id = own.delivery_id and in_flight.token = own.token
        returning own.delivery_id
    )
    update pending_delivery
    set series = series + again::int, tried = case when again then 0 else tried end, again = false,
        due_at = case when again then statement_timestamp() else due_at end
    where id = any(array(select delivery_id from returned order by delivery_id))
"""


class Claims(NamedTuple):
    claimed: list[ClaimedDelivery]
    postponed: set[UnitQueue]
    """Units whose next event was due, but has to wait."""
    has_others: bool
    """Something was due and is not sent; behind it there may be more."""
    last_lane: UUID


async def claim(
    connection: Connection, after_lane: UUID, budget: int, lease: timedelta, lane_cap: int
) -> Claims:
    """Within a transaction, claim at most ``budget`` deliveries that are due, fairly between endpoints.

    At most ``lane_cap`` are in flight to one endpoint, whatever its own cap is.
    """
    lanes = {row[0]: row for row in await connection.fetch(_LOCK_LANES, after_lane, LANES_AT_ONCE, lane_cap)}
    if not lanes:
        return Claims([], set(), False, after_lane)
    caps = [min(lane[3], lane_cap) for lane in lanes.values()]
    columns = [list(lanes), [lane[2] for lane in lanes.values()], caps]
    share = -(-budget // len(lanes)) + EXTRA_CANDIDATES
    rows = await connection.fetch(_TAKE, *columns, budget, lease, share)
    waiting = [row for row in rows if row[2] == "wait"]
    if waiting:
        postponed_for = timedelta(seconds=POSTPONED_FOR_SECONDS)
        await connection.execute(_POSTPONE, [row[0] for row in waiting], postponed_for)
    unselected = [row[0] for row in rows if row[2] == "unselected"]
    if unselected:
        await deliveries.cancel_unselected(connection, unselected)
    claimed = [_claimed(row, lanes[row[1]]) for row in rows if row[2] == "send"]
    postponed = {(row[1], row[5]) for row in waiting}
    return Claims(claimed, postponed, bool(waiting or unselected), next(reversed(lanes)))


async def load_secret(connection: Connection, endpoint_id: UUID) -> SealedSecret | None:
    row = await connection.fetchrow(_LOAD_SEALED, endpoint_id)
    return SealedSecret(*row) if row else None


async def count_pages(connection: Connection) -> int:
    return int(await connection.fetchval(_PAGES))


async def seconds_until_next_due(connection: Connection, lane_cap: int) -> float | None:
    """Count only what could be claimed: not in flight, its endpoint neither paused nor at its cap."""
    seconds: float | None = await connection.fetchval(_NEXT_DUE, lane_cap)
    return seconds


async def give_back(connection: Connection, claimed: Sequence[ClaimedDelivery]) -> None:
    """End the claims of deliveries that were never sent."""
    await connection.execute(_GIVE_BACK, [one.delivery_id for one in claimed], [one.token for one in claimed])


def _claimed(row: asyncpg.Record, lane: asyncpg.Record) -> ClaimedDelivery:
    delivery_id, endpoint_id, _, event, body, unit_id, series, tried, attempts, token, claimed_at = row
    return ClaimedDelivery(
        delivery_id, endpoint_id, lane[1], event, body, unit_id,
        Progress(series, tried, attempts), token, claimed_at, SealedSecret(lane[4], lane[5]),
    )  # fmt: skip


# Expired leases: their worker has stopped.

_EXPIRED_LEASES = """
    select
        in_flight.delivery_id, in_flight.endpoint_id, pending.unit_id, in_flight.token,
        in_flight.claimed_at, clock_timestamp(), endpoint.url, pending.series, pending.tried, pending.attempts
    from in_flight
    join pending_delivery as pending on pending.id = in_flight.delivery_id
    join endpoint on endpoint.id = in_flight.endpoint_id
    where in_flight.lease_until <= clock_timestamp()
    order by in_flight.lease_until limit $1
"""
# A claim of a delivery that is no longer pending would count against its endpoint's cap for ever.
_DELETE_VOID_LEASES = """
    delete from in_flight
    where lease_until <= clock_timestamp()
        and not exists (select from pending_delivery where id = delivery_id offset 0)
"""


async def list_expired_leases(connection: Connection, limit: int) -> list[ExpiredLease]:
    rows = await connection.fetch(_EXPIRED_LEASES, limit)
    return [ExpiredLease(*(*row[:7], Progress(*row[7:]))) for row in rows]


async def delete_void_leases(connection: Connection) -> None:
    await connection.execute(_DELETE_VOID_LEASES)
