"""Units as staff see them, the actions of the status table, and the history of a unit."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta
from pydantic import Field
from starlette.responses import Response

from holdfast.domain.audit import ActorKind
from holdfast.domain.booking import CLAIMING
from holdfast.domain.errors import (
    NotSigned,
    PreconditionFailed,
    TransitionNotAllowed,
    UnknownProject,
    UnknownUnit,
)
from holdfast.domain.permissions import Permission
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status
from holdfast.operations.bookings import StaffAction
from holdfast.operations.projects import HistoryEntry
from holdfast.operations.units import StaffUnit
from holdfast.operations.write_path import Written
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel, BuyerDetails, ModelBody
from holdfast.web.api.models import (
    ActorDocument,
    Changes,
    Cursor,
    Document,
    Time,
    UnitDocument,
    changes,
    etag_header,
    not_modified,
    page_response,
    unit_document,
)
from holdfast.web.api.parameters import CURSOR, LIMIT, NUMBER, STATUS
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import caller_of, check_project_access
from holdfast.web.fields import TimeField
from holdfast.web.json import JsonResponse, optional_time_text
from holdfast.web.pagination import LARGEST_NUMBER, NUMBER_CURSOR, TEXT_CURSOR
from holdfast.web.request import Request

_TAG = "Sales"

routes = ApiRoutes(PREFIX, _TAG)
undocumented_routes = ApiRoutes(PREFIX, _TAG)
"""The actions that only the clock may take: they are refused to everybody, and not documented."""


class StaffUnitDocument(UnitDocument):
    """A unit, with what staff alone know of it."""

    archived: Annotated[
        bool, Meta(description="Archived by staff: the integration API cannot put it on sale.")
    ]
    reserved_until: Annotated[Time | None, Meta(description="When the reservation ends.")]
    booking_reference: Annotated[str | None, Meta(description="The booking that has the unit.")]


class StaffUnitListDocument(Document):
    units: list[StaffUnitDocument]
    next_cursor: Cursor


class HistoryEntryDocument(Document):
    at: Time
    actor: ActorDocument
    action: Annotated[
        str,
        Meta(
            description="An action of the status table, `create`, `change` for the fields of a unit, `sign`, "
            "`mark-refunded`, `reissue-link` or `erase-buyer`. Later releases may add others."
        ),
    ]
    booking_reference: Annotated[str | None, Meta(description="The booking that it was about, if one.")]
    before: Annotated[
        Changes | None,
        Meta(description="The fields that changed, before; null if there was nothing before."),
    ]
    after: Annotated[Changes, Meta(description="The same fields, after.")]
    request_id: Annotated[str | None, Meta(description="The `X-Request-Id` of the request that did it.")]


class HistoryDocument(Document):
    entries: list[HistoryEntryDocument]
    next_cursor: Cursor


class Extension(BodyModel):
    example: ClassVar[Any] = {}

    until: TimeField = Field(  # type: ignore[assignment]
        None,
        description="The new end, within 3650 days from now and not before the present one; the present "
        "one again changes nothing. UTC without an offset. Without it the end moves by one period.",
    )


@routes.get(
    "/projects/{slug}/units",
    summary="List the units of a project for staff",
    permission=Permission.SEE_UNITS,
    query=(STATUS, CURSOR, LIMIT),
    responses={200: StaffUnitListDocument},
    errors=(UnknownProject,),
)
async def list_staff_units(
    request: Request, slug: str, *, status: Status | None, cursor: str, limit: int
) -> Response:
    """In the order of their codes, with what staff alone know of them: whether they are archived, until
    when they are reserved, which booking has them."""
    check_project_access(request, slug)
    page, has_more = await request.services.bookings.units.page(slug, cursor, limit, status)
    next_cursor = TEXT_CURSOR.encode(page[-1].unit.code) if has_more else None
    return JsonResponse(StaffUnitListDocument([staff_unit_document(found) for found in page], next_cursor))


@routes.get(
    "/projects/{slug}/units/{code}",
    summary="Read a unit as staff",
    permission=Permission.SEE_UNITS,
    headers=("If-None-Match",),
    responses={200: StaffUnitDocument, 304: None},
    errors=(UnknownProject, UnknownUnit),
)
async def get_staff_unit(request: Request, slug: str, code: str) -> Response:
    """The unit of the integration API, with what staff alone know of it. The `ETag` is the same."""
    check_project_access(request, slug)
    found = await request.services.bookings.units.find(slug, code)
    return not_modified(request, found.unit, found.project) or JsonResponse(
        staff_unit_document(found), 200, (etag_header(found.unit, found.project),)
    )


@routes.get(
    "/projects/{slug}/units/{code}/history",
    summary="Read the history of a unit",
    permission=Permission.SEE_UNITS,
    query=(NUMBER, LIMIT),
    responses={200: HistoryDocument},
    errors=(UnknownProject, UnknownUnit),
)
async def get_unit_history(
    request: Request, slug: str, code: str, *, cursor: int | None, limit: int
) -> Response:
    """Everything that was done to the unit, and by whom; the latest first."""
    check_project_access(request, slug)
    rows = await request.services.projects.history(slug, code, cursor or LARGEST_NUMBER, limit)
    return page_response(
        HistoryDocument, rows, limit, entry_document, lambda entry: NUMBER_CURSOR.encode(entry.id)
    )


class _ActionTexts(NamedTuple):
    name: str
    """Of the function, and so of the operation."""
    summary: str
    description: str


_ACTIONS = {
    Action.OPEN: _ActionTexts(
        "open_unit",
        "Hold a unit for a buyer",
        "No limit of holds applies to staff. The link for the buyer comes from `reissueLink`.",
    ),
    Action.EXTEND: _ActionTexts(
        "extend_unit",
        "Extend the hold or reservation of a unit",
        "Moves the end of the hold or reservation later: by one period, or to `until`, which can be "
        "repeated. It is never moved closer.",
    ),
    Action.CANCEL_HOLD: _ActionTexts("cancel_hold", "Cancel the hold of a unit", "Its booking ends."),
    Action.CONFIRM_DEPOSIT: _ActionTexts(
        "confirm_deposit_of_unit",
        "Confirm the deposit of a held unit",
        "The buyer has signed and the deposit has arrived: the unit is reserved. A payment system uses the "
        "operation of the booking, which can be repeated.",
    ),
    Action.CANCEL_RESERVATION: _ActionTexts(
        "cancel_reservation",
        "Cancel the reservation of a unit",
        "Its booking ends, and becomes `refund-due`.",
    ),
    Action.CLOSE_SALE: _ActionTexts(
        "close_sale",
        "Close the sale of a unit",
        "Of a reserved unit, without a body; or of an available one to a buyer who walked in and whom the "
        "body names, which makes a booking.",
    ),
    Action.PUT_ON_SALE: _ActionTexts(
        "put_on_sale", "Put a unit on sale", "An archived unit is archived no longer."
    ),
    Action.TAKE_OFF_SALE: _ActionTexts(
        "take_off_sale",
        "Take a unit off sale",
        "If it is held or reserved, its booking ends; a confirmed deposit becomes `refund-due`.",
    ),
    Action.ARCHIVE: _ActionTexts(
        "archive_unit",
        "Archive a unit",
        "It is off sale, and only staff can put it on sale again. If it is held or reserved, its booking "
        "ends; a confirmed deposit becomes `refund-due`. A unit is not archived twice.",
    ),
    Action.REVOKE_SALE: _ActionTexts(
        "revoke_sale",
        "Revoke a sale",
        "For a mistake, or a buyer who withdrew: the unit is unavailable, and a confirmed deposit becomes "
        "`refund-due`. It needs a key of scope `admin`.",
    ),
}
_BODIES = {
    Action.EXTEND: ModelBody(Extension, optional=True),
    # The buyer of a unit that is sold to somebody who walked in; empty for a reserved unit.
    Action.CLOSE_SALE: ModelBody(BuyerDetails, optional=True),
}
_ACTION_ERRORS = (UnknownProject, UnknownUnit, PreconditionFailed, TransitionNotAllowed)


def _declare(action: Action) -> None:
    """Declare the operation of one action."""

    async def act(
        request: Request, slug: str, code: str, body: Extension | BuyerDetails | None = None
    ) -> Response:
        check_project_access(request, slug)
        asked = StaffAction(
            action,
            buyer=body.buyer() if isinstance(body, BuyerDetails) else None,
            until=body.until if isinstance(body, Extension) else None,
        )
        written = await request.services.bookings.act(
            slug, code, asked, caller_of(request), request.author, request.precondition
        )
        etag = etag_header(written.unit, written.project)
        return JsonResponse(written_unit_document(written), 200, (etag,))

    declared = _ACTIONS.get(action)
    if declared is not None:
        act.__name__, act.__doc__ = declared.name, f"{declared.description}\n\n{_rule(action)}"
    (undocumented_routes if declared is None else routes).post(
        f"/projects/{{slug}}/units/{{code}}/{action}",
        summary="" if declared is None else declared.summary,
        permission=Permission.REVOKE_SALE if action is Action.REVOKE_SALE else Permission.SELL,
        body=_BODIES.get(action),
        headers=("If-Match", "If-None-Match"),
        responses={200: StaffUnitDocument},
        errors=(*_ACTION_ERRORS, NotSigned) if action is Action.CONFIRM_DEPOSIT else _ACTION_ERRORS,
    )(act)


def _rule(action: Action) -> str:
    """Say what the status table says of it."""
    rows = [row for row in TRANSITIONS if row.action is action and Caller.ADMIN in row.callers]
    sources = ", ".join(dict.fromkeys(f"`{row.source}`" for row in rows))
    event = rows[0].event
    sent = f"Event: `{event}`." if event else "No event."
    return f"From {sources}; from any other status it is 409 `transition-not-allowed`. {sent}"


for _action in Action:
    _declare(_action)


def written_unit_document(written: Written) -> StaffUnitDocument:
    booking = written.decision.booking
    claim = booking if booking and booking.status in CLAIMING else None
    return staff_unit_document(StaffUnit(written.unit, written.project, claim))


def staff_unit_document(found: StaffUnit) -> StaffUnitDocument:
    unit, project, booking = found
    return StaffUnitDocument(
        **msgspec.structs.asdict(unit_document(unit, project)),
        archived=unit.archived,
        reserved_until=optional_time_text(unit.reserved_until),
        booking_reference=booking.reference if booking else None,
    )


def entry_document(entry: HistoryEntry) -> HistoryEntryDocument:
    return HistoryEntryDocument.fill(
        entry,
        actor=ActorDocument(ActorKind(entry.actor_kind), entry.actor_id, entry.key_name),
        before=changes(entry.before),
        after=changes(entry.after),
    )
