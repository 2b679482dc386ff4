"""Rows with times in the past, which the demo writes before anything else has happened in its database."""

from datetime import datetime

from holdfast.domain.delivery import ClaimedDelivery, Progress, SealedSecret
from holdfast.domain.endpoint import Endpoint
from holdfast.storage.database import Connection

_BACKDATE = """
    with projects as (update project set created_at = $1),
    keys as (update api_key set created_at = $1),
    members as (update staff set created_at = $1)
    update audit_entry set at = $1
"""
_BACKDATE_ENDPOINT = """
    with unaddressed as (update event set endpoint_ids = '{}' where created_at < $2),
    unqueued as (delete from pending_delivery where created_at < $2),
    entered as (update audit_entry set at = $2 where subject_id = $1)
    update endpoint set created_at = $2, updated_at = $2, secret_made_at = $2 where id = $1
"""
_TOKEN = 0
"""Workers draw theirs from a sequence that begins with 1."""
_CLAIM_ALL = f"""
    with claimed as (
        insert into in_flight (delivery_id, endpoint_id, token, claimed_at, lease_until)
        select id, endpoint_id, {_TOKEN}, created_at, created_at from pending_delivery
    )
    select id, event, body, unit_id, series, tried, attempts, created_at
    from pending_delivery order by created_at, id
"""


async def backdate(connection: Connection, at: datetime) -> None:
    """Let everything in the database begin at a time."""
    await connection.execute(_BACKDATE, at)


async def backdate_endpoint(connection: Connection, endpoint: Endpoint, at: datetime) -> None:
    """Let the one endpoint begin at a time, without the events before it."""
    await connection.execute(_BACKDATE_ENDPOINT, endpoint.id, at)


async def claim_all(connection: Connection, endpoint: Endpoint) -> list[ClaimedDelivery]:
    """Claim the whole queue, which is that of the one endpoint, each delivery at the time of its event."""
    url, secret = endpoint.config.url, SealedSecret(endpoint.secret_id, b"")
    return [
        ClaimedDelivery(id_, endpoint.id, url, event, body, unit_id, Progress(*progress), _TOKEN, at, secret)
        for id_, event, body, unit_id, *progress, at in await connection.fetch(_CLAIM_ALL)
    ]
