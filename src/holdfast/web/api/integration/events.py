"""The event feed."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from holdfast.domain.errors import CursorExpired, UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.operations.events import UnitEvent, event_document
from holdfast.web.api.integration.units import PREFIX
from holdfast.web.api.models import Document
from holdfast.web.api.parameters import Limit, feed_cursor, id_parameter
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.pagination import NUMBER_CURSOR
from holdfast.web.request import Request

routes = ApiRoutes(PREFIX, "Events", key_guard(Permission.INTEGRATE))


class EventListDocument(Document):
    events: list[UnitEvent]
    next_cursor: Annotated[str, "Always there: ask again with it for what comes next."]


@routes.get("/events", summary="Read the event feed", errors=(UnknownEndpoint, CursorExpired))
async def list_events(
    request: Request,
    *,
    after: Annotated[int | None, feed_cursor("`nextCursor` of the last page; without it, from the start.")],
    limit: Limit,
    endpoint: Annotated[
        UUID | None, id_parameter("Only what this endpoint receives; each `id` is then that of its delivery.")
    ],
) -> EventListDocument:
    """Every committed unit event in one order, to catch up after an outage. Keep `nextCursor` and send it as
    `after` the next time: no event is ever skipped. Without `after`, the feed starts with the oldest event
    that is kept. Events are kept 400 days unless set otherwise; an older cursor is 410. A key that is limited
    to projects sees only their events.

    With `endpoint`, the feed has the events of that endpoint, each with the id of its delivery, so that a
    receiver that was away can skip the ids that it has already processed."""
    slugs = request.key.project_slugs
    if endpoint is not None:
        await request.services.endpoints.find(endpoint, slugs)
    page = await request.services.feed.read(after, limit, slugs, endpoint)
    events = [event_document(item, item.project_slug) for item in page.items]
    return EventListDocument(events, NUMBER_CURSOR.encode(page.next_position))
