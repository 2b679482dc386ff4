"""One unit: its fields, its booking, the actions that are open now, and its history."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from starlette.responses import Response

from holdfast.domain.booking import rounded, unit_terms
from holdfast.domain.decision import ANY, Precondition
from holdfast.domain.errors import Conflict, DomainError, InvalidInput, PreconditionFailed
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller, Transition, transitions_for
from holdfast.domain.unit import Unit, ends_at, revision
from holdfast.operations.audit import StoredEntry
from holdfast.operations.bookings import StaffAction
from holdfast.operations.units import UnitWithBooking
from holdfast.web.api.bodies import BuyerDetails, valid
from holdfast.web.pages.backoffice.audit import list_differences
from holdfast.web.pages.backoffice.base import Notice, StaffRequest, pages, unit_path
from holdfast.web.pages.backoffice.bookings import action_permission, success_notice
from holdfast.web.pages.templates import list_media
from holdfast.web.pagination import LARGEST_NUMBER, NUMBER_CURSOR, paginate
from holdfast.web.problems import problem_type

ENTRIES_AT_FIRST = 8
ENTRIES_A_PAGE = 50
LATEST_DELIVERIES = 10

_UNIT = "/projects/{slug}/units/{code}"
_BUYER_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")
_TOWARDS_A_SALE = (Status.UNAVAILABLE, Status.AVAILABLE, Status.HELD, Status.RESERVED, Status.SOLD)


@pages.get(_UNIT, Permission.SEE_UNITS)
async def show_unit(request: StaffRequest, slug: str, code: str) -> Response:
    return await _render(request, await request.services.units.find_for_staff(slug, code))


@pages.get(f"{_UNIT}/panel", Permission.SEE_UNITS)
async def show_panel(request: StaffRequest, slug: str, code: str) -> Response:
    """Show what may have changed to a script that asks whether it has."""
    staff_unit = await request.services.units.find_for_staff(slug, code)
    if request.query.text("revision") == revision(staff_unit.unit, staff_unit.project):
        return request.no_content()
    return await request.render("unit_panel.html", **_panel_values(request, staff_unit))


@pages.get(f"{_UNIT}/history", Permission.SEE_UNITS)
async def show_history(request: StaffRequest, slug: str, code: str) -> Response:
    staff_unit = await request.services.units.find_for_staff(slug, code)
    before = request.parse_cursor(NUMBER_CURSOR) or LARGEST_NUMBER
    entries, next_cursor = await _list_history(request, staff_unit, before, ENTRIES_A_PAGE)
    return await request.render(
        "unit_history.html",
        unit=staff_unit.unit,
        project=staff_unit.project,
        path=unit_path(slug, code),
        entries=entries,
        list_differences=list_differences,
        **request.page_links(f"{unit_path(slug, code)}/history", next_cursor),
    )


async def act_on_unit(request: StaffRequest, slug: str, code: str, *, action: Action) -> Response:
    try:
        staff_action = _parse_action(request, action)
        precondition = Precondition(match=frozenset({request.form.text("revision")}) - {ANY})
        written = await request.services.bookings.act_on_unit(
            slug, code, staff_action, request.caller, request.author, precondition
        )
    except (InvalidInput, PreconditionFailed, Conflict) as error:
        return await _render_error(request, slug, code, action, error)
    notice = success_notice(request, action, ends_at(written.unit))
    return await request.redirect_with_notice(unit_path(slug, code), notice)


for _action in dict.fromkeys(row.action for row in TRANSITIONS if Caller.ADMIN in row.callers):
    pages.post(f"{_UNIT}/{_action}", action_permission(_action), back_to=_UNIT)(
        partial(act_on_unit, action=_action)
    )


def _parse_action(request: StaffRequest, action: Action) -> StaffAction:
    form = request.form
    if action is Action.EXTEND:
        return StaffAction(action, until=request.parse_new_end())
    if action is Action.CLOSE_SALE and form.has("buyerName"):
        # A field that was left empty is missing, not too short.
        sent = {name: form.raw(name) for name in _BUYER_FIELDS if form.text(name)}
        return StaffAction(action, buyer=valid(BuyerDetails, sent).buyer())
    return StaffAction(action)


async def _render_error(
    request: StaffRequest, slug: str, code: str, action: Action, error: DomainError
) -> Response:
    """Render the unit as it is now, with the form as it was filled in."""
    staff_unit = await request.services.units.find_for_staff(slug, code)
    faults = request.faults(error)
    has_form = any(row.action is action for row in _list_transitions(request, staff_unit.unit))
    if not faults or not has_form:
        message = request.error_text(error)
        if isinstance(error, PreconditionFailed):
            message = request._(
                "The unit has changed since you opened this page. Nothing was done. Check it and try again."
            )
        request.notice = Notice(message, "refused")
    return await _render(request, staff_unit, problem_type(error).status, faults, action)


async def _render(
    request: StaffRequest,
    staff_unit: UnitWithBooking,
    status: int = 200,
    faults: dict[str, str] | None = None,
    failed_action: Action | None = None,
) -> Response:
    fields = staff_unit.unit.fields
    entries, older = await _list_history(request, staff_unit, LARGEST_NUMBER, ENTRIES_AT_FIRST)
    units, deliveries = request.services.units, []
    if request.may(Permission.SEE_WEBHOOKS):
        deliveries = await units.latest_deliveries(staff_unit.unit, LATEST_DELIVERIES)
    return await request.render(
        "unit.html",
        status,
        **_panel_values(request, staff_unit, faults, failed_action),
        price_per_sqm=rounded(fields.price_sar / fields.area_sqm),
        images=list_media(fields.images, request.context.public_url),
        files=list_media(fields.files, request.context.public_url),
        entries=entries,
        list_differences=list_differences,
        has_older=older is not None,
        deliveries=deliveries,
    )


def _panel_values(
    request: StaffRequest,
    staff_unit: UnitWithBooking,
    faults: dict[str, str] | None = None,
    failed_action: Action | None = None,
) -> dict[str, Any]:
    unit, project, booking = staff_unit
    end, periods = ends_at(unit), request.services.bookings.periods
    assert request.staff_session is not None
    period = periods.hold(project) if unit.status is Status.HELD else periods.reservation(project)
    return {
        "unit": unit,
        "project": project,
        "path": unit_path(project.slug, unit.code),
        "booking": booking if request.may(Permission.SEE_BOOKINGS) else None,
        "terms": unit_terms(unit.fields),
        "transitions": _list_transitions(request, unit),
        "is_progress": is_progress,
        "revision": revision(unit, project),
        "hold_seconds": periods.hold(project).total_seconds(),
        "reserved_until": request.staff_session.at + periods.reservation(project),
        "ends_at": end,
        # An extension that names no end leads there.
        "default_end": end and end + period,
        "typed": request.form,
        "faults": faults or {},
        "failed_action": failed_action,
    }


def _list_transitions(request: StaffRequest, unit: Unit) -> list[Transition]:
    """Return those that this person may use now; those by which a buyer loses something come last."""
    rows = transitions_for(request.caller, unit.status, unit.archived)
    permitted = [row for row in rows if request.may(action_permission(row.action))]
    return sorted(permitted, key=lambda row: (row.ends is not None, not is_progress(row)))


def is_progress(row: Transition) -> bool:
    return _TOWARDS_A_SALE.index(row.target) > _TOWARDS_A_SALE.index(row.source)


async def _list_history(
    request: StaffRequest, staff_unit: UnitWithBooking, before: int, limit: int
) -> tuple[Iterable[StoredEntry], str | None]:
    rows = await request.services.units.history(staff_unit.unit, before, limit)
    return paginate(rows, limit, lambda row: NUMBER_CURSOR.encode(row.id))
