"""Units and bookings in every condition, for the pages that show them."""

from urllib.parse import quote

import httpx

from tests.support.backoffice import Desk, Held, hold, hold_and_sign
from tests.support.client import Unit
from tests.support.staff_client import Person

BOOKINGS = "/backoffice/bookings"


def unit_page(unit: Unit) -> str:
    return f"/backoffice/projects/{unit.project.slug}/units/{quote(unit.code, safe='')}"


def booking_page(held: Held) -> str:
    return f"{BOOKINGS}/{held.reference}"


class Market:
    """A buyer, and staff with a key, who bring a unit to where a test wants it."""

    def __init__(self, public: httpx.Client, desk: Desk) -> None:
        self.public = public
        self.desk = desk

    def held(self, unit: Unit) -> Held:
        return hold(self.public, unit)

    def signed(self, unit: Unit) -> Held:
        return hold_and_sign(self.public, unit)

    def reserved(self, unit: Unit) -> Held:
        held = self.signed(unit)
        self.desk.did_to_booking(held.reference, "confirm-deposit")
        return held

    def sold(self, unit: Unit) -> Held:
        held = self.reserved(unit)
        self.desk.did_to_booking(held.reference, "close-sale")
        return held

    def due(self, unit: Unit) -> Held:
        """Its deposit is due back."""
        held = self.reserved(unit)
        self.desk.did_to_booking(held.reference, "cancel")
        return held

    def bring(self, unit: Unit, status: str) -> None:
        """From available to the status."""
        if status == "unavailable":
            self.desk.did(unit, "take-off-sale")
        elif status != "available":
            getattr(self, status)(unit)


def known(person: Person, unit: Unit) -> dict[str, str]:
    """What the forms of the unit's page send along."""
    page = person.see(unit_page(unit))
    return {"revision": page.split('name="revision" value="')[1].split('"')[0]}


def offered(page: str) -> set[str]:
    """Where the forms of a page go to, by the last part."""
    actions = [part.split('"')[0] for part in page.split('<form method="post" action="')[1:]]
    return {path.rpartition("/")[2] for path in actions if "/units/" in path or "/bookings/" in path}
