"""Leases that ran out: their worker has stopped, or was stopped."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.delivery import Progress
from holdfast.storage.database import Connection

_EXPIRED = """
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
_FORGET = """
    delete from in_flight
    where lease_until <= clock_timestamp()
        and not exists (select from pending_delivery where id = delivery_id offset 0)
"""


class Expired(NamedTuple):
    delivery_id: UUID
    endpoint_id: UUID
    unit_id: UUID | None
    token: int
    claimed_at: datetime
    now: datetime
    url: str
    progress: Progress


async def expired(connection: Connection, limit: int) -> list[Expired]:
    rows = await connection.fetch(_EXPIRED, limit)
    return [Expired(*(*row[:7], Progress(*row[7:]))) for row in rows]


async def forget_void(connection: Connection) -> None:
    await connection.execute(_FORGET)
