"""The checker of chaos runs is believed only because it finds what is planted in a run that was sound."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker import Limits, check, main
from tests.chaos.history import History, Record, read
from tests.chaos.state import FinalState, read_state
from tests.support.concurrent_requests import Answer, Line, Request, open_lines
from tests.support.delivery_checker import signature
from tests.support.delivery_engine import eventually
from tests.support.delivery_journal import Arrival, Journal, journalling
from tests.support.delivery_scene import UNSETTLED
from tests.support.payment_system import SETTINGS as PAYMENTS
from tests.support.sales_project import FIELDS, NO_HOLD_LIMIT, Market, expect, new_market
from tests.support.server import serving
from tests.support.sql import connected
from tests.support.unit_history import Row

SETTINGS = {
    **NO_HOLD_LIMIT,
    **PAYMENTS,
    "HOLDFAST_RETRY_FIRST_GAP_SECONDS": "0.2",
    "HOLDFAST_ATTEMPT_TIMEOUT_SECONDS": "10",
}
LIMITS = Limits(connections=20, tolerance_seconds=0.1)
CODES = ("A-1", "A-2")
KEY = "a key of a request for a hold"
AT_REST = f"""
    select not exists (select from unit where status = 'held')
        and not exists (select from event where position is null) and not ({UNSETTLED})
"""


@dataclass
class Recorder:
    """One client whose calls are in the history."""

    line: Line
    history: History
    calls: int = 0

    async def ask(
        self, request: Request, *statuses: int, repeats: str | None = None, is_lost: bool = False
    ) -> tuple[str, Answer]:
        """``is_lost``: the answer never reached the client."""
        self.calls += 1
        call = f"client.{self.calls}"
        repeated = {} if repeats is None else {"repeats": repeats}
        self.history.note(
            "invoke", call=call, client="client", op="", method=request.method, path=request.path,
            body=request.body, **repeated,
        )  # fmt: skip
        headers = (*request.headers, ("X-Request-Id", call))
        answer = expect(await self.line.ask(request._replace(headers=headers)), *statuses)
        document = json.loads(answer.content) if answer.content else None
        if is_lost:
            self.history.note("unknown", call=call, status=None, why="lost")
        elif answer.status < 300:
            etag = answer.headers.get("etag")
            self.history.note("ok", call=call, status=answer.status, answer=document, etag=etag)
        else:
            self.history.note("fail", call=call, status=answer.status, answer=document)
        return call, answer

    async def twice(self, request: Request, *statuses: int) -> Answer:
        """The second time nothing changes."""
        first, _ = await self.ask(request, *statuses)
        return (await self.ask(request, *statuses, 200, repeats=first))[1]


@dataclass
class FirstRefused:
    """Refuses each delivery to one of the paths the first time."""

    seen: set[str] = field(default_factory=set)

    async def __call__(self, arrival: Arrival) -> int:
        is_first = arrival.delivery_id not in self.seen
        self.seen.add(arrival.delivery_id)
        return 500 if is_first and arrival.path == "flaky" else 200


async def buy_and_sell(client: Recorder, market: Market) -> None:
    one, two = CODES
    for code in CODES:
        await client.ask(market.put(code), 201)
    await client.twice(market.put(one, description="new"), 200)
    _, found = await client.ask(market.patch(two, description="bright"), 200)
    await client.ask(market.read(two), 200)
    stale = (("If-Match", '"1a-1"'),)
    await client.ask(market.patch(two, description="dark")._replace(headers=stale), 412)
    path = f"/v1/integration/projects/{market.slug}/units"
    units = [{"code": code, **FIELDS, "description": text} for code, text in zip(CODES, "xy", strict=True)]
    await client.ask(Request("PUT", path, market.key, units), 200)
    lost, _ = await client.ask(market.hold(one, KEY), 201, is_lost=True)
    _, answer = await client.ask(market.hold(one, KEY), 201, repeats=lost)
    held = answer.body
    await client.ask(market.hold(one), 409)
    await client.twice(market.sign(held), 200)
    await client.twice(market.pay("payment-1", held), 200)
    await client.ask(market.staff_on_booking(held, "close-sale"), 200)
    _, answer = await client.ask(market.hold(two), 201)
    await client.twice(market.cancel(answer.body), 204)
    await client.ask(market.act(two, "take-off-sale"), 200)
    await client.ask(market.act(two, "put-on-sale"), 200)
    await client.ask(market.settle(holdSeconds=0.3), 200)
    await client.ask(market.hold(two), 201)


async def read_feed(client: Recorder, market: Market, reader: str, limit: int) -> None:
    after, is_over = None, False
    while not is_over:
        query = f"limit={limit}" if after is None else f"limit={limit}&after={after}"
        request = Request("GET", f"/v1/integration/events?{query}", market.key)
        _, answer = await client.ask(request, 200)
        ids, end = [event["id"] for event in answer.body["events"]], answer.body["nextCursor"]
        client.history.note("page", reader=reader, after=after, events=ids, next=end)
        after, is_over = end, not ids


def note_arrivals(history: History, journal: Journal) -> None:
    for one in journal.arrivals:
        history.note(
            "arrival", at=one.at, receiver=one.path, delivery=one.delivery_id, event=one.event,
            timestamp=one.timestamp, signature=one.signature, body=one.body.decode(), status=one.status,
            answered_at=one.answered_at,
        )  # fmt: skip


async def record_run(folder: Path, url: str) -> None:
    """A short run without faults, as the runner of a chaos run would leave it in the folder."""
    async with journalling() as journal:
        journal.behave = FirstRefused()
        with (
            serving(folder / "serve", {"HOLDFAST_DATABASE_URL": url, **SETTINGS}) as server,
            History(folder / "history.jsonl") as history,
        ):
            market = await asyncio.to_thread(new_market, server.address, url)
            async with open_lines(market.address, 1) as (line,):
                client, secrets = Recorder(line, history), {}
                for name in ("ordered", "flaky"):
                    config = {"url": journal.url(name), "description": name, "ordered": name == "ordered"}
                    request = Request("POST", "/v1/backoffice/endpoints", market.key, config)
                    _, answer = await client.ask(request, 201)
                    secrets[answer.body["id"]] = answer.body["secret"]
                await buy_and_sell(client, market)
                async with connected(url) as keeper:
                    await eventually(lambda: keeper.fetchval(AT_REST))
                for reader, limit in (("reader-0", 3), ("reader-1", 4)):
                    await read_feed(client, market, reader, limit)
            note_arrivals(history, journal)
            history.note("fault", number=1, fault="none at all", phase="begun")
            history.note("settled", seconds=1.5, left={})
            for seconds in (0, 20, 40):
                at, rss = time.time() + seconds, {"web one:1": 100 << 20}
                history.note("sample", at=at, connections=12, rss=rss, waiting=3)
            (await read_state(url, secrets)).save(folder / "state.json")


@dataclass
class Run:
    """A copy of the recorded run, for one test to break."""

    records: list[Record]
    state: FinalState

    def found(self) -> dict[str, list[str]]:
        return check(self.records, self.state, LIMITS)

    def of(self, kind: str) -> list[Record]:
        return [record for record in self.records if record["kind"] == kind]

    def call(self, method: str, end: str, number: int = 0) -> tuple[Record, Record]:
        """One of the calls of this method whose path ends so, with its outcome."""
        invoked = [one for one in self.of("invoke") if one["method"] == method and one["path"].endswith(end)][
            number
        ]
        outcomes = [one for one in self.records if one["kind"] in ("ok", "fail", "unknown")]
        return invoked, next(one for one in outcomes if one["call"] == invoked["call"])

    def entry(self, action: str) -> Row:
        return next(one for one in self.state.audit_entries if one["action"] == action)

    def delivery(self, receiver: str, number: int = 0) -> Row:
        """In the order of events."""
        own = [one for one in self.state.endpoints if one["description"] == receiver]
        found = [one for one in self.state.deliveries if one["endpoint_id"] == own[0]["id"]]
        return sorted(found, key=lambda one: (one["unit_id"], one["unit_version"]))[number]

    def arrivals(self, delivery: Row) -> list[Record]:
        return [one for one in self.of("arrival") if one["delivery"] == delivery["id"]]

    def attempts(self, delivery: Row) -> list[Row]:
        found = [one for one in self.state.attempts if one["delivery_id"] == delivery["id"]]
        return sorted(found, key=lambda one: int(one["number"]))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("recorded")
    asyncio.run(record_run(folder, module_postgres_url))
    return folder


@pytest.fixture
def run(recorded: Path) -> Run:
    return Run(list(read(recorded / "history.jsonl")), FinalState.load(recorded / "state.json"))


def test_a_sound_run_has_no_faults(run: Run) -> None:
    assert {name: faults for name, faults in run.found().items() if faults} == {}
    assert len(run.state.events) > 5
    assert {attempt["number"] for attempt in run.state.attempts} == {1, 2}
