"""Buyers, staff, systems and the clock write to a few units at once.

One buyer gets a unit, no update is lost, and the history of each unit is one that can have happened.
"""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.buying import BUYER
from tests.support.client import integration_client
from tests.support.concurrent_requests import Answer, Line, Request, open_lines, salvo
from tests.support.feed import read_on
from tests.support.history_checker import faults_of, feed_faults
from tests.support.keys import Keys
from tests.support.payment_system import SETTINGS
from tests.support.sales_project import (
    NO_HOLD_LIMIT,
    Market,
    expect,
    new_market,
    open_market,
    reach_web_processes,
    stock_up,
)
from tests.support.server import wait_until
from tests.support.sql import Sql
from tests.support.unit_history import History, Row, read_histories
from tests.support.webhooks import NOBODY_LISTENS

UNITS = [f"A-{number}" for number in range(4)]
ROUNDS_OF_THE_CONTROL = 40

# All that keeps two writers of one unit apart, one after the other: a unit is stored only if its turn
# is the one that was found, no two changes of it have one version, no two bookings claim it.
WITHOUT_GUARDS = """
    create function keep_turn() returns trigger language plpgsql as
        $$ begin new.turn := old.turn; return new; end $$;
    create trigger keep_turn before update on unit for each row execute function keep_turn();
    alter table event drop constraint one_event_per_change;
    drop index one_booking_claims_a_unit;
"""


async def rush(market: Market, codes: list[str], buyers_each: int) -> dict[str, list[Answer]]:
    """What the buyers of each unit were answered. No two neighbours want the same unit."""
    wanted = codes * buyers_each
    async with open_lines(market.address, len(wanted)) as lines:
        await reach_web_processes(lines)
        answers = await salvo(lines, [market.hold(code) for code in wanted])
    found: dict[str, list[Answer]] = {code: [] for code in codes}
    for code, answer in zip(wanted, answers, strict=True):
        found[code].append(answer)
    return found


def winner(answers: list[Answer]) -> str:
    """The reference of the one who got the unit; all the others were told why they did not."""
    assert Counter(answer.status for answer in answers) == {201: 1, 409: len(answers) - 1}
    assert {answer.reason for answer in answers if answer.status == 409} == {"not-available"}
    (held,) = [answer.body for answer in answers if answer.status == 201]
    return str(held["reference"])


@pytest.mark.parametrize(("units", "buyers_each"), [(1, 100), pytest.param(10, 40, marks=pytest.mark.slow)])
def test_of_many_buyers_at_once_one_gets_the_unit(
    tmp_path: Path, postgres_url: str, units: int, buyers_each: int
) -> None:
    codes = [f"A-{number}" for number in range(units)]
    with (
        open_market(tmp_path, postgres_url, "--processes", "2") as (market, _),
        Sql(postgres_url) as sql,
    ):
        asyncio.run(stock_up(market, codes))
        answers = asyncio.run(rush(market, codes, buyers_each))
        histories = {history.unit["code"]: history for history in read_histories(sql, market.slug)}
    assert sorted(histories) == sorted(codes)
    for code, history in histories.items():
        assert faults_of(history) == []
        assert [event["type"] for event in history.events] == ["unit.held"]
        assert [(each["reference"], each["status"]) for each in history.bookings] == [
            (winner(answers[code]), "open")
        ]


@pytest.mark.slow
def test_without_the_guards_several_buyers_get_the_unit(tmp_path: Path, postgres_url: str) -> None:
    """The control: the rush of the test above does bring writers together, and the checker sees it."""
    with Sql(postgres_url) as sql:
        sql.execute(WITHOUT_GUARDS)
    with open_market(tmp_path, postgres_url, "--processes", "4") as (market, _):
        assert asyncio.run(most_winners(market)) > 1
        with Sql(postgres_url) as sql:
            assert [
                fault for history in read_histories(sql, market.slug) for fault in faults_of(history)
            ] != []


async def most_winners(market: Market) -> int:
    """Of the first rush that had more than one, within reason."""
    most = 0
    for number in range(ROUNDS_OF_THE_CONTROL):
        code = f"A-{number}"
        await stock_up(market, [code])
        answers = (await rush(market, [code], 40))[code]
        most = max(most, sum(expect(answer, 201, 409).status == 201 for answer in answers))
        if most > 1:
            break
    return most


# One writer a field: a write made from a stale row puts back what another writer had changed.
FIELDS: dict[str, Callable[[int], object]] = {
    "type": lambda turn: f"type {turn}",
    "areaSqm": lambda turn: turn + 1,
    "priceSar": lambda turn: turn,
    "vatRate": lambda turn: turn,
    "depositPercent": lambda turn: turn,
    "bedrooms": lambda turn: turn,
    "deliveryYear": lambda turn: 2000 + turn,
    "description": lambda turn: f"turn {turn}",
}
WRITERS_EACH = len(FIELDS)
TURNS = 6
VERSIONS = "select unit.version from unit join project on project.id = project_id where slug = $1"

Work = Callable[[Line, str, int], Awaitable[None]]
"""Of a writer: on its line, on a unit, under its number."""


@pytest.fixture
def market(addresses: list[str], database_url: str) -> Market:
    return new_market(addresses[0], database_url)


async def write_at_once(addresses: list[str], work: Work) -> None:
    """By writers of each unit, with a line each to one of the two servers."""
    count = len(UNITS) * WRITERS_EACH // 2
    async with open_lines(addresses[0], count) as some, open_lines(addresses[1], count) as others:
        lines = [line for pair in zip(some, others, strict=True) for line in pair]
        places = [(code, number) for code in UNITS for number in range(WRITERS_EACH)]
        await asyncio.gather(*(work(line, *place) for line, place in zip(lines, places, strict=True)))


async def read_all(market: Market) -> list[dict[str, Any]]:
    async with open_lines(market.address, 1) as (line,):
        return [expect(await line.ask(market.read(code)), 200).body for code in UNITS]


MADE = {
    "endpoints": "select array_agg(id::text) from endpoint where description = $1",
    "keys": "select array_agg(id::text) from api_key where name = $1",
}


@pytest.mark.parametrize("kind", MADE)
def test_a_request_that_reaches_several_processes_at_once_makes_one_endpoint_or_key(
    addresses: list[str], keys: Keys, sql: Sql, kind: str
) -> None:
    """It has an Idempotency-Key. The secret of the endpoint is repeated, the key is not."""
    admin, unique, url = keys.issue(scopes=["admin"]).text, uuid4().hex, f"/v1/backoffice/{kind}"
    body = {"url": NOBODY_LISTENS, "description": unique} if kind == "endpoints" else {"name": unique}
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        clients = [stack.enter_context(integration_client(address, admin)) for address in addresses * 4]
        send = partial(httpx.Client.post, url=url, json=body, headers={"Idempotency-Key": unique})
        answers = sorted(pool.map(send, clients), key=lambda answer: answer.status_code)
        made = answers[0].json()
        assert clients[0].delete(f"{url}/{made['id']}").status_code == 204
    assert sql.value(MADE[kind], unique) == [made["id"]]
    if kind == "endpoints":
        assert [(answer.status_code, answer.json()) for answer in answers] == [(201, made)] * 8
    else:
        assert [answer.status_code for answer in answers] == [201] + [409] * 7
        assert {answer.json()["id"] for answer in answers} == {made["id"]}
        assert not any(made["key"] in answer.text for answer in answers[1:])


def test_writers_of_different_fields_undo_nothing_of_each_other(
    addresses: list[str], market: Market, sql: Sql
) -> None:
    async def patch_own_field(line: Line, code: str, number: int) -> None:
        name, value = list(FIELDS.items())[number]
        for turn in range(1, TURNS + 1):
            answer = expect(await line.ask(market.patch(code, **{name: value(turn)})), 200)
            assert answer.body[name] == value(turn)

    asyncio.run(stock_up(market, UNITS))
    asyncio.run(write_at_once(addresses, patch_own_field))
    for stored in asyncio.run(read_all(market)):
        assert {name: stored[name] for name in FIELDS} == {
            name: value(TURNS) for name, value in FIELDS.items()
        }
    versions = [row["version"] for row in sql.rows(VERSIONS, market.slug)]
    assert versions == [1 + len(FIELDS) * TURNS] * len(UNITS)


def test_writers_that_add_one_on_condition_add_up(addresses: list[str], market: Market) -> None:
    async def add_one(line: Line, code: str, _: int) -> None:
        for _ in range(3):
            while (await try_to_add_one(line, code)).status != 200:
                pass

    async def try_to_add_one(line: Line, code: str) -> Answer:
        seen = expect(await line.ask(market.read(code)), 200)
        request = market.patch(code, priceSar=seen.body["priceSar"] + 1)
        condition = (("If-Match", seen.headers["etag"]),)
        return expect(await line.ask(request._replace(headers=condition)), 200, 412)

    asyncio.run(stock_up(market, UNITS))
    before = [unit["priceSar"] for unit in asyncio.run(read_all(market))]
    asyncio.run(write_at_once(addresses, add_one))
    after = [unit["priceSar"] for unit in asyncio.run(read_all(market))]
    assert after == [price + 3 * WRITERS_EACH for price in before]


CROWDED = [f"A-{number}" for number in range(6)]
CALLERS = 24
MAX_ROUNDS = 6
PERIODS = {"holdSeconds": 0.2, "reservationDays": 0.00001}
"""In the first round: short, so that the clock is one of those who interleave. Each round has twice as long
ones, until everything has happened, however busy the machine is."""

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
TO_HAPPEN = {
    "create", "change", "open", "sign", "extend", "lapse-hold", "cancel-hold", "confirm-deposit",
    "lapse-reservation", "cancel-reservation", "close-sale", "put-on-sale", "take-off-sale", "archive",
    "revoke-sale", "mark-refunded",
}  # fmt: skip
NOTHING_ENDS_ANY_MORE = "select count(hold_expires_at) + count(reserved_until) = 0 from unit"


@dataclass
class Crowd:
    market: Market
    turns: int
    """Of each caller in a round."""
    lately: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=8))
    """Holds that were answered; the old ones are forgotten, so that most are of bookings that live."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """By the id of the request."""
    references: set[str] = field(default_factory=set)

    def run(self, sql: Sql) -> None:
        """Each round ends with bookings that nobody but the clock can end."""
        asyncio.run(stock_up(self.market, CROWDED))
        for number in range(MAX_ROUNDS):
            asyncio.run(self._run_round(number))
            assert_sound(read_histories(sql, self.market.slug))
            wait_until(lambda: sql.value(NOTHING_ENDS_ANY_MORE))
            if actions(read_histories(sql, self.market.slug)) >= TO_HAPPEN:
                return

    async def _run_round(self, number: int) -> None:
        async with open_lines(self.market.address, CALLERS) as lines:
            await reach_web_processes(lines)
            periods = {name: shortest * 2**number for name, shortest in PERIODS.items()}
            expect(await lines[0].ask(self.market.settle(**periods)), 200)
            await asyncio.gather(*(self._call(line, f"{number}-{of}") for of, line in enumerate(lines)))

    async def _call(self, line: Line, caller: str) -> None:
        chance = random.Random(caller)
        for turn in range(self.turns):
            name = self._choose(chance)
            held = chance.choice(self.lately) if name in OF_A_BOOKING else None
            request = ALL[name][1](self.market, chance, chance.choice(CROWDED), held)
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


@pytest.mark.parametrize("turns", [50, pytest.param(250, marks=pytest.mark.slow)])
def test_interleaved_writers_leave_histories_that_can_have_happened(
    tmp_path: Path, postgres_url: str, turns: int
) -> None:
    with (
        open_market(tmp_path, postgres_url, "--processes", "2") as (market, _),
        Sql(postgres_url) as sql,
    ):
        crowd = Crowd(market, turns)
        crowd.run(sql)
        histories = read_histories(sql, market.slug)
        with integration_client(market.address, market.key) as http:
            events, _ = read_on(http, None)
    assert_sound(histories)
    assert feed_faults(histories, events) == []
    assert_stored_is_what_was_answered(crowd, histories)


def actions(histories: list[History]) -> set[str]:
    return {entry["action"] for history in histories for entry in history.entries}


def assert_sound(histories: list[History]) -> None:
    assert [history.unit["code"] for history in histories] == CROWDED
    assert [fault for history in histories for fault in faults_of(history)] == []


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


CONTESTED = [f"A-{number}" for number in range(10)]
LINES_OF_THE_TILL = 3
HOLD_SECONDS = 0.2
"""In the first round. Each has twice as long holds, until everything has happened."""
MOST_ROUNDS = 6
# Of the hold. More before the end than after it: what is sent needs a while to arrive.
JITTER = (-0.25, 0.15)
SEED = 20_261_114

# What may become of a booking, as its audit entries tell it, up to the clearing after each round.
WAYS = {
    ("open", "lapse-hold"): "never signed",
    ("open", "sign", "confirm-deposit"): "reserved",
    ("open", "sign", "lapse-hold", "confirm-deposit"): "too late",
}
ALL_ENDS = {"never signed", "reserved", "reserved again", "refund-due"}


@dataclass
class Buying:
    """One unit, round after round; all that happens in one happens around the end of a hold."""

    market: Market
    code: str
    chance: random.Random
    told: dict[str, str | None] = field(default_factory=dict)
    """By reference: what the payment system was answered, on every line alike."""

    async def go(self, hold_seconds: float, lines: Sequence[Line]) -> None:
        buyer, rival, *till = lines
        held = expect(await buyer.ask(self.market.hold(self.code)), 201).body
        self.told[held["reference"]] = None
        end = datetime.fromisoformat(held["holdExpiresAt"]).timestamp()
        moments = [end + hold_seconds * self.chance.uniform(*JITTER) for _ in range(6)]
        _, taken = await asyncio.gather(self._buy(held, moments, buyer, till), self._compete(moments, rival))
        # The unit is free for the next round; what was paid stays due or refunded.
        if taken is not None and taken.status == 201:
            expect(await rival.ask(self.market.cancel(taken.body)), 204, 409)
        expect(await buyer.ask(self.market.staff_on_booking(held, "cancel")), 200, 409)

    async def _buy(
        self, held: dict[str, Any], moments: list[float], buyer: Line, till: Sequence[Line]
    ) -> None:
        """Half of them sign in good time."""
        if self.chance.random() < 0.5:
            await _sleep_until(moments.pop())
        signed = expect(await buyer.ask(self.market.sign(held)), 200, 409)
        if signed.status == 409:
            assert signed.reason == "hold-lapsed"
            assert expect(await buyer.ask(self.market.confirm_deposit(held)), 409).reason == "not-signed"
            return
        payment = self.market.pay(f"pay_{held['reference']}", held)
        answers = await asyncio.gather(*(_ask_at(moments.pop(), line, payment) for line in till))
        answers.append(await till[0].ask(payment))
        (self.told[held["reference"]],) = {expect(answer, 200).body["status"] for answer in answers}
        other = expect(await till[0].ask(self.market.pay(f"{held['reference']}_again", held)), 409)
        assert other.reason == "transition-not-allowed"

    async def _compete(self, moments: list[float], line: Line) -> Answer | None:
        """Every second time somebody else wants the unit as soon as it is free."""
        if self.chance.random() < 0.5:
            return None
        return expect(await _ask_at(moments.pop(), line, self.market.hold(self.code)), 201, 409)


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.time()))


async def _ask_at(moment: float, line: Line, request: Request) -> Answer:
    await _sleep_until(moment)
    return await line.ask(request)


def test_at_the_moment_of_its_end_a_hold_is_reserved_or_released(tmp_path: Path, postgres_url: str) -> None:
    settings = {**NO_HOLD_LIMIT, **SETTINGS}
    with open_market(tmp_path, postgres_url, "--processes", "2", settings=settings) as (market, _):
        buy_until_all_ends_were_met(market, postgres_url)


def buy_until_all_ends_were_met(market: Market, postgres_url: str) -> None:
    asyncio.run(stock_up(market, CONTESTED))
    buyings = [Buying(market, code, random.Random(SEED + at)) for at, code in enumerate(CONTESTED)]
    for number in range(MOST_ROUNDS):
        asyncio.run(run_round(market, buyings, HOLD_SECONDS * 2**number))
        with Sql(postgres_url) as sql:
            histories = read_histories(sql, market.slug)
        assert [fault for history in histories for fault in faults_of(history)] == []
        told = {reference: status for buying in buyings for reference, status in buying.told.items()}
        ends = Counter(
            end_of(booking, history, told[booking["reference"]])
            for history in histories
            for booking in history.bookings
            if booking["reference"] in told
        )
        assert ends.total() == len(told) == len(CONTESTED) * (number + 1)
        if set(ends) == ALL_ENDS:
            break


async def run_round(market: Market, buyings: list[Buying], hold_seconds: float) -> None:
    count = 2 + LINES_OF_THE_TILL
    async with open_lines(market.address, count * len(buyings)) as lines:
        expect(await lines[0].ask(market.settle(holdSeconds=hold_seconds)), 200)
        own = [lines[count * at : count * (at + 1)] for at in range(len(buyings))]
        await asyncio.gather(*(one.go(hold_seconds, few) for one, few in zip(buyings, own, strict=True)))


def end_of(booking: Row, history: History, told: str | None) -> str:
    """Money is taken once and under one id, and the unit is reserved once for it, or not at all."""
    reference = booking["reference"]
    entries = [entry for entry in history.entries if entry["booking_reference"] == reference]
    cleared = entries[-1]["action"].startswith("cancel-")
    actions = tuple(entry["action"] for entry in (entries[:-1] if cleared else entries))
    way = WAYS[actions]
    assert_the_clock_agrees(booking, way)
    if way == "never signed":
        assert told is None
        return way
    confirmed = entries[len(actions) - 1]
    payer = ("payment", f"pay_{reference}")
    assert (confirmed["actor_kind"], confirmed["actor_id"]) == payer == ("payment", booking["payment_id"])
    reserved = [event for event in history.events if event["booking_reference"] == reference]
    assert len(reserved) == (told == "reserved") == (confirmed["after"].get("status") == "reserved")
    if way == "too late":
        return "reserved again" if reserved else "refund-due"
    return way


def assert_the_clock_agrees(booking: Row, way: str) -> None:
    """A signature or deposit counts before the end and not at it; paid money is kept or due back."""
    end, signed, paid = (booking[name] for name in ("hold_expires_at", "signed_at", "deposit_confirmed_at"))
    assert signed is None or signed < end
    if way == "never signed":
        assert paid is None
        assert booking["status"] == "lapsed"
    else:
        assert (paid < end) == (way == "reserved")
        assert booking["status"] == "refund-due"
