"""Deliveries: listed, searched, sent again, and reconciled with the feed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from holdfast.domain import delivery as domain
from holdfast.domain.audit import Author, Change
from holdfast.domain.delivery import Attempt, Delivery, DeliveryFilter, DeliveryStatus, FailedDeliveryFilter
from holdfast.domain.endpoint import EndpointLabel, UnseenFailures
from holdfast.domain.errors import EndpointRemoved, UnknownDelivery, UnknownEndpoint
from holdfast.domain.event import PING
from holdfast.operations.events import EventFeed
from holdfast.storage import audit, deliveries, delivery_log, endpoints, projects
from holdfast.storage.database import Connection, Database, current_time

RESENT_AT_ONCE = 1000
START, END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
NO_CURSOR = (END, UUID(int=2**128 - 1))


class Reconciliation(NamedTuple):
    after: int
    """Positions of the feed: those after this one, up to the next."""
    upto: int
    counts: domain.ReconciliationCounts
    compared: int | None = None
    """Events of the feed, for any endpoint, if only the latest ones were asked for."""


class Deliveries:
    """``slugs`` are the projects that the caller is limited to."""

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
        """Return the latest first, and one more than ``limit`` if there is one."""
        async with self._database.reading_snapshot() as connection:
            visible = await _list_visible(connection, endpoint_id, slugs)
            project_ids = await projects.find_ids(connection, slugs)
            return await delivery_log.list_deliveries(
                connection, visible, project_ids, before, filters, limit + 1
            )

    async def find(
        self, delivery_id: UUID, slugs: tuple[str, ...] | None = None, *, attempts_at_most: int | None = None
    ) -> tuple[Delivery, list[Attempt]]:
        """Return the delivery and its latest attempts: there is no limit to resends."""
        async with self._database.reading_snapshot() as connection:
            project_ids = await projects.find_ids(connection, slugs)
            found = await delivery_log.find(connection, delivery_id, project_ids)
            visible = await delivery_log.list_endpoint_ids(connection, slugs)
            if found is None or found.endpoint_id not in visible:
                raise UnknownDelivery(delivery_id)
            return found, await delivery_log.list_attempts(connection, delivery_id, attempts_at_most)

    async def resend(
        self, delivery_id: UUID, author: Author, slugs: tuple[str, ...] | None = None
    ) -> tuple[Delivery, list[Attempt]]:
        """Start a new series of attempts of any delivery whose endpoint exists, with the same id and body."""
        found, _ = await self.find(delivery_id, slugs)
        async with self._database.writing() as connection:
            # Locked, so that it is not removed in between.
            if await endpoints.find(connection, found.endpoint_id, lock=True) is None:
                raise EndpointRemoved
            if not await deliveries.resend(connection, delivery_id):
                raise UnknownDelivery(delivery_id)
            change = Change({"status": found.status}, {"status": "pending", "delivery_id": str(delivery_id)})
            await audit.record(connection, found.endpoint_id, author, "resend", change)
            # Read before it is sent, so that the response shows it pending.
            resent = await delivery_log.find(connection, delivery_id)
            attempts = await delivery_log.list_attempts(connection, delivery_id)
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
        """Send all again that failed, however many there are; return how many."""
        selection = await self.limit_to_now(selection)
        project_ids = await self._database.read(projects.find_ids, slugs)
        total = 0
        while count := await self.recover_some(endpoint_id, selection, author, total, project_ids):
            total += count
        return total

    async def limit_to_now(self, selection: FailedDeliveryFilter) -> FailedDeliveryFilter:
        """Leave out later failures, so that a delivery that fails again is not sent a second time."""
        end = await self._database.read(current_time) + timedelta(milliseconds=1)
        return selection._replace(until=min(selection.until or end, end))

    async def recover_some(
        self,
        endpoint_id: UUID,
        selection: FailedDeliveryFilter,
        author: Author,
        resent_before: int,
        project_ids: Sequence[UUID] | None = None,
    ) -> int:
        """Do one step of a recovery; return 0 at its end. The selection must be limited by ``limit_to_now``.

        Each step has its own audit entry, in case the recovery is interrupted.
        """
        async with self._database.writing() as connection:
            if await endpoints.find(connection, endpoint_id, lock=True) is None:
                raise UnknownEndpoint(endpoint_id)
            count = await deliveries.resend_failed(
                connection, endpoint_id, selection, project_ids, RESENT_AT_ONCE
            )
            if count or not resent_before:
                change = Change(None, {"since": selection.since, "resent": count})
                await audit.record(connection, endpoint_id, author, "recover", change)
        self._database.notify_workers()
        return count

    async def reconcile(
        self,
        endpoint_id: UUID,
        after: int | None,
        slugs: tuple[str, ...] | None = None,
        *,
        latest: int | None = None,
    ) -> Reconciliation:
        """Compare the feed after a position, or only its ``latest`` events, with an endpoint's deliveries."""
        start, end = await self._feed.span(after)
        compared = None
        async with self._database.reading_snapshot() as connection:
            if latest is not None:
                start, compared = await delivery_log.find_latest_events(connection, start, end, latest)
            project_ids = await projects.find_ids(connection, slugs)
            counts = await delivery_log.count_reconciled(connection, endpoint_id, project_ids, start, end)
            return Reconciliation(start, end, counts, compared)


async def _list_visible(
    connection: Connection, endpoint_id: UUID | None, slugs: tuple[str, ...] | None
) -> list[UUID]:
    """Return the endpoints that the caller may see, or the one that is asked for."""
    visible = await delivery_log.list_endpoint_ids(connection, slugs)
    if endpoint_id is None:
        return visible
    if endpoint_id not in visible:
        raise UnknownEndpoint(endpoint_id)
    return [endpoint_id]


# The search for pages goes back from now in steps, for a limited time.

PENDING_COUNTED = 10_000
SEARCH_SECONDS = 0.03

_FIRST_STEP, _LONGEST_STEP = timedelta(minutes=5), timedelta(days=20)
_LARGEST_GROWTH = 4.0
"""Of a step: a quiet night says little of the busy day before it."""
_FIRST_STEPS_BACK = 24
_MILLISECOND = timedelta(milliseconds=1)
_RECENT = timedelta(hours=25)


class DeliverySearchPage(NamedTuple):
    deliveries: list[Delivery]
    """The latest first, and one more than the limit if there is one."""
    labels: dict[UUID, EndpointLabel]
    """Of their endpoints."""
    searched_back_to: datetime | None
    """Older deliveries are not searched yet; None: there are no more."""


class EndpointTraffic(NamedTuple):
    hours: list[domain.HourlyDeliveries]
    latest: Delivery | None
    pending: int
    """Counted up to ``PENDING_COUNTED``."""


class DeliverySearch:
    def __init__(self, database: Database, max_seconds: float = SEARCH_SECONDS) -> None:
        self._database = database
        self._max_seconds = max_seconds

    async def page(
        self, endpoint_id: UUID | None, before: tuple[datetime, UUID], filters: DeliveryFilter, limit: int
    ) -> DeliverySearchPage:
        async with self._database.reading_snapshot() as connection:
            endpoint_ids = await _list_visible(connection, endpoint_id, None)
            found, since = await self._search(connection, endpoint_ids, before, filters, limit + 1)
            is_done = len(found) > limit or since <= filters.since
            labels = await endpoints.find_labels(connection, [one.endpoint_id for one in found])
            return DeliverySearchPage(found, labels, None if is_done else since)

    async def latest(self, endpoint_id: UUID, limit: int) -> list[Delivery]:
        async with self._database.reading_snapshot() as connection:
            filters = DeliveryFilter(START, END)
            return await delivery_log.list_deliveries(
                connection, [endpoint_id], None, NO_CURSOR, filters, limit
            )

    async def find(self, delivery_id: UUID) -> Delivery | None:
        async with self._database.reading_snapshot() as connection:
            return await delivery_log.find(connection, delivery_id)

    async def labels(self) -> list[EndpointLabel]:
        return await self._database.read(endpoints.list_labels)

    async def label(self, endpoint_id: UUID) -> EndpointLabel:
        """Return the label of an endpoint that may have been removed."""
        labels = await self._database.read(endpoints.find_labels, [endpoint_id])
        if endpoint_id not in labels:
            raise UnknownEndpoint(endpoint_id)
        return labels[endpoint_id]

    async def load_traffic(self, endpoint_ids: list[UUID]) -> dict[UUID, EndpointTraffic]:
        async with self._database.reading_snapshot() as connection:
            hours = await delivery_log.list_hours(connection, endpoint_ids)
            pending = await delivery_log.count_pending(connection, endpoint_ids, PENDING_COUNTED)
            # Most endpoints have their latest delivery in the last days of the log.
            recent = DeliveryFilter(await current_time(connection) - _RECENT, END)
            latest = await delivery_log.find_latest(connection, endpoint_ids, recent)
            others = [one for one in endpoint_ids if one not in latest]
            if others:
                latest |= await delivery_log.find_latest(connection, others, DeliveryFilter(START, END))
        return {
            one: EndpointTraffic(
                [hour for hour in hours if hour.endpoint_id == one], latest.get(one), pending[one]
            )
            for one in endpoint_ids
        }

    async def load_unseen_failures(self, since: datetime) -> UnseenFailures:
        """Load what a member of staff has not seen. Deliveries that were sent again, and endpoints that
        recovered, are paused or removed, are left out."""
        return await self._database.read(endpoints.load_unseen_failures, since)

    async def mark_failures_seen(self, staff_id: UUID, at: datetime) -> None:
        """``at`` is the time of the newest failure that was shown; later ones are still to be seen."""
        await self._database.write(endpoints.mark_failures_seen, staff_id, at)

    async def _search(
        self,
        connection: Connection,
        endpoint_ids: list[UUID],
        before: tuple[datetime, UUID],
        filters: DeliveryFilter,
        limit: int,
    ) -> tuple[list[Delivery], datetime]:
        """Return what was found, and the time back to which it was searched for.

        Each step is wider than the last. If few of many may match, the search ends after ``max_seconds``; the
        next page continues it.
        """
        found: list[Delivery] = []
        # The cursor's own millisecond is searched too.
        until = min(filters.until, before[0] + _MILLISECOND if before[0] < END - _MILLISECOND else END)
        now = await current_time(connection)
        start = min(until, now)
        is_sparse = _is_sparse(filters)
        # Wider when it is far back, or it would take many pages to come to the end of a long log.
        step = max(_FIRST_STEP, (now - start) / _FIRST_STEPS_BACK) if is_sparse else _RECENT
        seconds_left = self._max_seconds
        while until > filters.since:
            start = filters.since if start - filters.since <= step else start - step
            started_at = monotonic()
            place, part = min(before, (until, UUID(int=0))), filters._replace(since=start, until=until)
            found += await delivery_log.list_deliveries(
                connection, endpoint_ids, None, place, part, limit - len(found)
            )
            took = monotonic() - started_at
            seconds_left -= took
            if len(found) >= limit or (is_sparse and took > seconds_left):
                break
            until = start
            # So wide that it may be expected to end within the time that is left.
            is_last = not is_sparse or step > _LONGEST_STEP
            step = timedelta.max if is_last else step * min(seconds_left / took, _LARGEST_GROWTH)
        return found, start


def _is_sparse(filters: DeliveryFilter) -> bool:
    """Return whether few of many may match, and no index contains them."""
    if filters.unit_code is not None or filters.events == (PING,):
        return False
    is_of_some_answer = filters.code_class is not None or filters.unanswered is not None
    # An endpoint that is down has nothing delivered, and most have nothing cancelled.
    is_rare_somewhere = filters.status in (DeliveryStatus.CANCELLED, DeliveryStatus.DELIVERED)
    return filters.events is not None or is_of_some_answer or is_rare_somewhere
