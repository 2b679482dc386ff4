"""The projects that a key may use."""

from __future__ import annotations

from holdfast.domain.permissions import Permission
from holdfast.web.api.integration.units import PREFIX
from holdfast.web.api.models import ProjectDocument, ProjectListDocument, project_page
from holdfast.web.api.parameters import Limit, TextCursor
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.request import Request

routes = ApiRoutes(PREFIX, "Projects", key_guard(Permission.INTEGRATE))


@routes.get("/projects", summary="List the projects that the key may use")
async def list_projects(request: Request, *, cursor: TextCursor, limit: Limit) -> ProjectListDocument:
    """Sorted by slug."""
    return await project_page(request, ProjectListDocument, cursor, limit, ProjectDocument.fill)
