"""The checker of chaos runs is believed only because it finds what is planted in a run that was sound."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.delivery import OUTCOME_UNKNOWN
from tests.chaos.checker import Limits, backup_faults, check, main
from tests.chaos.history import History, Record, read
from tests.chaos.state import FinalState, read_state
from tests.support.concurrent_requests import Answer, Line, Request, open_lines
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


async def buy_and_sell(client: Recorder, market: Market) -> Mapping[str, Any]:
    """Return the last hold, which nobody ends."""
    one, two = CODES
    for code in CODES:
        await client.ask(market.put(code), 201)
    await client.twice(market.put(one, description="new"), 200)
    await client.ask(market.patch(two, description="bright"), 200)
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
    _, answer = await client.ask(market.hold(two), 201)
    return answer.body


async def act_after_the_clock(client: Recorder, market: Market, lapsed: Mapping[str, Any]) -> None:
    """Nobody asked for the version that both calls find."""
    await client.ask(market.patch(CODES[1], description="y"), 200)
    await client.ask(market.staff_on_booking(lapsed, "reissue-link"), 200)


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
                held = await buy_and_sell(client, market)
                async with connected(url) as keeper:
                    await eventually(lambda: keeper.fetchval(AT_REST))
                await act_after_the_clock(client, market, held)
                for reader, limit in (("reader-0", 3), ("reader-1", 4)):
                    await read_feed(client, market, reader, limit)
            note_arrivals(history, journal)
            history.note("fault", number=1, fault="none at all", lane="processes", phase="begun")
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
def recorded(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Path:
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


def forget_entry(run: Run, action: str) -> None:
    run.state.audit_entries.remove(run.entry(action))


def answer_otherwise(run: Run, method: str, end: str, number: int = 0, **answer: object) -> None:
    outcome = run.call(method, end, number)[1]
    outcome["answer"] = {**outcome["answer"], **answer}


def refuse(run: Run, method: str, end: str) -> None:
    run.call(method, end)[1].update(kind="fail", status=409, answer={})


def forget_change(run: Run) -> None:
    """As when the primary was lost with a change that its standby did not have."""
    entry = run.entry("put-on-sale")
    for rows in (run.state.audit_entries, run.state.events, run.state.deliveries):
        rows[:] = [row for row in rows if row.get("at", row.get("created_at", "")) < entry["at"]]


def store_again(run: Run, entry: Row, **changes: object) -> None:
    """Another entry right after this one."""
    for one in run.state.audit_entries:
        one["id"] *= 10
    run.state.audit_entries.append({**entry, "id": entry["id"] + 1, **changes})


def forget_a_unit_of_many(run: Run) -> None:
    call = run.call("PUT", "/units")[0]["call"]
    run.state.audit_entries.remove(next(one for one in run.state.audit_entries if one["request_id"] == call))


def read_before_the_last_write(run: Run) -> None:
    """The answer of a read is older than a write that had been acknowledged when it was sent."""
    earlier, (asked, later) = run.call("PUT", "/A-2")[1], run.call("GET", "/A-2")
    asked["at"] += 0.001  # In the history, a moment is a tenth of that.
    later.update(etag=earlier["etag"], answer=earlier["answer"])


def acknowledge_before_it_was_asked(run: Run) -> None:
    """The repeated PUT is answered with a version that another call makes only later."""
    run.call("PUT", "/A-1", 2)[1]["etag"] = '"3a-1"'


def acknowledge_what_was_undone(run: Run) -> None:
    """The repeated PUT is answered with the state before the first one."""
    first, again = run.call("PUT", "/A-1")[1], run.call("PUT", "/A-1", 2)[1]
    again.update(etag=first["etag"], answer=first["answer"])


def fail_too_early(run: Run) -> None:
    delivery = run.delivery("flaky")
    attempts = run.attempts(delivery)
    run.state.attempts.remove(attempts[-1])
    delivery.update(status="failed", attempts=1)


def forget_endpoints(run: Run) -> None:
    """Events that were fanned out to nobody."""
    run.state.deliveries.clear()
    for event in run.state.events:
        event["endpoint_ids"] = []


def hold_while_held(run: Run) -> None:
    """A second hold between the first one and its signature."""
    store_again(run, run.entry("open"), booking_reference="222-222-222")


def hold_again_too_soon(run: Run) -> None:
    """By its version the second hold of a unit is later than the end of the first, but not by its time."""
    cancelled = run.entry("cancel-hold")
    one, other = (row for row in run.state.bookings if row["unit_id"] == cancelled["subject_id"])
    one["ended_at"] = other["ended_at"]


def hold_again_too_soon_by_the_trail(run: Run) -> None:
    run.entry("cancel-hold")["at"] = run.entry("lapse-hold")["at"]


def add_attempts(run: Run, count: int) -> None:
    delivery = run.delivery("flaky")
    last = run.attempts(delivery)[-1]
    delivery["attempts"] += count
    run.state.attempts += [{**last, "number": last["number"] + more} for more in range(1, count + 1)]


def retry_too_soon(run: Run) -> None:
    first, second = run.arrivals(run.delivery("flaky"))
    second["at"] = first["at"] + 0.05


def deliver_other_bytes(run: Run) -> None:
    arrival = run.arrivals(run.delivery("flaky"))[1]
    arrival["body"] = arrival["body"].replace("{", "{ ", 1)


def forge_signatures(run: Run) -> None:
    """The log and the receiver agree, and yet the key is another one."""
    delivery = run.delivery("ordered")
    for one in (*run.arrivals(delivery), *run.attempts(delivery)):
        one["signature"] = f"sha256={'0' * 64}"


def deliver_in_the_wrong_order(run: Run) -> None:
    earlier, later = run.delivery("ordered", 0), run.delivery("ordered", 1)
    run.arrivals(later)[0]["at"] = run.arrivals(earlier)[0]["at"] - 0.2


def deliver_without_a_log(run: Run) -> None:
    run.records.append(dict(run.arrivals(run.delivery("ordered"))[0]))


def follow_a_redirect(run: Run) -> None:
    run.records.append({**run.of("arrival")[0], "receiver": "elsewhere"})


def sign_twice(run: Run) -> None:
    """By the repeated request."""
    store_again(run, run.entry("sign"), request_id=run.call("POST", "/sign", 1)[0]["call"])


def put_twice(run: Run) -> None:
    again = next(one for one in run.of("invoke") if one["path"].endswith("/A-1") and "repeats" in one)
    entry = next(one for one in run.state.audit_entries if one["request_id"] == again["repeats"])
    store_again(run, entry, request_id=again["call"])


def answer_with_another_hold(run: Run) -> None:
    lost, found = run.call("POST", "/A-1/hold")[1], run.call("POST", "/A-1/hold", 1)[1]
    lost.update(kind="ok", status=201, answer={**found["answer"], "reference": "222-222-222"})


def bulk_results(run: Run) -> list[Row]:
    results: list[Row] = run.call("PUT", "/units")[1]["answer"]["results"]
    return results


def send_other_values(run: Run) -> None:
    run.call("PUT", "/units")[0]["body"][0]["description"] = "not what was stored"


def acknowledge_what_was_never_so(run: Run) -> None:
    """A unit of many is "unchanged", though it never had the values that were sent."""
    forget_a_unit_of_many(run)
    send_other_values(run)
    for result in bulk_results(run):
        result["outcome"] = "unchanged"


def retry_too_soon_without_arrivals(run: Run) -> None:
    """As where the name of the receiver cannot be resolved."""
    delivery = run.delivery("flaky")
    first, second = run.attempts(delivery)
    for arrival in run.arrivals(delivery):
        run.records.remove(arrival)
    second["started_at"] = float(first["ended_at"]) + 0.05


def stop_reading(run: Run) -> None:
    """A reader never gets to the last event."""
    own = [page for page in run.of("page") if page["reader"] == "reader-1" and page["events"]]
    for page in run.of("page")[run.of("page").index(own[-1]) :]:
        run.records.remove(page)


def read_nothing(run: Run) -> None:
    for page in run.of("page"):
        run.records.remove(page)


def skip_an_event(run: Run) -> None:
    page = run.of("page")[0]
    page["events"] = page["events"][:1] + page["events"][2:]


def swap_events(run: Run) -> None:
    for page in run.of("page"):
        page["events"].reverse()


def skip_a_position(run: Run) -> None:
    run.state.events[-1]["position"] += 1


def read_an_event_that_was_lost(run: Run) -> None:
    page = run.of("page")[0]
    page["events"][0] = "00000000-0000-0000-0000-000000000000"


def read_a_page_twice(run: Run) -> None:
    page = run.of("page")[0]
    run.records.insert(run.records.index(page), dict(page))


def sample_nothing(run: Run) -> None:
    for sample in run.of("sample"):
        run.records.remove(sample)


def grow(run: Run, process: str) -> None:
    run.of("sample")[-1]["rss"] = {process: 201 << 20}


def answer_one_version_twice(run: Run) -> None:
    """The ETag of the read is that of the write before it, and the price is another."""
    answer_otherwise(run, "GET", "/A-2", priceSar=1)


def give_a_hold_to_two(run: Run) -> None:
    """Two buyers, of whom neither repeats the other."""
    found = run.call("POST", "/A-1/hold", 1)
    copies = [{**one, "call": "another.1", "repeats": None} for one in found]
    run.records += copies


def deliver_one_id_for_two_events(run: Run) -> None:
    one, other = run.arrivals(run.delivery("ordered", 0))[0], run.arrivals(run.delivery("ordered", 1))[0]
    other["delivery"] = one["delivery"]


PLANTED: list[tuple[str, str, Callable[[Run], object]]] = [
    ("I1", "nothing is stored", lambda run: forget_entry(run, "sign")),
    ("I1", "nothing is stored", forget_change),
    ("I1", "no such hold is stored", lambda run: answer_otherwise(run, "POST", "/A-2/hold", reference="X")),
    ("I1", "was replaced, but nothing is stored", forget_a_unit_of_many),
    ("I1", "has other values than were sent", send_other_values),
    ("I1", "was unchanged, but has other values", acknowledge_what_was_never_so),
    ("I1", "is stored 2 times", lambda run: store_again(run, run.entry("take-off-sale"))),
    ("I1", "was refused, but take-off-sale", lambda run: refuse(run, "POST", "/take-off-sale")),
    ("I1", "which is no call", lambda run: run.entry("put-on-sale").update(request_id="nobody")),
    ("I1", "answered with description", lambda run: answer_otherwise(run, "PATCH", "/A-2", description="?")),
    ("I1", "after version 2 was acknowledged", read_before_the_last_write),
    ("I1", "before anybody asked for it", acknowledge_before_it_was_asked),
    ("I1", "was acknowledged with description", acknowledge_what_was_undone),
    ("I1", "the trail tells", lambda run: run.state.events.pop()),
    (
        "I1",
        "read an older state",
        lambda run: run.records.append({"kind": "stale", "call": "c", "unit": "u"}),
    ),
    ("I2", "0 deliveries instead of 1", lambda run: run.state.deliveries.pop()),
    ("I2", "is pending", lambda run: run.delivery("ordered").update(status="pending")),
    ("I2", "still in flight", lambda run: run.state.in_flight.append({"delivery_id": "one"})),
    ("I2", "failed, though", fail_too_early),
    ("I2", "no receiver has taken it", lambda run: run.arrivals(run.delivery("flaky"))[1].update(status=500)),
    ("I2", "which is no delivery", lambda run: run.of("arrival")[0].update(delivery="unknown")),
    ("I2", "was not for", forget_endpoints),
    ("I3", "still claims it", hold_while_held),
    ("I3", "was made before", hold_again_too_soon),
    ("I3", "begins at", hold_again_too_soon_by_the_trail),
    ("I4", "more than 8 attempts", lambda run: add_attempts(run, 7)),
    ("I4", "after the one before, not 0.2 s", retry_too_soon),
    ("I4", "after the one before had ended", retry_too_soon_without_arrivals),
    ("I4", "other bytes", deliver_other_bytes),
    ("I4", "is wrong", forge_signatures),
    ("I4", "no signature was checked", lambda run: run.state.secrets.popitem()),
    ("I4", "at an ordered endpoint", deliver_in_the_wrong_order),
    ("I4", "at the first attempts", deliver_in_the_wrong_order),
    ("I4", "is in no log", deliver_without_a_log),
    ("I4", "followed a redirect", follow_a_redirect),
    ("I5", "was sent 2 times and stored", sign_twice),
    ("I5", "was sent 2 times and stored", put_twice),
    ("I5", "was answered with the bookings", answer_with_another_hold),
    ("I6", "was not on its page", skip_an_event),
    ("I6", "another order", swap_events),
    ("I6", "has the position", skip_a_position),
    ("I6", "is not stored", read_an_event_that_was_lost),
    ("I6", "the page before had led to", read_a_page_twice),
    ("I6", "but the last one is", lambda run: run.state.sequences.update(last_position=1)),
    ("I6", "and not to the end", stop_reading),
    ("I6", "0 readers", read_nothing),
    (
        "I7",
        "answered with 500 for A-1",
        lambda run: bulk_results(run)[0].update(outcome="refused", problem={"status": 500}),
    ),
    ("I7", "answered with 500", lambda run: run.of("unknown")[0].update(status=500)),
    ("I7", "answered with 502", lambda run: run.of("ok")[0].update(status=502)),
    ("I8", "not settled", lambda run: run.of("settled")[0].update(seconds=None)),
    ("I8", "not settled", lambda run: run.of("settled")[0].update(seconds=61.0)),
    ("I8", "nobody waited", lambda run: run.records.remove(run.of("settled")[0])),
    ("I9", "21 connections", lambda run: run.of("sample")[0].update(connections=21)),
    ("I9", "2001 writes waited", lambda run: run.of("sample")[0].update(waiting=2001)),
    ("I9", "nobody looked", sample_nothing),
    ("I9", "had 100 MiB and has 201 MiB", lambda run: grow(run, "web one:1")),
    ("I10", "unit", answer_one_version_twice),
    ("I10", "asked by", give_a_hold_to_two),
    ("I10", "delivery", deliver_one_id_for_two_events),
    ("I10", "position 1 is stored 2 times", lambda run: run.state.events[1].update(position=1)),
    ("I10", "will be given out again", lambda run: run.state.sequences.update(booking_number=0)),
    ("I10", "is stored 2 times", lambda run: run.state.bookings.append(run.state.bookings[0])),
]


@pytest.mark.parametrize(
    ("invariant", "message", "plant"),
    PLANTED,
    ids=[f"{invariant}: {message}" for invariant, message, _ in PLANTED],
)
def test_a_planted_violation_is_found(
    run: Run, invariant: str, message: str, plant: Callable[[Run], object]
) -> None:
    plant(run)
    assert [fault for fault in run.found()[invariant] if message in fault] != []


def test_at_most_twenty_faults_of_one_invariant_are_kept(run: Run) -> None:
    run.records += [{"kind": "unknown", "call": f"c-{number}", "status": 500} for number in range(30)]
    assert len(run.found()["I7"]) == 20


def test_what_a_fault_explains_is_no_violation(run: Run) -> None:
    """A retry that was early by a clock that was set, a worker that was given up and went on, and a process
    that began anew with more memory than the one before."""
    retry_too_soon(run)
    overtaken = run.delivery("flaky", 1)
    run.attempts(overtaken)[0].update(cause=OUTCOME_UNKNOWN, signature=None, status_code=None)
    first, second = run.arrivals(overtaken)
    first["at"], first["answered_at"] = second["at"] + 0.1, second["at"] + 0.1
    run.records.append({"kind": "clock", "at": run.arrivals(run.delivery("flaky"))[1]["at"], "seconds": 600})
    grow(run, "web one:2")
    assert {name: faults for name, faults in run.found().items() if faults} == {}


def test_a_retry_too_soon_is_explained_only_by_a_step_of_the_clock_beside_it(run: Run) -> None:
    retry_too_soon_without_arrivals(run)
    ended_at = float(run.attempts(run.delivery("flaky"))[0]["ended_at"])
    step = {"kind": "clock", "at": ended_at - 1, "seconds": 600}
    run.records.append(step)
    assert run.found()["I4"] == []
    step["at"] = ended_at - 60
    (fault,) = run.found()["I4"]
    assert "after the one before had ended" in fault


def test_a_backup_is_the_beginning_of_what_there_is_in_the_end(run: Run) -> None:
    restored, last = deepcopy(run.state), run.call("POST", "/reissue-link")[1]
    begun_at = last["at"]

    def faults() -> list[str]:
        return backup_faults(restored, run.state, run.records, begun_at)

    restored.audit_entries.remove(run.entry("reissue-link"))
    assert faults() == []
    last["at"] = begun_at - 0.001
    assert "acknowledged before the backup, which does not have it" in faults()[0]
    last["at"] = begun_at
    restored.events.pop(0)
    assert "in the backup, A-1: events" in faults()[0]
    Run(run.records, restored).entry("sign")["id"] = 0
    assert "the trail of A-1 in the backup is not the beginning of its own" in faults()
    restored.audit_entries.clear()
    assert any("the trail tells of no creation" in fault for fault in faults())


def test_a_run_is_checked_again_by_its_files(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(recorded)]) == 0
    assert capsys.readouterr().out.count("holds") == 10
