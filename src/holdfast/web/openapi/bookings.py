"""The operations on bookings in the back office."""

from __future__ import annotations

from typing import Any

from holdfast.domain.access import Scope
from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.openapi import selling_examples as examples
from holdfast.web.openapi import selling_texts as texts
from holdfast.web.openapi.answers import OF_STAFF, WITH_BODY, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of, key_with, operation

_TAG = "Bookings"
_OF_A_BOOKING = (*OF_STAFF, "UnknownBooking")
_STAFF = key_with(Scope.BACKOFFICE)


def booking_paths() -> Paths:
    booking = f"{PREFIX}/bookings/{{reference}}"
    return {
        f"{PREFIX}/bookings": {"get": _list()},
        booking: {"get": _get()},
        f"{booking}/confirm-deposit": {"post": _confirm_deposit()},
        f"{booking}/cancel": {"post": _cancel()},
        f"{booking}/close-sale": {"post": _close_sale()},
        f"{booking}/extend": {"post": _extend()},
        f"{booking}/mark-refunded": {"post": _mark_refunded()},
        f"{booking}/reissue-link": {"post": _reissue_link()},
        f"{booking}/erase-buyer": {"post": _erase_buyer()},
    }


def _list() -> Operation:
    page = {"bookings": [examples.booking("reserved")], "nextCursor": None}
    answers = {
        "200": json_answer("A page of bookings.", "BookingList", page),
        **problems(*OF_STAFF, "UnknownProject"),
    }
    return operation(
        "listBookings", _TAG, "List bookings", "project", "unitCode", "bookingStatus", "cursor", "limit",
        description=texts.LIST_BOOKINGS, security=_STAFF, responses=answers,
    )  # fmt: skip


def _get() -> Operation:
    answers = {
        "200": json_answer("The booking.", "Booking", examples.booking("reserved")),
        **problems(*_OF_A_BOOKING),
    }
    return operation("getBooking", _TAG, "Read a booking", "reference", security=_STAFF, responses=answers)


def _confirm_deposit() -> Operation:
    return _act(
        "confirmDeposit", "Confirm the deposit", "reserved", "NotSigned", "ForbiddenToPayments",
        description=texts.CONFIRM_DEPOSIT, security=key_with(Scope.PAYMENTS, Scope.BACKOFFICE),
    )  # fmt: skip


def _cancel() -> Operation:
    return _act(
        "cancelBooking", "Cancel a booking", "refund-due", "BookingRefused", description=texts.CANCEL_BOOKING
    )


def _close_sale() -> Operation:
    return _act(
        "closeSaleOfBooking", "Close the sale of a booking", "sold", "BookingRefused",
        description="Of a booking that is reserved: the unit is sold.",
    )  # fmt: skip


def _extend() -> Operation:
    body = body_of("Extension", required=False, until=("To a time", examples.extension()))
    return _act(
        "extendBooking", "Extend a hold or reservation", "extended", "BookingRefused",
        description=texts.EXTEND, requestBody=body,
    )  # fmt: skip


def _mark_refunded() -> Operation:
    return _act(
        "markRefunded", "Mark the deposit as paid back", "refunded", "BookingRefused",
        description="Of a booking that is `refund-due`. Repeating it changes nothing.",
    )  # fmt: skip


def _erase_buyer() -> Operation:
    return _act(
        "eraseBuyer", "Erase the buyer's personal data", "erased", "BookingRefused",
        description=texts.ERASE_BUYER,
    )  # fmt: skip


def _reissue_link() -> Operation:
    answers = {
        "200": json_answer(
            "The booking, with its new token and the link that holds it.",
            "BookingWithToken",
            examples.booking_with_token(),
            "Cache-Control",
        ),
        **problems(*_OF_A_BOOKING, *WITH_BODY),
    }
    return operation(
        "reissueLink", _TAG, "Give the buyer a new link", "reference",
        description=texts.REISSUE_LINK, security=_STAFF, responses=answers,
    )  # fmt: skip


def _act(name: str, summary: str, after: str, *refused: str, **members: Any) -> Operation:
    """``after``: the example of the answer; ``refused``: the problems that it has beside the usual."""
    answers = {
        "200": json_answer("The booking as it is now.", "Booking", examples.booking(after)),
        **problems(*_OF_A_BOOKING, *WITH_BODY, *refused),
    }
    return operation(name, _TAG, summary, "reference", **({"security": _STAFF} | members), responses=answers)
