"""Units that are changed over HTTP by rules, in any order or a chosen one, and compared with their model."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.support import exact_json, model
from tests.support.client import JSON, Project, exact, integration_client
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.keys import Keys
from tests.support.model import Answer, Booking
from tests.support.problems import conflict, problem
from tests.support.projects import add_project
from tests.support.sql import Sql
from tests.support.unit_rows import WAIT

CODES = ("A-101", "A-102", "B/7")
BLOCKED_BY_A_HOLD = ("status-locked", "terms-locked", "not-available")
NORA = {"buyerName": "Nora Al-Harbi", "buyerEmail": "nora@example.com", "buyerPhone": "+966 50 123 4567"}
OMAR = {"buyerName": "عمر حداد", "buyerEmail": "omar@example.com", "buyerPhone": "0501112223"}
PRICES = "[100000, null, null, null], [100000.5, 2.5, false, 15], [0.1, 50, false, 5], [250000, 10, true, 15]"
TERMS = [dict(zip(model.TERMS, values, strict=True)) for values in exact_json.read(f"[{PRICES}]")]
SHORT_HOLD_SECONDS, TIME_TO_SIGN_SECONDS, SHORT_RESERVATION_DAYS = 0.02, 0.2, 0.00001
WAYS: dict[str, tuple[str, ...]] = {
    "": (),
    "held": ("hold",),
    "signed": ("hold", "sign"),
    "reserved": ("hold", "sign", "pay"),
    "sold": ("hold", "sign", "pay", "sell"),
    "sold to a walk-in": ("walk in",),
    "archived": ("archive",),
    "lapsed": ("lapse",),
    "lapsed after the signature": ("lapse signed",),
    "cancelled": ("hold", "cancel"),
    "cancelled after the signature": ("hold", "sign", "cancel"),
    "refunded": ("hold", "sign", "pay", "cancel by staff", "refund"),
    "paid late": ("hold", "sign", "cancel", "pay"),
    "paid too late": ("hold", "sign", "cancel", "walk in", "pay the one before"),
    "revoked": ("hold", "sign", "pay", "sell", "revoke"),
}
"""How far a unit is brought in one step."""
WAYS_BACK: dict[str | None, tuple[str, ...]] = {
    "held": ("cancel-hold",),
    "reserved": ("cancel-reservation",),
    "sold": ("revoke-sale", "put-on-sale"),
    "unavailable": ("put-on-sale",),
}

some_way = st.sampled_from(sorted(WAYS))
# The third unit is seldom there.
codes = st.sampled_from([*CODES[:2], *CODES[:2], *CODES])
some_booking = st.integers(0, 9)
buyers = st.sampled_from([NORA, OMAR])
descriptions = st.sampled_from([None, "Sea view"])
fields = st.builds(lambda terms, text: {**terms, "description": text}, st.sampled_from(TERMS), descriptions)
names = st.sets(st.sampled_from([*model.TERMS, "description"]))
statuses = st.sampled_from([None, None, None, "available", "unavailable", "held", "sold"])
unit_actions = st.sampled_from(["open", "extend", "confirm-deposit", *sorted(model.STAFF_MOVES)])
booking_actions = st.sampled_from(["cancel", "close-sale", "extend", "mark-refunded", "confirm-deposit"])


@dataclass(frozen=True)
class World:
    """The application, and one client for each kind of caller."""

    sql: Sql
    feed: Feed
    integration: httpx.Client
    public: httpx.Client
    payments: httpx.Client
    staff: httpx.Client
    admin: httpx.Client

    def wait_until(self, moment: str) -> None:
        self.sql.value(WAIT, datetime.fromisoformat(moment))


@contextmanager
def world_of(address: str, sql: Sql, feed: Feed) -> Iterator[World]:
    """A server without limits on holds: one address is many buyers."""
    keys = Keys(sql, sql.url)
    scopes = ("integration", None, "payments", "backoffice", "admin")
    texts = [None if scope is None else keys.issue(scopes=[scope]).text for scope in scopes]
    with ExitStack() as open_clients:
        clients = [open_clients.enter_context(integration_client(address, text)) for text in texts]
        yield World(sql, feed, *clients)


class LifeOfUnits(RuleBasedStateMachine):
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
        buyer = (booking.buyer or {}).items()
        assert (found["buyer"] or {}) == {name.removeprefix("buyer").lower(): value for name, value in buyer}
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

    def _history_of(self, code: str) -> list[model.Entry]:
        response = self.world.staff.get(self.path("backoffice", code, "/history"), params={"limit": 1000})
        return [
            (entry["action"], entry["bookingReference"], entry["actor"]["kind"])
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

    # Rules: the integration API

    def chosen(self, which: int) -> Booking:
        """The latest more often than others, for more can happen to them."""
        made = list(self.bookings.values())
        return made[-1 - which % len(made)]

    @initialize(wanted=st.tuples(fields, fields), ways=st.tuples(some_way, some_way))
    def two_units_have_come_some_way(self, wanted: tuple[Any, Any], ways: tuple[str, str]) -> None:
        for code, body, way in zip(CODES, wanted, ways, strict=False):
            self.put(code, body, None)
            self.go(code, way)

    @rule(code=codes, wanted=fields, status=statuses)
    def put(self, code: str, wanted: dict[str, Any], status: str | None) -> None:
        body = {"type": "apartment", "areaSqm": 100, **wanted, **({"status": status} if status else {})}
        response = self.send(self.world.integration, "PUT", self.path("integration", code), body)
        self.check(response, self.units[code].put(wanted, status), code)

    @rule(code=codes, wanted=fields, named=names, status=statuses)
    def patch(self, code: str, wanted: dict[str, Any], named: set[str], status: str | None) -> None:
        changes = {name: wanted[name] for name in sorted(named)}
        body = changes | ({"status": status} if status else {})
        response = self.send(self.world.integration, "PATCH", self.path("integration", code), body)
        self.check(response, self.units[code].patch(changes, status), code)

    # Buyers

    @rule(code=codes, own=st.none() | some_booking)
    def hold(self, code: str, own: int | None) -> None:
        token = None if own is None or not self.bookings else self.chosen(own).token
        expected = self.units[code].hold(token)
        response = self.ask_for_hold(code, **({"Authorization": f"Bearer {token}"} if token else {}))
        own_again = self.units[code].claim if expected.code == 200 else None
        self.check_hold(response, expected, code, own_again, None)

    @rule(code=codes, key=st.sampled_from(["the first request", "the second request"]))
    def hold_with_a_key(self, code: str, key: str) -> None:
        earlier = next((one for one in self.bookings.values() if (one.code, one.key) == (code, key)), None)
        expected = self.units[code].hold(None, earlier)
        response = self.ask_for_hold(code, Idempotency_Key=key)
        self.check_hold(response, expected, code, earlier, key)

    def ask_for_hold(self, code: str, **headers: str) -> httpx.Response:
        return self.send(self.world.public, "POST", self.path("storefront", code, "/hold"), **headers)

    def check_hold(
        self, response: httpx.Response, expected: Answer, code: str, booking: Booking | None, key: str | None
    ) -> None:
        """A new hold, or the ``booking`` that there was."""
        if expected.code < 300:
            assert response.status_code == expected.code, response.text
            answer = response.json()
            reference, token = answer["reference"], answer["token"]
            booking = booking or self.keep(self.units[code].opened(reference, token, "buyer", key))
            assert (reference, token) == (booking.reference, booking.token)
            assert answer["unit"]["status"] == "held"
            assert answer["holdExpiresAt"] == answer["unit"]["holdExpiresAt"] is not None
        self.check(response, expected, code, booking)

    @precondition(lambda self: self.bookings)
    @rule(which=some_booking, buyer=buyers)
    def sign(self, which: int, buyer: dict[str, str]) -> None:
        booking = self.chosen(which)
        if booking.token is not None:
            response = self.as_buyer(booking, "POST", "/sign", buyer)
            self.check(response, self.units[booking.code].sign(booking, buyer), booking.code, booking)

    @precondition(lambda self: self.bookings)
    @rule(which=some_booking)
    def cancel_as_buyer(self, which: int) -> None:
        booking = self.chosen(which)
        if booking.token is not None:
            response = self.as_buyer(booking, "DELETE")
            self.check(response, self.units[booking.code].cancel_as_buyer(booking), booking.code, booking)

    # Staff and payment systems

    @rule(code=codes, action=unit_actions)
    def act_on_unit(self, code: str, action: str) -> None:
        unit, response = self.units[code], self.act(code, action)
        decide = {"open": unit.open, "extend": unit.extend, "confirm-deposit": unit.confirm_deposit}
        expected = decide[action]() if action in decide else unit.act(action)
        if (action, expected) == ("open", model.OK):
            self.keep(unit.opened(response.json()["bookingReference"], None, "key"))
        self.check(response, expected, code)

    @rule(code=codes, buyer=st.none() | buyers)
    def close_sale(self, code: str, buyer: dict[str, str] | None) -> None:
        unit = self.units[code]
        is_free = unit.status == "available"
        expected, response = unit.close_sale(buyer), self.act(code, "close-sale", buyer)
        if is_free and buyer is not None:
            self.keep(unit.sold_to(buyer, response.json()["bookingReference"]))
        self.check(response, expected, code)

    @precondition(lambda self: self.bookings)
    @rule(which=some_booking, action=booking_actions, by_payments=st.booleans())
    def act_on_booking(self, which: int, action: str, by_payments: bool) -> None:
        booking = self.chosen(which)
        unit = self.units[booking.code]
        decide: dict[str, Callable[[Booking], Answer]] = {
            "cancel": unit.cancel,
            "close-sale": unit.close_sale_of,
            "extend": unit.extend_booking,
            "mark-refunded": unit.mark_refunded,
            "confirm-deposit": unit.confirm_deposit_of,
        }
        response = self.act_on(booking, action, self.world.payments if by_payments else None)
        forbidden = by_payments and action != "confirm-deposit"
        expected = Answer(403) if forbidden else decide[action](booking)
        self.check(response, expected, booking.code, booking)

    @precondition(lambda self: self.bookings)
    @rule(which=some_booking)
    def reissue_the_link(self, which: int) -> None:
        booking = self.chosen(which)
        old, response = booking.token, self.act_on(booking, "reissue-link")
        self.units[booking.code].reissued(booking, response.json()["token"])
        self.check(response, model.OK, booking.code, booking)
        if old is not None:
            problem(self.as_buyer(booking, "GET", token=old), 404)

    # The clock

    def let_a_hold_lapse(self, code: str, buyer: dict[str, str] | None) -> None:
        """Whoever is too slow to sign in time is told so, and the hold lapses unsigned."""
        self.settle(holdSeconds=TIME_TO_SIGN_SECONDS if buyer else SHORT_HOLD_SECONDS)
        answer, unit = self.ask_for_hold(code).json(), self.units[code]
        booking = self.keep(unit.opened(answer["reference"], answer["token"], "buyer"))
        if buyer and self.as_buyer(booking, "POST", "/sign", buyer).status_code == 200:
            unit.sign(booking, buyer)
        self.settle(holdSeconds=None)
        self.world.wait_until(answer["holdExpiresAt"])
        unit.lapse()
        self.compare(code, booking)

    def let_a_reservation_lapse(self) -> None:
        """No rule: a reservation lasts most of a second at the least."""
        booking = self.chosen(0)
        self.settle(reservationDays=SHORT_RESERVATION_DAYS)
        reserved = self.act_on(booking, "confirm-deposit").json()
        assert self.units[booking.code].confirm_deposit_of(booking) == model.OK
        self.settle(reservationDays=None)
        self.world.wait_until(reserved["reservedUntil"])
        self.units[booking.code].lapse()
        self.compare(booking.code, booking)

    # Many steps in one, so that the end of the way is seen as often as its beginning

    @rule(code=codes, way=some_way)
    def go(self, code: str, way: str) -> None:
        if self.units[code].status is None:
            self.put(code, {**TERMS[0], "description": None}, None)
        for action in WAYS_BACK.get(self.units[code].status, ()):
            self.act_on_unit(code, action)
        steps = self.steps(code)
        for step in WAYS[way]:
            steps[step]()

    def steps(self, code: str) -> dict[str, Callable[[], None]]:
        """Each is about the latest booking."""
        return {
            "hold": lambda: self.hold(code, None),
            "sign": lambda: self.sign(0, NORA),
            "pay": lambda: self.act_on_booking(0, "confirm-deposit", by_payments=True),
            "pay the one before": lambda: self.act_on_booking(1, "confirm-deposit", by_payments=True),
            "sell": lambda: self.act_on_booking(0, "close-sale", by_payments=False),
            "cancel": lambda: self.cancel_as_buyer(0),
            "cancel by staff": lambda: self.act_on_booking(0, "cancel", by_payments=False),
            "refund": lambda: self.act_on_booking(0, "mark-refunded", by_payments=False),
            "walk in": lambda: self.close_sale(code, OMAR),
            "archive": lambda: self.act_on_unit(code, "archive"),
            "revoke": lambda: self.act_on_unit(code, "revoke-sale"),
            "lapse": lambda: self.let_a_hold_lapse(code, None),
            "lapse signed": lambda: self.let_a_hold_lapse(code, NORA),
        }


def _told(event: dict[str, Any]) -> model.Event:
    unit, booking = event["data"]["unit"], event["data"]["booking"]
    return event["type"], unit["previousStatus"], unit["status"], booking and booking["reference"]
