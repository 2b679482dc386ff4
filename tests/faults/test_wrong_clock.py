"""All times are the database's: processes whose own clock is ten minutes off change nothing."""

import ast
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

import holdfast
from tests.support.concurrent_requests import Answer, Request, ask_once
from tests.support.history_checker import faults_of
from tests.support.sales_project import NO_HOLD_LIMIT, Market, expect, open_market, stock_up
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.unit_history import read_histories, time_text
from tests.support.wrong_clock import wrong_clock

OFF_SECONDS = 600
HOLD_SECONDS = 2
PATIENCE_SECONDS = 20
SOURCE = Path(holdfast.__file__).parent
CLOCKS = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "asctime", "strftime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
DEMO_SYSTEMS = {f"demo/external/{name}.py" for name in ("app", "payments", "receiver")}
"""The demo's external systems have a clock of their own."""
ALLOWED = {"observability/logging.py", "cli/listen.py", "cli/verify.py", *DEMO_SYSTEMS}
"""Log lines are stamped before anybody could ask the database, and nothing is decided by them. `verify` holds
a signature against this machine's clock, as a receiver does, and what `listen` signs is for this machine."""

LOOK = "select unit.status, clock_timestamp() as now from unit where code = $1"


@contextmanager
def off_by(seconds: int, folder: Path, database_url: str) -> Iterator[tuple[Market, RunningServer]]:
    settings = NO_HOLD_LIMIT | wrong_clock(folder, seconds)
    with open_market(folder, database_url, settings=settings) as opened:
        yield opened


@pytest.mark.parametrize("seconds", [OFF_SECONDS, -OFF_SECONDS], ids=["ahead", "behind"])
def test_a_wrong_clock_changes_nothing(tmp_path: Path, postgres_url: str, seconds: int) -> None:
    with off_by(seconds, tmp_path, postgres_url) as (market, server), Sql(postgres_url) as sql:
        buy(market, sql)
        assert_the_clock_is_off(server, sql, seconds)
        histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    assert [[event["type"] for event in history.events] for history in histories] == [
        ["unit.held", "unit.released"],
        ["unit.held", "unit.reserved", "unit.sold"],
    ]


def buy(market: Market, sql: Sql) -> None:
    asyncio.run(stock_up(market, ["A-1", "A-2"], holdSeconds=HOLD_SECONDS))
    held = hold(market, sql)
    refused = ask(market, market.hold("A-1"), 409)
    assert 1 <= int(refused.headers["retry-after"]) <= HOLD_SECONDS
    watch_its_release(sql, datetime.fromisoformat(held["holdExpiresAt"]))
    ask(market, market.settle(holdSeconds=None), 200)
    sold = ask(market, market.hold("A-2"), 201).body
    ask(market, market.sign(sold), 200)
    assert ask(market, market.confirm_deposit(sold), 200).body["status"] == "reserved"
    assert ask(market, market.act("A-2", "close-sale"), 200).body["status"] == "sold"


def ask(market: Market, request: Request, status: int) -> Answer:
    return expect(ask_once(market.address, request), status)


def hold(market: Market, sql: Sql) -> dict[str, Any]:
    """Its end is the time of the database at the hold, and the period of the project."""
    before = sql.value("select date_trunc('milliseconds', clock_timestamp())")
    held = ask(market, market.hold("A-1"), 201).body
    after = sql.value("select clock_timestamp()")
    began = datetime.fromisoformat(held["holdExpiresAt"]) - timedelta(seconds=HOLD_SECONDS)
    assert before <= began <= after
    return held


def watch_its_release(sql: Sql, end: datetime) -> None:
    """Written by the worker, for nobody else writes meanwhile; not before the end, and soon after it."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while (seen := sql.row(LOOK, "A-1"))["status"] == "held":
        assert time.monotonic() < give_up_at, "the hold was not released"
        time.sleep(0.01)
    assert seen["now"] >= end
    released_at = sql.value("select created_at from event where type = 'unit.released'")
    assert time_text(released_at) == time_text(end)


def assert_the_clock_is_off(server: RunningServer, sql: Sql, seconds: int) -> None:
    """By what a web process put in its log; the worker has the same environment."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["logger"] == "holdfast.request"]
    assert off_from(sql, datetime.fromisoformat(requests[-1]["time"])) == pytest.approx(seconds, abs=60)
    family = psutil.Process(server.process.pid).children()
    assert len({child.environ()["PYTHONPATH"] for child in family}) == 1


def off_from(sql: Sql, moment: datetime) -> float:
    now: datetime = sql.value("select clock_timestamp()")
    return (moment - now).total_seconds()


@pytest.mark.parametrize("clock", ["datetime.now(UTC)", "datetime.fromtimestamp(time.time(), UTC)"])
def test_a_process_with_a_wrong_clock_believes_it(tmp_path: Path, postgres_url: str, clock: str) -> None:
    """The control: what the server is given does shift every way to ask for the time."""
    program = f"import time; from datetime import UTC, datetime; print({clock}.isoformat())"
    env = {**os.environ, **wrong_clock(tmp_path, OFF_SECONDS)}
    told = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    with Sql(postgres_url) as sql:
        moment = datetime.fromisoformat(told.stdout.strip())
        assert off_from(sql, moment) == pytest.approx(OFF_SECONDS, abs=60)


def asks_the_clock(tree: ast.Module) -> bool:
    imported = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    attributes = {
        (_last_name(node.value), node.attr) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    return any((owner, name) in imported | attributes for owner, names in CLOCKS.items() for name in names)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_no_module_but_the_log_asks_the_clock_of_its_process() -> None:
    asking = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if asks_the_clock(ast.parse(path.read_text()))
    }
    assert asking == ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        "from time import time\ntime()",
        "from time import time_ns as clock",
        "import time\ntime.time()",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now(UTC)",
        "from datetime import date\ndate.today()",
        "from datetime import datetime\nmake(default_factory=datetime.utcnow)",
    ],
)
def test_a_question_to_the_clock_is_found(text: str) -> None:
    assert asks_the_clock(ast.parse(text))


def test_a_clock_that_only_measures_is_no_question() -> None:
    assert not asks_the_clock(ast.parse("import time\ntime.monotonic()\ntime.sleep(1)\nrow.now"))
