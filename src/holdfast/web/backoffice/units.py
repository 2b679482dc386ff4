"""Units as staff see them, what they do to one, and what was done to it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from holdfast.domain.project import Project
from holdfast.domain.refusals import Fault
from holdfast.domain.status import Action
from holdfast.domain.unit import Unit, revision
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling, StaffAction
from holdfast.web.addresses import project_of, refuse_other_projects, unit_of
from holdfast.web.answer import JsonAnswer
from holdfast.web.authors import author_of, caller_of
from holdfast.web.backoffice.bodies import EXTENSION, EXTENSION_NAMES
from holdfast.web.backoffice.documents import entry_document, staff_unit_document, written_unit_document
from holdfast.web.buyer_bodies import BUYER, BUYER_NAMES, buyer_from
from holdfast.web.call import Call
from holdfast.web.checking import no_fields, refuse_faults, valid_body
from holdfast.web.cursors import cursor_text
from holdfast.web.json_bodies import optional_json_body
from holdfast.web.queries import LAST_POSITION, Query, refuse_query
from holdfast.web.routing import Handler


class StaffUnitRoutes:
    def __init__(self, selling: Selling, projects: Projects) -> None:
        self._selling = selling
        self._projects = projects

    async def list(self, call: Call) -> JsonAnswer:
        """In the order of their codes."""
        faults: list[Fault] = []
        slug = project_of(call, faults)
        query = Query(call, faults)
        status, after, limit = query.status(), query.text_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        refuse_other_projects(call, slug)
        page, has_more = await self._selling.units.page(slug, after, limit, status)
        document = {
            "units": [staff_unit_document(found) for found in page],
            "nextCursor": cursor_text(page[-1].unit.code) if has_more else None,
        }
        return JsonAnswer(document)

    async def get(self, call: Call) -> JsonAnswer | Response:
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        refuse_query(call, faults)
        refuse_faults(faults)
        refuse_other_projects(call, slug)
        found = await self._selling.units.find(slug, code)
        known, etag = call.precondition.none_match, _etag(found.unit, found.project)
        if known is not None and (etag[1:-1] in known or "*" in known):
            return Response(status_code=304, headers={"etag": etag})
        return JsonAnswer(staff_unit_document(found), 200, (b"etag", etag.encode()))

    def acting(self, action: Action) -> Handler:
        """The route of one action."""

        async def act(call: Call) -> JsonAnswer:
            return await self._act(action, call)

        return act

    async def _act(self, action: Action, call: Call) -> JsonAnswer:
        body = await optional_json_body(call)
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        refuse_query(call, faults)
        asked = _asked(action, body, faults)
        refuse_other_projects(call, slug)
        written = await self._selling.act(
            slug, code, asked, caller_of(call), author_of(call), call.precondition
        )
        etag = _etag(written.unit, written.project)
        return JsonAnswer(written_unit_document(written), 200, (b"etag", etag.encode()))

    async def history(self, call: Call) -> JsonAnswer:
        """The latest first."""
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        query = Query(call, faults)
        before, limit = query.position("cursor"), query.limit()
        query.finish()
        refuse_faults(faults)
        refuse_other_projects(call, slug)
        page = await self._projects.history(slug, code, before or LAST_POSITION, limit)
        document = {
            "entries": [entry_document(entry) for entry in page[:limit]],
            "nextCursor": cursor_text(str(page[limit - 1].id)) if len(page) > limit else None,
        }
        return JsonAnswer(document)


def _etag(unit: Unit, project: Project) -> str:
    return f'"{revision(unit, project)}"'


def _asked(action: Action, body: Any, faults: list[Fault]) -> StaffAction:
    if action is Action.EXTEND:
        values = valid_body(EXTENSION, body, EXTENSION_NAMES, faults)
        return StaffAction(action, until=values.get("until"))
    if action is Action.CLOSE_SALE and body:
        return StaffAction(action, buyer=buyer_from(valid_body(BUYER, body, BUYER_NAMES, faults)))
    refuse_faults([*faults, *no_fields(body)])
    return StaffAction(action)
