"""Endpoints, with their secrets sealed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from holdfast.domain import endpoint
from holdfast.domain.endpoint import Endpoint, EndpointConfig, EndpointFailure, EndpointLabel, UnseenFailures
from holdfast.domain.event import EventName
from holdfast.storage.database import Connection, fetch_one
from holdfast.storage.deliveries import decode_message

# In the order of the fields of EndpointConfig, EndpointFailure and Endpoint.
_COLUMNS = """
    id, url, description, events,
    case when project_ids is not null then array(
        select slug from project where project.id = any(endpoint.project_ids) order by slug
    ) end as project_slugs,
    paused, ordered, max_in_flight, secret_id, secret_made_at, failing_since, failing_cause,
    failing_cause_message, gone_at, created_at, updated_at, clock_timestamp()
"""
_INSERT = f"""
    insert into endpoint (
        id, url, description, events, project_ids, paused, ordered, max_in_flight,
        secret_id, secret_sealed, secret_made_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $1, $9, clock_timestamp())
    on conflict (id) do nothing
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
_CHANGE_SECRET = f"""
    update endpoint
    set secret_id = $2, secret_sealed = $3, secret_made_at = clock_timestamp(), version = version + 1,
        updated_at = clock_timestamp()
    where id = $1 returning {_COLUMNS}
"""
# The secret is deleted.
_REMOVE = """
    update endpoint set removed_at = clock_timestamp(), secret_sealed = ''
    where id = $1 and removed_at is null
"""
_LIST_SEALED = "select id, secret_sealed from endpoint where removed_at is null order by id for no key update"


async def insert(
    connection: Connection,
    endpoint_id: UUID,
    config: EndpointConfig,
    project_ids: Sequence[UUID] | None,
    sealed: bytes,
) -> Endpoint | None:
    """Return None if there is an endpoint with this id, or was one. Its first secret has the same id."""
    row = await connection.fetchrow(_INSERT, endpoint_id, *_values(config, project_ids), sealed)
    return _endpoint(row) if row else None


async def find(connection: Connection, endpoint_id: UUID, *, lock: bool = False) -> Endpoint | None:
    """``lock``: claims skip the endpoint until the end of the transaction."""
    row = await connection.fetchrow(_FIND_LOCKED if lock else _FIND, endpoint_id)
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
    return _endpoint(await fetch_one(connection, _CHANGE_SECRET, endpoint_id, secret_id, sealed))


async def remove(connection: Connection, endpoint_id: UUID) -> None:
    await connection.execute(_REMOVE, endpoint_id)


async def list_sealed_secrets(connection: Connection) -> list[tuple[UUID, bytes]]:
    """Lock and return the secrets of all endpoints."""
    return [(row[0], row[1]) for row in await connection.fetch(_LIST_SEALED)]


async def update_sealed_secret(connection: Connection, endpoint_id: UUID, sealed: bytes) -> None:
    await connection.execute("update endpoint set secret_sealed = $2 where id = $1", endpoint_id, sealed)


def _values(config: EndpointConfig, project_ids: Sequence[UUID] | None) -> tuple[object, ...]:
    return *config[:3], project_ids, *config[4:]


def _endpoint(row: asyncpg.Record) -> Endpoint:
    config = EndpointConfig(*row[1:8])
    events, slugs = tuple(name for name in EventName if name in config.events), config.project_slugs
    since, cause, cause_message, gone_at = row[10:14]
    config = config._replace(events=events, project_slugs=None if slugs is None else tuple(slugs))
    failure = None if since is None else EndpointFailure(since, decode_message(cause, cause_message), gone_at)
    return Endpoint(row["id"], config, row["secret_id"], row["secret_made_at"], failure, *row[14:])


# Labels, of removed endpoints too: the log keeps their deliveries.

LABELS_LISTED = 200

_LIST_LABELS = f"""
    select id, url, description, removed_at is not null from endpoint
    order by removed_at is not null, created_at, id limit {LABELS_LISTED}
"""
_FIND_LABELS = "select id, url, description, removed_at is not null from endpoint where id = any($1::uuid[])"


async def list_labels(connection: Connection) -> list[EndpointLabel]:
    """Return labels to choose from, removed endpoints last."""
    return [EndpointLabel(*row) for row in await connection.fetch(_LIST_LABELS)]


async def find_labels(connection: Connection, ids: list[UUID]) -> dict[UUID, EndpointLabel]:
    return {row[0]: EndpointLabel(*row) for row in await connection.fetch(_FIND_LABELS, ids)}


# Failures that a member of staff has not seen: deliveries that failed, and endpoints that are failing.

FAILING_NAMED = 20

# Failures after $1, the newest that was seen. An attempt may be recorded a little after its end, so only what
# ended a second ago is read. An endpoint begins to count as failing as `is_failing` in the domain says; $2 is
# endpoint.FAILING_AFTER.
_LOAD_UNSEEN_FAILURES = f"""
    select failed.count, failed.newest_at, failing.id, failing.url, failing.description, failing.began_at
    from (
        select count(*), max(ended_at) as newest_at from (
            select ended_at from ended_delivery
            where status = 'failed' and ended_at > $1
                and ended_at <= statement_timestamp() - interval '1 second'
            order by ended_at desc limit {endpoint.FAILURES_COUNTED}
        ) as counted
    ) as failed
    left join (
        select id, url, description, began_at from endpoint
        cross join lateral (select least(gone_at, failing_since + $2::interval) as began_at) as failure
        where failing_since is not null and removed_at is null and not paused
            and began_at > $1 and began_at <= statement_timestamp() - interval '1 second'
        order by began_at desc, id limit {FAILING_NAMED}
    ) as failing on true
"""
# Never back to an earlier time, as from a page that was open for long, nor ahead of now.
_MARK_SEEN = """
    update staff set failures_seen_at = greatest(failures_seen_at, least($2::timestamptz, clock_timestamp()))
    where id = $1
"""


async def load_unseen_failures(connection: Connection, since: datetime) -> UnseenFailures:
    rows = await connection.fetch(_LOAD_UNSEEN_FAILURES, since, endpoint.FAILING_AFTER)
    failing = [row for row in rows if row[2] is not None]
    labels = [EndpointLabel(row[2], row[3], row[4], is_removed=False) for row in failing]
    return UnseenFailures(rows[0][0], labels, max([rows[0][1] or since, *(row[5] for row in failing)]))


async def mark_failures_seen(connection: Connection, staff_id: UUID, at: datetime) -> None:
    await connection.execute(_MARK_SEEN, staff_id, at)
