"""The event feed."""

from __future__ import annotations

from holdfast.domain.refusals import Fault
from holdfast.operations.feed import EventFeed, event_document
from holdfast.operations.subscribing import Subscribing
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults
from holdfast.web.cursors import cursor_text
from holdfast.web.queries import Query


class EventRoutes:
    def __init__(self, feed: EventFeed, subscribing: Subscribing) -> None:
        self._feed = feed
        self._subscribing = subscribing

    async def list(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        query = Query(call, faults)
        after, limit, endpoint_id = query.position("after"), query.limit(), query.id("endpoint")
        query.finish()
        refuse_faults(faults)
        slugs = call.key.project_slugs
        if endpoint_id is not None:
            await self._subscribing.find(endpoint_id, slugs)
        page = await self._feed.read(after, limit, slugs, endpoint_id)
        document = {
            "events": [event_document(item) for item in page.items],
            "nextCursor": cursor_text(str(page.next_position)),
        }
        return JsonAnswer(document)
