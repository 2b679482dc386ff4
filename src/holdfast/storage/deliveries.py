"""Deliveries: attempts are recorded, pings made, deliveries sent again or cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.domain.delivery import (
    ENDPOINT_REMOVED,
    EVENT_UNSELECTED,
    AttemptRecord,
    EndpointHealth,
    FailedDeliveryFilter,
    Headers,
    Outcome,
)
from holdfast.domain.event import PING
from holdfast.domain.message import AnyMessage, Message, optional_text
from holdfast.storage.database import Connection
from holdfast.storage.projects import within

ATTEMPT_COLUMNS = (
    "delivery_id, number, trigger, started_at, ended_at, duration_ms, dns_ms, connect_ms, tls_ms, "
    "first_byte_ms, url, request_headers, secret_id, address, status_code, response_headers, response_body, "
    "response_clipped, cause, cause_message"
)
DELIVERY_COLUMNS = (
    "id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, body, series, tried, "
    "attempts, last_status_code, last_cause, last_cause_message"
)
_KEPT_COLUMNS = DELIVERY_COLUMNS.partition(", tried")[0]


def end_of(ended_at: str) -> str:
    """Return the time of the end: not before the beginning, by which the log is read, nor on a day that has
    no partition yet because the database's clock was once far ahead."""
    return f"least(greatest({ended_at}, created_at), clock_timestamp() + interval '1 day')"


# A worker that has lost its claim records nothing. A delivery whose resend was requested begins a new series,
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
        returning {", ".join(f"pending.{name}" for name in _KEPT_COLUMNS.split(", "))},
            pending.tried + 1 as tried, mine.number as attempts, mine.status_code as last_status_code,
            mine.cause as last_cause, mine.cause_message as last_cause_message, mine.outcome as status,
            mine.ended_at
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
        insert into ended_delivery ({DELIVERY_COLUMNS}, status, ended_at)
        select {DELIVERY_COLUMNS}, status, {end_of("ended_at")} from ended
    )
    select
        delivery_id,
        exists (select from pending_delivery where postponed),
        exists (select from endpoint where id = any($2::uuid[]) and failing_since is not null)
    from mine
"""

# A statement of its own, and in one order: workers that record for the same endpoints wait for each other
# here alone, and for nothing else.
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
    return RecordedAttempts({row[0] for row in rows}, bool(rows) and rows[0][1], bool(rows) and rows[0][2])


async def update_health(connection: Connection, health: Mapping[UUID, EndpointHealth]) -> None:
    await connection.execute(
        _UPDATE_HEALTH,
        list(health),
        [optional_text(one.cause) for one in health.values()],
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
        result.response_clipped, optional_text(result.cause), claim.token, *record.decision,
        encode_message(result.cause),
    )  # fmt: skip


def _headers_json(headers: Headers) -> str:
    return msgspec.json.encode(headers).decode() if headers else _NO_HEADERS


def encode_message(message: AnyMessage | None) -> str | None:
    """Return the id and parameters of a message as JSON. Without parameters the text is the id."""
    return msgspec.json.encode(message).decode() if isinstance(message, Message) else None


def decode_message(text: str, encoded: str | None) -> AnyMessage:
    """Rows of older releases have the text alone."""
    return text if encoded is None else msgspec.json.decode(encoded, type=Message)


def decode_optional_message(text: str | None, encoded: str | None) -> AnyMessage | None:
    return None if text is None else decode_message(text, encoded)


# Pings and resends.

_INSERT_PING = f"""
    insert into pending_delivery (id, endpoint_id, event, created_at, due_at, body)
    values ($1, $2, '{PING}', $3, $3, $4)
"""

_LOCK = "select from pending_delivery where id = $1 for no key update"
# A statement of its own: it sees whether the delivery is on its way now that nobody can record it.
_RESEND_PENDING = """
    with sent as (select exists (select from in_flight where delivery_id = $1) as is_on_its_way)
    update pending_delivery
    set again = is_on_its_way,
        series = case when is_on_its_way then series else series + 1 end,
        tried = case when is_on_its_way then tried else 0 end,
        due_at = case when is_on_its_way then due_at else statement_timestamp() end,
        postponed = postponed and is_on_its_way
    from sent
    where id = $1
"""
_RESENT_COLUMNS = DELIVERY_COLUMNS.replace("series, tried", "series + 1, 0")
_RESEND_ENDED = f"""
    with taken as (
        delete from ended_delivery using (
            select id as wanted_id, ended_at as wanted_end from ended_delivery
            where {{which}}
            for update skip locked
        ) as wanted
        where id = wanted_id and ended_at = wanted_end
        returning {DELIVERY_COLUMNS}
    ),
    put as (
        insert into pending_delivery ({DELIVERY_COLUMNS}, due_at, holds_back)
        select {_RESENT_COLUMNS}, statement_timestamp(), false from taken
        returning id
    )
    select count(*) from put
"""
_RESEND_ONE = _RESEND_ENDED.format(which="id = $1")
_FAILED = f"""
    status = 'failed' and endpoint_id = $1 and ended_at >= $2 and ($3::timestamptz is null or ended_at < $3)
        and ($4::text[] is null or event = any($4)) and ($5::text is null or unit_code = $5) and {within(6)}
"""
_COUNT_FAILED = f"select count(*) from ended_delivery where {_FAILED}"
_RESEND_FAILED = _RESEND_ENDED.format(which=f"{_FAILED} order by created_at, id limit $7")


async def insert_ping(
    connection: Connection, delivery_id: UUID, endpoint_id: UUID, created_at: datetime, body: str
) -> None:
    await connection.execute(_INSERT_PING, delivery_id, endpoint_id, created_at, body)


async def resend(connection: Connection, delivery_id: UUID) -> bool:
    """Whether there is such a delivery. Within a transaction."""
    if await connection.fetchrow(_LOCK, delivery_id) is not None:
        await connection.execute(_RESEND_PENDING, delivery_id)
        return True
    return bool(await connection.fetchval(_RESEND_ONE, delivery_id))


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
    return int(await connection.fetchval(_RESEND_FAILED, endpoint_id, *filters, project_ids, at_most))


# Queued deliveries are cancelled when their endpoint is removed, or their event unselected.

# What is in flight may arrive, and is left to its worker.
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
_CANCEL_BATCH = _CANCEL.format(
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
# Not before all have arrived that were written when the event was still selected.
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
    await connection.fetchval(_CANCEL_NAMED, ids, EVENT_UNSELECTED)


async def cancel_batch(
    connection: Connection, endpoint_id: UUID, events: Sequence[str], at_most: int, *, resent_too: bool
) -> int:
    """Within a transaction. All of an endpoint that is removed; of another one those of the ``events``
    that it does not want at this moment."""
    is_removed, wanted = await connection.fetchrow(_LOCK_LANE, endpoint_id) or (False, events)
    if is_removed:
        return int(
            await connection.fetchval(_CANCEL_BATCH, endpoint_id, ENDPOINT_REMOVED, None, False, at_most)
        )
    unwanted = [name for name in events if name not in wanted]
    return int(
        await connection.fetchval(
            _CANCEL_BATCH, endpoint_id, EVENT_UNSELECTED, unwanted, not resent_too, at_most
        )
    )


async def removed_endpoints_with_pending(connection: Connection) -> list[UUID]:
    """Endpoints whose deliveries came, or came back, when they were already removed."""
    return [row[0] for row in await connection.fetch(_REMOVED_WITH_PENDING)]


async def endpoints_with_unselected(connection: Connection) -> list[tuple[UUID, list[str]]]:
    """Endpoints of which deliveries may be queued that they want no more, with the events that they want."""
    return [(row[0], row[1]) for row in await connection.fetch(_WITH_UNSELECTED)]


async def clear_unselected_mark(connection: Connection, endpoint_id: UUID) -> None:
    """Clear the mark if nothing unselected is queued any more."""
    await connection.execute(_CLEAR_UNSELECTED_MARK, endpoint_id)
