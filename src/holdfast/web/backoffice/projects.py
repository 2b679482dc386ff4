"""Projects, their settings and their layout."""

from __future__ import annotations

from typing import Any

from holdfast.domain.layout import Place, guess
from holdfast.domain.refusals import Fault, UnknownProject
from holdfast.operations.inventory import Inventory
from holdfast.operations.projects import Projects
from holdfast.web.addresses import project_of, refuse_other_projects
from holdfast.web.answer import JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.backoffice.bodies import (
    LAYOUT,
    LAYOUT_NAMES,
    NEW_PROJECT,
    NEW_PROJECT_NAMES,
    PROJECT,
    PROJECT_NAMES,
)
from holdfast.web.backoffice.documents import layout_document, staff_project_document
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults, valid_body
from holdfast.web.json_bodies import json_body
from holdfast.web.queries import Query, cursor_text, refuse_query


class StaffProjectRoutes:
    def __init__(self, inventory: Inventory, projects: Projects) -> None:
        self._inventory = inventory
        self._projects = projects

    async def list(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        query = Query(call, faults)
        after, limit = query.text_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._inventory.projects_page(call.key.project_slugs, after, limit)
        document = {
            "projects": [staff_project_document(project) for project in page[:limit]],
            "nextCursor": cursor_text(page[limit - 1].slug) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def add(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        refuse_query(call, faults)
        values = valid_body(NEW_PROJECT, body, NEW_PROJECT_NAMES, faults)
        refuse_other_projects(call, values["slug"])
        project = await self._projects.add(values["slug"], values["name"], author_of(call))
        return JsonAnswer(staff_project_document(project), 201)

    async def get(self, call: Call) -> JsonAnswer:
        slug = _own_project(call)
        return JsonAnswer(staff_project_document(await self._projects.find(slug)))

    async def patch(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        slug = project_of(call, faults)
        refuse_query(call, faults)
        changes = valid_body(PROJECT, body, PROJECT_NAMES, faults)
        refuse_other_projects(call, slug)
        return JsonAnswer(staff_project_document(await self._projects.settle(slug, changes, author_of(call))))

    async def layout(self, call: Call) -> JsonAnswer:
        slug = _own_project(call)
        return JsonAnswer(layout_document(slug, await self._projects.layout(slug)))

    async def arrange(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        slug = project_of(call, faults)
        refuse_query(call, faults)
        sent = valid_body(LAYOUT, body, LAYOUT_NAMES, faults)
        faults = _layout_faults(sent, slug)
        try:
            refuse_other_projects(call, slug)
            placed = await self._projects.arrange(slug, _places(sent), author_of(call), faults)
        except UnknownProject:
            refuse_faults(faults)
            raise
        return JsonAnswer(layout_document(slug, placed))


def _own_project(call: Call) -> str:
    faults: list[Fault] = []
    slug = project_of(call, faults)
    refuse_query(call, faults)
    refuse_faults(faults)
    refuse_other_projects(call, slug)
    return slug


def _layout_faults(layout: dict[str, Any], slug: str) -> list[Fault]:
    """But for codes that the project does not have."""
    faults = []
    if layout.get("project_slug", slug) != slug:
        faults.append(Fault("/projectSlug", "This is not the slug of the addressed project."))
    seen: set[str] = set()
    for at, unit in enumerate(layout["units"]):
        if unit["code"] in seen:
            faults.append(Fault(f"/units/{at}/code", "This code stands twice."))
        seen.add(unit["code"])
    return faults


def _places(layout: dict[str, Any]) -> list[tuple[str, Place | None]]:
    """In the order sent, so that a fault can point at its place; None: the place is the guess."""
    return [(unit["code"], _chosen(unit)) for unit in layout["units"]]


def _chosen(unit: dict[str, Any]) -> Place | None:
    """What was read as a guess and comes back changed is a choice, whatever it is marked as."""
    place = Place(unit["building"], unit["floor"], unit["position"])
    return None if unit.get("guessed", False) and place == guess(unit["code"]) else place
