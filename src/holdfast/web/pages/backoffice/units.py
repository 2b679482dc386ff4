"""One unit: its fields, its booking, the actions that are open now, and its history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

from starlette.responses import Response

from holdfast.domain.booking import Buyer, unit_terms
from holdfast.domain.decision import ANY, Precondition
from holdfast.domain.errors import Conflict, DomainError, InvalidInput, PreconditionFailed
from holdfast.domain.permissions import Permission
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status, Transition, transitions_for
from holdfast.domain.unit import Media, Unit, ends_at, revision
from holdfast.operations.bookings import StaffAction
from holdfast.operations.units import HistoryEntry, StaffUnit
from holdfast.web.api.bodies import BuyerDetails, valid
from holdfast.web.pages.backoffice.audit import describe_history
from holdfast.web.pages.backoffice.base import (
    Notice,
    StaffRequest,
    faults_by_field,
    page_links,
    parse_cursor,
    parse_new_end,
    unit_path,
)
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.sessions import PAGE_HEADERS
from holdfast.web.pages.templates import Medium, media, on_this_host
from holdfast.web.pagination import LARGEST_NUMBER, NUMBER_CURSOR, paginate
from holdfast.web.problems import problem_type

ENTRIES_AT_FIRST = 8
ENTRIES_A_PAGE = 50
LATEST_DELIVERIES = 10

_UNIT = "/projects/{slug}/units/{code}"
_BUYER_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")
_HALALA = Decimal("0.01")
_TOWARDS_A_SALE = (Status.UNAVAILABLE, Status.AVAILABLE, Status.HELD, Status.RESERVED, Status.SOLD)
_PERMISSIONS = {
    Action.REVOKE_SALE: Permission.REVOKE_SALE,
    Action.CONFIRM_DEPOSIT: Permission.CONFIRM_DEPOSIT,
}
"""Of actions that need another permission than selling."""

pages = Pages(StaffRequest)


@pages.get(_UNIT, Permission.SEE_UNITS)
async def show_unit(request: StaffRequest, slug: str, code: str) -> Response:
    return await _render(request, await _load(request, slug, code))


@pages.get(f"{_UNIT}/panel", Permission.SEE_UNITS)
async def show_panel(request: StaffRequest, slug: str, code: str) -> Response:
    """Show what may have changed to a script that asks whether it has."""
    found = await _load(request, slug, code)
    if request.query.text("revision") == revision(found.unit, found.project):
        return Response(status_code=204, headers=PAGE_HEADERS)
    return await request.render("unit_panel.html", **_panel_values(request, found))


@pages.get(f"{_UNIT}/history", Permission.SEE_UNITS)
async def show_history(request: StaffRequest, slug: str, code: str) -> Response:
    found = await _load(request, slug, code)
    before = parse_cursor(request, NUMBER_CURSOR) or LARGEST_NUMBER
    entries, next_cursor = await _list_history(request, found, before, ENTRIES_A_PAGE)
    return await request.render(
        "unit_history.html",
        **_values(found),
        entries=[describe_history(entry) for entry in entries],
        **page_links(request, f"{unit_path(slug, code)}/history", next_cursor),
    )


async def act_on_unit(request: StaffRequest, slug: str, code: str, *, action: Action) -> Response:
    try:
        staff_action = _parse_action(request, action)
        precondition = Precondition(match=frozenset({request.form.text("revision")}) - {ANY})
        written = await request.services.bookings.act(
            slug, code, staff_action, request.caller, request.author, precondition
        )
    except (InvalidInput, PreconditionFailed, Conflict) as error:
        return await _render_error(request, slug, code, action, error)
    notice = _success_notice(request, action, ends_at(written.unit))
    return await request.redirect_with_notice(unit_path(slug, code), notice)


def _permission(action: Action) -> Permission:
    return _PERMISSIONS.get(action, Permission.SELL)


for _action in dict.fromkeys(row.action for row in TRANSITIONS if Caller.ADMIN in row.callers):
    pages.post(f"{_UNIT}/{_action}", _permission(_action), back_to=_UNIT)(
        partial(act_on_unit, action=_action)
    )


def _parse_action(request: StaffRequest, action: Action) -> StaffAction:
    if action is Action.EXTEND:
        return StaffAction(action, until=parse_new_end(request))
    if action is Action.CLOSE_SALE and request.form.has("buyerName"):
        return StaffAction(action, buyer=_parse_buyer(request.form))
    return StaffAction(action)


def _parse_buyer(form: Form) -> Buyer:
    """A field that was left empty is missing, not too short."""
    return valid(BuyerDetails, {name: form.raw(name) for name in _BUYER_FIELDS if form.text(name)}).buyer()


async def _render_error(
    request: StaffRequest, slug: str, code: str, action: Action, error: DomainError
) -> Response:
    """Render the unit as it is now, with the form as it was filled in."""
    found = await _load(request, slug, code)
    faults = faults_by_field(request, error) if isinstance(error, InvalidInput) else {}
    has_form = any(row.action is action for row in _list_transitions(request, found.unit))
    if not faults or not has_form:
        message = translate_error(error, request.language)
        if isinstance(error, PreconditionFailed):
            message = request._(
                "The unit has changed since you opened this page. Nothing was done: look again, then decide."
            )
        request.notice = Notice(message, "refused")
    status = problem_type(error).status
    return await _render(request, found, status, typed=request.form, faults=faults, failed_action=action)


async def _load(request: StaffRequest, slug: str, code: str) -> StaffUnit:
    return await request.services.bookings.units.find(slug, code)


async def _render(request: StaffRequest, found: StaffUnit, status: int = 200, **failed: Any) -> Response:
    fields = found.unit.fields
    entries, older = await _list_history(request, found, LARGEST_NUMBER, ENTRIES_AT_FIRST)
    deliveries = []
    if request.may(Permission.SEE_WEBHOOKS):
        deliveries = await request.services.bookings.units.latest_deliveries(found.unit, LATEST_DELIVERIES)
    return await request.render(
        "unit.html",
        status,
        **_panel_values(request, found, **failed),
        price_per_sqm=(fields.price_sar / fields.area_sqm).quantize(_HALALA, ROUND_HALF_UP),
        images=_list_media(request, fields.images),
        files=_list_media(request, fields.files),
        entries=[describe_history(entry) for entry in entries],
        has_older=older is not None,
        deliveries=deliveries,
    )


def _list_media(request: StaffRequest, sent: Iterable[Media]) -> list[Medium]:
    return [on_this_host(medium, request.context.public_url) for medium in media(sent)]


def _values(found: StaffUnit) -> dict[str, Any]:
    unit, project, _ = found
    return {"unit": unit, "project": project, "path": unit_path(project.slug, unit.code)}


def _panel_values(
    request: StaffRequest,
    found: StaffUnit,
    typed: Form | None = None,
    faults: dict[str, str] | None = None,
    failed_action: Action | None = None,
) -> dict[str, Any]:
    unit, project, booking = found
    return {
        **_values(found),
        "booking": booking if request.may(Permission.SEE_BOOKINGS) else None,
        "terms": unit_terms(unit.fields),
        "transitions": _list_transitions(request, unit),
        "is_walk_in": is_walk_in,
        "is_progress": is_progress,
        "revision": revision(unit, project),
        "ends_at": ends_at(unit),
        "default_end": _default_end(request, found),
        "typed": typed or Form(()),
        "faults": faults or {},
        "failed_action": failed_action,
    }


def _list_transitions(request: StaffRequest, unit: Unit) -> list[Transition]:
    """Return the rows of the status table that this person may use now.

    Those that lead towards a sale come first, those by which a buyer loses something come last.
    """
    rows = transitions_for(request.caller, unit.status, unit.archived)
    permitted = [row for row in rows if request.may(_permission(row.action))]
    return sorted(permitted, key=lambda row: (row.ends is not None, not is_progress(row)))


def is_progress(row: Transition) -> bool:
    return _TOWARDS_A_SALE.index(row.target) > _TOWARDS_A_SALE.index(row.source)


def is_walk_in(row: Transition) -> bool:
    return row.action is Action.CLOSE_SALE and row.source is Status.AVAILABLE


def _default_end(request: StaffRequest, found: StaffUnit) -> datetime | None:
    """Return the end that an extension leads to if it names none: one period later."""
    end = ends_at(found.unit)
    if end is None:
        return None
    periods = request.services.periods
    is_held = found.unit.status is Status.HELD
    return end + (periods.hold(found.project) if is_held else periods.reservation(found.project))


async def _list_history(
    request: StaffRequest, found: StaffUnit, before: int, limit: int
) -> tuple[Iterable[HistoryEntry], str | None]:
    rows = await request.services.bookings.units.history(found.unit, before, limit)
    return paginate(rows, limit, lambda row: NUMBER_CURSOR.encode(row.id))


def _success_notice(request: StaffRequest, action: Action, end: datetime | None) -> str:
    until = "" if end is None else request.language.date_time(end)
    notices = {
        Action.OPEN: request._(
            "The unit is held until %(until)s. The buyer's link is made in the booking.", until=until
        ),
        Action.EXTEND: request._("The new end is %(until)s.", until=until),
        Action.CANCEL_HOLD: request._("The hold was cancelled; the unit is available."),
        Action.CONFIRM_DEPOSIT: request._(
            "The deposit is confirmed; the unit is reserved until %(until)s.", until=until
        ),
        Action.CANCEL_RESERVATION: request._("The reservation was cancelled; its deposit is due back."),
        Action.CLOSE_SALE: request._("The unit is sold."),
        Action.PUT_ON_SALE: request._("The unit is on sale."),
        Action.TAKE_OFF_SALE: request._("The unit is off sale."),
        Action.ARCHIVE: request._("The unit is archived."),
        Action.REVOKE_SALE: request._("The sale was revoked; the unit is off sale."),
    }
    return notices[action]
