"""The log: deliveries listed, looked into, sent anew, held against the feed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from holdfast.domain.delivery import Delivery
from holdfast.domain.refusals import Fault
from holdfast.operations.deliveries import Deliveries, Filters, Reconciliation, Selection
from holdfast.operations.subscribing import Subscribing
from holdfast.operations.webhook_documents import delivery_document, told_document
from holdfast.web.addresses import id_of
from holdfast.web.answer import JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.backoffice.calls import id_alone, id_without_fields
from holdfast.web.backoffice.endpoint_bodies import RECOVERY, RECOVERY_NAMES
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults, valid_body
from holdfast.web.cursors import cursor_text, moment_and_id_cursor_text
from holdfast.web.json_bodies import json_body
from holdfast.web.queries import CODE_CLASSES, UNANSWERED, Query
from holdfast.web.wire import optional_time_text, time_text

_START, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_BEHIND_ALL = (_END, UUID(int=2**128 - 1))


class DeliveryRoutes:
    def __init__(self, subscribing: Subscribing, deliveries: Deliveries) -> None:
        self._subscribing = subscribing
        self._deliveries = deliveries

    async def list(self, call: Call) -> JsonAnswer:
        """The latest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        endpoint_id, filters = query.id("endpoint"), _filters(query)
        before, limit = query.moment_and_id_cursor() or _BEHIND_ALL, query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._deliveries.page(endpoint_id, before, filters, limit, call.key.project_slugs)
        document = {
            "deliveries": [delivery_document(delivery) for delivery in page[:limit]],
            "nextCursor": _cursor_after(page[limit - 1]) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def get(self, call: Call) -> JsonAnswer:
        found = await self._deliveries.find(id_alone(call), call.key.project_slugs)
        return JsonAnswer(told_document(*found))

    async def resend(self, call: Call) -> JsonAnswer:
        delivery_id = await id_without_fields(call)
        found = await self._deliveries.resend(delivery_id, author_of(call), call.key.project_slugs)
        return JsonAnswer(told_document(*found), 202)

    async def recover(self, call: Call) -> JsonAnswer:
        """Send anew all that failed, or count them first."""
        body = await json_body(call)
        faults: list[Fault] = []
        endpoint_id = id_of(call, faults)
        query = Query(call, faults)
        is_dry = query.flag("dryRun")
        query.finish()
        values = valid_body(RECOVERY, body, RECOVERY_NAMES, faults)
        is_dry = values.pop("dry_run", False) or is_dry
        selection = Selection(**values)
        slugs = call.key.project_slugs
        await self._subscribing.find(endpoint_id, slugs)
        if is_dry:
            count = await self._deliveries.count_failed(endpoint_id, selection, slugs)
        else:
            count = await self._deliveries.recover(endpoint_id, selection, author_of(call), slugs)
        return JsonAnswer(_recovery_document(count, is_dry, selection), 200 if is_dry else 202)

    async def reconcile(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        endpoint_id = id_of(call, faults)
        query = Query(call, faults)
        after = query.position("after")
        query.finish()
        refuse_faults(faults)
        slugs = call.key.project_slugs
        await self._subscribing.find(endpoint_id, slugs)
        found = await self._deliveries.reconcile(endpoint_id, after, slugs)
        return JsonAnswer(reconciliation_document(found, endpoint_id))


def _filters(query: Query) -> Filters:
    event, code = query.event(), query.code_class()
    return Filters(
        since=query.time("since") or _START,
        until=query.time("until") or _END,
        events=None if event is None else (event,),
        unit_code=query.code("unitCode"),
        code_class=None if code is None else CODE_CLASSES.get(code),
        unanswered=True if code == UNANSWERED else None,
        status=query.delivery_status(),
    )


def _recovery_document(count: int, is_dry: bool, selection: Selection) -> dict[str, Any]:
    return {
        "count": count,
        "dryRun": is_dry,
        "since": time_text(selection.since),
        "until": optional_time_text(selection.until),
    }


def reconciliation_document(found: Reconciliation, endpoint_id: UUID) -> dict[str, Any]:
    return {
        "endpointId": endpoint_id,
        "after": cursor_text(str(found.after)),
        "upTo": cursor_text(str(found.upto)),
        **found.tally._asdict(),
        "agrees": found.tally.missing == 0,
    }


def _cursor_after(delivery: Delivery) -> str:
    return moment_and_id_cursor_text(delivery.created_at, delivery.id)
