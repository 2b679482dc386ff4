"""What came of attempts: logged, and written to their deliveries, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.domain.delivery import Outcome, Progress, Signs
from holdfast.domain.message import AnyMessage, optional_text
from holdfast.storage.database import Connection
from holdfast.storage.messages import message_json

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
    """Not before its beginning, by which the log is read; nor on a day that has no place in the log yet,
    even if the database's clock was once far ahead."""
    return f"least(greatest({ended_at}, created_at), clock_timestamp() + interval '1 day')"


# Who has lost its claim records nothing. A delivery that somebody wants sent anew begins a new series,
# whatever came of the attempt that was on its way.
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
_NOTE_HEALTH = """
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


class Result(NamedTuple):
    """One attempt, as it is written down."""

    delivery_id: UUID
    endpoint_id: UUID
    unit_id: UUID | None
    token: int
    progress: Progress
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    phases_ms: tuple[float | None, float | None, float | None, float | None]
    """Name resolution, connect, TLS, first byte."""
    url: str
    request_headers: tuple[tuple[str, str], ...]
    secret_id: UUID | None
    address: str | None
    status_code: int | None
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    response_clipped: bool
    cause: AnyMessage | None
    is_gone: bool
    outcome: Outcome
    gap: timedelta


class Recorded(NamedTuple):
    ids: set[UUID]
    """Those that had their claim still."""
    somebody_waits: bool
    """An event of a unit for an earlier one."""
    somebody_recovered: bool
    """An endpoint that was known to be failing."""


async def record(connection: Connection, results: Sequence[Result]) -> Recorded:
    well = {result.endpoint_id for result in results if result.outcome is Outcome.DELIVERED}
    rows = await connection.fetch(_RECORD, [_row(result) for result in results], list(well))
    return Recorded({row[0] for row in rows}, bool(rows) and rows[0][1], bool(rows) and rows[0][2])


async def note_health(connection: Connection, signs: Mapping[UUID, Signs]) -> None:
    await connection.execute(
        _NOTE_HEALTH,
        list(signs),
        [optional_text(one.cause) for one in signs.values()],
        [message_json(one.cause) for one in signs.values()],
        [one.is_gone for one in signs.values()],
        [one.has_succeeded for one in signs.values()],
    )


def _row(result: Result) -> tuple[Any, ...]:
    """In the order of the database's type ``attempt_write``."""
    progress = result.progress
    return (
        result.delivery_id, progress.attempts + 1, progress.trigger, result.started_at, result.ended_at,
        result.duration_ms, *result.phases_ms, result.url, _json(result.request_headers), result.secret_id,
        result.address, result.status_code, _json(result.response_headers), result.response_body,
        result.response_clipped, optional_text(result.cause), result.token, result.outcome, result.gap,
        message_json(result.cause),
    )  # fmt: skip


def _json(headers: tuple[tuple[str, str], ...]) -> str:
    return msgspec.json.encode(headers).decode() if headers else _NO_HEADERS
