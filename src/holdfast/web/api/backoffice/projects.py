"""Projects and their settings."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, ClassVar

import msgspec
from pydantic import AfterValidator, Field

from holdfast.domain.errors import ProjectExists, UnknownProject
from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project
from holdfast.web.api import models
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel
from holdfast.web.api.parameters import Limit, TextCursor
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import check_project_access, key_guard
from holdfast.web.fields import Bounds, ProjectName, Slug
from holdfast.web.request import Request

_SECONDS = Bounds(Decimal("0.001"), Decimal(LONGEST_HOLD_SECONDS), 3)
_DAYS = Bounds(Decimal("0.00001"), Decimal(LONGEST_RESERVATION_DAYS), 6)
_HOLD_SECONDS = "How long a hold lasts, in seconds; null: the server's default."
_LISTED = "Whether the list of projects at `/p` shows it. Its own page is open in either case."
_RESERVATION_DAYS = "How long a reservation lasts, in days; null: the server's default."

Seconds = Annotated[Decimal, _SECONDS, AfterValidator(float)]
Days = Annotated[Decimal, _DAYS, AfterValidator(float)]

routes = ApiRoutes(PREFIX, "Settings", key_guard(Permission.SEE_UNITS))


class NewProject(BodyModel):
    example: ClassVar[Any] = {"slug": "marina-heights", "name": "Marina Heights"}

    slug: Slug = Field(
        description="Addresses the project: a-z and 0-9, with single hyphens between. It never changes."
    )
    name: ProjectName = Field(description="Printable text with no space at either end.")


class ProjectChange(BodyModel):
    example: ClassVar[Any] = {"listed": True, "holdSeconds": 600, "reservationDays": None}

    name: ProjectName = Field(  # type: ignore[assignment]
        None, description="Printable text with no space at either end."
    )
    listed: bool = Field(None, description=_LISTED)  # type: ignore[assignment]
    hold_seconds: Seconds | None = Field(None, description=_HOLD_SECONDS)
    reservation_days: Days | None = Field(None, description=_RESERVATION_DAYS)


class StaffProjectDocument(models.ProjectDocument):
    """A project, with its settings."""

    listed: Annotated[bool, _LISTED]
    hold_seconds: Annotated[float | None, _HOLD_SECONDS]
    reservation_days: Annotated[float | None, _RESERVATION_DAYS]


class StaffProjectListDocument(models.Document):
    projects: list[StaffProjectDocument]
    next_cursor: models.Cursor


@routes.get("/projects", summary="List projects with their settings")
async def list_staff_projects(
    request: Request, *, cursor: TextCursor, limit: Limit
) -> StaffProjectListDocument:
    """Sorted by slug. A key that is limited to projects sees only these."""
    return await models.project_page(request, StaffProjectListDocument, cursor, limit, staff_project_document)


@routes.post(
    "/projects",
    summary="Add a project",
    permission=Permission.SELL,
    status=201,
    errors=(UnknownProject, ProjectExists),
)
async def add_project(request: Request, body: NewProject) -> StaffProjectDocument:
    """A key that is limited to projects cannot add others: 404."""
    check_project_access(request, body.slug)
    return staff_project_document(await request.services.projects.add(body.slug, body.name, request.author))


@routes.get("/projects/{slug}", summary="Read a project with its settings")
async def get_project(request: Request, slug: str) -> StaffProjectDocument:
    """A null setting uses the server's default."""
    return staff_project_document(await request.services.projects.find(slug))


@routes.patch("/projects/{slug}", summary="Change the settings of a project", permission=Permission.SELL)
async def change_project(request: Request, slug: str, body: ProjectChange) -> StaffProjectDocument:
    """Changes only the fields that are sent. Current holds and reservations keep their ends."""
    return staff_project_document(await request.services.projects.settle(slug, body.sent(), request.author))


def staff_project_document(project: Project) -> StaffProjectDocument:
    return StaffProjectDocument(
        **msgspec.structs.asdict(models.ProjectDocument.fill(project)),
        listed=project.listed,
        hold_seconds=_number(project.hold_seconds),
        reservation_days=_number(project.reservation_days),
    )


def _number(value: float | None) -> float | int | None:
    """Return a whole number without a point, as it was sent."""
    return int(value) if value is not None and value.is_integer() else value
