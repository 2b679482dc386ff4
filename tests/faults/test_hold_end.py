"""Signature and deposit arrive at the very moment of the lapse: reserved or released, never both."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.concurrent_requests import Answer, Line, Request, open_lines
from tests.support.history_checker import faults_of
from tests.support.sales_project import Market, expect, open_market, stock_up
from tests.support.sql import Sql
from tests.support.unit_history import History, Row, read_histories

UNITS = [f"A-{number}" for number in range(25)]
ROUNDS = 20
HOLD_SECONDS = 0.2
# More before the end than after it: what is sent needs a while to arrive.
JITTER_SECONDS = (-0.05, 0.03)
SEED = 20_261_114

# What may become of a booking, as its audit entries tell it, up to the clearing after each round. A
# signature that counts is always followed by a deposit.
WAYS = {
    ("open", "lapse-hold"): "never signed",
    ("open", "sign", "confirm-deposit"): "reserved",
    ("open", "sign", "lapse-hold", "confirm-deposit"): "too late",
}


@pytest.fixture
def market(tmp_path: Path, postgres_url: str) -> Iterator[Market]:
    with open_market(tmp_path, postgres_url, "--processes", "2") as (opened, _):
        yield opened


@dataclass
class Rounds:
    """One unit, round after round; all that happens in one happens around the end of a hold."""

    market: Market
    code: str
    chance: random.Random
    lines: list[Line]
    references: list[str] = field(default_factory=list)
    """Of the bookings whose deposit came at the end of their hold."""

    async def run(self) -> None:
        for _ in range(ROUNDS):
            held = expect(await self.lines[0].ask(self.market.hold(self.code)), 201).body
            self.references.append(held["reference"])
            end = datetime.fromisoformat(held["holdExpiresAt"]).timestamp()
            rival, _ = await asyncio.gather(self._rival(end), self._buyer(held, end))
            await self._clear(held, rival)

    async def _buyer(self, held: dict[str, Any], end: float) -> None:
        """Half of them have signed in good time."""
        early = self.chance.random() < 0.5
        request = self.market.sign(held)
        signed = await (self.lines[0].ask(request) if early else self._at(end, self.lines[0], request))
        if expect(signed, 200, 409).status == 409:
            assert signed.reason == "hold-lapsed"
        confirmed = await self._at(end, self.lines[0], self.market.confirm_deposit(held))
        if expect(confirmed, 200, 409).status == 409:
            assert confirmed.reason == "not-signed"

    async def _rival(self, end: float) -> Answer | None:
        if self.chance.random() < 0.5:
            return None
        return expect(await self._at(end, self.lines[1], self.market.hold(self.code)), 201, 409)

    async def _at(self, end: float, line: Line, request: Request) -> Answer:
        moment = end + self.chance.uniform(*JITTER_SECONDS)
        await asyncio.sleep(max(0.0, moment - time.time()))
        return await line.ask(request)

    async def _clear(self, held: dict[str, Any], rival: Answer | None) -> None:
        """The unit is free for the next round; what was paid stays due or refunded."""
        if rival is not None and rival.status == 201:
            expect(await self.lines[1].ask(self.market.cancel(rival.body)), 204, 409)
        expect(await self.lines[0].ask(self.market.staff_on_booking(held, "cancel")), 200, 409)


async def run_all(market: Market) -> list[str]:
    await stock_up(market, UNITS, holdSeconds=HOLD_SECONDS)
    async with open_lines(market.address, 2 * len(UNITS)) as lines:
        all_rounds = [
            Rounds(market, code, random.Random(SEED + number), lines[2 * number : 2 * number + 2])
            for number, code in enumerate(UNITS)
        ]
        await asyncio.gather(*(rounds.run() for rounds in all_rounds))
    return [reference for rounds in all_rounds for reference in rounds.references]


def test_at_the_moment_of_its_end_a_hold_is_reserved_or_released(market: Market, postgres_url: str) -> None:
    references = asyncio.run(run_all(market))
    assert len(set(references)) == len(UNITS) * ROUNDS
    with Sql(postgres_url) as sql:
        histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    ends = Counter(end for history in histories for end in ends_of(history, set(references)))
    # Each end was met, so the moment was.
    assert set(ends) == {"never signed", "reserved", "reserved again", "refund-due"}
    assert ends.total() == len(references)


def ends_of(history: History, references: set[str]) -> Iterator[str]:
    for booking in history.bookings:
        if booking["reference"] in references:
            yield end_of(booking, history)


def end_of(booking: Row, history: History) -> str:
    entries = [entry for entry in history.entries if entry["booking_reference"] == booking["reference"]]
    cleared = entries[-1]["action"].startswith("cancel-")
    actions = tuple(entry["action"] for entry in (entries[:-1] if cleared else entries))
    way = WAYS[actions]
    assert_the_clock_agrees(booking, way)
    if way != "too late":
        return way
    confirmed = entries[len(actions) - 1]
    return "reserved again" if confirmed["after"].get("status") == "reserved" else "refund-due"


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
