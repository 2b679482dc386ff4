"""The projects that a key may use, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.project import Project
from holdfast.web.pagination import cursor_text, split_page
from holdfast.web.request import Request


async def find_projects(request: Request, cursor: str, limit: int) -> tuple[Sequence[Project], str | None]:
    rows = await request.services.inventory.projects_page(request.key.project_slugs, cursor, limit)
    return split_page(rows, limit, lambda project: cursor_text(project.slug))
