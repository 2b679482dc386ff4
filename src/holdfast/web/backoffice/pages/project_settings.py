"""A project: created, named, and how long its holds and reservations last."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import Fault, InvalidInput, ProjectExists
from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS, Periods
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project, suggested_slug
from holdfast.operations.projects import Projects
from holdfast.web.addresses import project_of
from holdfast.web.api.backoffice.projects import NewProject, ProjectChange
from holdfast.web.api.bodies import refuse_faults, valid
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.html.translation import translate, translate_refusal

PROJECTS = f"{PREFIX}/projects"


class ProjectSettingPages:
    def __init__(self, projects: Projects, periods: Periods) -> None:
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
            return await self._again(visit, name, slug, {"slug": translate_refusal(refusal, visit.language)})
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


def project_setting_routes(desk: Desk, projects: Projects, periods: Periods) -> list[Route]:
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
    faults: list[Fault] = []
    slug = project_of(visit.request, faults)
    refuse_faults(faults)
    return slug


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
