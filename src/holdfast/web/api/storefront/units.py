"""The units on sale, and the hold of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.booking import unit_terms
from holdfast.domain.project import Project
from holdfast.domain.status import ON_SALE, Status
from holdfast.domain.unit import Unit, UnitFields
from holdfast.operations.bookings import Requester
from holdfast.web.api.bodies import Body, no_fields
from holdfast.web.api.models import Cursor, Document, Time, UnitDocument, page_document
from holdfast.web.api.parameters import FloorFilter, Limit, TextCursor, one_of
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import OPTIONAL_TOKEN, PUBLIC
from holdfast.web.errors import ForeignForm
from holdfast.web.json import JsonResponse, read_optional_json, time_text
from holdfast.web.pagination import TEXT_CURSOR
from holdfast.web.request import Request
from holdfast.web.visitors import (
    IDEMPOTENCY_KEY,
    VISITOR_COOKIE,
    read_idempotency_key,
    read_visitor_cookie,
    reject_other_sites,
    requester_of,
)

PREFIX = "/v1/storefront"
HOLD_BODY_LIMIT = 1024

routes = ApiRoutes(PREFIX, "Storefront", PUBLIC)


def _fields_on_sale() -> dict[str, Any]:
    """Return the fields of a unit in the order in which buyers see them, with their types."""
    names = UnitFields._fields
    after_deposit = names.index("deposit_percent")
    types = {field.name: field.type for field in msgspec.structs.fields(UnitDocument)}
    own = {
        "total_sar": Annotated[Decimal, "Price, plus VAT where the price does not include it."],
        "deposit_sar": Annotated[Decimal, "The deposit: its percentage of the total."],
        "status": Annotated[str, Meta(extra_json_schema={"enum": [str(status) for status in ON_SALE]})],
    }
    order = (
        *("code", "project_slug", "project_name"),
        *names[:after_deposit],
        *("total_sar", "deposit_percent", "deposit_sar", "status"),
        *names[after_deposit + 1 :],
        "hold_expires_at",
    )
    return {name: own.get(name) or types[name] for name in order}


class UnitOnSaleDocument(Document):
    """A unit as buyers see it. Values that are not set are null."""

    __annotations__ = _fields_on_sale()


class UnitOnSaleListDocument(Document):
    units: list[UnitOnSaleDocument]
    next_cursor: Cursor


class HoldDocument(Document):
    reference: str
    token: Annotated[
        str,
        "The bearer token of the booking. Only a hash of it is kept; until the agreement is "
        "signed, the same request with the same `Idempotency-Key` is answered with it again.",
    ]
    unit: UnitOnSaleDocument
    hold_expires_at: Annotated[Time, "When the hold ends."]


class HoldBody(Body):
    """No fields. Headers are read with it, so that their faults are reported with all others."""

    async def read(self, request: Request, path: Sequence[Any], faults: list[errors.Fault]) -> Requester:
        reject_other_sites(request)
        parsed = await read_optional_json(request, self.limit)
        key = read_idempotency_key(request, faults)
        faults += no_fields(parsed)
        return requester_of(request, read_visitor_cookie(request), key)


@routes.post(
    "/projects/{slug}/units/{code}/hold",
    summary="Hold a unit",
    guard=OPTIONAL_TOKEN,
    body=HoldBody(HOLD_BODY_LIMIT),
    headers=(IDEMPOTENCY_KEY, VISITOR_COOKIE),
    responses={200: HoldDocument, 201: HoldDocument},
    errors=(
        ForeignForm,
        errors.UnknownUnit,
        errors.NotAvailable,
        errors.HoldLapsed,
        errors.IdempotencyKeyUsed,
        errors.TooManyHolds,
        errors.HeldTooRecently,
    ),
)
async def hold_unit(request: Request, slug: str, code: str, requester: Requester) -> Response:
    """Holds the unit for the caller and freezes its terms. A hold lasts five minutes, unless the project or
    the server is set otherwise. The `token` gives access to the booking.

    - A unit that is held, reserved, sold or not on sale is 409 `not-available`. If a hold blocks it,
      `holdExpiresAt` and `Retry-After` say when that ends.
    - With `Authorization: Bearer <token>` of your own live hold the response is 200 with that hold.
    - With the `Idempotency-Key` of an earlier request for the same unit, the response is 201 with the hold
      that was made then, token included: to the same visitor (the cookie `holdfast_visitor`), or to the same
      address within 60 seconds, and only until the agreement is signed. Once that hold has lapsed it is 409
      `hold-lapsed`, and in every other case 409 `idempotency-key-used`. The token of your own live hold
      takes precedence over the key.
    - A visitor, an address and a network may hold a limited number of units at a time: 429
      `too-many-holds`. After a hold has lapsed, the same visitor must wait before holding the same
      unit again: 429 `held-too-recently`.

    Send no body, or an empty object."""
    token, request_id = request.bearer_token(), request.request_id
    held = await request.services.bookings.hold(slug, code, requester, token, request_id)
    assert held.booking.hold_expires_at is not None
    document = HoldDocument(
        held.booking.reference,
        held.token,
        unit_on_sale_document(held.unit, held.project),
        time_text(held.booking.hold_expires_at),
    )
    return JsonResponse(document, 201 if held.is_new else 200)


@routes.get("/projects/{slug}/units/{code}", summary="Read a unit on sale", errors=(errors.UnknownUnit,))
async def get_unit_on_sale(request: Request, slug: str, code: str) -> UnitOnSaleDocument:
    """A unit that is not on sale is 404."""
    unit, project = await request.services.units.find(slug, code)
    if unit.status not in ON_SALE:
        raise errors.UnknownUnit(slug, code)
    return unit_on_sale_document(unit, project)


@routes.get("/projects/{slug}/units", summary="List the units on sale")
async def list_units_on_sale(
    request: Request,
    slug: str,
    *,
    status: Annotated[Status | None, one_of(ON_SALE, "Only units in this status.")],
    floor: FloorFilter,
    cursor: TextCursor,
    limit: Limit,
) -> UnitOnSaleListDocument:
    """Units that are available, held, reserved or sold, sorted by code."""
    rows, project = await request.services.units.page(slug, cursor, limit, status, floor=floor, on_sale=True)
    document = partial(unit_on_sale_document, project=project)
    return page_document(
        UnitOnSaleListDocument, rows, limit, document, lambda unit: TEXT_CURSOR.encode(unit.code)
    )


def unit_on_sale_document(unit: Unit, project: Project) -> UnitOnSaleDocument:
    terms = unit_terms(unit.fields)
    return UnitOnSaleDocument.fill(
        unit,
        **unit.fields._asdict(),
        project_slug=project.slug,
        project_name=project.name,
        total_sar=terms.total_sar,
        deposit_sar=terms.deposit_sar,
    )
