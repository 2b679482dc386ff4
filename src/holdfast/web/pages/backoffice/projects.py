"""The projects, each with how far it is sold."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import InvalidInput, ProjectExists
from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS, HoldPeriods
from holdfast.domain.layout import Counts
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project, slug_fault, suggested_slug
from holdfast.domain.status import Status
from holdfast.operations.boards import Boards
from holdfast.operations.projects import Projects
from holdfast.web.api.backoffice.projects import NewProject, ProjectChange
from holdfast.web.api.bodies import valid
from holdfast.web.api.parameters import slug_in_path
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.i18n import translate, translate_error

CARDS = 60
BAR_WIDTH = 1000
_ORDER = (Status.SOLD, Status.RESERVED, Status.HELD, Status.AVAILABLE, Status.UNAVAILABLE)


class ProjectPages:
    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    async def list(self, visit: Visit) -> Response:
        after = visit.query.text("after")
        after = after if slug_fault(after) is None else ""
        cards = await self._boards.projects(after, CARDS)
        next_slug = cards[CARDS - 1].project.slug if len(cards) > CARDS else None
        return await visit.render(
            "projects.html",
            cards=cards[:CARDS],
            bars={card.project.id: bar(card.counts) for card in cards},
            order=_ORDER,
            first=f"{PREFIX}/projects" if after else None,
            next=None if next_slug is None else f"{PREFIX}/projects?{urlencode({'after': next_slug})}",
        )


def bar(counts: Counts) -> list[tuple[Status, float, float]]:
    """Status, start and width of each part of a bar; the sold part first."""
    parts, start = [], 0.0
    for status in _ORDER:
        width = BAR_WIDTH * counts.by_status[status] / (counts.total or 1)
        if width:
            parts.append((status, round(start, 2), round(width, 2)))
        start += width
    return parts


def project_list_routes(desk: Desk, boards: Boards) -> list[Route]:
    return [desk.page(f"{PREFIX}/projects", Permission.SEE_UNITS, GET=ProjectPages(boards).list)]


# A project: created, named, and how long its holds and reservations last.

PROJECTS = f"{PREFIX}/projects"


class ProjectSettingPages:
    def __init__(self, projects: Projects, periods: HoldPeriods) -> None:
        self._projects = projects
        self._periods = periods

    async def new(self, visit: Visit) -> Response:
        return await visit.render("project_new.html", name="", slug="", faults={})

    async def add(self, visit: Visit) -> Response:
        name, slug = (
            visit.form.text("name"),
            visit.form.text("slug") or suggested_slug(visit.form.text("name")),
        )
        try:
            sent = valid(NewProject, _filled(name=name, slug=slug))
            project = await self._projects.add(sent.slug, sent.name, visit.author)
        except InvalidInput as refusal:
            faults = _faults(visit, refusal)
            if not slug and name:
                faults["slug"] = visit._("Give it an address in Latin letters and digits.")
            return await self._again(visit, name, slug, faults)
        except ProjectExists as refusal:
            return await self._again(visit, name, slug, {"slug": translate_error(refusal, visit.language)})
        notice = visit._("The project %(name)s is there. Now add its units.", name=project.name)
        return await visit.go(f"{PROJECTS}/{project.slug}", notice)

    async def show(self, visit: Visit) -> Response:
        project = await self._projects.find(_slug(visit))
        return await self._settings(visit, 200, project, _values_of(project), {})

    async def settle(self, visit: Visit) -> Response:
        project = await self._projects.find(_slug(visit))
        typed = {name: visit.form.text(name) for name in ("name", "holdSeconds", "reservationDays")}
        try:
            await self._projects.settle(project.slug, _changes(typed), visit.author)
        except InvalidInput as refusal:
            return await self._settings(visit, 422, project, typed, _faults(visit, refusal))
        return await visit.go(f"{PROJECTS}/{project.slug}/settings", visit._("The settings are saved."))

    async def _again(self, visit: Visit, name: str, slug: str, faults: dict[str, str]) -> Response:
        return await visit.render("project_new.html", 422, name=name, slug=slug, faults=faults)

    async def _settings(
        self, visit: Visit, status: int, project: Project, typed: dict[str, str], faults: dict[str, str]
    ) -> Response:
        return await visit.render(
            "project_settings.html",
            status,
            project=project,
            periods=self._periods,
            typed=typed,
            faults=faults,
            longest=(LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS),
        )


def project_setting_routes(desk: Desk, projects: Projects, periods: HoldPeriods) -> list[Route]:
    pages = ProjectSettingPages(projects, periods)
    return [
        desk.page(f"{PREFIX}/new-project", Permission.SELL, GET=pages.new, POST=pages.add),
        desk.page(
            f"{PROJECTS}/{{slug}}/settings",
            Permission.SEE_UNITS,
            GET=pages.show,
            POST=(Permission.SELL, pages.settle),
        ),
    ]


def _slug(visit: Visit) -> str:
    return slug_in_path(visit.request)


def _values_of(project: Project) -> dict[str, str]:
    return {
        "name": project.name,
        "holdSeconds": "" if project.hold_seconds is None else f"{project.hold_seconds:.10g}",
        "reservationDays": "" if project.reservation_days is None else f"{project.reservation_days:.10g}",
    }


def _changes(typed: dict[str, str]) -> dict[str, Any]:
    """A period that is left empty is the server's own."""
    sent: dict[str, Any] = {"name": typed["name"]}
    for name in ("holdSeconds", "reservationDays"):
        sent[name] = _number(typed[name]) if typed[name] else None
    return valid(ProjectChange, sent).sent()


def _number(text: str) -> Decimal | str:
    """Of whatever digits people write; what is none is left for the check to refuse."""
    try:
        number = Decimal(text.replace("\N{ARABIC DECIMAL SEPARATOR}", "."))
    except InvalidOperation:
        return text
    return number if number.is_finite() else text


def _filled(**values: str) -> dict[str, Any]:
    """What was left empty is missing, not too short."""
    return {name: value for name, value in values.items() if value}


def _faults(visit: Visit, refusal: InvalidInput) -> dict[str, str]:
    return {fault.pointer.strip("/"): translate(fault.message, visit.language) for fault in refusal.faults}
