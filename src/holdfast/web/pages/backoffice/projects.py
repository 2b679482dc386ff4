"""Projects: the list with how far each is sold, new projects, and the settings of one."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from starlette.responses import Response

from holdfast.domain.board import Counts
from holdfast.domain.errors import InvalidInput, ProjectExists
from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project, slug_fault, suggested_slug
from holdfast.domain.status import Status
from holdfast.web.api.backoffice.projects import NewProject, ProjectChange
from holdfast.web.api.bodies import valid
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, with_query

PROJECTS = f"{PREFIX}/projects"
PROJECTS_A_PAGE = 60
BAR_WIDTH = 1000

_ORDER = (Status.SOLD, Status.RESERVED, Status.HELD, Status.AVAILABLE, Status.UNAVAILABLE)
_PERIODS = ("holdSeconds", "reservationDays")


@pages.get("/projects", Permission.SEE_UNITS)
async def list_projects(request: StaffRequest) -> Response:
    after = request.query.text("after")
    after = after if slug_fault(after) is None else ""
    cards = await request.services.boards.projects(after, PROJECTS_A_PAGE)
    has_more = len(cards) > PROJECTS_A_PAGE
    cards = cards[:PROJECTS_A_PAGE]
    return await request.render(
        "projects.html",
        cards=cards,
        bars={card.project.id: status_bar(card.counts) for card in cards},
        order=_ORDER,
        first=PROJECTS if after else None,
        next=with_query(PROJECTS, after=cards[-1].project.slug) if has_more else None,
    )


def status_bar(counts: Counts) -> list[tuple[Status, float, float]]:
    """Return status, start and width of each part of a bar; the sold part first."""
    parts, start = [], 0.0
    for status in _ORDER:
        width = BAR_WIDTH * counts.by_status[status] / (counts.total or 1)
        if width:
            parts.append((status, round(start, 2), round(width, 2)))
        start += width
    return parts


@pages.get("/new-project", Permission.SELL)
async def show_new_project(request: StaffRequest) -> Response:
    return await request.render("project_new.html", name="", slug="", faults={})


@pages.post("/new-project", Permission.SELL)
async def add_project(request: StaffRequest) -> Response:
    name = request.form.text("name")
    slug = request.form.text("slug") or suggested_slug(name)
    # A field that was left empty is missing, not too short.
    sent = {field: value for field, value in (("name", name), ("slug", slug)) if value}
    try:
        body = valid(NewProject, sent)
        project = await request.services.projects.add(body.slug, body.name, request.author)
    except InvalidInput as error:
        faults = request.faults(error)
        if not slug and name:
            faults["slug"] = request._("Enter an address of Latin letters and digits.")
    except ProjectExists as error:
        faults = {"slug": request.error_text(error)}
    else:
        notice = request._("The project %(name)s was created. Now add its units.", name=project.name)
        return await request.redirect_with_notice(f"{PROJECTS}/{project.slug}", notice)
    return await request.render("project_new.html", 422, name=name, slug=slug, faults=faults)


@pages.get("/projects/{slug}/settings", Permission.SEE_UNITS)
async def show_settings(request: StaffRequest, slug: str) -> Response:
    project = await request.services.projects.find(slug)
    typed = {
        "name": project.name,
        "listed": project.listed,
        "holdSeconds": "" if project.hold_seconds is None else f"{project.hold_seconds:.10g}",
        "reservationDays": "" if project.reservation_days is None else f"{project.reservation_days:.10g}",
    }
    return await _render_settings(request, 200, project, typed, {})


@pages.post("/projects/{slug}/settings", Permission.SELL)
async def change_settings(request: StaffRequest, slug: str) -> Response:
    project = await request.services.projects.find(slug)
    typed = {name: request.form.text(name) for name in ("name", "listed", *_PERIODS)}
    try:
        # A period that is left empty is the server's own.
        periods = {name: _parse_number(typed[name]) if typed[name] else None for name in _PERIODS}
        changes = valid(ProjectChange, {**typed, **periods, "listed": bool(typed["listed"])}).sent()
        await request.services.projects.settle(project.slug, changes, request.author)
    except InvalidInput as error:
        return await _render_settings(request, 422, project, typed, request.faults(error))
    return await request.redirect_with_notice(
        f"{PROJECTS}/{project.slug}/settings", request._("Settings saved.")
    )


async def _render_settings(
    request: StaffRequest, status: int, project: Project, typed: Mapping[str, object], faults: dict[str, str]
) -> Response:
    return await request.render(
        "project_settings.html",
        status,
        project=project,
        periods=request.services.bookings.periods,
        typed=typed,
        faults=faults,
        longest=(LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS),
    )


def _parse_number(text: str) -> Decimal | str:
    """Return a number in digits of any script; other text is left for the check to reject."""
    try:
        number = Decimal(text.replace("\N{ARABIC DECIMAL SEPARATOR}", "."))
    except InvalidOperation:
        return text
    return number if number.is_finite() else text
