"""Staff at their desk, with a key: a client of the back office that brings units to any condition."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from tests.support.buying import Buyer, Hold
from tests.support.client import Project, Unit, pages_of, succeeded, with_body

BACKOFFICE = "/v1/backoffice"
PROJECTS = f"{BACKOFFICE}/projects"
BOOKINGS = f"{BACKOFFICE}/bookings"

BOOKING_FIELDS = {
    "reference", "status", "unitCode", "projectSlug", "holdExpiresAt", "reservedUntil", "terms", "buyer",
    "signedAt", "depositConfirmedAt", "closedAt", "buyerErasedAt",
}  # fmt: skip
ENTRY_FIELDS = {"at", "actor", "action", "bookingReference", "before", "after", "requestId"}


def project_url(project: Project) -> str:
    return f"{PROJECTS}/{quote(project.slug, safe='')}"


def unit_url(unit: Unit) -> str:
    return f"{project_url(unit.project)}/units/{quote(unit.code, safe='').replace('.', '%2E')}"


@dataclass(frozen=True)
class Desk:
    """What one key does in the back office, and the buyers whom its owner deals with."""

    http: httpx.Client

    def act(self, unit: Unit, action: str, body: object = None) -> httpx.Response:
        return self.http.post(f"{unit_url(unit)}/{action}", **with_body(body))

    def did(self, unit: Unit, action: str, body: object = None) -> dict[str, Any]:
        """The unit after an action that is possible."""
        return succeeded(self.act(unit, action, body))

    def history_page(self, unit: Unit, **query: str | int) -> dict[str, Any]:
        answer = succeeded(self.http.get(f"{unit_url(unit)}/history", params=query))
        assert set(answer) == {"entries", "nextCursor"}
        assert all(set(entry) == ENTRY_FIELDS for entry in answer["entries"])
        return answer

    def history(self, unit: Unit) -> list[dict[str, Any]]:
        """The latest first; a test never makes more than one page of it."""
        page = self.history_page(unit, limit=1000)
        assert page["nextCursor"] is None
        return list(page["entries"])

    def last_entry(self, unit: Unit) -> dict[str, Any]:
        return dict(self.history(unit)[0])

    def act_on_booking(self, reference: str, action: str, body: object = None) -> httpx.Response:
        return self.http.post(f"{BOOKINGS}/{reference}/{action}", **with_body(body))

    def did_to_booking(self, reference: str, action: str, body: object = None) -> dict[str, Any]:
        return succeeded(self.act_on_booking(reference, action, body))

    def booking(self, reference: str) -> dict[str, Any]:
        answer = succeeded(self.http.get(f"{BOOKINGS}/{reference}"))
        assert set(answer) == BOOKING_FIELDS
        return answer

    def bookings(self, **query: str | int) -> dict[str, Any]:
        answer = succeeded(self.http.get(BOOKINGS, params=query))
        assert set(answer) == {"bookings", "nextCursor"}
        return answer

    def pages(self, url: str, name: str, **query: str | int) -> Iterator[list[dict[str, Any]]]:
        return pages_of(self.http, url, name, **query)

    def settle(self, project: Project, **changes: object) -> dict[str, Any]:
        """Change the project's settings."""
        return succeeded(self.http.patch(project_url(project), **with_body(changes)))

    @property
    def buyer(self) -> Buyer:
        """Somebody at the storefront of the same server."""
        return Buyer(self.http)

    def held(self, unit: Unit) -> Hold:
        return self.buyer.hold(unit)

    def signed(self, unit: Unit) -> Hold:
        held = self.held(unit)
        held.sign()
        return held

    def reserved(self, unit: Unit) -> Hold:
        held = self.signed(unit)
        self.did_to_booking(held.reference, "confirm-deposit")
        return held

    def sold(self, unit: Unit) -> Hold:
        held = self.reserved(unit)
        self.did_to_booking(held.reference, "close-sale")
        return held

    def cancelled(self, unit: Unit) -> Hold:
        """Signed, and then given up by the buyer."""
        held = self.signed(unit)
        assert held.cancel().status_code == 204
        return held

    def refund_due(self, unit: Unit) -> Hold:
        """Reserved, and then cancelled: the deposit is due back."""
        held = self.reserved(unit)
        self.did_to_booking(held.reference, "cancel")
        return held

    def book(self, unit: Unit, condition: str) -> Hold:
        ways = {"held": self.held, "signed": self.signed, "reserved": self.reserved, "sold": self.sold}
        return ways[condition](unit)

    def bring(self, unit: Unit, condition: str) -> Hold | None:
        """From available to any condition; the buyer's side of it, if there is a buyer."""
        moves = {"unavailable": "take-off-sale", "archived": "archive"}
        if condition in moves:
            self.did(unit, moves[condition])
        elif condition != "available":
            return self.book(unit, condition)
        return None
