"""Endpoints: registered, changed, tried, given a new secret, removed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from holdfast.domain.audit import Author, Change
from holdfast.domain.delivery import Delivery
from holdfast.domain.endpoint import (
    SECRET_FRESH_SECONDS,
    Endpoint,
    EndpointConfig,
    IssuedSecret,
    generate_secret,
)
from holdfast.domain.errors import (
    DatabaseUnavailable,
    InvalidInput,
    UnknownDelivery,
    UnknownEndpoint,
)
from holdfast.domain.message import AnyMessage
from holdfast.domain.project import is_within_projects
from holdfast.operations.delivery_queue import cancel_all, ensure_log_partitions, unblock_all
from holdfast.operations.events import encode_ping
from holdfast.storage import audit, deliveries, delivery_log, endpoints, projects
from holdfast.storage.database import Connection, Database
from holdfast.storage.secrets import SecretBox

FindUrlError = Callable[[str], Awaitable[AnyMessage | None]]
"""What is wrong with a URL, in a sentence; it may ask a name server."""

_UNTIL_NOBODY_HAS_THE_OLD_SECONDS = 1.5 * SECRET_FRESH_SECONDS
_START = (datetime.min.replace(tzinfo=UTC), UUID(int=0))

__all__ = ["Endpoint", "EndpointConfig", "Endpoints", "FindUrlError"]


class Endpoints:
    def __init__(self, database: Database, box: SecretBox, find_url_error: FindUrlError) -> None:
        self._database = database
        self._box = box
        self._url_fault = find_url_error

    async def find_url_error(self, url: str) -> AnyMessage | None:
        """What is wrong with a URL, to be told with what else is wrong; ``add`` and ``change`` ask anew."""
        return await self._url_fault(url)

    async def add(self, config: EndpointConfig, author: Author) -> IssuedSecret:
        await self._refuse_url(config.url)
        text, endpoint_id = generate_secret(), uuid4()
        async with self._database.writing() as connection:
            project_ids = await _project_ids(connection, config)
            sealed = self._box.seal(text)
            endpoint = await endpoints.insert(connection, endpoint_id, config, project_ids, uuid4(), sealed)
            await audit.insert_about_endpoint(
                connection, endpoint.id, author, "create", Change(None, endpoint.config._asdict())
            )
        return IssuedSecret(endpoint, text)

    async def find(self, endpoint_id: UUID, slugs: tuple[str, ...] | None = None) -> Endpoint:
        """``slugs``: the projects that the caller is limited to."""
        async with self._database.reading() as connection:
            return _known(await endpoints.find(connection, endpoint_id), endpoint_id, slugs)

    async def page(
        self, after: tuple[datetime, UUID] | None, slugs: tuple[str, ...] | None, limit: int
    ) -> list[Endpoint]:
        """One more than ``limit``, if there is one; the oldest first."""
        async with self._database.reading() as connection:
            return await endpoints.page(connection, after or _START, slugs, limit + 1)

    async def change(
        self,
        endpoint_id: UUID,
        changes: Mapping[str, Any],
        author: Author,
        slugs: tuple[str, ...] | None = None,
    ) -> Endpoint:
        """Change the config that are named; the same again changes nothing.

        What is queued of an event that is no longer chosen is cancelled, at the latest by the workers.
        """
        if "url" in changes:
            await self._refuse_url(changes["url"])
        await ensure_log_partitions(self._database)
        async with self._database.writing() as connection:
            found = _known(await endpoints.find_locked(connection, endpoint_id), endpoint_id, slugs)
            config = found.config._replace(**changes)
            if config == found.config:
                return found
            project_ids = await _project_ids(connection, config)
            endpoint = await endpoints.update(connection, endpoint_id, config, project_ids)
            await audit.insert_about_endpoint(
                connection, endpoint_id, author, "change", _difference(found.config, endpoint.config)
            )
        with suppress(DatabaseUnavailable):
            await _end_unwanted(self._database, found, endpoint)
        self._database.notify_workers()
        return endpoint

    async def rotate(
        self, endpoint_id: UUID, author: Author, slugs: tuple[str, ...] | None = None
    ) -> IssuedSecret:
        """Once this has answered, nothing is signed with the old one any more, queued deliveries included."""
        text = generate_secret()
        async with self._database.writing() as connection:
            found = _known(await endpoints.find_locked(connection, endpoint_id), endpoint_id, slugs)
            sealed = self._box.seal(text)
            endpoint = await endpoints.change_secret(connection, endpoint_id, uuid4(), sealed)
            change = Change({"secret_id": str(found.secret_id)}, {"secret_id": str(endpoint.secret_id)})
            await audit.insert_about_endpoint(connection, endpoint_id, author, "rotate-secret", change)
        # Until whatever was claimed with the old one is sent, or has to read the new one.
        await asyncio.sleep(_UNTIL_NOBODY_HAS_THE_OLD_SECONDS)
        return IssuedSecret(endpoint, text)

    async def ping(self, endpoint_id: UUID, author: Author, slugs: tuple[str, ...] | None = None) -> Delivery:
        async with self._database.writing() as connection:
            _known(await endpoints.find_locked(connection, endpoint_id), endpoint_id, slugs)
            delivery_id, now = uuid4(), await audit.current_time(connection)
            await deliveries.insert_ping(
                connection, delivery_id, endpoint_id, now, encode_ping(delivery_id, now)
            )
            change = Change(None, {"delivery_id": str(delivery_id)})
            await audit.insert_about_endpoint(connection, endpoint_id, author, "ping", change)
            made = await delivery_log.find(connection, delivery_id)
        self._database.notify_workers()
        if made is None:
            raise UnknownDelivery(delivery_id)
        return made

    async def remove(self, endpoint_id: UUID, author: Author, slugs: tuple[str, ...] | None = None) -> None:
        """What is queued for it is cancelled, at the latest by the workers; the log keeps what was sent."""
        await ensure_log_partitions(self._database)
        async with self._database.writing() as connection:
            found = _known(await endpoints.find_locked(connection, endpoint_id), endpoint_id, slugs)
            await endpoints.remove(connection, endpoint_id)
            await audit.insert_about_endpoint(
                connection, endpoint_id, author, "remove", Change(found.config._asdict(), {})
            )
        with suppress(DatabaseUnavailable):
            await cancel_all(self._database, endpoint_id)

    async def seal_anew(self) -> int:
        """Encrypt every secret with the first key, so that the others can be given up."""
        async with self._database.writing() as connection:
            sealed = await endpoints.sealed_secrets(connection)
            for endpoint_id, secret in sealed:
                await endpoints.seal_anew(connection, endpoint_id, self._box.seal(self._box.open(secret)))
        return len(sealed)

    async def _refuse_url(self, url: str) -> None:
        fault = await self._url_fault(url)
        if fault is not None:
            raise InvalidInput.at("/url", fault)


async def _end_unwanted(database: Database, before: Endpoint, after: Endpoint) -> None:
    """Apart from the change, and in small steps: a backlog may be long. No claim sends what is unwanted."""
    unselected = set(before.config.events) - set(after.config.events)
    if unselected:
        await cancel_all(database, after.id, list(unselected))
    if unselected or before.config.ordered != after.config.ordered:
        await unblock_all(database, after.id)


def _known(endpoint: Endpoint | None, endpoint_id: UUID, slugs: tuple[str, ...] | None) -> Endpoint:
    """One answer for an endpoint that is not there and one that is for other projects, too."""
    if endpoint is None or not is_within_projects(endpoint.config.project_slugs, slugs):
        raise UnknownEndpoint(endpoint_id)
    return endpoint


async def _project_ids(connection: Connection, config: EndpointConfig) -> list[UUID] | None:
    """Return None for an endpoint of every project."""
    slugs = config.project_slugs
    return None if slugs is None else await projects.require_ids(connection, slugs)


def _difference(before: EndpointConfig, after: EndpointConfig) -> Change:
    names = [name for name in EndpointConfig._fields if getattr(before, name) != getattr(after, name)]
    return Change(
        {name: getattr(before, name) for name in names}, {name: getattr(after, name) for name in names}
    )
