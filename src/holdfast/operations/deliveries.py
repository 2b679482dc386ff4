"""Deliveries as people see them: listed, looked into, sent anew, held against the feed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import Author, Change
from holdfast.domain.delivery import Delivery
from holdfast.domain.errors import EndpointRemoved, UnknownDelivery, UnknownEndpoint
from holdfast.operations.feed import EventFeed
from holdfast.storage import audit, deliveries, delivery_log, endpoints, projects
from holdfast.storage.database import Database
from holdfast.storage.deliveries import Selection
from holdfast.storage.delivery_log import Attempt, Filters, Tally

RESENT_AT_ONCE = 1000

__all__ = ["Attempt", "Deliveries", "Delivery", "Filters", "Reconciliation", "Selection", "Tally"]


class Reconciliation(NamedTuple):
    after: int
    """Positions of the feed: those behind this one, up to the next."""
    upto: int
    tally: Tally


class Deliveries:
    """``slugs``: the projects that the caller is limited to. Endpoints may have been for others before."""

    def __init__(self, database: Database, feed: EventFeed) -> None:
        self._database = database
        self._feed = feed

    async def page(
        self,
        endpoint_id: UUID | None,
        before: tuple[datetime, UUID],
        filters: Filters,
        limit: int,
        slugs: tuple[str, ...] | None = None,
    ) -> list[Delivery]:
        """One more than ``limit``, if there is one; the latest first."""
        async with self._database.reading_one_moment() as connection:
            visible = await delivery_log.endpoint_ids(connection, slugs)
            wanted = [one for one in visible if endpoint_id in (None, one)]
            if not wanted and endpoint_id is not None:
                raise UnknownEndpoint(endpoint_id)
            project_ids = await projects.find_ids(connection, slugs)
            return await delivery_log.page(connection, wanted, project_ids, before, filters, limit + 1)

    async def find(
        self, delivery_id: UUID, slugs: tuple[str, ...] | None = None, *, attempts_at_most: int | None = None
    ) -> tuple[Delivery, list[Attempt]]:
        """It may have been resent without end: whoever says how many is given the latest attempts."""
        async with self._database.reading_one_moment() as connection:
            project_ids = await projects.find_ids(connection, slugs)
            found = await delivery_log.find(connection, delivery_id, project_ids)
            if found is None or found.endpoint_id not in await delivery_log.endpoint_ids(connection, slugs):
                raise UnknownDelivery(delivery_id)
            return found, await delivery_log.attempts(connection, delivery_id, attempts_at_most)

    async def resend(
        self, delivery_id: UUID, author: Author, slugs: tuple[str, ...] | None = None
    ) -> tuple[Delivery, list[Attempt]]:
        """Any delivery whose endpoint still exists: the same id, the same bytes, a new series of attempts."""
        found, _ = await self.find(delivery_id, slugs)
        async with self._database.writing() as connection:
            # Locked, so that it is not removed in between.
            if await endpoints.find_locked(connection, found.endpoint_id) is None:
                raise EndpointRemoved
            if not await deliveries.resend(connection, delivery_id):
                raise UnknownDelivery(delivery_id)
            change = Change({"status": found.status}, {"status": "pending", "delivery_id": str(delivery_id)})
            await audit.insert_about_endpoint(connection, found.endpoint_id, author, "resend", change)
            # Before anybody sends it: the answer tells what was asked for, not what became of it since.
            resent = await delivery_log.find(connection, delivery_id)
            attempts = await delivery_log.attempts(connection, delivery_id)
        if resent is None:
            raise UnknownDelivery(delivery_id)
        self._database.hint_at_deliveries()
        return resent, attempts

    async def count_failed(
        self, endpoint_id: UUID, selection: Selection, slugs: tuple[str, ...] | None = None
    ) -> int:
        async with self._database.reading() as connection:
            project_ids = await projects.find_ids(connection, slugs)
            return await deliveries.count_failed(connection, endpoint_id, selection, project_ids)

    async def recover(
        self,
        endpoint_id: UUID,
        selection: Selection,
        author: Author,
        slugs: tuple[str, ...] | None = None,
    ) -> int:
        """Send anew all that failed, however many there are; says how many there were.

        What fails again meanwhile is not sent a second time.
        """
        selection = await self.bounded(selection)
        async with self._database.reading() as connection:
            project_ids = await projects.find_ids(connection, slugs)
        resend_some = partial(self._resend_some, endpoint_id, selection, project_ids, author)
        total = 0
        while count := await resend_some(total):
            total += count
        return total

    async def bounded(self, selection: Selection) -> Selection:
        """Those that have failed by now, so that none is sent anew a second time because it failed again."""
        async with self._database.reading() as connection:
            end = await audit.now(connection) + timedelta(milliseconds=1)
        return selection._replace(until=min(selection.until or end, end))

    async def recover_some(
        self, endpoint_id: UUID, selection: Selection, author: Author, resent_before: int
    ) -> int:
        """One step of a recovery that somebody watches; 0 at its end. The selection has to be bounded."""
        return await self._resend_some(endpoint_id, selection, None, author, resent_before)

    async def reconcile(
        self, endpoint_id: UUID, after: int | None, slugs: tuple[str, ...] | None = None
    ) -> Reconciliation:
        """What the feed has for an endpoint behind a position, and what became of it."""
        start, end = await self._feed.span(after)
        return await self._reconcile(endpoint_id, start, end, slugs)

    async def reconcile_lately(self, endpoint_id: UUID, events: int) -> Reconciliation:
        """The same of the last so many events of the feed alone, for somebody who waits."""
        start, end = await self._feed.span(None)
        return await self._reconcile(endpoint_id, max(start, end - events), end, None)

    async def _reconcile(
        self, endpoint_id: UUID, start: int, end: int, slugs: tuple[str, ...] | None
    ) -> Reconciliation:
        async with self._database.reading_one_moment() as connection:
            project_ids = await projects.find_ids(connection, slugs)
            tally = await delivery_log.tally(connection, endpoint_id, project_ids, start, end)
            return Reconciliation(start, end, tally)

    async def _resend_some(
        self,
        endpoint_id: UUID,
        selection: Selection,
        project_ids: Sequence[UUID] | None,
        author: Author,
        resent_before: int,
    ) -> int:
        """Each time with its entry: whatever interrupts a recovery, what it has sent is known."""
        async with self._database.writing() as connection:
            if await endpoints.find_locked(connection, endpoint_id) is None:
                raise UnknownEndpoint(endpoint_id)
            count = await deliveries.resend_failed(
                connection, endpoint_id, selection, project_ids, RESENT_AT_ONCE
            )
            if count or not resent_before:
                change = Change(None, {"since": selection.since, "resent": count})
                await audit.insert_about_endpoint(connection, endpoint_id, author, "recover", change)
        self._database.hint_at_deliveries()
        return count
