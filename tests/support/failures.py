"""Deliveries that failed, put into the log as if their time had passed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from holdfast.domain.errors import AnyMessage, Message
from holdfast.operations.events import encode_ping
from holdfast.storage.deliveries import encode_message
from tests.support.sql import Sql

_ENDED = """
    insert into ended_delivery (
        id, endpoint_id, event, created_at, body, tried, attempts, last_status_code, last_cause,
        last_cause_message, status, ended_at
    )
    select id, $2, 'ping', $3, body, 8, 8, 500, $4, $5, 'failed', $3
    from unnest($1::uuid[], $6::text[]) as made (id, body)
"""
_ATTEMPT = """
    insert into attempt (
        delivery_id, number, trigger, started_at, ended_at, duration_ms, dns_ms, connect_ms, tls_ms,
        first_byte_ms, url, request_headers, secret_id, address, status_code, response_headers,
        response_body, response_clipped, cause, cause_message
    )
    values ($1, $2, $3, $4, $4, 100, 10, 20, 30, 15, 'https://erp.example/hook?a=1', $5, $6, '203.0.113.7',
        $7, $8, $9, $10, $11, $12)
"""
ANSWERED_500 = Message("The receiver answered %(code)s.", {"code": 500})
SENT = [["Host", "erp.example"], ["X-Service-Event", "ping"], ["X-Service-Signature", "sha256=it's"]]


def failed(sql: Sql, endpoint_id: str, count: int = 1, ago: timedelta = timedelta(seconds=10)) -> list[UUID]:
    """So long ago, and within this day, of which the log has its part."""
    ids = [uuid4() for _ in range(count)]
    cause = (str(ANSWERED_500), encode_message(ANSWERED_500))
    at = datetime.now(UTC) - ago
    sql.execute(_ENDED, ids, UUID(endpoint_id), at, *cause, [encode_ping(one, at) for one in ids])
    return ids


def attempted(
    sql: Sql, delivery_id: UUID, number: int = 1, *, answer: bytes | None = b"no",
    headers: tuple[tuple[str, str], ...] = (("Server", "receiver"),), cause: AnyMessage = ANSWERED_500,
    is_clipped: bool = False,
) -> UUID:  # fmt: skip
    """An attempt of it; without an answer the request was never written. Gives the id of its secret."""
    secret_id, at = uuid4(), datetime.now(UTC) - timedelta(seconds=10)
    trigger = "first" if number == 1 else "retry"
    sent = (SENT, 500, headers) if answer is not None else ([], None, ())
    request, status, received = json.dumps(sent[0]), sent[1], json.dumps(sent[2])
    answered = (status, received, answer or b"", is_clipped, str(cause), encode_message(cause))
    sql.execute(_ATTEMPT, delivery_id, number, trigger, at, request, secret_id, *answered)
    return secret_id
