"""Events: the feed of them in one order, with a cursor that never skips one, and the payload of webhooks."""

from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec

from holdfast.domain import event as domain
from holdfast.domain.errors import CursorExpired, InvalidInput
from holdfast.domain.event import EventName
from holdfast.domain.status import Status
from holdfast.domain.wire_format import format_timestamp
from holdfast.observability.metrics import EVENTS_NUMBERED
from holdfast.operations.documents import Document, Time
from holdfast.storage import events
from holdfast.storage.database import Database
from holdfast.storage.events import FeedItem

NUMBERED_AT_ONCE = 10_000

__all__ = ["EventFeed", "FeedItem", "FeedPage", "event_document"]


class FeedPage(NamedTuple):
    items: list[FeedItem]
    next_position: int


class UnitChange(Document):
    id: Annotated[UUID, "The unit's id."]
    code: Annotated[str, "The unit's code."]
    project_slug: Annotated[str, "The slug of its project."]
    status: Annotated[Status, "The status after the change."]
    previous_status: Annotated[Status, "The status before the change."]


class BookingReference(Document):
    reference: Annotated[str, "The booking reference that the buyer sees."]


class UnitEventData(Document):
    unit: UnitChange
    booking: Annotated[
        BookingReference | None,
        "Set on `unit.reserved` and `unit.sold`; null on every other event.",
    ]


class UnitEvent(Document):
    """A change of a unit, as it stands in the feed and in the body of a webhook."""

    id: Annotated[UUID, "In a delivery equal to the header `X-Service-Delivery`."]
    type: EventName
    created_at: Annotated[Time, "When the unit changed."]
    data: UnitEventData


class PingData(Document):
    unit: Annotated[dict[str, Any] | None, "Always null."]
    booking: Annotated[dict[str, Any] | None, "Always null."]


class Ping(Document):
    """The body of a test that staff sent to an endpoint."""

    id: Annotated[UUID, "Equal to the header `X-Service-Delivery`."]
    type: Literal["ping"]
    created_at: Time
    data: PingData


def event_document(event: FeedItem | domain.UnitEvent, project_slug: str) -> UnitEvent:
    """The one definition of what receivers and readers of the feed get of an event."""
    reference = event.booking_reference
    return UnitEvent(
        event.id,
        event.type,
        format_timestamp(event.created_at),
        UnitEventData(
            UnitChange(event.unit_id, event.unit_code, project_slug, event.status, event.previous_status),
            None if reference is None else BookingReference(reference),
        ),
    )


def with_payload(event: domain.UnitEvent, project_slug: str) -> domain.UnitEvent:
    """Add the JSON that receivers get: built once an event, whatever the number of endpoints."""
    return event._replace(payload=msgspec.json.encode(event_document(event, project_slug)).decode())


def encode_ping(delivery_id: UUID, created_at: datetime) -> str:
    ping = Ping(delivery_id, "ping", format_timestamp(created_at), PingData(None, None))
    return msgspec.json.encode(ping).decode()


class EventFeed:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def number(self) -> int:
        """Give every committed event its position; says how many there were."""
        if not await self._database.read(events.any_unnumbered):
            return 0
        total = 0
        while True:
            async with self._database.writing() as connection:
                count = await events.number(connection, NUMBERED_AT_ONCE)
            total += count
            EVENTS_NUMBERED.inc(count)
            if count < NUMBERED_AT_ONCE:
                return total

    async def read(
        self, after: int | None, limit: int, slugs: tuple[str, ...] | None, endpoint_id: UUID | None = None
    ) -> FeedPage:
        """With an endpoint: what it subscribes to, each item with the id of its delivery."""
        start, last = await self.span(after)
        async with self._database.reading() as connection:
            items = await events.page(connection, start, last, limit, slugs, endpoint_id)
            if start < (await events.ends(connection)).trimmed:
                raise CursorExpired
        return FeedPage(items, items[-1].position if len(items) == limit else last)

    async def span(self, after: int | None) -> tuple[int, int]:
        """From where to where it is read. Numbers first: an acknowledged event is there, unless the database
        takes longer than a moment to commit, as without its standby."""
        await self._database.write_for_reader("events", self.number)
        ends = await self._database.read(events.ends)
        if after is not None and after < ends.trimmed:
            raise CursorExpired
        if after is not None and after > ends.last:
            raise InvalidInput.at("/query/after", "This is not a valid cursor of the event feed.")
        return (ends.trimmed if after is None else after), ends.last
