"""The projects that a key may use."""

from __future__ import annotations

from holdfast.domain.refusals import Fault
from holdfast.operations.inventory import Inventory
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults
from holdfast.web.queries import Query, cursor_text
from holdfast.web.wire import project_document


class ProjectRoutes:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    async def list(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        query = Query(call, faults)
        after, limit = query.text_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._inventory.projects_page(call.key.project_slugs, after, limit)
        document = {
            "projects": [project_document(project) for project in page[:limit]],
            "nextCursor": cursor_text(page[limit - 1].slug) if len(page) > limit else None,
        }
        return JsonAnswer(document)
