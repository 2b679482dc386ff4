"""The event feed: every committed unit event, in one order, with a cursor that never skips one."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.refusals import CursorExpired, InvalidInput
from holdfast.domain.spelling import moment_text
from holdfast.observability.metrics import note_numbered
from holdfast.storage import events
from holdfast.storage.database import Database
from holdfast.storage.events import FeedItem

NUMBERED_AT_ONCE = 10_000


__all__ = ["EventFeed", "FeedItem", "FeedPage", "event_document"]


class FeedPage(NamedTuple):
    items: list[FeedItem]
    next_position: int


def event_document(item: FeedItem) -> dict[str, Any]:
    """As it stands in the feed, and in the body of a webhook."""
    reference = item.booking_reference
    return {
        "id": str(item.id),
        "type": item.type,
        "createdAt": moment_text(item.created_at),
        "data": {
            "unit": {
                "id": str(item.unit_id),
                "code": item.unit_code,
                "projectSlug": item.project_slug,
                "status": item.status,
                "previousStatus": item.previous_status,
            },
            "booking": None if reference is None else {"reference": reference},
        },
    }


class EventFeed:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def number(self) -> int:
        """Give every committed event its position; says how many there were."""
        async with self._database.reading() as connection:
            if not await events.any_unnumbered(connection):
                return 0
        total = 0
        while True:
            async with self._database.writing() as connection:
                count = await events.number(connection, NUMBERED_AT_ONCE)
            total += count
            note_numbered(count)
            if count < NUMBERED_AT_ONCE:
                return total

    async def read(
        self,
        after: int | None,
        limit: int,
        slugs: tuple[str, ...] | None,
        endpoint_id: UUID | None = None,
    ) -> FeedPage:
        """With an endpoint: what it subscribes to, each item with the id of its delivery."""
        start, last = await self.span(after)
        async with self._database.reading() as connection:
            items = await events.page(connection, start, last, limit, slugs, endpoint_id)
            if start < (await events.ends(connection)).trimmed:
                raise CursorExpired
        return FeedPage(items, items[-1].position if len(items) == limit else last)

    async def span(self, after: int | None) -> tuple[int, int]:
        """From where to where it is read. Numbers first: an acknowledged event is always there."""
        await self.number()
        async with self._database.reading() as connection:
            ends = await events.ends(connection)
        if after is not None and after < ends.trimmed:
            raise CursorExpired
        if after is not None and after > ends.last:
            raise InvalidInput.at("/query/after", "This is not a cursor that the feed has given.")
        return (ends.trimmed if after is None else after), ends.last

    async def trim(self, keep: timedelta, at_most: int) -> int:
        """Forget events that are older than ``keep``; cursors to them are refused from then on."""
        async with self._database.writing() as connection:
            return await events.trim(connection, keep, at_most)
