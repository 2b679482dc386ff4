"""The latest deliveries of one unit, with where they go."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.delivery import DeliveryStatus
from holdfast.domain.unit import Unit
from holdfast.storage.database import Connection

_SHARED = "id, endpoint_id, event, created_at, attempts, last_status_code"
_PENDING = f"select {_SHARED}, 'pending' as status, due_at from pending_delivery"

# A dead endpoint may have a long queue. Its own part of it a unit finds along the three indexes that together
# know every pending delivery by its unit; $1 the unit, $2 its code, $3 how many.
_LATEST = f"""
    select delivery.*, endpoint.url, endpoint.description, endpoint.removed_at is not null
    from (
        select found.* from endpoint cross join lateral (
            {_PENDING} where endpoint_id = endpoint.id and unit_id = $1 and holds_back and attempts = 0
            union all
            {_PENDING} where endpoint_id = endpoint.id and unit_id = $1 and holds_back and attempts > 0
        ) as found
        where endpoint.removed_at is null
        union all
        {_PENDING} where unit_id = $1 and not holds_back
        union all
        (
            select {_SHARED}, status, null::timestamptz from ended_delivery
            where unit_code = $2 and unit_id = $1 order by created_at desc, id desc limit $3
        )
    ) as delivery
    join endpoint on endpoint.id = delivery.endpoint_id
    order by delivery.created_at desc, delivery.id desc limit $3
"""


class UnitDelivery(NamedTuple):
    id: UUID
    endpoint_id: UUID
    event: str
    created_at: datetime
    attempts: int
    last_status_code: int | None
    status: DeliveryStatus
    next_attempt_at: datetime | None
    endpoint_url: str
    endpoint_description: str
    is_endpoint_removed: bool


async def latest(connection: Connection, unit: Unit, limit: int) -> list[UnitDelivery]:
    rows = await connection.fetch(_LATEST, unit.id, unit.code, limit)
    found = [UnitDelivery(*row) for row in rows]
    return [one._replace(status=DeliveryStatus(one.status)) for one in found]
