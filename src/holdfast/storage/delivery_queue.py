"""The queue of deliveries: the order of a unit's events, claims and leases.

A delivery waits for the first attempts of its unit's earlier events, and on an ordered endpoint until these
have ended. The statements look for the two kinds separately, as each has an index: there may be many retries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.delivery import ClaimedDelivery, ExpiredLease, Progress, SealedSecret
from holdfast.storage import deliveries
from holdfast.storage.database import Connection, execute_and_count

# Unblocking: a delivery that no longer has to wait is due at once. These statements see what was committed
# before them, so they run after the change that may have ended the wait. The updates check `postponed` again
# on the rows that they lock: a delivery may have been sent meanwhile.

UnitQueue = tuple[UUID, UUID]
"""The events of one unit for one endpoint: (endpoint id, unit id)."""
FIRST_UNIT_QUEUE: UnitQueue = (UUID(int=0), UUID(int=0))
_LAST_ENDPOINT = UUID(int=2**128 - 1)

# Unblock the next event of each of these units, unless it has to wait for another one.
_UNBLOCK_NEXT = """
    update pending_delivery set due_at = statement_timestamp(), postponed = false
    where postponed and id = any(array(
        select next.id
        from unnest($1::uuid[], $2::uuid[]) as sent (endpoint_id, unit_id)
        join endpoint on endpoint.id = sent.endpoint_id
        cross join lateral (
            select * from pending_delivery as waiting
            where waiting.endpoint_id = sent.endpoint_id and waiting.unit_id = sent.unit_id
                and waiting.postponed
            order by unit_version limit 1
        ) as next
        where not (
            exists (
                select from pending_delivery as earlier
                where earlier.endpoint_id = next.endpoint_id and earlier.unit_id = next.unit_id
                    and earlier.unit_version < next.unit_version and earlier.holds_back
                    and earlier.attempts = 0
            )
            or endpoint.ordered and exists (
                select from pending_delivery as earlier
                where earlier.endpoint_id = next.endpoint_id and earlier.unit_id = next.unit_id
                    and earlier.unit_version < next.unit_version and earlier.holds_back
                    and earlier.attempts > 0
            )
        )
        order by next.id
    ))
"""
# The next $4 units with postponed deliveries after ($1, $2), up to endpoint $3.
_LIST_POSTPONED_UNITS = """
    select distinct endpoint_id, unit_id from pending_delivery
    where postponed and (endpoint_id, unit_id) > ($1, $2) and endpoint_id <= $3
    order by endpoint_id, unit_id limit $4
"""
_TRY_TO_LOCK_SCAN = "select pg_try_advisory_xact_lock(x'686f6c67'::bigint)"


class UnblockResult(NamedTuple):
    last: UnitQueue | None
    """The next call continues after it; None if this was the end."""
    unblocked: int


async def unblock_next_delivery(connection: Connection, queues: Iterable[UnitQueue]) -> int:
    """Make the next event of each unit due if the one before it was sent, or ended on ordered endpoints."""
    ordered = sorted(set(queues))
    if not ordered:
        return 0
    endpoint_ids, unit_ids = zip(*ordered, strict=True)
    return await execute_and_count(connection, _UNBLOCK_NEXT, endpoint_ids, unit_ids)


async def unblock_batch(
    connection: Connection, after: UnitQueue, units: int, *, of_endpoint: bool = False
) -> UnblockResult:
    """Unblock within all endpoints, in a transaction and in one process at a time, or within one endpoint."""
    if not of_endpoint and not await connection.fetchval(_TRY_TO_LOCK_SCAN):
        return UnblockResult(None, 0)
    last_endpoint = after[0] if of_endpoint else _LAST_ENDPOINT
    rows = await connection.fetch(_LIST_POSTPONED_UNITS, *after, last_endpoint, units)
    queues = [(row[0], row[1]) for row in rows]
    count = await unblock_next_delivery(connection, queues)
    return UnblockResult(queues[-1] if len(queues) == units else None, count)


# Claims. The row of an endpoint is the lock of its lane. A process that has locked it sees every earlier
# claim, and takes what is due in order, up to the cap of the endpoint.

LANES_AT_ONCE = 256
EXTRA_CANDIDATES = 8
"""Read from each lane beyond its share, since other lanes may not use theirs."""
FAILING_LANE_CAP = 8
"""In flight at most to an endpoint whose last attempt failed: enough to see when that ends."""
POSTPONED_AT_ONCE = 5000
POSTPONED_FOR_SECONDS = 10.0
"""A postponed delivery is unblocked when the earlier one ends; this is the latest time to check again."""

# The lookups in `in_flight` have an offset, so that the planner does them row by row: it would join all that
# is due. The first due time is compared as one value and not with EXISTS for the same reason.

_FIRST_DUE = """
    select due_at from pending_delivery as pending
    where pending.endpoint_id = endpoint.id
        and not exists (select from in_flight where in_flight.delivery_id = pending.id offset 0)
    order by due_at limit 1
"""
_HAS_ROOM = f"""
    removed_at is null and not paused
    and (select count(*) from in_flight where in_flight.endpoint_id = endpoint.id) < least(
        max_in_flight, case when failing_since is not null then {FAILING_LANE_CAP} end, $1
    )
"""
# Lock lanes with something due, after the lane where this process last stopped. A locked lane is being
# claimed from and skipped.
_LOCK_LANES = f"""
    select
        id, url, ordered,
        case when failing_since is null then max_in_flight else least(max_in_flight, {FAILING_LANE_CAP}) end,
        secret_id, secret_sealed
    from endpoint
    where {_HAS_ROOM} and ({_FIRST_DUE}) <= statement_timestamp()
    order by id > $2 desc, id limit $3
    for no key update skip locked
"""
# Claim what is due in the locked lanes. A statement of its own, so that it sees all claims that were made
# before the lanes were locked. A resend waits for nothing. Lanes with little in flight come first; among
# equals the order is random, so that none is always the last.
_EARLIER = """
    from pending_delivery as earlier
    where earlier.endpoint_id = pending.endpoint_id and earlier.unit_id = pending.unit_id
        and earlier.unit_version < pending.unit_version and earlier.holds_back
"""
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
                    when (attempts = 0 or lane.ordered) and (
                        exists (select {_EARLIER} and earlier.attempts = 0)
                        or lane.ordered and exists (select {_EARLIER} and earlier.attempts > 0)
                    ) then 'wait'
                    else 'send'
                end as verdict
            from pending_delivery as pending
            where endpoint_id = lane.id and due_at <= statement_timestamp()
                and not exists (select from in_flight where in_flight.delivery_id = pending.id offset 0)
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
# Postpone deliveries that have to wait, with the events behind them, so that a long backlog of one unit is
# postponed at once: by $2, or until the last of the retries that they wait for is due.
_POSTPONE = f"""
    update pending_delivery as pending
    set postponed = true,
        due_at = greatest(statement_timestamp() + $2, case when waiting.ordered then (
            select max(earlier.due_at) {_EARLIER} and earlier.attempts > 0
        ) end)
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
# The seconds until the first delivery is due that could be claimed: not in flight, its endpoint neither
# paused nor at its cap.
_NEXT_DUE = f"""
    select extract(epoch from min(({_FIRST_DUE})) - clock_timestamp())::float8
    from endpoint
    where {_HAS_ROOM}
"""
_LOAD_SEALED = "select secret_id, secret_sealed from endpoint where id = $1"
# End claims of deliveries that were never sent. Each delivery is written, so that this waits for a resend
# that is requested at the same time.
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
    lanes = {row[0]: row for row in await connection.fetch(_LOCK_LANES, lane_cap, after_lane, LANES_AT_ONCE)}
    if not lanes:
        return Claims([], set(), False, after_lane)
    caps = [min(lane[3], lane_cap) for lane in lanes.values()]
    columns = [list(lanes), [lane[2] for lane in lanes.values()], caps]
    share = -(-budget // len(lanes)) + EXTRA_CANDIDATES
    claimed, waiting, unselected = [], [], []
    for row in await connection.fetch(_TAKE, *columns, budget, lease, share):
        delivery_id, endpoint_id, verdict, event, body, unit_id, *progress, token, claimed_at = row
        if verdict == "send":
            _, url, _, _, *secret = lanes[endpoint_id]
            claimed.append(
                ClaimedDelivery(
                    delivery_id, endpoint_id, url, event, body, unit_id, Progress(*progress), token,
                    claimed_at, SealedSecret(*secret),
                )
            )  # fmt: skip
        elif verdict == "wait":
            waiting.append(row)
        else:
            unselected.append(delivery_id)
    if waiting:
        postponed_for = timedelta(seconds=POSTPONED_FOR_SECONDS)
        await connection.execute(_POSTPONE, [row[0] for row in waiting], postponed_for)
    if unselected:
        await deliveries.cancel_unselected(connection, unselected)
    postponed = {(row[1], row[5]) for row in waiting}
    return Claims(claimed, postponed, bool(waiting or unselected), next(reversed(lanes)))


async def load_secret(connection: Connection, endpoint_id: UUID) -> SealedSecret | None:
    row = await connection.fetchrow(_LOAD_SEALED, endpoint_id)
    return SealedSecret(*row) if row else None


async def count_pages(connection: Connection) -> int:
    return int(await connection.fetchval("select pg_relation_size('pending_delivery') / 8192"))


async def seconds_until_next_due(connection: Connection, lane_cap: int) -> float | None:
    seconds: float | None = await connection.fetchval(_NEXT_DUE, lane_cap)
    return seconds


async def give_back(connection: Connection, claimed: Sequence[ClaimedDelivery]) -> None:
    await connection.execute(_GIVE_BACK, [one.delivery_id for one in claimed], [one.token for one in claimed])


# Expired leases: their worker has stopped.

_LIST_EXPIRED_LEASES = """
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
    rows = await connection.fetch(_LIST_EXPIRED_LEASES, limit)
    return [ExpiredLease(*(*row[:7], Progress(*row[7:]))) for row in rows]


async def delete_void_leases(connection: Connection) -> None:
    await connection.execute(_DELETE_VOID_LEASES)
