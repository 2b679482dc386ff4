"""The event feed."""

from __future__ import annotations

from typing import Any

from holdfast.domain.refusals import Fault
from holdfast.operations.feed import EventFeed, FeedItem
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults
from holdfast.web.queries import Query, cursor_text
from holdfast.web.wire import time_text


class EventRoutes:
    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    async def list(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        query = Query(call, faults)
        after, limit = query.position("after"), query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._feed.read(after, limit, call.key.project_slugs)
        document = {
            "events": [_event_document(item) for item in page.items],
            "nextCursor": cursor_text(str(page.next_position)),
        }
        return JsonAnswer(document)


def _event_document(item: FeedItem) -> dict[str, Any]:
    reference = item.booking_reference
    return {
        "id": item.id,
        "type": item.type,
        "createdAt": time_text(item.created_at),
        "data": {
            "unit": {
                "id": item.unit_id,
                "code": item.unit_code,
                "projectSlug": item.project_slug,
                "status": item.status,
                "previousStatus": item.previous_status,
            },
            "booking": None if reference is None else {"reference": reference},
        },
    }
