"""The database is restarted while buyers buy: 503 in between, and what was acknowledged is there."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.clusters import Cluster
from tests.support.concurrent_requests import Answer, Line, Request, open_lines
from tests.support.history_checker import faults_of
from tests.support.sales_project import BUYER, NO_HOLD_LIMIT, Market, expect, open_market, stock_up
from tests.support.sql import Sql
from tests.support.unit_history import History, read_histories

UNITS = [f"A-{number}" for number in range(8)]
BUYERS_EACH = 2
ACKNOWLEDGED_BETWEEN = 300
PATIENCE_SECONDS = 60
# A hold whose answer was lost is nobody's; it blocks its unit no longer than this.
SETTINGS = NO_HOLD_LIMIT | {"HOLDFAST_HOLD_SECONDS": "1"}


@dataclass
class AnsweredBooking:
    """What a buyer was told of one booking."""

    held: dict[str, Any]
    signed: bool = False
    paid: bool = False
    ended: str | None = None


@dataclass
class Load:
    market: Market
    over: bool = False
    answers: dict[str, Answer] = field(default_factory=dict)
    """By the id of the request."""
    bookings: list[AnsweredBooking] = field(default_factory=list)
    descriptions: dict[str, int] = field(default_factory=dict)
    """The last that was acknowledged, by unit."""
    acknowledged: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def run(self, restarts: list[Callable[[], Awaitable[None]]]) -> None:
        await stock_up(self.market, UNITS)
        async with (
            open_lines(self.market.address, len(UNITS) * (BUYERS_EACH + 1)) as lines,
            asyncio.TaskGroup() as group,
        ):
            for number, line in enumerate(lines):
                code = UNITS[number % len(UNITS)]
                group.create_task((self._erp if number < len(UNITS) else self._buyer)(line, code, number))
            for restart in restarts:
                await self._get_on()
                await restart()
            await self._get_on()
            self.over = True

    async def _get_on(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(ACKNOWLEDGED_BETWEEN):
                await self.acknowledged.acquire()

    async def _erp(self, line: Line, code: str, _: int) -> None:
        number = 0
        while not self.over:
            number += 1
            answer = await self._ask(line, self.market.patch(code, description=str(number)), 200, 503)
            if answer.status == 200:
                self.descriptions[code] = number

    async def _buyer(self, line: Line, code: str, number: int) -> None:
        chance = random.Random(number)
        while not self.over:
            held = await self._hold(line, code, chance)
            if held is not None:
                await self._go_on(line, AnsweredBooking(held), pays=chance.random() < 0.3)

    async def _hold(self, line: Line, code: str, chance: random.Random) -> dict[str, Any] | None:
        """Half of the buyers name their request, and may so repeat it."""
        named = chance.random() < 0.5
        request = self.market.hold(code, f"{chance.random()}" if named else None)
        answer = await (self._insist if named else self._ask)(line, request, 201, 409, 503)
        return answer.body if answer.status == 201 else None

    async def _go_on(self, line: Line, told: AnsweredBooking, *, pays: bool) -> None:
        self.bookings.append(told)
        if (await self._insist(line, self.market.sign(told.held), 200, 409)).status == 409:
            told.ended = "lapsed"
            return
        told.signed = True
        if pays:
            await self._insist(line, self.market.confirm_deposit(told.held), 200)
            told.paid = True
            await self._insist(line, self.market.staff_on_booking(told.held, "cancel"), 200, 409)
            told.ended = "refund-due"
        elif (await self._insist(line, self.market.cancel(told.held), 204, 409)).status == 204:
            told.ended = "cancelled"
        else:
            told.ended = "lapsed"

    async def _insist(self, line: Line, request: Request, *statuses: int) -> Answer:
        while (answer := await self._ask(line, request, *statuses, 503)).status == 503:
            pass
        return answer

    async def _ask(self, line: Line, request: Request, *statuses: int) -> Answer:
        name = f"request-{len(self.answers)}"
        self.answers[name] = Answer(0, {}, b"")
        answer = await line.ask(request._replace(headers=(*request.headers, ("X-Request-Id", name))))
        self.answers[name] = expect(answer, *statuses)
        if answer.status == 503:
            assert int(answer.headers["retry-after"]) >= 1
            # Not as long as it was told, and yet the server is left some time to come back.
            await asyncio.sleep(0.05)
        elif answer.status == 409:
            assert answer.reason in ("not-available", "hold-lapsed", "transition-not-allowed")
            await asyncio.sleep(0.01)
        else:
            self.acknowledged.release()
        return answer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "restarted") as own:
        yield own


def restarts_of(cluster: Cluster) -> list[Callable[[], Awaitable[None]]]:
    async def after_a_crash() -> None:
        await asyncio.to_thread(cluster.crash)
        await asyncio.to_thread(cluster.start)

    async def in_good_order() -> None:
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)

    return [after_a_crash, in_good_order]


def test_what_buyers_were_told_survives_restarts_of_the_database(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.new_database()
    with open_market(tmp_path, url, "--processes", "2", settings=SETTINGS) as (market, _):
        load = Load(market)
        asyncio.run(load.run(restarts_of(cluster)))
        assert Counter(answer.status for answer in load.answers.values())[503] > 0
        asyncio.run(assert_every_booking_is_as_told(load))
        with Sql(url) as sql:
            histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    for history in histories:
        assert int(history.unit["description"]) >= load.descriptions[history.unit["code"]]
    assert_nothing_was_done_twice_or_unasked(load, histories)


async def assert_every_booking_is_as_told(load: Load) -> None:
    async with open_lines(load.market.address, 1) as (line,):
        for told in load.bookings:
            stored = expect(await line.ask(load.market.look(told.held)), 200).body
            if told.signed:
                assert stored["signedAt"] is not None
                assert stored["buyer"] == expected_buyer()
            assert (stored["depositConfirmedAt"] is not None) == told.paid
            assert stored["status"] == told.ended


def expected_buyer() -> dict[str, str]:
    return {"name": BUYER["buyerName"], "email": BUYER["buyerEmail"], "phone": BUYER["buyerPhone"]}


def assert_nothing_was_done_twice_or_unasked(load: Load, histories: list[History]) -> None:
    """What is stored was acknowledged, or its request was answered with 503: stored or not, nobody knew."""
    entries = [entry for history in histories for entry in history.entries if entry["actor_kind"] != "clock"]
    made = Counter(entry["request_id"] for entry in entries if entry["action"] != "create")
    assert set(made.values()) == {1}
    assert {load.answers[name].status for name in made} <= {200, 201, 204, 503}
    known = {told.held["reference"] for told in load.bookings}
    for entry in entries:
        if entry["action"] == "open" and entry["booking_reference"] not in known:
            assert load.answers[entry["request_id"]].status == 503
