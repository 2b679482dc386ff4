"""Endpoints, with their secrets sealed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from holdfast.domain.endpoint import (
    FAILING_AFTER,
    FAILURES_COUNTED,
    Endpoint,
    EndpointConfig,
    EndpointFailure,
    EndpointLabel,
    FailingEndpoint,
    UnseenFailures,
)
from holdfast.domain.event import EventName
from holdfast.storage.database import Connection, fetch_one
from holdfast.storage.deliveries import decode_message

_COLUMNS = """
    id, url, description, events, paused, ordered, max_in_flight, secret_id, secret_made_at,
    failing_since, failing_cause, failing_cause_message, gone_at, created_at, updated_at,
    clock_timestamp() as read_at,
    case when project_ids is not null then array(
        select slug from project where project.id = any(endpoint.project_ids) order by slug
    ) end as project_slugs
"""
_INSERT = f"""
    insert into endpoint (
        id, url, description, events, project_ids, paused, ordered, max_in_flight,
        secret_id, secret_sealed, secret_made_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp())
    returning {_COLUMNS}
"""
_FIND = f"select {_COLUMNS} from endpoint where id = $1 and removed_at is null"
_FIND_LOCKED = f"{_FIND} for no key update"
# A key that is limited to projects sees the endpoints that are limited to some of them.
_LIST = f"""
    select {_COLUMNS} from endpoint
    where removed_at is null and (created_at, id) > ($1, $2)
        and ($3::text[] is null or project_ids <@ array(select id from project where slug = any($3)))
    order by created_at, id limit $4
"""
_UPDATE = f"""
    update endpoint
    set url = $2, description = $3, events = $4, project_ids = $5, paused = $6, ordered = $7,
        max_in_flight = $8, version = version + 1, updated_at = clock_timestamp(),
        has_unwanted = has_unwanted or not events <@ $4,
        failing_since = case when url = $2 then failing_since end,
        failing_cause = case when url = $2 then failing_cause end,
        failing_cause_message = case when url = $2 then failing_cause_message end,
        gone_at = case when url = $2 then gone_at end
    where id = $1 returning {_COLUMNS}
"""
_RESEAL = f"""
    update endpoint
    set secret_id = $2, secret_sealed = $3, secret_made_at = clock_timestamp(), version = version + 1,
        updated_at = clock_timestamp()
    where id = $1 returning {_COLUMNS}
"""
# The secret is of no use any more, and is forgotten.
_REMOVE = """
    update endpoint set removed_at = clock_timestamp(), secret_sealed = ''
    where id = $1 and removed_at is null
"""
_EXISTS = "select removed_at is null from endpoint where id = $1"
_SEALED = "select id, secret_sealed from endpoint where removed_at is null order by id for no key update"
_SEAL_ANEW = "update endpoint set secret_sealed = $2 where id = $1"


async def insert(
    connection: Connection,
    endpoint_id: UUID,
    config: EndpointConfig,
    project_ids: Sequence[UUID] | None,
    secret_id: UUID,
    sealed: bytes,
) -> Endpoint:
    values = (endpoint_id, *_values(config, project_ids), secret_id, sealed)
    return _endpoint(await fetch_one(connection, _INSERT, *values))


async def find(connection: Connection, endpoint_id: UUID) -> Endpoint | None:
    row = await connection.fetchrow(_FIND, endpoint_id)
    return _endpoint(row) if row else None


async def find_locked(connection: Connection, endpoint_id: UUID) -> Endpoint | None:
    """Claims pass it over until the end of the transaction."""
    row = await connection.fetchrow(_FIND_LOCKED, endpoint_id)
    return _endpoint(row) if row else None


async def page(
    connection: Connection, after: tuple[datetime, UUID], slugs: tuple[str, ...] | None, limit: int
) -> list[Endpoint]:
    return [_endpoint(row) for row in await connection.fetch(_LIST, *after, slugs, limit)]


async def update(
    connection: Connection, endpoint_id: UUID, config: EndpointConfig, project_ids: Sequence[UUID] | None
) -> Endpoint:
    return _endpoint(await fetch_one(connection, _UPDATE, endpoint_id, *_values(config, project_ids)))


async def change_secret(
    connection: Connection, endpoint_id: UUID, secret_id: UUID, sealed: bytes
) -> Endpoint:
    return _endpoint(await fetch_one(connection, _RESEAL, endpoint_id, secret_id, sealed))


async def remove(connection: Connection, endpoint_id: UUID) -> None:
    await connection.execute(_REMOVE, endpoint_id)


async def exists(connection: Connection, endpoint_id: UUID) -> bool:
    """And is not removed."""
    return bool(await connection.fetchval(_EXISTS, endpoint_id))


async def sealed_secrets(connection: Connection) -> list[tuple[UUID, bytes]]:
    """Of all endpoints, kept for the transaction."""
    return [(row[0], row[1]) for row in await connection.fetch(_SEALED)]


async def seal_anew(connection: Connection, endpoint_id: UUID, sealed: bytes) -> None:
    """The same secret with another key."""
    await connection.execute(_SEAL_ANEW, endpoint_id, sealed)


def _values(config: EndpointConfig, project_ids: Sequence[UUID] | None) -> tuple[object, ...]:
    return (
        config.url,
        config.description,
        list(config.events),
        project_ids,
        config.paused,
        config.ordered,
        config.max_in_flight,
    )


def _endpoint(row: asyncpg.Record) -> Endpoint:
    slugs = row["project_slugs"]
    config = EndpointConfig(
        url=row["url"],
        description=row["description"],
        events=tuple(name for name in EventName if name in row["events"]),
        project_slugs=None if slugs is None else tuple(slugs),
        paused=row["paused"],
        ordered=row["ordered"],
        max_in_flight=row["max_in_flight"],
    )
    return Endpoint(
        id=row["id"],
        config=config,
        secret_id=row["secret_id"],
        secret_made_at=row["secret_made_at"],
        failure=_failure(row),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        read_at=row["read_at"],
    )


def _failure(row: asyncpg.Record) -> EndpointFailure | None:
    if row["failing_since"] is None:
        return None
    cause = decode_message(row["failing_cause"], row["failing_cause_message"])
    return EndpointFailure(row["failing_since"], cause, row["gone_at"])


# Labels, of removed endpoints too: the log keeps their deliveries.

LABELS_LISTED = 200

_LIST_LABELS = f"""
    select id, url, description, removed_at is not null from endpoint
    order by removed_at is not null, created_at, id limit {LABELS_LISTED}
"""
_FIND_LABELS = "select id, url, description, removed_at is not null from endpoint where id = any($1::uuid[])"


async def list_labels(connection: Connection) -> list[EndpointLabel]:
    """To choose from; those that are still there first."""
    return [EndpointLabel(*row) for row in await connection.fetch(_LIST_LABELS)]


async def find_labels(connection: Connection, ids: list[UUID]) -> dict[UUID, EndpointLabel]:
    return {row[0]: EndpointLabel(*row) for row in await connection.fetch(_FIND_LABELS, ids)}


# Failures that a member of staff has not seen: deliveries that failed, and endpoints that are failing.

FAILING_NAMED = 20

# An attempt may be recorded a little after it ended, so only what ended a second ago is read. "Seen" is the
# time of the newest failure that was shown, not that of the request: what is recorded later is still shown.
_SETTLED = "statement_timestamp() - interval '1 second'"
# The time at which an endpoint began to count as failing, as `is_failing` in the domain has it.
_BEGAN = "least(gone_at, failing_since + $2::interval)"
_UNSEEN_FAILURES = f"""
    select failed.count, failed.newest_at, failing.id, failing.url, failing.description, failing.began_at
    from (
        select count(*), max(ended_at) as newest_at from (
            select ended_at from ended_delivery
            where status = 'failed' and ended_at > $1 and ended_at <= {_SETTLED}
            order by ended_at desc limit {FAILURES_COUNTED}
        ) as counted
    ) as failed
    left join (
        select id, url, description, {_BEGAN} as began_at from endpoint
        where failing_since is not null and removed_at is null and not paused
            and {_BEGAN} > $1 and {_BEGAN} <= {_SETTLED}
        order by began_at desc, id limit {FAILING_NAMED}
    ) as failing on true
"""
# Never back to an earlier time, by a page that was open for long, nor ahead of now.
_MARK_SEEN = """
    update staff set failures_seen_at = greatest(failures_seen_at, least($2::timestamptz, clock_timestamp()))
    where id = $1
"""


async def load_unseen_failures(connection: Connection, since: datetime) -> UnseenFailures:
    rows = await connection.fetch(_UNSEEN_FAILURES, since, FAILING_AFTER)
    failing = [FailingEndpoint(*row[2:]) for row in rows if row[2] is not None]
    up_to = max([rows[0][1] or since, *(one.began_at for one in failing)])
    return UnseenFailures(rows[0][0], failing, up_to)


async def mark_failures_seen(connection: Connection, staff_id: UUID, at: datetime) -> None:
    await connection.execute(_MARK_SEEN, staff_id, at)
