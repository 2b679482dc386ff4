"""Everybody at once on a handful of units: whatever the order, the history of each is one that can be."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.client import integration_client
from tests.support.concurrent_requests import Answer, Line, Request, open_lines
from tests.support.feed import read_on
from tests.support.history_checker import faults_of, feed_faults
from tests.support.sales_project import (
    BUYER,
    NO_HOLD_LIMIT,
    Market,
    expect,
    new_market,
    open_market,
    reach_web_processes,
    stock_up,
)
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.unit_history import History, read_histories

UNITS = [f"A-{number}" for number in range(6)]
CALLERS = 32
TURNS = 125
"""Of each caller in a round."""
MAX_ROUNDS = 6
"""On a slow machine most bookings are ended by the clock, on a fast one few: it may take several rounds until
everything has happened."""
# Short, so that the clock is one of those who interleave.
PERIODS = {"HOLDFAST_HOLD_SECONDS": "0.2", "HOLDFAST_RESERVATION_DAYS": "0.000003"}
PATIENCE_SECONDS = 60

Making = Callable[[Market, random.Random, str, Any], Request]
"""Of a request, for a unit and a booking that may be of another."""


def price(chance: random.Random) -> int:
    """Few, so that the stored value is sent again at times."""
    return chance.choice((950_000, 960_000, 970_000))


OF_A_UNIT: dict[str, tuple[int, Making]] = {
    "hold": (20, lambda market, _, code, __: market.hold(code)),
    "PATCH terms": (5, lambda market, chance, code, _: market.patch(code, priceSar=price(chance))),
    "PATCH text": (4, lambda market, chance, code, _: market.patch(code, description=str(chance.random()))),
    "PATCH on sale": (7, lambda market, _, code, __: market.patch(code, status="available")),
    "PATCH off sale": (1, lambda market, _, code, __: market.patch(code, status="unavailable")),
    "PUT": (3, lambda market, chance, code, _: market.put(code, priceSar=price(chance))),
    "PUT status": (2, lambda market, _, code, __: market.put(code, status="available", vatRate=5)),
    "take-off-sale": (1, lambda market, _, code, __: market.act(code, "take-off-sale")),
    "put-on-sale": (9, lambda market, _, code, __: market.act(code, "put-on-sale")),
    "open": (3, lambda market, _, code, __: market.act(code, "open")),
    "extend": (2, lambda market, _, code, __: market.act(code, "extend")),
    "archive": (1, lambda market, _, code, __: market.act(code, "archive")),
    "cancel-hold": (1, lambda market, _, code, __: market.act(code, "cancel-hold")),
    "cancel-reservation": (2, lambda market, _, code, __: market.act(code, "cancel-reservation")),
    "close-sale": (1, lambda market, _, code, __: market.act(code, "close-sale")),
    "walk-in": (1, lambda market, _, code, __: market.act(code, "close-sale", BUYER)),
    "revoke-sale": (8, lambda market, _, code, __: market.act(code, "revoke-sale")),
}
OF_A_BOOKING: dict[str, tuple[int, Making]] = {
    "sign": (20, lambda market, _, __, held: market.sign(held)),
    "confirm-deposit": (18, lambda market, _, __, held: market.confirm_deposit(held)),
    "cancel": (3, lambda market, _, __, held: market.cancel(held)),
    "extend booking": (1, lambda market, _, __, held: market.staff_on_booking(held, "extend")),
    "close booking": (3, lambda market, _, __, held: market.staff_on_booking(held, "close-sale")),
    "cancel booking": (2, lambda market, _, __, held: market.staff_on_booking(held, "cancel")),
    "mark-refunded": (4, lambda market, _, __, held: market.staff_on_booking(held, "mark-refunded")),
}
ALL = OF_A_UNIT | OF_A_BOOKING
# Without a buyer: whether one must be named turns on what the unit is when the request is decided.
MAY_BE_INVALID = ("close-sale",)
MUST_HAVE_HAPPENED = {
    "create", "change", "open", "sign", "extend", "lapse-hold", "cancel-hold", "confirm-deposit",
    "lapse-reservation", "cancel-reservation", "close-sale", "put-on-sale", "take-off-sale", "archive",
    "revoke-sale", "mark-refunded",
}  # fmt: skip


@dataclass
class Crowd:
    market: Market
    seed: int
    lately: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=8))
    """Holds that were answered; the old ones are forgotten, so that most are of bookings that live."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """By the id of the request."""
    references: set[str] = field(default_factory=set)

    def run(self, server: RunningServer, sql: Sql) -> None:
        """Each round ends with bookings that nobody but the clock can end."""
        asyncio.run(stock_up(self.market, UNITS))
        for number in range(MAX_ROUNDS):
            asyncio.run(self._run_round(server, number))
            assert_sound(read_histories(sql, self.market.slug))
            wait_until_nothing_ends_any_more(sql)
            if actions(read_histories(sql, self.market.slug)) >= MUST_HAVE_HAPPENED:
                return

    async def _run_round(self, server: RunningServer, number: int) -> None:
        async with open_lines(self.market.address, CALLERS) as lines:
            await reach_web_processes(server, self.market.address)
            await asyncio.gather(*(self._call(line, f"{number}-{of}") for of, line in enumerate(lines)))

    async def _call(self, line: Line, caller: str) -> None:
        chance = random.Random(f"{self.seed} {caller}")
        for turn in range(TURNS):
            name = self._choose(chance)
            held = chance.choice(self.lately) if name in OF_A_BOOKING else None
            request = ALL[name][1](self.market, chance, chance.choice(UNITS), held)
            request_id = f"{caller}-{turn}-{name.replace(' ', '-')}"
            answer = await line.ask(request._replace(headers=(("X-Request-Id", request_id),)))
            self._note(name, request_id, answer)

    def _choose(self, chance: random.Random) -> str:
        known = ALL if self.lately else OF_A_UNIT
        return chance.choices(list(known), [weight for weight, _ in known.values()])[0]

    def _note(self, name: str, request_id: str, answer: Answer) -> None:
        invalid = (422,) if name in MAY_BE_INVALID else ()
        expect(answer, 200, 201, 204, 409, *invalid)
        self.answers[request_id] = answer
        if name == "hold" and answer.status == 201:
            self.lately.append(answer.body)
            self.references.add(answer.body["reference"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("interleavings")
    settings = NO_HOLD_LIMIT | PERIODS
    with open_market(folder, module_postgres_url, "--processes", "2", settings=settings) as (_, server):
        yield server


@pytest.mark.parametrize("seed", [1, 2])
def test_interleaved_writers_leave_histories_that_can_have_happened(
    server: RunningServer, module_postgres_url: str, seed: int
) -> None:
    crowd = Crowd(new_market(server.address, module_postgres_url), seed)
    with Sql(module_postgres_url) as sql:
        crowd.run(server, sql)
        histories = read_histories(sql, crowd.market.slug)
    assert_sound(histories)
    with integration_client(crowd.market.address, crowd.market.key) as http:
        events = [
            event
            for event in read_on(http, None)[0]
            if event["data"]["unit"]["projectSlug"] == crowd.market.slug
        ]
    assert feed_faults(histories, events) == []
    assert_stored_is_what_was_answered(crowd, histories)
    assert actions(histories) >= MUST_HAVE_HAPPENED


def actions(histories: list[History]) -> set[str]:
    return {entry["action"] for history in histories for entry in history.entries}


def assert_sound(histories: list[History]) -> None:
    assert [history.unit["code"] for history in histories] == UNITS
    assert [fault for history in histories for fault in faults_of(history)] == []


def wait_until_nothing_ends_any_more(sql: Sql) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while sql.value("select count(*) from unit where coalesce(hold_expires_at, reserved_until) is not null"):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def assert_stored_is_what_was_answered(crowd: Crowd, histories: list[History]) -> None:
    """A refused request has changed nothing, an accepted one no more than once, and every hold is there."""
    entries = [entry for history in histories for entry in history.entries if entry["actor_kind"] != "clock"]
    made = Counter(entry["request_id"] for entry in entries if entry["action"] != "create")
    refused = {name for name, answer in crowd.answers.items() if answer.status >= 400}
    assert not refused & set(made)
    assert set(made.values()) == {1}
    opened = {
        entry["booking_reference"]
        for entry in entries
        if (entry["actor_kind"], entry["action"]) == ("buyer", "open")
    }
    assert opened == crowd.references
