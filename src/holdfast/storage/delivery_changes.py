"""What people do to deliveries: a ping is made, one is sent anew, or all that failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.endpoint import PING
from holdfast.storage.database import Connection
from holdfast.storage.projects import within
from holdfast.storage.records import DELIVERY_COLUMNS

_PING = f"""
    insert into pending_delivery (id, endpoint_id, event, created_at, due_at, body)
    select id, $1, '{PING}', at, at, delivery_body(id, '{PING}', at, null, null, null, null, null, null)
    from (
        select gen_random_uuid() as id, date_trunc('milliseconds', clock_timestamp()) as at offset 0
    ) as made
    returning id
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


class Selection(NamedTuple):
    """Which failed deliveries of an endpoint are meant: those that failed in this time."""

    since: datetime
    until: datetime | None = None
    events: tuple[str, ...] | None = None
    unit_code: str | None = None


async def ping(connection: Connection, endpoint_id: UUID) -> UUID:
    delivery_id: UUID = await connection.fetchval(_PING, endpoint_id)
    return delivery_id


async def resend(connection: Connection, delivery_id: UUID) -> bool:
    """Whether there is such a delivery. Within a transaction."""
    if await connection.fetchrow(_LOCK, delivery_id) is not None:
        await connection.execute(_RESEND_PENDING, delivery_id)
        return True
    return bool(await connection.fetchval(_RESEND_ONE, delivery_id))


async def count_failed(
    connection: Connection, endpoint_id: UUID, selection: Selection, project_ids: Sequence[UUID] | None
) -> int:
    return int(await connection.fetchval(_COUNT_FAILED, endpoint_id, *selection, project_ids))


async def resend_failed(
    connection: Connection,
    endpoint_id: UUID,
    selection: Selection,
    project_ids: Sequence[UUID] | None,
    at_most: int,
) -> int:
    return int(await connection.fetchval(_RESEND_FAILED, endpoint_id, *selection, project_ids, at_most))
