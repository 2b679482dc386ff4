"""Writes to deliveries: attempts are recorded, pings inserted, deliveries sent again or cancelled.

Deliveries of events are inserted by storage/events.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from holdfast.domain import delivery
from holdfast.domain.delivery import AttemptRecord, EndpointHealth, FailedDeliveryFilter, Headers, Outcome
from holdfast.domain.errors import AnyMessage, Message
from holdfast.domain.event import PING
from holdfast.storage.database import Connection, execute_and_count

ATTEMPT_COLUMNS = (
    "delivery_id, number, trigger, started_at, ended_at, duration_ms, dns_ms, connect_ms, tls_ms, "
    "first_byte_ms, url, request_headers, secret_id, address, status_code, response_headers, response_body, "
    "response_clipped, cause, cause_message"
)
# The columns of a delivery are these, `series`, `tried` and those of its last attempt.
_FIXED = "id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, body"
_LAST = "attempts, last_status_code, last_cause, last_cause_message"

# A delivery ends not before its beginning, by which the log is read, nor on a day that has no partition yet
# because the database's clock was once far ahead: hence `least(greatest(…` below.

# Record attempts whose claim is still valid. A delivery whose resend was requested begins a new series,
# whatever the result of the attempt that was under way.
_RECORD = f"""
    with mine as (
        delete from in_flight using unnest($1::attempt_write[]) as made
        where in_flight.delivery_id = made.delivery_id and in_flight.token = made.token
        returning made.*
    ),
    logged as (insert into attempt ({ATTEMPT_COLUMNS}) select {ATTEMPT_COLUMNS} from mine),
    ended as (
        delete from pending_delivery as pending using mine
        where pending.id = mine.delivery_id and mine.outcome <> 'retry' and not pending.again
        returning {_FIXED}, series, tried, outcome, number, status_code, cause, cause_message, ended_at
    ),
    kept as (
        update pending_delivery as pending
        set attempts = mine.number, last_status_code = mine.status_code, last_cause = mine.cause,
            last_cause_message = mine.cause_message, series = pending.series + pending.again::int,
            tried = case when pending.again then 0 else pending.tried + 1 end,
            due_at = clock_timestamp() + case when pending.again then interval '0' else mine.gap end,
            again = false, postponed = false
        from (select * from mine where delivery_id not in (select id from ended)) as mine
        where pending.id = mine.delivery_id
    ),
    moved as (
        insert into ended_delivery ({_FIXED}, series, tried, {_LAST}, status, ended_at)
        select {_FIXED}, series, tried + 1, number, status_code, cause, cause_message, outcome,
            least(greatest(ended_at, created_at), clock_timestamp() + interval '1 day')
        from ended
    )
    select
        delivery_id,
        exists (select from pending_delivery where postponed),
        exists (select from endpoint where id = any($2::uuid[]) and failing_since is not null)
    from mine
"""

# Update the health of endpoints. A statement of its own, in the order of ids: only here do workers that
# record for the same endpoints wait for each other.
_UPDATE_HEALTH = """
    update endpoint
    set failing_since = case
            when found.cause is null then null
            when has_succeeded then clock_timestamp()
            else coalesce(failing_since, clock_timestamp())
        end,
        failing_cause = found.cause,
        failing_cause_message = found.cause_message,
        gone_at = case
            when found.cause is null then null
            when is_gone then coalesce(gone_at, clock_timestamp())
            when not has_succeeded then gone_at
        end
    from (
        select endpoint.id, found.*
        from unnest($1::uuid[], $2::text[], $3::json[], $4::boolean[], $5::boolean[])
            as found (endpoint_id, cause, cause_message, is_gone, has_succeeded)
        join endpoint on endpoint.id = found.endpoint_id
        where failing_cause is distinct from found.cause or is_gone and gone_at is null
            or has_succeeded and failing_since is not null
        order by endpoint.id
        for no key update of endpoint
    ) as found
    where endpoint.id = found.endpoint_id
"""

_NO_HEADERS = "[]"
Text = TypeVar("Text", bound=str | None)


class RecordedAttempts(NamedTuple):
    ids: set[UUID]
    """The deliveries whose claim was still valid."""
    is_any_postponed: bool
    has_any_recovered: bool
    """An endpoint that was known to be failing has succeeded."""


async def record_attempts(connection: Connection, records: Sequence[AttemptRecord]) -> RecordedAttempts:
    succeeded = {
        record.claim.endpoint_id for record in records if record.decision.outcome is Outcome.DELIVERED
    }
    rows = await connection.fetch(_RECORD, [_attempt_row(record) for record in records], list(succeeded))
    _, is_any_postponed, has_any_recovered = rows[0] if rows else (None, False, False)
    return RecordedAttempts({row[0] for row in rows}, is_any_postponed, has_any_recovered)


async def update_health(connection: Connection, health: Mapping[UUID, EndpointHealth]) -> None:
    await connection.execute(
        _UPDATE_HEALTH,
        list(health),
        [None if one.cause is None else str(one.cause) for one in health.values()],
        [encode_message(one.cause) for one in health.values()],
        [one.is_gone for one in health.values()],
        [one.has_succeeded for one in health.values()],
    )


def _attempt_row(record: AttemptRecord) -> tuple[Any, ...]:
    """In the order of the database's type ``attempt_write``."""
    claim, result = record.claim, record.result
    return (
        claim.delivery_id, claim.progress.attempts + 1, claim.progress.trigger, record.started_at,
        record.started_at + timedelta(milliseconds=result.duration_ms), result.duration_ms, *result.timings,
        claim.url, _headers_json(result.request_headers), result.secret_id, result.address,
        result.status_code, _headers_json(result.response_headers), result.response_body,
        result.response_clipped, None if result.cause is None else str(result.cause), claim.token,
        *record.decision, encode_message(result.cause),
    )  # fmt: skip


def _headers_json(headers: Headers) -> str:
    return msgspec.json.encode(headers).decode() if headers else _NO_HEADERS


def encode_message(message: AnyMessage | None) -> str | None:
    """Return the id and parameters of a message as JSON. Without parameters the text is the id."""
    return msgspec.json.encode(message).decode() if isinstance(message, Message) else None


def decode_message(text: Text, encoded: str | None) -> Text | Message:
    """Rows of older releases have the text alone."""
    return text if encoded is None else msgspec.json.decode(encoded, type=Message)


# Pings and resends.

_INSERT_PING = f"""
    insert into pending_delivery (id, endpoint_id, event, created_at, due_at, body)
    values ($1, $2, '{PING}', $3, $3, $4)
"""
_LOCK_PENDING = "select from pending_delivery where id = $1 for no key update"
# Send a locked pending delivery again. A statement of its own: it sees whether the delivery is in flight now
# that nobody can record its attempt.
_RESEND_PENDING = """
    with sent as (select exists (select from in_flight where delivery_id = $1) as is_in_flight)
    update pending_delivery
    set again = is_in_flight,
        series = case when is_in_flight then series else series + 1 end,
        tried = case when is_in_flight then tried else 0 end,
        due_at = case when is_in_flight then due_at else statement_timestamp() end,
        postponed = postponed and is_in_flight
    from sent
    where id = $1
"""
# Move ended deliveries back to the queue.
_RESEND_ENDED = f"""
    with taken as (
        delete from ended_delivery using (
            select id as found_id, ended_at as found_end from ended_delivery
            where {{condition}}
            for update skip locked
        ) as found
        where id = found_id and ended_at = found_end
        returning {_FIXED}, series, {_LAST}
    )
    insert into pending_delivery ({_FIXED}, series, tried, {_LAST}, due_at, holds_back)
    select {_FIXED}, series + 1, 0, {_LAST}, statement_timestamp(), false from taken
"""
_HAS_FAILED = """
    status = 'failed' and endpoint_id = $1
    and ended_at >= $2 and ($3::timestamptz is null or ended_at < $3)
    and ($4::text[] is null or event = any($4)) and ($5::text is null or unit_code = $5)
    and ($6::uuid[] is null or project_id is null or project_id = any($6))
"""
_RESEND_ONE = _RESEND_ENDED.format(condition="id = $1")
_RESEND_FAILED = _RESEND_ENDED.format(condition=f"{_HAS_FAILED} order by created_at, id limit $7")
_COUNT_FAILED = f"select count(*) from ended_delivery where {_HAS_FAILED}"


async def insert_ping(
    connection: Connection, delivery_id: UUID, endpoint_id: UUID, created_at: datetime, body: str
) -> None:
    await connection.execute(_INSERT_PING, delivery_id, endpoint_id, created_at, body)


async def resend(connection: Connection, delivery_id: UUID) -> bool:
    """Within a transaction, send a delivery again; return whether there is such a delivery."""
    if await connection.fetchrow(_LOCK_PENDING, delivery_id) is not None:
        await connection.execute(_RESEND_PENDING, delivery_id)
        return True
    return await execute_and_count(connection, _RESEND_ONE, delivery_id) > 0


async def count_failed(
    connection: Connection,
    endpoint_id: UUID,
    filters: FailedDeliveryFilter,
    project_ids: Sequence[UUID] | None,
) -> int:
    return int(await connection.fetchval(_COUNT_FAILED, endpoint_id, *filters, project_ids))


async def resend_failed(
    connection: Connection,
    endpoint_id: UUID,
    filters: FailedDeliveryFilter,
    project_ids: Sequence[UUID] | None,
    at_most: int,
) -> int:
    return await execute_and_count(connection, _RESEND_FAILED, endpoint_id, *filters, project_ids, at_most)


# Queued deliveries are cancelled when their endpoint is removed, or their event unselected. Deliveries in
# flight may arrive, and are left to their worker.

_CANCEL = f"""
    with gone as (
        delete from pending_delivery
        where id = any(array(
            select id from pending_delivery as pending
            where not exists (select from in_flight where in_flight.delivery_id = pending.id offset 0)
                and {{condition}}
        ))
        returning {_FIXED}, series, tried, {_LAST}
    )
    insert into ended_delivery ({_FIXED}, series, tried, {_LAST}, status, reason, ended_at)
    select {_FIXED}, series, tried, {_LAST}, 'cancelled', $2,
        least(greatest(clock_timestamp(), created_at), clock_timestamp() + interval '1 day')
    from gone
"""
_CANCEL_UNSELECTED = _CANCEL.format(condition="id = any($1::uuid[])")
# Cancel the first $5 deliveries of an endpoint, of the events $3 or of all, without resent ones if $4.
_CANCEL_BATCH = _CANCEL.format(
    condition="""endpoint_id = $1
        and ($3::text[] is null or event = any($3) and (series = 1 or not $4))
        order by due_at limit $5"""
)
# Lock the lane: until the end of the transaction nothing is claimed from it or sent again, and its events do
# not change.
_LOCK_LANE = "select removed_at is not null, events from endpoint where id = $1 for no key update"
# Removed endpoints to which deliveries were added, or returned, after their removal.
_LIST_REMOVED_WITH_PENDING = """
    select id from endpoint
    where removed_at is not null
        and (select id from pending_delivery where endpoint_id = endpoint.id limit 1) is not null
"""
_LIST_WITH_UNSELECTED = "select id, events from endpoint where has_unwanted and removed_at is null"
# Clear the mark if nothing unselected is queued. Only after a minute: deliveries that were written when the
# event was still selected have arrived by then.
_CLEAR_UNSELECTED_MARK = """
    update endpoint set has_unwanted = false
    where id = $1 and updated_at < clock_timestamp() - interval '1 minute'
        and not exists (
            select from pending_delivery
            where endpoint_id = $1 and series = 1 and event <> 'ping' and event <> all (endpoint.events)
            offset 0
        )
"""


async def cancel_unselected(connection: Connection, ids: Sequence[UUID]) -> None:
    """The lane has to be locked."""
    await connection.execute(_CANCEL_UNSELECTED, ids, delivery.EVENT_UNSELECTED)


async def cancel_batch(
    connection: Connection, endpoint_id: UUID, events: Sequence[str], at_most: int, *, resent_too: bool
) -> int:
    """Within a transaction, cancel deliveries of a removed endpoint; of another one, those of the ``events``
    that it does not select now. Return how many were cancelled."""
    is_removed, selected = await connection.fetchrow(_LOCK_LANE, endpoint_id) or (False, events)
    reason = delivery.ENDPOINT_REMOVED if is_removed else delivery.EVENT_UNSELECTED
    unselected = None if is_removed else [name for name in events if name not in selected]
    arguments = (endpoint_id, reason, unselected, not resent_too, at_most)
    return await execute_and_count(connection, _CANCEL_BATCH, *arguments)


async def list_removed_endpoints_with_pending(connection: Connection) -> list[UUID]:
    return [row[0] for row in await connection.fetch(_LIST_REMOVED_WITH_PENDING)]


async def list_endpoints_with_unselected(connection: Connection) -> list[tuple[UUID, list[str]]]:
    """Return endpoints that may have deliveries of unselected events, with the events that they select."""
    return [(row[0], row[1]) for row in await connection.fetch(_LIST_WITH_UNSELECTED)]


async def clear_unselected_mark(connection: Connection, endpoint_id: UUID) -> None:
    await connection.execute(_CLEAR_UNSELECTED_MARK, endpoint_id)
