"""How a browser gets at a booking: by the buyer's cookie, or by one that came of a link."""

from __future__ import annotations

import re

from starlette.responses import Response

from holdfast.domain.errors import UnknownBooking
from holdfast.domain.references import SYMBOLS, number_of, reference_of
from holdfast.operations.bookings import Bookings, Found, Purchases
from holdfast.web.storefront.pages.addressed import booking_in_path, token_in_path
from holdfast.web.storefront.pages.visits import Visit

PREFIX = "holdfast_booking_"
MOST_KEPT = 20
"""Each is sent with every request, and servers on the way take only so much."""
_NAME = re.compile(f"{PREFIX}[{SYMBOLS.lower()}]{{9}}")


async def own_booking(visit: Visit, buying: Purchases) -> tuple[Found, str]:
    """The booking of the address, if it is the buyer's, and the token that opens it."""
    slug, reference = booking_in_path(visit)
    name = _cookie_name(reference)
    kept = None if name is None else visit.door.cookies.read(visit.request, name)
    found, token = await buying.find(reference, visit.secret, [kept] if kept else [])
    if found.project_slug != slug:
        raise UnknownBooking(reference)
    return found, token


async def entered_by_link(visit: Visit, selling: Bookings) -> Found:
    slug, reference = booking_in_path(visit)
    found = await selling.find_with_token(reference, token_in_path(visit))
    if found.project_slug != slug:
        raise UnknownBooking(reference)
    return found


def keep_key(visit: Visit, response: Response, reference: str, token: str) -> None:
    """The oldest ones go when there are many."""
    cookies = visit.door.cookies
    name = _cookie_name(reference)
    assert name is not None
    # A browser may hold others that begin alike, and not every name can be sent back to it.
    kept = filter(_NAME.fullmatch, cookies.names(visit.request, PREFIX))
    others = [other for other in kept if other != name]
    for other in others[: max(0, len(others) - MOST_KEPT + 1)]:
        cookies.drop(response, other)
    cookies.keep(response, name, token)


def _cookie_name(reference: str) -> str | None:
    """However the reference is spelled; None if it can be none."""
    number = number_of(reference)
    return None if number is None else PREFIX + reference_of(number).replace("-", "").lower()
