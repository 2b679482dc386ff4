"""Rows with times in the past, which the demo writes with the units of its project."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from holdfast.domain.delivery import ClaimedDelivery, Progress, SealedSecret
from holdfast.domain.endpoint import Endpoint
from holdfast.storage.database import Connection

_TOKEN = 0
"""Workers draw theirs from a sequence that begins with 1."""
_CLAIM_ALL = f"""
    with queued as (select * from pending_delivery where endpoint_id = $1),
    claimed as (
        insert into in_flight (delivery_id, endpoint_id, token, claimed_at, lease_until)
        select id, endpoint_id, {_TOKEN}, created_at, created_at from queued
    )
    select id, event, body, unit_id, series, tried, attempts, created_at from queued order by created_at, id
"""
_BACKDATE = """
    with moved_projects as (update project set created_at = $2 where id = any($1::uuid[])),
    moved_keys as (update api_key set created_at = $2 where id = any($1)),
    moved_staff as (update staff set created_at = $2 where id = any($1)),
    moved_endpoints as (
        update endpoint set created_at = $2, updated_at = $2, secret_made_at = $2 where id = any($1)
    ),
    unaddressed as (update event set endpoint_ids = '{}' where created_at < $2 and endpoint_ids && $1),
    unqueued as (delete from pending_delivery where created_at < $2 and endpoint_id = any($1))
    update audit_entry set at = $2 where subject_id = any($1)
"""


async def backdate(connection: Connection, ids: Sequence[UUID], at: datetime) -> None:
    """Let projects, keys, staff and endpoints begin at a time; endpoints get no earlier event."""
    await connection.execute(_BACKDATE, ids, at)


async def claim_all(connection: Connection, endpoint: Endpoint) -> list[ClaimedDelivery]:
    """Claim what the endpoint's queue has in this transaction, each delivery at the time of its event."""
    url, secret = endpoint.config.url, SealedSecret(endpoint.secret_id, b"")
    return [
        ClaimedDelivery(id_, endpoint.id, url, event, body, unit_id, Progress(*progress), _TOKEN, at, secret)
        for id_, event, body, unit_id, *progress, at in await connection.fetch(_CLAIM_ALL, endpoint.id)
    ]
