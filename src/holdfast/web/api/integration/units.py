"""PUT, PATCH and GET of one unit, and the list of a project's units."""

from __future__ import annotations

from datetime import datetime

from starlette.responses import Response

from holdfast.domain.errors import (
    PreconditionFailed,
    StatusLocked,
    TermsLocked,
    TransitionNotAllowed,
    UnknownProject,
    UnknownUnit,
)
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Status
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.operations.write_path import Written
from holdfast.web.api.models import UnitDocument, UnitListDocument, etag_header, not_modified, unit_document
from holdfast.web.api.parameters import CURSOR, LIMIT, STATUS, time
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.api.unit_bodies import PlainUnit, UnitBody, UnitPatch, UnitReplacementBody, UnitValues
from holdfast.web.auth import refuse_other_projects
from holdfast.web.json import JsonResponse
from holdfast.web.pagination import cursor_text, split_page
from holdfast.web.request import Request

PREFIX = "/v1/integration"
UNIT_PATH = f"{PREFIX}/projects/{{slug}}/units/{{code}}"
_WRITE_ERRORS = (UnknownProject, PreconditionFailed, StatusLocked, TermsLocked, TransitionNotAllowed)

routes = ApiRoutes(PREFIX, "Units")


@routes.get(
    "/projects/{slug}/units/{code}",
    summary="Read a unit",
    permission=Permission.INTEGRATE,
    headers=("If-None-Match",),
    responses={200: UnitDocument, 304: None},
    errors=(UnknownProject, UnknownUnit),
)
async def get_unit(request: Request, slug: str, code: str) -> Response:
    """The `ETag` names this representation: send it back as `If-Match` with a change, or as `If-None-Match`
    to be told 304 while nothing has changed."""
    refuse_other_projects(request, slug)
    unit, project = await request.services.inventory.find(slug, code)
    return not_modified(request, unit, project) or JsonResponse(
        unit_document(unit, project), 200, (etag_header(unit, project),)
    )


@routes.put(
    "/projects/{slug}/units/{code}",
    summary="Create or replace a unit",
    permission=Permission.INTEGRATE,
    body=UnitReplacementBody(),
    headers=("If-Match", "If-None-Match"),
    responses={200: UnitDocument, 201: UnitDocument},
    errors=_WRITE_ERRORS,
)
async def put_unit(request: Request, slug: str, code: str, body: UnitValues | PlainUnit) -> Response:
    """Optional fields that are left out are cleared, `images` and `files` included; `status` stays as it is.
    A new unit without `status` is `available`. Repeating a call stores nothing new.

    - `status` of a unit that is held, reserved or sold is refused: 409 `status-locked`.
    - While a buyer is mid-booking (the unit is held or reserved), price, deposit and VAT cannot change: 409
      `terms-locked`. Stored values may be sent again.
    - A unit as it was read can be sent back whole, without its `status`; fields that only the server sets are
      ignored."""
    refuse_other_projects(request, slug)
    inventory = request.services.inventory
    project_id = await inventory.project_id(slug)
    body.refuse_false_claims(project_id, code)
    command = ReplaceUnit(
        (project_id, code), body.replacement(), body.status, request.precondition, request.author
    )
    return _written_response(await inventory.write(command))


@routes.patch(
    "/projects/{slug}/units/{code}",
    summary="Change some fields of a unit",
    permission=Permission.INTEGRATE,
    body=UnitBody(UnitPatch),
    headers=("If-Match", "If-None-Match"),
    responses={200: UnitDocument},
    errors=(*_WRITE_ERRORS, UnknownUnit),
)
async def patch_unit(request: Request, slug: str, code: str, body: UnitValues) -> Response:
    """Only fields that are sent change; `null` clears an optional one. `{}` is valid and changes nothing.

    `status`, price, deposit and VAT are refused in the same cases as with PUT. A PATCH that is refused
    changes no field at all."""
    refuse_other_projects(request, slug)
    inventory = request.services.inventory
    project_id = await inventory.project_id(slug)
    body.refuse_false_claims(project_id, code)
    command = PatchUnit((project_id, code), body.fields, body.status, request.precondition, request.author)
    return _written_response(await inventory.write(command))


@routes.get(
    "/projects/{slug}/units",
    summary="List the units of a project",
    permission=Permission.INTEGRATE,
    query=(
        STATUS,
        time("updatedSince", "Only units that changed at this time or later. UTC without an offset."),
        CURSOR,
        LIMIT,
    ),
    responses={200: UnitListDocument},
    errors=(UnknownProject,),
)
async def list_units(
    request: Request,
    slug: str,
    *,
    status: Status | None,
    updated_since: datetime | None,
    cursor: str,
    limit: int,
) -> Response:
    """In the order of their codes. Pages are stable while units are written: follow `nextCursor` until it is
    null. With `updatedSince` the list has the units that changed since then."""
    refuse_other_projects(request, slug)
    rows, project = await request.services.inventory.page(slug, cursor, limit, status, updated_since)
    page, next_cursor = split_page(rows, limit, lambda unit: cursor_text(unit.code))
    return JsonResponse(UnitListDocument([unit_document(unit, project) for unit in page], next_cursor))


def _written_response(written: Written) -> Response:
    unit, project = written.unit, written.project
    return JsonResponse(
        unit_document(unit, project), 201 if written.created else 200, (etag_header(unit, project),)
    )
