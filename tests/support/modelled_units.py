"""Units that are changed over HTTP, each compared with its model after every step."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from hypothesis.stateful import RuleBasedStateMachine

from tests.support import exact_json, model
from tests.support.client import JSON, Project, exact, integration_client
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.keys import Keys
from tests.support.model import Answer, Booking, ExpectedEntry, ExpectedEvent
from tests.support.problems import conflict, problem
from tests.support.projects import add_project
from tests.support.sql import Sql

CODES = ("A-101", "A-102", "B/7")
WAIT_UNTIL = (
    "select pg_sleep(greatest(extract(epoch from $1::text::timestamptz - clock_timestamp()), 0) + 0.001)"
)
BLOCKED_BY_A_HOLD = ("status-locked", "terms-locked", "not-available")


@dataclass(frozen=True)
class World:
    """The application, and one client for each kind of caller."""

    sql: Sql
    integration: httpx.Client
    public: httpx.Client
    payments: httpx.Client
    staff: httpx.Client
    admin: httpx.Client
    feed: Feed

    def wait_until(self, moment: str) -> None:
        """By the database's clock, the one that counts."""
        self.sql.value(WAIT_UNTIL, moment)


@contextmanager
def world_of(address: str, sql: Sql, feed: Feed) -> Iterator[World]:
    """A server without limits on holds: one address is many buyers."""
    keys = Keys(sql, sql.url)
    scopes = ("integration", None, "payments", "backoffice", "admin")
    texts = [None if scope is None else keys.issue(scopes=[scope]).text for scope in scopes]
    with ExitStack() as open_clients:
        clients = [open_clients.enter_context(integration_client(address, text)) for text in texts]
        integration, public, payments, staff, admin = clients
        yield World(sql, integration, public, payments, staff, admin, feed)


class Lives(RuleBasedStateMachine):
    """Calls, and what every answer is held against."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.project: Project = add_project(world.sql)
        self.units = {code: model.Unit(code) for code in CODES}
        self.bookings: dict[str, Booking] = {}
        self._seen: dict[str, tuple[int, str]] = {}

    # Calls

    def path(self, surface: str, code: str, rest: str = "") -> str:
        return f"/v1/{surface}/projects/{self.project.slug}/units/{code.replace('/', '%2F')}{rest}"

    def send(
        self, client: httpx.Client, method: str, path: str, body: Any = None, **headers: str
    ) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is None:
            return client.request(method, path, headers=named)
        content = exact_json.write(body)
        return client.request(method, path, content=content, headers={"Content-Type": JSON, **named})

    def act(self, code: str, action: str, body: Any = None) -> httpx.Response:
        """As an admin where staff may not."""
        client = self.world.admin if action == "revoke-sale" else self.world.staff
        return self.send(client, "POST", self.path("backoffice", code, f"/{action}"), body)

    def act_on(self, booking: Booking, action: str, client: httpx.Client | None = None) -> httpx.Response:
        path = f"/v1/backoffice/bookings/{booking.reference}/{action}"
        return self.send(client or self.world.staff, "POST", path)

    def as_buyer(
        self, booking: Booking, method: str, rest: str = "", body: Any = None, token: str | None = None
    ) -> httpx.Response:
        path = f"/v1/storefront/bookings/{booking.reference}{rest}"
        bearer = f"Bearer {token or booking.token}"
        return self.send(self.world.public, method, path, body, Authorization=bearer)

    def settle(self, **periods: float | None) -> None:
        path = f"/v1/backoffice/projects/{self.project.slug}"
        response = self.send(self.world.staff, "PATCH", path, periods)
        assert response.status_code == 200, response.text
        # The project is part of what an ETag names.
        self._seen.clear()

    def keep(self, booking: Booking) -> Booking:
        assert booking.reference not in self.bookings
        self.bookings[booking.reference] = booking
        return booking

    # Comparisons

    def check(
        self, response: httpx.Response, expected: Answer, code: str, booking: Booking | None = None
    ) -> None:
        if expected.reason is not None:
            self._check_conflict(response, expected, self.units[code])
        elif expected.code >= 400:
            problem(response, expected.code)
        else:
            assert response.status_code == expected.code, response.text
        self.compare(code, booking)

    def _check_conflict(self, response: httpx.Response, expected: Answer, unit: model.Unit) -> None:
        assert expected.reason is not None
        assert unit.status is not None
        told = conflict(response, expected.reason, unit.status, *expected.fields)
        if unit.status == "held" and expected.reason in BLOCKED_BY_A_HOLD:
            assert told["holdExpiresAt"]
            assert int(response.headers["retry-after"]) >= 1

    def compare(self, code: str, booking: Booking | None = None) -> None:
        self._compare_unit(self.units[code])
        concerned = {one.reference: one for one in (booking, self.units[code].claim) if one is not None}
        for one in concerned.values():
            self._compare_booking(one)

    def _compare_unit(self, unit: model.Unit) -> None:
        response = self.world.integration.get(self.path("integration", unit.code))
        offered = self.world.public.get(self.path("storefront", unit.code))
        on_sale = unit.status not in (None, "unavailable")
        assert offered.status_code == (200 if on_sale else 404)
        if unit.status is None:
            assert response.status_code == 404
            return
        found = exact(response)
        assert (found["status"], {name: found[name] for name in unit.fields}) == (unit.status, unit.fields)
        assert (found["holdExpiresAt"] is not None) == (unit.status == "held")
        if on_sale:
            assert exact(offered)["status"] == unit.status
        self._compare_version(unit, response.headers["etag"])

    def _compare_version(self, unit: model.Unit, etag: str) -> None:
        """One ETag for one representation: it changes when the unit does, and not otherwise."""
        changes, seen = self._seen.get(unit.code, (None, None))
        assert changes is None or (etag == seen) == (unit.changes == changes)
        self._seen[unit.code] = (unit.changes, etag)

    def _compare_booking(self, booking: Booking) -> None:
        found = exact(self.world.staff.get(f"/v1/backoffice/bookings/{booking.reference}"))
        assert (found["status"], found["terms"]) == (booking.status, booking.terms)
        assert (found["unitCode"], found["projectSlug"]) == (booking.code, self.project.slug)
        assert found["buyer"] == _named(booking.buyer)
        assert (found["signedAt"] is not None) == booking.is_signed
        assert (found["depositConfirmedAt"] is not None) == booking.is_paid
        assert (found["closedAt"] is not None) == booking.is_closed
        if booking.token is not None:
            assert exact(self.as_buyer(booking, "GET")) == found

    # The end of every life

    def teardown(self) -> None:
        for code, unit in self.units.items():
            if unit.status is not None:
                # Whatever has lapsed and is not written yet is written first by whoever writes.
                self.send(self.world.integration, "PATCH", self.path("integration", code), {})
                self.compare(code)
                assert self._history_of(code) == unit.history
        for booking in self.bookings.values():
            self._compare_booking(booking)
        self._compare_lists()
        self._compare_events()

    def _history_of(self, code: str) -> list[ExpectedEntry]:
        response = self.world.staff.get(self.path("backoffice", code, "/history"), params={"limit": 1000})
        return [
            ExpectedEntry(entry["action"], entry["bookingReference"], entry["actor"]["kind"])
            for entry in reversed(response.json()["entries"])
        ]

    def _compare_lists(self) -> None:
        for status in {one.status for one in self.bookings.values()}:
            query = {"project": self.project.slug, "status": status, "limit": "1000"}
            listed = self.world.staff.get("/v1/backoffice/bookings", params=query).json()["bookings"]
            expected = {one.reference for one in self.bookings.values() if one.status == status}
            assert {one["reference"] for one in listed} == expected

    def _compare_events(self) -> None:
        events = self.world.feed.of(self.project)
        for code, unit in self.units.items():
            own = [event for event in events if event["data"]["unit"]["code"] == code]
            assert [_told(event) for event in own] == unit.events
            assert chain_is_unbroken(own)


def _named(buyer: dict[str, str] | None) -> dict[str, str] | None:
    return buyer and {name.removeprefix("buyer").lower(): value for name, value in buyer.items()}


def _told(event: dict[str, Any]) -> ExpectedEvent:
    unit, booking = event["data"]["unit"], event["data"]["booking"]
    return ExpectedEvent(
        event["type"], unit["previousStatus"], unit["status"], booking and booking["reference"]
    )
