"""Endpoints: registered, changed, pinged, given a new secret, removed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from holdfast.domain import endpoint as domain
from holdfast.domain import errors
from holdfast.domain.audit import Author, Change
from holdfast.domain.delivery import Delivery
from holdfast.domain.endpoint import Endpoint, EndpointConfig, IssuedSecret
from holdfast.domain.holds import REPEATED_WITHIN
from holdfast.domain.project import is_within_projects
from holdfast.operations.delivery_queue import cancel_all, ensure_log_partitions, unblock_all
from holdfast.operations.events import encode_ping
from holdfast.storage import audit, deliveries, delivery_log, delivery_queue, endpoints, projects
from holdfast.storage.database import Connection, Database, current_time, wait_for_standby
from holdfast.storage.secrets import SecretBox

FindUrlError = Callable[[str], Awaitable[errors.AnyMessage | None]]
"""Returns what is wrong with a URL; it may ask a name server."""

# After this time whatever was claimed with the old secret is sent, or has to read the new one.
_OLD_SECRET_SECONDS = 1.5 * domain.SECRET_FRESH_SECONDS
_KEY_USED = (
    "This endpoint was already registered. Its secret is shown only once: if you did not copy it, rotate the "
    "secret."
)
_ROTATED = "The secret was already rotated. It is shown only once: if you did not copy it, rotate it again."
_START = (datetime.min.replace(tzinfo=UTC), UUID(int=0))


class Endpoints:
    """``slugs`` are the projects that the caller is limited to."""

    def __init__(self, database: Database, box: SecretBox, find_url_error: FindUrlError) -> None:
        self._database = database
        self._box = box
        self.find_url_error = find_url_error
        """For forms that report all errors at once; ``add`` and ``change`` check again."""

    async def add(
        self,
        config: EndpointConfig,
        author: Author,
        endpoint_id: UUID | None = None,
        *,
        repeats_secret: bool = True,
    ) -> IssuedSecret:
        """``endpoint_id``: of a request that may be sent again. Its secret is repeated for a minute, unless
        ``repeats_secret`` is false."""
        await self._check_url(config.url)
        text, endpoint_id = domain.generate_secret(), endpoint_id or uuid4()
        async with self._database.writing() as connection:
            project_ids = await _find_project_ids(connection, config)
            sealed = self._box.seal(text)
            endpoint = await endpoints.insert(connection, endpoint_id, config, project_ids, sealed)
            if endpoint is None:
                repeated = await self._repeat(connection, endpoint_id, config)
                issued = repeated if repeats_secret else None
            else:
                issued = IssuedSecret(endpoint, text)
                change = Change(None, endpoint.config._asdict())
                await audit.record(connection, endpoint.id, author, "create", change)
        if issued is None:
            raise errors.IdempotencyKeyUsed(_KEY_USED, made_id=endpoint_id)
        return issued

    async def find(self, endpoint_id: UUID, slugs: tuple[str, ...] | None = None) -> Endpoint:
        return _check_visible(await self._database.read(endpoints.find, endpoint_id), endpoint_id, slugs)

    async def page(
        self, after: tuple[datetime, UUID] | None, slugs: tuple[str, ...] | None, limit: int
    ) -> list[Endpoint]:
        """Return the oldest first, and one more than ``limit`` if there is one."""
        return await self._database.read(endpoints.page, after or _START, slugs, limit + 1)

    async def change(
        self,
        endpoint_id: UUID,
        changes: Mapping[str, Any],
        author: Author,
        slugs: tuple[str, ...] | None = None,
    ) -> Endpoint:
        """Queued deliveries of events no longer selected are cancelled, at the latest by the workers."""
        if "url" in changes:
            await self._check_url(changes["url"])
        await ensure_log_partitions(self._database)
        async with self._database.writing() as connection:
            before = await _lock(connection, endpoint_id, slugs)
            config = before.config._replace(**changes)
            if config == before.config:
                return before
            project_ids = await _find_project_ids(connection, config)
            after = await endpoints.update(connection, endpoint_id, config, project_ids)
            change = Change.between(before.config, after.config, EndpointConfig._fields)
            await audit.record(connection, endpoint_id, author, "change", change)
        # Apart from the change, and in small steps: a backlog may be long. No claim sends what is unselected.
        with suppress(errors.DatabaseUnavailable):
            unselected = set(before.config.events) - set(after.config.events)
            if unselected:
                await cancel_all(self._database, endpoint_id, list(unselected))
            if unselected or before.config.ordered != after.config.ordered:
                await unblock_all(self._database, endpoint_id)
        self._database.notify_workers()
        return after

    async def rotate(
        self,
        endpoint_id: UUID,
        author: Author,
        slugs: tuple[str, ...] | None = None,
        *,
        seen_secret_id: str | None = None,
    ) -> IssuedSecret:
        """Replace the secret. After the return nothing is signed with the old one, queued or not.

        With ``seen_secret_id`` fail if the secret is another one now: it was replaced already.
        """
        text = domain.generate_secret()
        acknowledging = self._database.acknowledging(errors.IdempotencyKeyUsed)
        async with acknowledging, self._database.writing() as connection:
            before = await _lock(connection, endpoint_id, slugs)
            if seen_secret_id not in (None, str(before.secret_id)):
                raise errors.IdempotencyKeyUsed(_ROTATED)
            sealed = self._box.seal(text)
            endpoint = await endpoints.change_secret(connection, endpoint_id, uuid4(), sealed)
            change = Change({"secret_id": str(before.secret_id)}, {"secret_id": str(endpoint.secret_id)})
            await audit.record(connection, endpoint_id, author, "rotate-secret", change)
        await asyncio.sleep(_OLD_SECRET_SECONDS)
        return IssuedSecret(endpoint, text)

    async def ping(self, endpoint_id: UUID, author: Author, slugs: tuple[str, ...] | None = None) -> Delivery:
        async with self._database.writing() as connection:
            await _lock(connection, endpoint_id, slugs)
            delivery_id, now = uuid4(), await current_time(connection)
            body = encode_ping(delivery_id, now)
            await deliveries.insert_ping(connection, delivery_id, endpoint_id, now, body)
            change = Change(None, {"delivery_id": str(delivery_id)})
            await audit.record(connection, endpoint_id, author, "ping", change)
            ping = await delivery_log.find(connection, delivery_id)
        self._database.notify_workers()
        if ping is None:
            raise errors.UnknownDelivery(delivery_id)
        return ping

    async def remove(self, endpoint_id: UUID, author: Author, slugs: tuple[str, ...] | None = None) -> None:
        """Remove the endpoint. Its queue is cancelled, at the latest by the workers; its log is kept."""
        await ensure_log_partitions(self._database)
        acknowledging = self._database.acknowledging(errors.UnknownEndpoint)
        async with acknowledging, self._database.writing() as connection:
            before = await _lock(connection, endpoint_id, slugs)
            await endpoints.remove(connection, endpoint_id)
            change = Change(before.config._asdict(), {})
            await audit.record(connection, endpoint_id, author, "remove", change)
        with suppress(errors.DatabaseUnavailable):
            await cancel_all(self._database, endpoint_id)

    async def reseal_secrets(self) -> int:
        """Encrypt every secret with the first key, so that the other keys can be removed."""
        async with self._database.writing() as connection:
            sealed = await endpoints.list_sealed_secrets(connection)
            for endpoint_id, secret in sealed:
                resealed = self._box.seal(self._box.open(secret))
                await endpoints.update_sealed_secret(connection, endpoint_id, resealed)
        return len(sealed)

    async def _repeat(
        self, connection: Connection, endpoint_id: UUID, config: EndpointConfig
    ) -> IssuedSecret | None:
        await wait_for_standby(connection)
        # The secret first: if it is replaced before the endpoint is read, the endpoint names the new one.
        secret = await delivery_queue.load_secret(connection, endpoint_id)
        made = await endpoints.find(connection, endpoint_id)
        if (
            secret is None
            or made is None
            or (made.config, made.secret_id) != (config, endpoint_id)
            or made.read_at - made.created_at > REPEATED_WITHIN
        ):
            return None
        return IssuedSecret(made, self._box.open(secret.sealed))

    async def _check_url(self, url: str) -> None:
        error = await self.find_url_error(url)
        if error is not None:
            raise errors.InvalidInput.at("/url", error)


async def _lock(connection: Connection, endpoint_id: UUID, slugs: tuple[str, ...] | None) -> Endpoint:
    return _check_visible(await endpoints.find(connection, endpoint_id, lock=True), endpoint_id, slugs)


def _check_visible(endpoint: Endpoint | None, endpoint_id: UUID, slugs: tuple[str, ...] | None) -> Endpoint:
    """Raise the same error for an endpoint that does not exist and for one of other projects."""
    if endpoint is None or not is_within_projects(endpoint.config.project_slugs, slugs):
        raise errors.UnknownEndpoint(endpoint_id)
    return endpoint


async def _find_project_ids(connection: Connection, config: EndpointConfig) -> list[UUID] | None:
    """Return None for an endpoint of every project."""
    slugs = config.project_slugs
    return None if slugs is None else await projects.require_ids(connection, slugs)
