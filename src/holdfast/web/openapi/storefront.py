"""The operations of the storefront: public, or with the token of a booking."""

from __future__ import annotations

from typing import Any

from holdfast.web.openapi import selling_examples as examples
from holdfast.web.openapi import selling_texts as texts
from holdfast.web.openapi.answers import ANYWHERE, WITH_BODY, answer, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of, operation
from holdfast.web.storefront.routes import PREFIX

_TAG = "Storefront"
_PUBLIC = (*ANYWHERE, "InvalidRequest", "TooManyFromAddress", "DatabaseAway")
_OWN = (*_PUBLIC, "NoToken", "UnknownBooking")
_WITH_TOKEN: list[dict[str, list[str]]] = [{"bookingToken": []}]
_NO_STORE = "Cache-Control"


def storefront_paths() -> Paths:
    units, booking = f"{PREFIX}/projects/{{slug}}/units", f"{PREFIX}/bookings/{{reference}}"
    return {
        units: {"get": _list_units()},
        f"{units}/{{code}}": {"get": _get_unit()},
        f"{units}/{{code}}/hold": {"post": _hold()},
        booking: {"get": _get_booking(), "delete": _cancel()},
        f"{booking}/sign": {"post": _sign()},
    }


def _list_units() -> Operation:
    page = {"units": [examples.unit_on_sale()], "nextCursor": None}
    answers = {
        "200": json_answer("A page of units.", "UnitOnSaleList", page),
        **problems(*_PUBLIC, "UnknownProject"),
    }
    return operation(
        "listUnitsOnSale", _TAG, "List the units on sale", "slug", "statusOnSale", "cursor", "limit",
        description=texts.LIST_UNITS_ON_SALE, security=[], responses=answers,
    )  # fmt: skip


def _get_unit() -> Operation:
    answers = {
        "200": json_answer("The unit.", "UnitOnSale", examples.unit_on_sale()),
        **problems(*_PUBLIC, "UnknownUnit"),
    }
    return operation(
        "getUnitOnSale", _TAG, "Read a unit on sale", "slug", "code",
        description="A unit that is not on sale is not found.", security=[], responses=answers,
    )  # fmt: skip


def _hold() -> Operation:
    answers = {
        "200": _hold_answer("The hold that the token of the request is of."),
        "201": _hold_answer("The unit is held."),
        **problems(*_PUBLIC, *WITH_BODY, "ForeignSite", "UnknownUnit", "HoldRefused", "TooManyHolds"),
    }
    return operation(
        "holdUnit", _TAG, "Hold a unit", "slug", "code", "idempotencyKey", "visitor",
        description=texts.HOLD_UNIT, security=[{}, *_WITH_TOKEN], responses=answers,
    )  # fmt: skip


def _hold_answer(description: str) -> dict[str, Any]:
    return json_answer(description, "Hold", examples.hold(), _NO_STORE)


def _get_booking() -> Operation:
    answers = {
        "200": json_answer("The booking.", "Booking", examples.booking("held"), _NO_STORE),
        **problems(*_OWN),
    }
    return _own("getOwnBooking", "Read one's booking", responses=answers)


def _sign() -> Operation:
    body = body_of("BuyerDetails", buyer=("The buyer", examples.buyer_details()))
    answers = {
        "200": json_answer("The signed booking.", "Booking", examples.booking("signed"), _NO_STORE),
        **problems(*_OWN, *WITH_BODY, "BuyerRefused"),
    }
    return _own("signBooking", "Sign", description=texts.SIGN_BOOKING, requestBody=body, responses=answers)


def _cancel() -> Operation:
    answers = {"204": answer("The hold is given up."), **problems(*_OWN, "BuyerRefused")}
    return _own(
        "cancelOwnBooking", "Cancel one's hold", description=texts.CANCEL_OWN_BOOKING, responses=answers
    )


def _own(name: str, summary: str, **members: Any) -> Operation:
    return operation(name, _TAG, summary, "reference", security=_WITH_TOKEN, **members)
