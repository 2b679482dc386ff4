"""The projects that a key may use."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.domain.permissions import Permission
from holdfast.web.api.integration.units import PREFIX
from holdfast.web.api.models import (
    ProjectListDocument,
    find_projects,
    page_response,
    project_document,
    slug_cursor,
)
from holdfast.web.api.parameters import CURSOR, LIMIT
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.request import Request

routes = ApiRoutes(PREFIX, "Projects")


@routes.get(
    "/projects",
    summary="List the projects that the key may use",
    permission=Permission.INTEGRATE,
    query=(CURSOR, LIMIT),
    responses={200: ProjectListDocument},
)
async def list_projects(request: Request, *, cursor: str, limit: int) -> Response:
    """In the order of their slugs."""
    rows = await find_projects(request, cursor, limit)
    return page_response(ProjectListDocument, rows, limit, project_document, slug_cursor)
