"""Who waits for whom: the events of one unit, on their way to one endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.delivery import Progress
from holdfast.storage import deliveries
from holdfast.storage.database import Connection

_EARLIER = """
    select {what} from pending_delivery as earlier
    where earlier.endpoint_id = {delivery}.endpoint_id and earlier.unit_id = {delivery}.unit_id
        and earlier.unit_version < {delivery}.unit_version and earlier.holds_back
        and earlier.attempts {attempts}
"""


def must_wait(delivery: str, ordered: str) -> str:
    """A condition: an earlier event of the unit must have its first attempt first, or, on an ordered
    endpoint, its end. The two are looked up apart, each in an index of its own: there may be many retries."""
    return f"""(
        exists ({_earlier(delivery, "= 0")}) or {ordered} and exists ({_earlier(delivery, "> 0")})
    )"""


def latest_retry(delivery: str, ordered: str) -> str:
    """When the last of the retries that it waits for is due; null if it waits for none."""
    return f"case when {ordered} then ({_earlier(delivery, '> 0', 'max(earlier.due_at)')}) end"


def _earlier(delivery: str, attempts: str, what: str = "") -> str:
    return _EARLIER.format(delivery=delivery, attempts=attempts, what=what)


# Who waited for an earlier event of its unit, and need not any more, is due at once.
#
# Each statement looks at what was committed before it: so it follows whatever may have ended the waiting.

Place = tuple[UUID, UUID]
"""An endpoint and a unit."""
FIRST_PLACE: Place = (UUID(int=0), UUID(int=0))
_LAST_ENDPOINT = UUID(int=2**128 - 1)

# Whether it still waits is asked of the row as it is when it is its turn: it may have been sent meanwhile.
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


class Unblocked(NamedTuple):
    place: Place | None
    """Where the next look goes on; None after the last unit that had to be looked at."""
    freed: int


async def unblock_next_delivery(connection: Connection, places: Iterable[Place]) -> None:
    """The next event of each unit, when the one before it was sent (or, in an ordered lane, has ended)."""
    sent = sorted(set(places))
    if sent:
        await connection.execute(_UNBLOCK_NEXT, [place[0] for place in sent], [place[1] for place in sent])


async def unblock_some(connection: Connection, after: Place, units: int) -> Unblocked:
    """Within a transaction, by one process at a time; another one is told that there is nothing to do."""
    if not await connection.fetchval(_TRY_TO_LOCK_SCAN):
        return Unblocked(None, 0)
    return await _unblock_some(connection, after, _LAST_ENDPOINT, units)


async def unblock_some_of_endpoint(connection: Connection, after: Place, units: int) -> Unblocked:
    return await _unblock_some(connection, after, after[0], units)


async def _unblock_some(connection: Connection, after: Place, last_endpoint: UUID, units: int) -> Unblocked:
    row = await connection.fetchrow(_UNBLOCK_SOME, *after, last_endpoint, units)
    if row is None:
        return Unblocked(None, 0)
    endpoint_id, unit_id, were_the_last, freed = row
    return Unblocked(None if were_the_last else (endpoint_id, unit_id), freed)


# Claims: who sends which delivery now.
#
# An endpoint's row is the lock of its lane. Whoever has it sees every claim that was made before, and takes
# what is due in order, up to the endpoint's cap.

LANES_AT_ONCE = 256
BEYOND_ITS_SHARE = 8
"""Looked at in each lane, since others may not use theirs."""
IN_TROUBLE = 8
"""In flight at most, to an endpoint whose last attempt failed."""
PUT_ASIDE_AT_ONCE = 5000
LOOK_AGAIN_SECONDS = 10.0
"""At the latest, for a delivery that waits for an earlier one; the end of that one is told at once."""

# Where the last attempt failed, a few at a time are enough to see when that ends.
_CAP = f"case when failing_since is null then max_in_flight else least(max_in_flight, {IN_TROUBLE}) end"
# One value and not EXISTS, which the planner would turn into a join with all that is due. So is it with the
# offsets: what stands before them is looked up row by row, however large it seems.
_NOT_IN_FLIGHT = "not exists (select from in_flight where in_flight.delivery_id = pending.id offset 0)"
_FIRST_DUE = f"""
    select due_at from pending_delivery as pending
    where pending.endpoint_id = endpoint.id and {_NOT_IN_FLIGHT}
    order by due_at limit 1
"""
# Locked lanes are in good hands. They are taken from where the last claim of this process ended.
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

# With those behind them, so that a long backlog of one unit is put aside at once.
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
            order by unit_version limit {PUT_ASIDE_AT_ONCE}
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
_OF_ENDPOINT = "select secret_id, secret_sealed from endpoint where id = $1"
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


class SealedSecret(NamedTuple):
    id: UUID
    sealed: bytes


class ClaimedDelivery(NamedTuple):
    delivery_id: UUID
    endpoint_id: UUID
    url: str
    event: str
    body: str
    unit_id: UUID | None
    progress: Progress
    token: int
    claimed_at: datetime
    secret: SealedSecret


class Claims(NamedTuple):
    claimed: list[ClaimedDelivery]
    put_aside: set[Place]
    """Units whose next event was due, but has to wait."""
    has_others: bool
    """Something was due and is not sent; behind it there may be more."""
    last_lane: UUID


async def claim(
    connection: Connection, after_lane: UUID, budget: int, lease: timedelta, most_of_a_lane: int
) -> Claims:
    """Within a transaction. Takes what is due, at most ``budget``, fairly between endpoints.

    Of no lane so much that more than ``most_of_a_lane`` are in flight, whatever its own cap is.
    """
    found = await connection.fetch(_LOCK_LANES, after_lane, LANES_AT_ONCE, most_of_a_lane)
    lanes = {row[0]: row for row in found}
    if not lanes:
        return Claims([], set(), False, after_lane)
    caps = [min(lane[3], most_of_a_lane) for lane in lanes.values()]
    columns = [list(lanes), [lane[2] for lane in lanes.values()], caps]
    share = -(-budget // len(lanes)) + BEYOND_ITS_SHARE
    rows = await connection.fetch(_TAKE, *columns, budget, lease, share)
    waiting = [row[0] for row in rows if row[2] == "wait"]
    if waiting:
        await connection.execute(_POSTPONE, waiting, timedelta(seconds=LOOK_AGAIN_SECONDS))
    unselected = [row[0] for row in rows if row[2] == "unselected"]
    if unselected:
        await deliveries.cancel_unselected(connection, unselected)
    claimed = [_claimed(row, lanes[row[1]]) for row in rows if row[2] == "send"]
    put_aside = {(row[1], row[5]) for row in rows if row[2] == "wait"}
    return Claims(claimed, put_aside, bool(waiting or unselected), next(reversed(lanes)))


async def secret_now(connection: Connection, endpoint_id: UUID) -> SealedSecret | None:
    row = await connection.fetchrow(_OF_ENDPOINT, endpoint_id)
    return SealedSecret(*row) if row else None


async def pages(connection: Connection) -> int:
    """Of what is pending."""
    return int(await connection.fetchval(_PAGES))


async def seconds_until_next_due(connection: Connection, most_of_a_lane: int) -> float | None:
    """Of what could be claimed: neither in flight, nor of an endpoint that is paused or at its cap."""
    seconds: float | None = await connection.fetchval(_NEXT_DUE, most_of_a_lane)
    return seconds


async def give_back(connection: Connection, claimed: Sequence[ClaimedDelivery]) -> None:
    """What was never sent; the next claim may have it."""
    await connection.execute(_GIVE_BACK, [one.delivery_id for one in claimed], [one.token for one in claimed])


def _claimed(row: asyncpg.Record, lane: asyncpg.Record) -> ClaimedDelivery:
    delivery_id, endpoint_id, _, event, body, unit_id, series, tried, attempts, token, claimed_at = row
    return ClaimedDelivery(
        delivery_id, endpoint_id, lane[1], event, body, unit_id,
        Progress(series, tried, attempts), token, claimed_at, SealedSecret(lane[4], lane[5]),
    )  # fmt: skip


# Leases that ran out: their worker has stopped, or was stopped.

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
# A claim of what is not pending any more: it would count against its endpoint's cap for ever.
_FORGET_VOID_LEASES = """
    delete from in_flight
    where lease_until <= clock_timestamp()
        and not exists (select from pending_delivery where id = delivery_id offset 0)
"""


class ExpiredLease(NamedTuple):
    delivery_id: UUID
    endpoint_id: UUID
    unit_id: UUID | None
    token: int
    claimed_at: datetime
    now: datetime
    url: str
    progress: Progress


async def expired_leases(connection: Connection, limit: int) -> list[ExpiredLease]:
    rows = await connection.fetch(_EXPIRED_LEASES, limit)
    return [ExpiredLease(*(*row[:7], Progress(*row[7:]))) for row in rows]


async def forget_void_leases(connection: Connection) -> None:
    await connection.execute(_FORGET_VOID_LEASES)
