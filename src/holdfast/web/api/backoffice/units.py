"""Units as staff see them, the actions of the status table, and the history of a unit."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from pydantic import Field
from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.audit import ActorKind
from holdfast.domain.booking import CLAIMING
from holdfast.domain.permissions import Permission
from holdfast.domain.transitions import TRANSITIONS, Action, Caller
from holdfast.operations.audit import StoredEntry
from holdfast.operations.bookings import StaffAction
from holdfast.operations.units import UnitWithBooking
from holdfast.web.api import models
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import NO_BODY, BodyModel, BuyerDetails, ModelBody
from holdfast.web.api.parameters import Limit, NumberCursor, TextCursor, UnitStatusFilter
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import caller_of, key_guard
from holdfast.web.fields import TimeField
from holdfast.web.json import JsonResponse, optional_time_text
from holdfast.web.pagination import LARGEST_NUMBER, NUMBER_CURSOR, TEXT_CURSOR
from holdfast.web.request import Request

_TAG = "Sales"

routes = ApiRoutes(PREFIX, _TAG, key_guard(Permission.SEE_UNITS))
undocumented_routes = ApiRoutes(PREFIX, _TAG)
"""The actions that only the clock may take: every caller gets an error, and they are not documented."""


class StaffUnitDocument(models.UnitDocument):
    """A unit, with what staff alone know of it."""

    archived: Annotated[bool, "Archived by staff: the integration API cannot put it on sale."]
    reserved_until: Annotated[models.Time | None, "When the reservation ends."]
    booking_reference: Annotated[str | None, "The booking that has the unit."]


class StaffUnitListDocument(models.Document):
    units: list[StaffUnitDocument]
    next_cursor: models.Cursor


class HistoryEntryDocument(models.Document):
    at: models.Time
    actor: models.ActorDocument
    action: Annotated[
        str,
        "An action of the status table, `create`, `change` for the fields of a unit, `sign`, "
        "`mark-refunded`, `reissue-link` or `erase-buyer`. Later releases may add others.",
    ]
    booking_reference: Annotated[str | None, "The booking that it was about, if one."]
    before: Annotated[
        models.Changes | None,
        "The fields that changed, before; null if there was nothing before.",
    ]
    after: Annotated[models.Changes, "The same fields, after."]
    request_id: Annotated[str | None, "The `X-Request-Id` of the request that did it."]


class HistoryDocument(models.Document):
    entries: list[HistoryEntryDocument]
    next_cursor: models.Cursor


class Extension(BodyModel):
    example: ClassVar[Any] = {}

    until: TimeField = Field(  # type: ignore[assignment]
        None,
        description="The new end, within 3650 days from now and not before the present one; the present "
        "one again changes nothing. UTC without an offset. Without it the end moves by one period.",
    )


@routes.get("/projects/{slug}/units", summary="List the units of a project for staff")
async def list_staff_units(
    request: Request, slug: str, *, status: UnitStatusFilter, cursor: TextCursor, limit: Limit
) -> StaffUnitListDocument:
    """Sorted by code, with what only staff can see: whether a unit is archived, when its reservation ends,
    and its booking."""
    page, has_more = await request.services.units.page_for_staff(slug, cursor, limit, status)
    next_cursor = TEXT_CURSOR.encode(page[-1].unit.code) if has_more else None
    return StaffUnitListDocument([staff_unit_document(found) for found in page], next_cursor)


@routes.get(
    "/projects/{slug}/units/{code}",
    summary="Read a unit as staff",
    headers=("If-None-Match",),
    responses={200: StaffUnitDocument, 304: None},
    errors=(errors.UnknownUnit,),
)
async def get_staff_unit(request: Request, slug: str, code: str) -> Response:
    """The unit as in the integration API, with what only staff can see. The `ETag` is the same."""
    found = await request.services.units.find_for_staff(slug, code)
    return models.not_modified(request, found.unit, found.project) or JsonResponse(
        staff_unit_document(found), 200, (models.etag_header(found.unit, found.project),)
    )


@routes.get(
    "/projects/{slug}/units/{code}/history",
    summary="Read the history of a unit",
    errors=(errors.UnknownUnit,),
)
async def get_unit_history(
    request: Request, slug: str, code: str, *, cursor: NumberCursor, limit: Limit
) -> HistoryDocument:
    """Everything done to the unit, and by whom. Latest first."""
    unit, _ = await request.services.units.find(slug, code)
    rows = await request.services.units.history(unit, cursor or LARGEST_NUMBER, limit)
    return models.page_document(
        HistoryDocument, rows, limit, entry_document, lambda entry: NUMBER_CURSOR.encode(entry.id)
    )


class _ActionTexts(NamedTuple):
    name: str
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
        "Moves the end of the hold or reservation to a later time: by one period, or to `until`, which makes "
        "the request safe to repeat.",
    ),
    Action.CANCEL_HOLD: _ActionTexts("cancel_hold", "Cancel the hold of a unit", "Ends its booking."),
    Action.CONFIRM_DEPOSIT: _ActionTexts(
        "confirm_deposit_of_unit",
        "Confirm the deposit of a held unit",
        "The buyer has signed and the deposit has arrived: the unit is reserved. A payment system uses the "
        "operation of the booking, which can be repeated.",
    ),
    Action.CANCEL_RESERVATION: _ActionTexts(
        "cancel_reservation",
        "Cancel the reservation of a unit",
        "Ends its booking, which becomes `refund-due`.",
    ),
    Action.CLOSE_SALE: _ActionTexts(
        "close_sale",
        "Close the sale of a unit",
        "For a reserved unit, send no body. For an available unit, the body names the walk-in buyer, and a "
        "booking is created.",
    ),
    Action.PUT_ON_SALE: _ActionTexts(
        "put_on_sale", "Put a unit on sale", "An archived unit is no longer archived."
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
        "ends; a confirmed deposit becomes `refund-due`. It cannot be archived twice.",
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
_ACTION_ERRORS = (errors.UnknownUnit, errors.PreconditionFailed, errors.TransitionNotAllowed)


# One route for each action: /projects/{slug}/units/{code}/close-sale, …/cancel-hold and so on. Those of
# bookings, such as /bookings/{reference}/close-sale, are in bookings.py.
def _declare(action: Action) -> None:
    async def act(
        request: Request, slug: str, code: str, body: Extension | BuyerDetails | None = None
    ) -> Response:
        staff_action = StaffAction(
            action,
            buyer=body.buyer() if isinstance(body, BuyerDetails) else None,
            until=body.until if isinstance(body, Extension) else None,
        )
        written = await request.services.bookings.act_on_unit(
            slug, code, staff_action, caller_of(request), request.author, request.precondition
        )
        unit, project, booking = written.unit, written.project, written.decision.booking
        claim = booking if booking and booking.status in CLAIMING else None
        document = staff_unit_document(UnitWithBooking(unit, project, claim))
        return JsonResponse(document, 200, (models.etag_header(unit, project),))

    name, summary, description = _ACTIONS.get(action, _ActionTexts("act", "", ""))
    if description:
        act.__name__, act.__doc__ = name, f"{description}\n\n{_rule(action)}"
    (routes if description else undocumented_routes).post(
        f"/projects/{{slug}}/units/{{code}}/{action}",
        summary=summary,
        permission=Permission.REVOKE_SALE if action is Action.REVOKE_SALE else Permission.SELL,
        body=_BODIES.get(action, NO_BODY),
        headers=("If-Match", "If-None-Match"),
        responses={200: StaffUnitDocument},
        errors=(*_ACTION_ERRORS, errors.NotSigned) if action is Action.CONFIRM_DEPOSIT else _ACTION_ERRORS,
    )(act)


def _rule(action: Action) -> str:
    """Say what the status table says of it."""
    rows = [row for row in TRANSITIONS if row.action is action and Caller.ADMIN in row.callers]
    sources = ", ".join(dict.fromkeys(f"`{row.source}`" for row in rows))
    events = " or ".join(dict.fromkeys(f"`{row.event}`" for row in rows if row.event))
    sent = f"Event: {events}." if events else "No event."
    return f"From {sources}; from any other status it is 409 `transition-not-allowed`. {sent}"


for _action in Action:
    _declare(_action)


def staff_unit_document(found: UnitWithBooking) -> StaffUnitDocument:
    unit, project, booking = found
    return StaffUnitDocument(
        **msgspec.structs.asdict(models.unit_document(unit, project)),
        archived=unit.archived,
        reserved_until=optional_time_text(unit.reserved_until),
        booking_reference=booking.reference if booking else None,
    )


def entry_document(entry: StoredEntry) -> HistoryEntryDocument:
    return HistoryEntryDocument.fill(
        entry,
        actor=models.ActorDocument(ActorKind(entry.actor_kind), entry.actor_id, entry.key_name),
        before=models.changes(entry.before),
        after=models.changes(entry.after),
    )
