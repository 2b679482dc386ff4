"""PUT, PATCH and GET of one unit, and the list of a project's units."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from starlette.responses import Response

from holdfast.domain.project import Project
from holdfast.domain.refusals import Fault, InvalidInput
from holdfast.domain.unit import Unit, revision
from holdfast.operations.inventory import Inventory, PatchUnit, ReplaceUnit
from holdfast.operations.write_path import Written
from holdfast.web import strict_json
from holdfast.web.addresses import project_of, refuse_other_projects, unit_of
from holdfast.web.answer import JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults
from holdfast.web.cursors import cursor_text
from holdfast.web.integration import plain_bodies
from holdfast.web.json_bodies import json_text
from holdfast.web.queries import Query, refuse_query
from holdfast.web.unit_bodies import PATCH, REPLACE, CheckedBody, check, sent_status, with_status_fault
from holdfast.web.wire import unit_document


class UnitRoutes:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    async def put(self, call: Call) -> JsonAnswer:
        text = await json_text(call)
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        unit = plain_bodies.read(text, strict_json.names_in(text))
        if unit is not None and unit.code in (None, code) and not faults and not call.has_query:
            refuse_other_projects(call, slug)
            project_id = await self._inventory.project_id(slug)
            fields, status = unit.fields, unit.status
        else:
            body = _checked(call, text, REPLACE, slug, code, faults)
            project_id = await self._project_id(call, slug, code, body)
            fields, status = body.fields(), body.status
        command = ReplaceUnit((project_id, code), fields, status, call.precondition, author_of(call))
        return _written_response(await self._inventory.write(command))

    async def patch(self, call: Call) -> JsonAnswer:
        text = await json_text(call)
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        body = _checked(call, text, PATCH, slug, code, faults)
        project_id = await self._project_id(call, slug, code, body)
        command = PatchUnit((project_id, code), body.values, body.status, call.precondition, author_of(call))
        return _written_response(await self._inventory.write(command))

    async def get(self, call: Call) -> JsonAnswer | Response:
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        refuse_query(call, faults)
        refuse_faults(faults)
        refuse_other_projects(call, slug)
        unit, project = await self._inventory.find(slug, code)
        known = call.precondition.none_match
        if known is not None and (revision(unit, project) in known or "*" in known):
            return Response(status_code=304, headers={"etag": _etag(unit, project)})
        return _unit_response(unit, project, 200)

    async def list(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        slug = project_of(call, faults)
        query = Query(call, faults)
        status, since, after, limit = (
            query.status(),
            query.time("updatedSince"),
            query.text_cursor(),
            query.limit(),
        )
        query.finish()
        refuse_faults(faults)
        refuse_other_projects(call, slug)
        page, project = await self._inventory.page(slug, after, limit, status, since)
        document = {
            "units": [unit_document(unit, project) for unit in page[:limit]],
            "nextCursor": cursor_text(page[limit - 1].code) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def _project_id(self, call: Call, slug: str, code: str, body: CheckedBody) -> UUID:
        refuse_other_projects(call, slug)
        project_id = await self._inventory.project_id(slug)
        refuse_faults(with_status_fault(body.claim_faults(project_id, code), body.status))
        return project_id


def _checked(
    call: Call, text: str, adapter: TypeAdapter[Any], slug: str, code: str, faults: list[Fault]
) -> CheckedBody:
    """The body without faults; ``faults`` are those of the address."""
    parsed = strict_json.parse(text)
    refuse_query(call, faults)
    body = check(adapter, parsed, slug, code)
    if isinstance(body, list):
        raise InvalidInput(with_status_fault(faults + body, sent_status(parsed)))
    refuse_faults(with_status_fault(faults, body.status))
    return body


def _written_response(written: Written) -> JsonAnswer:
    return _unit_response(written.unit, written.project, 201 if written.created else 200)


def _unit_response(unit: Unit, project: Project, status: int) -> JsonAnswer:
    return JsonAnswer(unit_document(unit, project), status, (b"etag", _etag(unit, project).encode()))


def _etag(unit: Unit, project: Project) -> str:
    return f'"{revision(unit, project)}"'
