"""Deliveries as people see them: listed, looked into, sent anew, held against the feed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import Author, Change
from holdfast.domain.delivery import (
    Attempt,
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    FailedDeliveryFilter,
    HourlyDeliveries,
    ReconciliationCounts,
)
from holdfast.domain.endpoint import EndpointLabel, UnseenFailures
from holdfast.domain.errors import EndpointRemoved, UnknownDelivery, UnknownEndpoint
from holdfast.domain.event import PING
from holdfast.operations.events import EventFeed
from holdfast.storage import audit, deliveries, delivery_log, endpoints, projects
from holdfast.storage.database import Connection, Database

RESENT_AT_ONCE = 1000


class Reconciliation(NamedTuple):
    after: int
    """Positions of the feed: those behind this one, up to the next."""
    upto: int
    counts: ReconciliationCounts


class Deliveries:
    """``slugs``: the projects that the caller is limited to. Endpoints may have been for others before."""

    def __init__(self, database: Database, feed: EventFeed) -> None:
        self._database = database
        self._feed = feed

    async def page(
        self,
        endpoint_id: UUID | None,
        before: tuple[datetime, UUID],
        filters: DeliveryFilter,
        limit: int,
        slugs: tuple[str, ...] | None = None,
    ) -> list[Delivery]:
        """One more than ``limit``, if there is one; the latest first."""
        async with self._database.reading_snapshot() as connection:
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
        async with self._database.reading_snapshot() as connection:
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
        self._database.notify_workers()
        return resent, attempts

    async def count_failed(
        self, endpoint_id: UUID, selection: FailedDeliveryFilter, slugs: tuple[str, ...] | None = None
    ) -> int:
        async with self._database.reading() as connection:
            project_ids = await projects.find_ids(connection, slugs)
            return await deliveries.count_failed(connection, endpoint_id, selection, project_ids)

    async def recover(
        self,
        endpoint_id: UUID,
        selection: FailedDeliveryFilter,
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

    async def bounded(self, selection: FailedDeliveryFilter) -> FailedDeliveryFilter:
        """Those that have failed by now, so that none is sent anew a second time because it failed again."""
        async with self._database.reading() as connection:
            end = await audit.current_time(connection) + timedelta(milliseconds=1)
        return selection._replace(until=min(selection.until or end, end))

    async def recover_some(
        self, endpoint_id: UUID, selection: FailedDeliveryFilter, author: Author, resent_before: int
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
        async with self._database.reading_snapshot() as connection:
            project_ids = await projects.find_ids(connection, slugs)
            counts = await delivery_log.count_reconciled(connection, endpoint_id, project_ids, start, end)
            return Reconciliation(start, end, counts)

    async def _resend_some(
        self,
        endpoint_id: UUID,
        selection: FailedDeliveryFilter,
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
        self._database.notify_workers()
        return count


# The log as people look through it: from now back, for as long as that is quick.

START, END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
BEHIND_ALL = (END, UUID(int=2**128 - 1))
COUNTED_WAITING = 10_000
PATIENCE_SECONDS = 0.03

_FIRST_STEP, _LONGEST_STEP = timedelta(minutes=5), timedelta(days=20)
_WIDER_AT_MOST = 4.0
"""A quiet night says little of the busy day before it."""
_FIRST_STEPS_BACK = 24
_FIRST_ID = UUID(int=0)
_MILLISECOND = timedelta(milliseconds=1)
_LATELY = timedelta(hours=25)


class DeliverySearchPage(NamedTuple):
    deliveries: list[Delivery]
    """One more than was asked for, if there is one; the latest first."""
    labels: dict[UUID, EndpointLabel]
    """Of their endpoints."""
    searched_back_to: datetime | None
    """What is older has not been looked through yet; None: there is nothing more."""


class EndpointTraffic(NamedTuple):
    """How an endpoint is doing."""

    hours: list[HourlyDeliveries]
    latest: Delivery | None
    waiting: int
    """Pending deliveries, counted up to ``COUNTED_WAITING``."""


class DeliverySearch:
    def __init__(self, database: Database, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._database = database
        self._patience_seconds = patience_seconds

    async def page(
        self, endpoint_id: UUID | None, before: tuple[datetime, UUID], filters: DeliveryFilter, limit: int
    ) -> DeliverySearchPage:
        """Step by step back in time, each step wider than the last. What many have is found in the first;
        what few have is looked for as long as a page may take, and then in another page."""
        async with self._database.reading_snapshot() as connection:
            endpoint_ids = await _wanted(connection, endpoint_id)
            search = _Search(endpoint_ids, before, filters, limit + 1, self._patience_seconds)
            deliveries, since = await search.run(connection)
            is_done = len(deliveries) > limit or since <= filters.since
            labels = await endpoints.find_labels(connection, [one.endpoint_id for one in deliveries])
            return DeliverySearchPage(deliveries, labels, None if is_done else since)

    async def latest(self, endpoint_id: UUID, limit: int) -> list[Delivery]:
        """Of one endpoint, whatever they are."""
        async with self._database.reading_snapshot() as connection:
            filters = DeliveryFilter(START, END)
            return await delivery_log.page(connection, [endpoint_id], None, BEHIND_ALL, filters, limit)

    async def find(self, delivery_id: UUID) -> Delivery | None:
        async with self._database.reading_snapshot() as connection:
            return await delivery_log.find(connection, delivery_id)

    async def labels(self) -> list[EndpointLabel]:
        """Of all endpoints, to choose from."""
        async with self._database.reading() as connection:
            return await endpoints.list_labels(connection)

    async def label(self, endpoint_id: UUID) -> EndpointLabel:
        """Of one, which may have been removed."""
        async with self._database.reading() as connection:
            found = await endpoints.find_labels(connection, [endpoint_id])
        if endpoint_id not in found:
            raise UnknownEndpoint(endpoint_id)
        return found[endpoint_id]

    async def standings(self, endpoint_ids: list[UUID]) -> dict[UUID, EndpointTraffic]:
        async with self._database.reading_snapshot() as connection:
            hours = await delivery_log.hours_of_endpoints(connection, endpoint_ids)
            latest = await _latest(connection, endpoint_ids)
            waiting = await delivery_log.waiting(connection, endpoint_ids, COUNTED_WAITING)
        return {
            one: EndpointTraffic(
                [hour for hour in hours if hour.endpoint_id == one], latest.get(one), waiting[one]
            )
            for one in endpoint_ids
        }


async def _wanted(connection: Connection, endpoint_id: UUID | None) -> list[UUID]:
    known = await delivery_log.endpoint_ids(connection, None)
    if endpoint_id is None:
        return known
    if endpoint_id not in known:
        raise UnknownEndpoint(endpoint_id)
    return [endpoint_id]


async def _latest(connection: Connection, endpoint_ids: list[UUID]) -> dict[UUID, Delivery]:
    """First in the last days of the log, where most have theirs, and only then in all of them."""
    lately = await audit.current_time(connection) - _LATELY
    found = await delivery_log.latest(connection, endpoint_ids, DeliveryFilter(lately, END))
    others = [one for one in endpoint_ids if one not in found]
    if others:
        found |= await delivery_log.latest(connection, others, DeliveryFilter(START, END))
    return found


class _Search(NamedTuple):
    endpoints: list[UUID]
    before: tuple[datetime, UUID]
    filters: DeliveryFilter
    limit: int
    patience_seconds: float

    async def run(self, connection: Connection) -> tuple[list[Delivery], datetime]:
        """What was found, and how far back it was looked for."""
        found: list[Delivery] = []
        until, since = min(self.filters.until, _just_behind(self.before[0])), self.filters.since
        now = await audit.current_time(connection)
        start = min(until, now)
        is_sparse = _is_sparse(self.filters)
        step = _first_step(now - start) if is_sparse else _LATELY
        left = self.patience_seconds
        while until > since:
            start = since if start - since <= step else start - step
            started_at = monotonic()
            found += await self._within(connection, start, until, self.limit - len(found))
            took = monotonic() - started_at
            left -= took
            if len(found) >= self.limit or (is_sparse and took > left):
                break
            until, step = start, _next_step(step, left / took) if is_sparse else timedelta.max
        return found, start

    async def _within(
        self, connection: Connection, since: datetime, until: datetime, limit: int
    ) -> list[Delivery]:
        place = min(self.before, (until, _FIRST_ID))
        part = self.filters._replace(since=since, until=until)
        return await delivery_log.page(connection, self.endpoints, None, place, part, limit)


def _is_sparse(filters: DeliveryFilter) -> bool:
    """Whether few may be found among many, with no index that knows them."""
    if filters.unit_code is not None or filters.events == (PING,):
        return False
    is_of_some_answer = filters.code_class is not None or filters.unanswered is not None
    # Of an endpoint that is dead nothing was delivered, of most nothing was cancelled.
    is_rare_somewhere = filters.status in (DeliveryStatus.CANCELLED, DeliveryStatus.DELIVERED)
    return filters.events is not None or is_of_some_answer or is_rare_somewhere


def _first_step(back: timedelta) -> timedelta:
    """The farther back, the wider, or it would take many pages to come to the end of a long log."""
    return max(_FIRST_STEP, back / _FIRST_STEPS_BACK)


def _next_step(step: timedelta, times_left: float) -> timedelta:
    """So wide that it may be expected to end within the time that is left."""
    return timedelta.max if step > _LONGEST_STEP else step * min(times_left, _WIDER_AT_MOST)


def _just_behind(moment: datetime) -> datetime:
    return END if moment >= END - _MILLISECOND else moment + _MILLISECOND


class FailureNotices:
    """Failed deliveries and failing endpoints that a member of staff has not seen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_unseen(self, since: datetime) -> UnseenFailures:
        """Leave out deliveries that were sent again, and endpoints that recovered, are paused or removed."""
        async with self._database.reading() as connection:
            return await endpoints.load_unseen_failures(connection, since)

    async def mark_seen(self, staff_id: UUID, at: datetime) -> None:
        """``at`` is the time of the newest failure that was shown; later ones are still to be seen."""
        async with self._database.writing() as connection:
            await endpoints.mark_failures_seen(connection, staff_id, at)
