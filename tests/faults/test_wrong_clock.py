"""All times are the database's: processes whose own clock is ten minutes off change nothing."""

import asyncio
import json
import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest

import holdfast
from tests.support.concurrent_requests import Answer, Request, ask_once
from tests.support.history_checker import faults_of
from tests.support.processes import children
from tests.support.sales_project import NO_HOLD_LIMIT, Market, expect, open_market, stock_up
from tests.support.server import RunningServer, wait_until
from tests.support.sql import Sql
from tests.support.unit_history import read_histories, time_text
from tests.support.wrong_clock import wrong_clock

OFF_SECONDS = 600
SHORT_HOLD_SECONDS, LONG_HOLD_SECONDS = 2, 900
SOURCE = Path(holdfast.__file__).parent
QUESTION = re.compile(
    r"\bfrom time import .*\b(time|time_ns|localtime|gmtime|ctime|asctime|strftime)\b"
    r"|\btime\.(time|time_ns|localtime|gmtime|ctime|asctime|strftime)\b"
    r"|\bdate(time)?\.(now|utcnow|today)\b"
)
DEMO_SYSTEMS = {f"demo/external/{name}.py" for name in ("app", "payments", "receiver")}
"""The demo's external systems have a clock of their own."""
ALLOWED = {"observability/logging.py", "cli/listen.py", "cli/verify.py", *DEMO_SYSTEMS}
"""Log lines are stamped before anybody could ask the database, and nothing is decided by them. `verify` holds
a signature against this machine's clock, as a receiver does, and what `listen` signs is for this machine."""

LOOK = "select unit.status, clock_timestamp() as now from unit where code = $1"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [OFF_SECONDS, -OFF_SECONDS], ids=["ahead", "behind"])
def test_a_wrong_clock_changes_nothing(tmp_path: Path, postgres_url: str, seconds: int) -> None:
    settings = NO_HOLD_LIMIT | wrong_clock(tmp_path, seconds)
    with (
        open_market(tmp_path, postgres_url, settings=settings) as (market, server),
        Sql(postgres_url) as sql,
    ):
        asyncio.run(stock_up(market, ["A-1", "A-2"], holdSeconds=SHORT_HOLD_SECONDS))
        watch_a_release(market, sql)
        ask(market, market.settle(holdSeconds=LONG_HOLD_SECONDS), 200)
        buy(market)
        assert_the_clock_is_off(server, sql, seconds)
        histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    assert [[event["type"] for event in history.events] for history in histories] == [
        ["unit.held", "unit.released"],
        ["unit.held", "unit.reserved", "unit.sold"],
    ]


def ask(market: Market, request: Request, status: int) -> Answer:
    return expect(ask_once(market.address, request), status)


def watch_a_release(market: Market, sql: Sql) -> None:
    """A hold ends by the clock of the database, and is released by the worker, for nobody else writes."""
    before = sql.value("select date_trunc('milliseconds', clock_timestamp())")
    held = ask(market, market.hold("A-1"), 201).body
    after, end = sql.value("select clock_timestamp()"), datetime.fromisoformat(held["holdExpiresAt"])
    assert before <= end - timedelta(seconds=SHORT_HOLD_SECONDS) <= after
    wait_until(lambda: sql.row(LOOK, "A-1")["status"] != "held")
    assert sql.row(LOOK, "A-1")["now"] >= end
    released_at = sql.value("select created_at from event where type = 'unit.released'")
    assert time_text(released_at) == time_text(end)


def buy(market: Market) -> None:
    held = ask(market, market.hold("A-2"), 201).body
    refused = ask(market, market.hold("A-2"), 409)
    assert LONG_HOLD_SECONDS - OFF_SECONDS / 2 < int(refused.headers["retry-after"]) <= LONG_HOLD_SECONDS
    ask(market, market.sign(held), 200)
    assert ask(market, market.confirm_deposit(held), 200).body["status"] == "reserved"
    assert ask(market, market.act("A-2", "close-sale"), 200).body["status"] == "sold"


def assert_the_clock_is_off(server: RunningServer, sql: Sql, seconds: int) -> None:
    """By what a web process put in its log; the worker has the same environment."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["logger"] == "holdfast.request"]
    off = datetime.fromisoformat(requests[-1]["time"]) - sql.value("select clock_timestamp()")
    assert off.total_seconds() == pytest.approx(seconds, abs=OFF_SECONDS / 2)
    with suppress(psutil.AccessDenied):  # processes may not be inspected by everybody
        assert len({child.environ()["PYTHONPATH"] for child in children(server)}) == 1


def test_no_module_but_the_log_asks_the_clock_of_its_process() -> None:
    asking = {
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if QUESTION.search(path.read_text())
    }
    assert asking == ALLOWED


def test_a_question_to_the_clock_is_found() -> None:
    """And a clock that only measures is none."""
    for text in (
        "from time import time",
        "from time import monotonic, time_ns as clock",
        "time.time()",
        "datetime.datetime.now()",
        "datetime.now(UTC)",
        "make(default_factory=datetime.utcnow)",
    ):
        assert QUESTION.search(text), text
    assert not QUESTION.search("time.monotonic()\ntime.sleep(1)\nrow.now")
