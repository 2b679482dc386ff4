"""A payment is told on many lines at once while its hold lapses, and while processes are killed: one outcome.

That writers of one unit are kept apart at all is shown with a control in `test_one_unit_many_buyers`.
"""

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psutil
import pytest

from tests.support.concurrent_requests import Answer, Line, Request, open_lines
from tests.support.history_checker import faults_of
from tests.support.payment_system import CALLBACK, SETTINGS, signed_headers
from tests.support.sales_project import NO_HOLD_LIMIT, Market, expect, new_market, open_market, stock_up
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.unit_history import History, Row, read_histories

UNITS = [f"A-{number}" for number in range(10)]
ROUNDS = 8
LINES_OF_THE_TILL = 4
HOLD_SECONDS = 0.4
# More before the end than after it: what is sent needs a while to arrive.
JITTER_SECONDS = (-0.04, 0.03)
SEED = 20_261_116
BACK_WITHIN_SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[RunningServer]:
    folder, settings = tmp_path_factory.mktemp("payments"), {**NO_HOLD_LIMIT, **SETTINGS}
    with open_market(folder, module_postgres_url, "--processes", "2", settings=settings) as (_, running):
        yield running


@pytest.fixture
def market(server: RunningServer, module_postgres_url: str) -> Market:
    return new_market(server.address, module_postgres_url)


def payment(payment_id: str, booking: dict[str, Any]) -> Request:
    body = {
        "id": payment_id,
        "reference": booking["reference"],
        "amountSar": booking["unit"]["depositSar"],
    }
    headers = signed_headers(json.dumps(body).encode())
    return Request("POST", CALLBACK, body=body, headers=tuple(headers.items()))


@dataclass
class Rounds:
    """One unit, round after round; all that happens in one happens around the end of a hold."""

    market: Market
    code: str
    chance: random.Random
    paid: dict[str, str] = field(default_factory=dict)
    """By reference: what the payment system was answered, on every line alike."""

    async def run(self) -> None:
        for number in range(ROUNDS):
            # Anew for each: the server closes a line that is silent for long.
            async with open_lines(self.market.address, 2 + LINES_OF_THE_TILL) as lines:
                await self._round(f"pay_{self.code}_{number}", lines[0], lines[1], lines[2:])

    async def _round(self, payment_id: str, buyer: Line, rival: Line, till: Sequence[Line]) -> None:
        held = expect(await buyer.ask(self.market.hold(self.code)), 201).body
        if expect(await buyer.ask(self.market.sign(held)), 200, 409).status == 200:
            await self._pay(payment_id, held, rival, till)
        # Free for the next round, whoever has it.
        expect(await buyer.ask(self.market.staff_on_booking(held, "cancel")), 200, 409)
        expect(await buyer.ask(self.market.act(self.code, "cancel-hold")), 200, 409)

    async def _pay(self, payment_id: str, held: dict[str, Any], rival: Line, till: Sequence[Line]) -> None:
        end = datetime.fromisoformat(held["holdExpiresAt"]).timestamp()
        request = payment(payment_id, held)
        told = (self._at(end, line, request) for line in till)
        answers, _ = await asyncio.gather(asyncio.gather(*told), self._rival(end, rival))
        answers.append(await till[0].ask(request))
        (self.paid[held["reference"]],) = {expect(answer, 200).body["status"] for answer in answers}
        other = await till[0].ask(payment(f"{payment_id}_again", held))
        assert expect(other, 409).reason == "transition-not-allowed"

    async def _rival(self, end: float, line: Line) -> Answer | None:
        """Every second time somebody else wants the unit as soon as it is free."""
        if self.chance.random() < 0.5:
            return None
        return expect(await self._at(end, line, self.market.hold(self.code)), 201, 409)

    async def _at(self, end: float, line: Line, request: Request) -> Answer:
        moment = end + self.chance.uniform(*JITTER_SECONDS)
        await asyncio.sleep(max(0.0, moment - time.time()))
        return await line.ask(request)


async def run_all(market: Market) -> dict[str, str]:
    await stock_up(market, UNITS, holdSeconds=HOLD_SECONDS)
    all_rounds = [Rounds(market, code, random.Random(SEED + at)) for at, code in enumerate(UNITS)]
    await asyncio.gather(*(rounds.run() for rounds in all_rounds))
    return {reference: status for rounds in all_rounds for reference, status in rounds.paid.items()}


def test_a_payment_at_the_end_of_its_hold_has_one_outcome_on_every_line(
    market: Market, module_postgres_url: str
) -> None:
    paid = asyncio.run(run_all(market))
    with Sql(module_postgres_url) as sql:
        histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    ends = Counter(
        end_of(booking, history, paid[booking["reference"]])
        for history in histories
        for booking in history.bookings
        if booking["reference"] in paid
    )
    assert ends.total() == len(paid)
    # More than one end was met, so the moment was; a slow machine may be late for one of the three.
    assert set(ends) <= {"in time", "reserved again", "refund-due"}
    assert len(ends) > 1


def end_of(booking: Row, history: History, told: str) -> str:
    """Money is taken once and under one id, and the unit is reserved once for it, or not at all."""
    confirmed = [
        entry
        for entry in history.entries
        if entry["booking_reference"] == booking["reference"] and entry["action"] == "confirm-deposit"
    ]
    assert [(entry["actor_kind"], entry["actor_id"]) for entry in confirmed] == [
        ("payment", booking["payment_id"])
    ]
    assert not booking["payment_id"].endswith("_again")
    reserved = [
        event
        for event in history.events
        if event["type"] == "unit.reserved" and event["booking_reference"] == booking["reference"]
    ]
    assert len(reserved) == (told == "reserved")
    if told == "refund-due":
        return told
    in_time = booking["deposit_confirmed_at"] < booking["hold_expires_at"]
    return "in time" if in_time else "reserved again"


def web_processes(server: RunningServer) -> list[psutil.Process]:
    children = psutil.Process(server.process.pid).children()
    return [child for child in children if "holdfast.server.web" in child.cmdline()]


async def pay_and_kill(server: RunningServer, market: Market, held: list[dict[str, Any]]) -> None:
    """The payments are on their way when every web process is gone."""
    async with open_lines(market.address, len(held)) as lines:
        for line, booking in zip(lines, held, strict=True):
            line.send(payment(f"pay_{booking['reference']}", booking))
        await lines[0].answer()
        for process in web_processes(server):
            os.kill(process.pid, signal.SIGKILL)


async def told_again(market: Market, booking: dict[str, Any]) -> Answer:
    """As a payment system does it: until there is an answer."""
    give_up_at = time.monotonic() + BACK_WITHIN_SECONDS
    while True:
        try:
            async with open_lines(market.address, 1) as (line,):
                return await line.ask(payment(f"pay_{booking['reference']}", booking))
        except (OSError, asyncio.IncompleteReadError):
            assert time.monotonic() < give_up_at
            await asyncio.sleep(0.1)


async def held_and_signed(market: Market, codes: list[str]) -> list[dict[str, Any]]:
    await stock_up(market, codes)
    found = []
    async with open_lines(market.address, 1) as (line,):
        for code in codes:
            held = expect(await line.ask(market.hold(code)), 201).body
            expect(await line.ask(market.sign(held)), 200)
            found.append(held)
    return found


def test_payments_are_taken_once_though_processes_are_killed(
    server: RunningServer, market: Market, module_postgres_url: str
) -> None:
    async def run() -> list[Answer]:
        held = await held_and_signed(market, [f"B-{number}" for number in range(40)])
        await pay_and_kill(server, market, held)
        return [await told_again(market, booking) for booking in held]

    answers = asyncio.run(run())
    assert {expect(answer, 200).body["status"] for answer in answers} == {"reserved"}
    with Sql(module_postgres_url) as sql:
        histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    for history in histories:
        (booking,) = history.bookings
        assert booking["payment_id"] == f"pay_{booking['reference']}"
        assert [entry["action"] for entry in history.entries].count("confirm-deposit") == 1
        assert [event["type"] for event in history.events] == ["unit.held", "unit.reserved"]
