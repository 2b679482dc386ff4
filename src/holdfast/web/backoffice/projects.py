"""Projects, their settings and their layout."""

from __future__ import annotations

from holdfast.domain.refusals import Fault, UnknownProject
from holdfast.operations.inventory import Inventory
from holdfast.operations.projects import Projects
from holdfast.web.addresses import project_of, refuse_other_projects
from holdfast.web.answer import JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.backoffice.bodies import NEW_PROJECT, NEW_PROJECT_NAMES, PROJECT, PROJECT_NAMES
from holdfast.web.backoffice.documents import staff_project_document
from holdfast.web.backoffice.layouts import layout_answer, read_layout
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults, valid_body
from holdfast.web.json_bodies import json_body
from holdfast.web.project_pages import projects_page
from holdfast.web.queries import refuse_query


class StaffProjectRoutes:
    def __init__(self, inventory: Inventory, projects: Projects) -> None:
        self._inventory = inventory
        self._projects = projects

    async def list(self, call: Call) -> JsonAnswer:
        return await projects_page(call, self._inventory, staff_project_document)

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
        return await layout_answer(slug, await self._projects.layout(slug))

    async def arrange(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        slug = project_of(call, faults)
        names_a_project = not faults
        refuse_query(call, faults)
        sent = await read_layout(body, slug)
        faults += sent.faults
        if not names_a_project:
            refuse_faults(faults)
        try:
            refuse_other_projects(call, slug)
            placed = await self._projects.arrange(slug, sent.places, author_of(call), faults)
        except UnknownProject:
            refuse_faults(faults)
            raise
        return await layout_answer(slug, placed)


def _own_project(call: Call) -> str:
    faults: list[Fault] = []
    slug = project_of(call, faults)
    refuse_query(call, faults)
    refuse_faults(faults)
    refuse_other_projects(call, slug)
    return slug
