"""One booking: its way from hold to sale, its buyer, and what can be done to it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_steps import BookingAction
from holdfast.domain.errors import BookingChanged, Conflict, Fault, InvalidInput, Refusal
from holdfast.operations.bookings import BookingFile, Bookings, Found, booking_file
from holdfast.operations.write_path import Written
from holdfast.web.addresses import reference_of
from holdfast.web.api.bodies import refuse_faults
from holdfast.web.backoffice.desk import Show
from holdfast.web.backoffice.pages.booking_views import permission_for, status_word, steps_of
from holdfast.web.backoffice.pages.bookings import BOOKINGS
from holdfast.web.backoffice.pages.sale_forms import chosen_end, faults_by_field
from holdfast.web.backoffice.pages.unit_views import unit_path
from holdfast.web.backoffice.visits import Notice, Visit
from holdfast.web.buyer_links import buyer_link
from holdfast.web.html.forms import Form
from holdfast.web.html.qr_codes import QrCode, qr_code
from holdfast.web.html.translation import translate_refusal
from holdfast.web.problems import problem_type

_NOTHING_TYPED = Form(())


class Issued(NamedTuple):
    """What opens a booking, to be shown once."""

    link: str
    token: str
    """The same without the address, for those who use the API."""
    qr: QrCode
    """Of the link, for the phone of a buyer who is there."""


class BookingPages:
    def __init__(self, selling: Bookings, public_url: str) -> None:
        self._selling = selling
        self._public_url = public_url

    async def show(self, visit: Visit) -> Response:
        return await self._shown(visit, await self._file(visit))

    async def back(self, visit: Visit) -> Response:
        """Whoever reloads the answer to an action wants to see the booking."""
        return await visit.go(f"{BOOKINGS}/{_reference(visit)}")

    def acting(self, action: BookingAction) -> Show:
        async def act(visit: Visit) -> Response:
            return await self._act(visit, action)

        return act

    async def reissue_link(self, visit: Visit) -> Response:
        """The link is in this answer and nowhere else."""
        found = (await self._file(visit)).found
        _, token = await self._selling.reissue_link(found, visit.author)
        link = buyer_link(self._public_url, found.project_slug, found.booking.reference, token)
        return await self._shown(visit, await self._file(visit), issued=Issued(link, token, qr_code(link)))

    async def _act(self, visit: Visit, action: BookingAction) -> Response:
        found = (await self._file(visit)).found
        try:
            written = await self._do(visit, action, found)
        except (InvalidInput, Conflict) as refusal:
            return await self._refused(visit, refusal, action)
        return await visit.go(f"{BOOKINGS}/{written.booking.reference}", _done(visit, action, written))

    async def _do(self, visit: Visit, action: BookingAction, found: Found) -> Written:
        selling, caller, author = self._selling, visit.caller, visit.author
        seen = visit.form.text("status")
        if action is BookingAction.CONFIRM_DEPOSIT:
            return await selling.confirm_deposit(found, caller, author, seen)
        if action is BookingAction.CLOSE_SALE:
            return await selling.close_sale(found, caller, author, seen)
        if action is BookingAction.EXTEND:
            return await selling.extend(found, chosen_end(visit), caller, author, seen)
        if action is BookingAction.CANCEL:
            return await selling.cancel(found, caller, author, seen)
        if action is BookingAction.MARK_REFUNDED:
            return await selling.mark_refunded(found, author, seen)
        assert action is BookingAction.ERASE_BUYER
        return await selling.erase_buyer(found, author, seen)

    async def _refused(self, visit: Visit, refusal: Refusal, action: BookingAction) -> Response:
        status, file = problem_type(refusal).status, await self._file(visit)
        faults = faults_by_field(visit, refusal) if isinstance(refusal, InvalidInput) else {}
        if not faults or action not in file.possible:
            visit.notice = Notice(_why(visit, refusal), "refused")
        return await self._shown(visit, file, status, typed=visit.form, faults=faults, asked=action)

    async def _file(self, visit: Visit) -> BookingFile:
        return await booking_file(self._selling, _reference(visit), visit.caller)

    async def _shown(
        self,
        visit: Visit,
        file: BookingFile,
        status: int = 200,
        typed: Form = _NOTHING_TYPED,
        faults: dict[str, str] | None = None,
        asked: BookingAction | None = None,
        issued: Issued | None = None,
    ) -> Response:
        return await visit.render(
            "booking.html",
            status,
            **self._values(visit, file),
            typed=typed,
            faults=faults or {},
            asked=asked,
            issued=issued,
        )

    def _values(self, visit: Visit, file: BookingFile) -> dict[str, Any]:
        unit, project, _ = file.unit
        return {
            "status_of_booking": partial(status_word, visit.language),
            "booking": file.booking,
            "unit": unit,
            "project": project,
            "path": f"{BOOKINGS}/{file.booking.reference}",
            "unit_path": unit_path(project.slug, unit.code),
            "steps": steps_of(file.booking),
            "possible": {
                str(action): decision
                for action, decision in file.possible.items()
                if visit.may(permission_for(action))
            },
        }


def _reference(visit: Visit) -> str:
    faults: list[Fault] = []
    reference = reference_of(visit.request, faults)
    refuse_faults(faults)
    return reference


def _why(visit: Visit, refusal: Refusal) -> str:
    if isinstance(refusal, BookingChanged):
        return visit._(
            "The booking has changed since you opened this page. Nothing was done: look again, then decide."
        )
    return translate_refusal(refusal, visit.language)


def _done(visit: Visit, action: BookingAction, written: Written) -> str:
    if action is BookingAction.CONFIRM_DEPOSIT:
        return _after_deposit(visit, written)
    booking = written.booking
    end = booking.ends_at
    words = {
        BookingAction.CLOSE_SALE: visit._("The unit is sold."),
        BookingAction.EXTEND: visit._(
            "The new end is %(until)s.", until="" if end is None else visit.language.moment(end)
        ),
        BookingAction.CANCEL: _after_cancelling(visit, booking.status),
        BookingAction.MARK_REFUNDED: visit._("The deposit is marked as paid back."),
        BookingAction.ERASE_BUYER: visit._("The buyer's personal data were erased."),
    }
    return words[action]


def _after_deposit(visit: Visit, written: Written) -> str:
    booking = written.booking
    if booking.status is BookingStatus.REFUND_DUE:
        return visit._("The deposit is noted, and due back: the unit cannot be reserved again.")
    until = "" if booking.reserved_until is None else visit.language.moment(booking.reserved_until)
    return visit._("The deposit is confirmed; the unit is reserved until %(until)s.", until=until)


def _after_cancelling(visit: Visit, status: BookingStatus) -> str:
    if status is BookingStatus.REFUND_DUE:
        return visit._("The booking was cancelled; its deposit is due back.")
    return visit._("The booking was cancelled; the unit is available.")
