"""Staff at their desk, with a key, and the little of a buyer that they need opposite them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from tests.support import exact_json
from tests.support.client import JSON, Project, Unit, exact
from tests.support.sql import Sql

BACKOFFICE = "/v1/backoffice"
PROJECTS = f"{BACKOFFICE}/projects"
BOOKINGS = f"{BACKOFFICE}/bookings"
STOREFRONT = "/v1/storefront"

BUYER = {"buyerName": "Nora Al-Harbi", "buyerEmail": "nora@example.com", "buyerPhone": "+966 50 123 4567"}
ANOTHER_BUYER = {"buyerName": "Omar Haddad", "buyerEmail": "omar@example.com", "buyerPhone": "0501112223"}

BOOKING_FIELDS = {
    "reference", "status", "unitCode", "projectSlug", "holdExpiresAt", "reservedUntil", "terms", "buyer",
    "signedAt", "depositConfirmedAt", "closedAt", "buyerErasedAt",
}  # fmt: skip
ENTRY_FIELDS = {"at", "actor", "action", "bookingReference", "before", "after", "requestId"}
_END_NOW = """
    with clock as (
        select date_trunc('milliseconds', clock_timestamp()) + interval '1 millisecond' as now
    ), ended as (
        update unit set hold_expires_at = case when hold_expires_at is not null then clock.now end,
            reserved_until = case when reserved_until is not null then clock.now end
        from clock where unit.project_id = $1 and unit.code = $2
        returning unit.id, unit.hold_expires_at, unit.reserved_until
    )
    update booking set hold_expires_at = coalesce(ended.hold_expires_at, booking.hold_expires_at),
        reserved_until = ended.reserved_until
    from ended where booking.unit_id = ended.id and booking.status in ('open', 'signed', 'reserved')
"""


def succeeded(response: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    return dict(exact(response))


def end_now(sql: Sql, unit: Unit) -> None:
    """The hold or reservation of the unit is over, whether its end is written already or not."""
    sql.execute(_END_NOW, unit.project.id, unit.code)
    sql.value("select pg_sleep(0.002)")


def with_body(body: object) -> dict[str, Any]:
    """For httpx: the body as JSON, or nothing at all, not even a type."""
    if body is None:
        return {}
    content = body if isinstance(body, str | bytes) else exact_json.write(body)
    return {"content": content, "headers": {"Content-Type": JSON}}


def project_url(project: Project) -> str:
    return f"{PROJECTS}/{quote(project.slug, safe='')}"


def unit_url(unit: Unit) -> str:
    return f"{project_url(unit.project)}/units/{quote(unit.code, safe='').replace('.', '%2E')}"


@dataclass(frozen=True)
class Desk:
    """What one key does in the back office."""

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
        """All pages of a list."""
        cursor: dict[str, str] = {}
        while True:
            page = succeeded(self.http.get(url, params={**query, **cursor}))
            assert set(page) == {name, "nextCursor"}
            yield page[name]
            if page["nextCursor"] is None:
                return
            cursor = {"cursor": page["nextCursor"]}

    def settle(self, project: Project, **changes: object) -> dict[str, Any]:
        """Change the project's settings."""
        return succeeded(self.http.patch(project_url(project), **with_body(changes)))


@dataclass(frozen=True)
class Held:
    """A buyer's hold, and what opens it."""

    http: httpx.Client
    reference: str
    token: str

    def sign(self, buyer: dict[str, str] = BUYER) -> httpx.Response:
        return self._call("POST", "/sign", buyer)

    def read(self) -> httpx.Response:
        return self._call("GET")

    def cancel(self) -> httpx.Response:
        return self._call("DELETE")

    def _call(self, method: str, rest: str = "", body: object = None) -> httpx.Response:
        sent = with_body(body)
        sent["headers"] = {**sent.get("headers", {}), "Authorization": f"Bearer {self.token}"}
        return self.http.request(method, f"{STOREFRONT}/bookings/{self.reference}{rest}", **sent)


def ask_for_hold(public: httpx.Client, unit: Unit) -> httpx.Response:
    return public.post(unit_url(unit).replace(BACKOFFICE, STOREFRONT, 1) + "/hold")


def hold(public: httpx.Client, unit: Unit) -> Held:
    answer = succeeded(ask_for_hold(public, unit), 201)
    return Held(public, answer["reference"], answer["token"])


def hold_and_sign(public: httpx.Client, unit: Unit) -> Held:
    held = hold(public, unit)
    assert held.sign().status_code == 200
    return held
