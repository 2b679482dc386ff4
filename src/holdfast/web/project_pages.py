"""The projects that a key may use, page by page, in whatever way a surface shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.domain.project import Project
from holdfast.domain.refusals import Fault
from holdfast.operations.inventory import Inventory
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults
from holdfast.web.cursors import cursor_text
from holdfast.web.queries import Query


async def projects_page(
    call: Call, inventory: Inventory, document_of: Callable[[Project], dict[str, Any]]
) -> JsonAnswer:
    faults: list[Fault] = []
    query = Query(call, faults)
    after, limit = query.text_cursor(), query.limit()
    query.finish()
    refuse_faults(faults)
    page = await inventory.projects_page(call.key.project_slugs, after, limit)
    document = {
        "projects": [document_of(project) for project in page[:limit]],
        "nextCursor": cursor_text(page[limit - 1].slug) if len(page) > limit else None,
    }
    return JsonAnswer(document)
