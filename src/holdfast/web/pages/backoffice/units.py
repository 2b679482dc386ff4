"""One unit: what it is, who has it, what can be done to it, what was done to it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from starlette.responses import Response

from holdfast.domain.booking import unit_terms
from holdfast.domain.decision import ANY, Precondition
from holdfast.domain.errors import (
    Conflict,
    DomainError,
    InvalidInput,
    PreconditionFailed,
)
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Action, Status
from holdfast.domain.unit import Media, ends_at, revision
from holdfast.operations.bookings import Bookings, StaffAction
from holdfast.operations.units import Recorded, StaffUnit
from holdfast.operations.write_path import Written
from holdfast.web.api.parameters import unit_in_path
from holdfast.web.pages.backoffice.base import Notice, Show, Visit, chosen_end, faults_by_field, named_buyer
from holdfast.web.pages.backoffice.history import history_lines
from holdfast.web.pages.backoffice.sale_views import (
    goes_on,
    is_walk_in,
    offered,
    price_per_sqm,
    status_word,
    unit_path,
)
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pages.sessions import PAGE_HEADERS
from holdfast.web.pages.templates import Medium, media, on_this_host
from holdfast.web.pagination import LARGEST_NUMBER, NUMBER_CURSOR
from holdfast.web.problems import problem_type

ENTRIES_AT_FIRST = 8
ENTRIES_A_PAGE = 50
LATEST_DELIVERIES = 10

_NOTHING_TYPED = Form(())


class UnitPages:
    def __init__(self, selling: Bookings, public_url: str) -> None:
        self._selling = selling
        self._public_url = public_url

    async def show(self, visit: Visit) -> Response:
        return await self._shown(visit, await self._found(visit))

    async def panel(self, visit: Visit) -> Response:
        """For a script that asks whether the unit is still as it was."""
        found = await self._found(visit)
        if visit.query.text("revision") == revision(found.unit, found.project):
            return Response(status_code=204, headers=PAGE_HEADERS)
        return await visit.render("unit_panel.html", **self._panel_values(visit, found))

    async def history(self, visit: Visit) -> Response:
        found = await self._found(visit)
        entries, cursor = await self._entries(found, _position(visit), ENTRIES_A_PAGE)
        path = f"{unit_path(found.project.slug, found.unit.code)}/history"
        return await visit.render(
            "unit_history.html",
            **self._values(visit, found),
            entries=[history_lines(entry) for entry in entries],
            first=path if visit.query.has("cursor") else None,
            next=f"{path}?cursor={cursor}" if cursor else None,
        )

    async def back(self, visit: Visit) -> Response:
        """Whoever reloads the answer to an action wants to see the unit."""
        slug, code = _named(visit)
        return await visit.go(unit_path(slug, code))

    def acting(self, action: Action) -> Show:
        async def act(visit: Visit) -> Response:
            return await self._act(visit, action)

        return act

    async def _act(self, visit: Visit, action: Action) -> Response:
        slug, code = _named(visit)
        try:
            asked = self._asked(visit, action)
            known = Precondition(match=frozenset({visit.form.text("revision")}) - {ANY})
            written = await self._selling.act(slug, code, asked, visit.caller, visit.author, known)
        except (InvalidInput, PreconditionFailed, Conflict) as refusal:
            return await self._refused(visit, action, refusal)
        return await visit.go(unit_path(slug, code), _done(visit, action, written))

    def _asked(self, visit: Visit, action: Action) -> StaffAction:
        if action is Action.EXTEND:
            return StaffAction(action, until=chosen_end(visit))
        if action is Action.CLOSE_SALE and visit.form.has("buyerName"):
            return StaffAction(action, buyer=named_buyer(visit))
        return StaffAction(action)

    async def _refused(self, visit: Visit, action: Action, refusal: DomainError) -> Response:
        """On the same page, as the unit is now; what was typed is still there."""
        found = await self._found(visit)
        faults = faults_by_field(visit, refusal) if isinstance(refusal, InvalidInput) else {}
        has_form = any(row.action is action for row in offered(visit, found.unit))
        if not faults or not has_form:
            visit.notice = Notice(_why(visit, refusal), "refused")
        status = problem_type(refusal).status
        return await self._shown(visit, found, status, typed=visit.form, faults=faults, asked=action)

    async def _found(self, visit: Visit) -> StaffUnit:
        return await self._selling.units.find(*_named(visit))

    async def _shown(self, visit: Visit, found: StaffUnit, status: int = 200, **asked: Any) -> Response:
        entries, cursor = await self._entries(found, LARGEST_NUMBER, ENTRIES_AT_FIRST)
        deliveries = []
        if visit.may(Permission.SEE_WEBHOOKS):
            deliveries = await self._selling.units.latest_deliveries(found.unit, LATEST_DELIVERIES)
        return await visit.render(
            "unit.html",
            status,
            **self._panel_values(visit, found, **asked),
            per_sqm=price_per_sqm(found.unit.fields),
            images=self._media(found.unit.fields.images),
            files=self._media(found.unit.fields.files),
            entries=[history_lines(entry) for entry in entries],
            has_older=cursor is not None,
            deliveries=deliveries,
        )

    def _media(self, sent: Iterable[Media]) -> list[Medium]:
        return [on_this_host(one, self._public_url) for one in media(sent)]

    def _values(self, visit: Visit, found: StaffUnit) -> dict[str, Any]:
        unit, project, _ = found
        return {
            "unit": unit,
            "project": project,
            "path": unit_path(project.slug, unit.code),
            "status_of_booking": partial(status_word, visit.language),
        }

    def _panel_values(
        self,
        visit: Visit,
        found: StaffUnit,
        typed: Form = _NOTHING_TYPED,
        faults: dict[str, str] | None = None,
        asked: Action | None = None,
    ) -> dict[str, Any]:
        unit, project, booking = found
        return {
            **self._values(visit, found),
            "booking": booking if visit.may(Permission.SEE_BOOKINGS) else None,
            "terms": unit_terms(unit.fields),
            "offered": offered(visit, unit),
            "is_walk_in": is_walk_in,
            "goes_on": goes_on,
            "revision": revision(unit, project),
            "ends_at": ends_at(unit),
            "later": self._one_period_later(found),
            "typed": typed,
            "faults": faults or {},
            "asked": asked,
        }

    def _one_period_later(self, found: StaffUnit) -> datetime | None:
        """Where an extension leads to that names no end."""
        end = ends_at(found.unit)
        if end is None:
            return None
        periods = self._selling.periods
        is_held = found.unit.status is Status.HELD
        return end + (periods.hold(found.project) if is_held else periods.reservation(found.project))

    async def _entries(self, found: StaffUnit, before: int, limit: int) -> tuple[list[Recorded], str | None]:
        page = await self._selling.units.history(found.unit, before, limit)
        cursor = NUMBER_CURSOR.encode(page[limit - 1].id) if len(page) > limit else None
        return page[:limit], cursor


def _named(visit: Visit) -> tuple[str, str]:
    return unit_in_path(visit.request)


def _position(visit: Visit) -> int:
    """A cursor that is none leads to the first page."""
    try:
        return NUMBER_CURSOR.decode(visit.query.text("cursor"))
    except ValueError:
        return LARGEST_NUMBER


def _why(visit: Visit, refusal: DomainError) -> str:
    if isinstance(refusal, PreconditionFailed):
        return visit._(
            "The unit has changed since you opened this page. Nothing was done: look again, then decide."
        )
    return translate_error(refusal, visit.language)


def _done(visit: Visit, action: Action, written: Written) -> str:
    end = ends_at(written.unit)
    until = "" if end is None else visit.language.date_time(end)
    words = {
        Action.OPEN: visit._(
            "The unit is held until %(until)s. The buyer's link is made in the booking.", until=until
        ),
        Action.EXTEND: visit._("The new end is %(until)s.", until=until),
        Action.CANCEL_HOLD: visit._("The hold was cancelled; the unit is available."),
        Action.CONFIRM_DEPOSIT: visit._(
            "The deposit is confirmed; the unit is reserved until %(until)s.", until=until
        ),
        Action.CANCEL_RESERVATION: visit._("The reservation was cancelled; its deposit is due back."),
        Action.CLOSE_SALE: visit._("The unit is sold."),
        Action.PUT_ON_SALE: visit._("The unit is on sale."),
        Action.TAKE_OFF_SALE: visit._("The unit is off sale."),
        Action.ARCHIVE: visit._("The unit is archived."),
        Action.REVOKE_SALE: visit._("The sale was revoked; the unit is off sale."),
    }
    return words[action]
