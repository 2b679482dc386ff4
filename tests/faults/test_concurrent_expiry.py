"""Workers that release lapsed holds, one killed in the middle, several at once: each is released once."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from holdfast.background.holds import EXPIRED_AT_ONCE
from tests.support import server as servers
from tests.support.history_checker import faults_of
from tests.support.lapsed_holds import leave_lapsed_holds
from tests.support.sql import Sql
from tests.support.unit_history import read_histories

HOLDS = 6 * EXPIRED_AT_ONCE
PATIENCE_SECONDS = 60

# Each batch tells whose it was, and takes long enough for a kill or another worker to come in between.
SLOW_BATCHES = """
    create table sweep (worker text);
    create function note_sweep() returns trigger language plpgsql as $$
        begin
            insert into sweep values (current_setting('tests.worker'));
            perform pg_sleep(0.2);
            return null;
        end $$;
    create trigger note_sweep after update on unit for each statement execute function note_sweep();
"""
HELD = "select count(*) from unit where status = 'held'"
WAITING = "select count(*) from pg_locks where relation = 'unit'::regclass and not granted"


@pytest.fixture
def sql(postgres_url: str) -> Iterator[Sql]:
    with Sql(postgres_url) as connection:
        yield connection


@pytest.fixture
def slug(postgres_url: str, sql: Sql) -> str:
    """A project whose holds have all lapsed, with no worker that has seen it yet."""
    made = asyncio.run(leave_lapsed_holds(postgres_url, HOLDS))
    sql.execute(SLOW_BATCHES)
    assert sql.value(HELD) == HOLDS
    return made


@contextmanager
def working(database_url: str, name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker whose sessions carry its name; when it is no longer needed it is killed."""
    named = f"{database_url}{'&' if '?' in database_url else '?'}tests.worker={name}"
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [servers.HOLDFAST, "work"],
            env=servers.environment({"HOLDFAST_DATABASE_URL": named}),
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.002)


def assert_each_was_released_once(sql: Sql, slug: str) -> None:
    histories = read_histories(sql, slug)
    assert len(histories) == HOLDS
    for history in histories:
        assert faults_of(history) == []
        assert [event["type"] for event in history.events] == ["unit.held", "unit.released"]
        assert [entry["action"] for entry in history.entries] == ["create", "open", "lapse-hold"]
        assert [booking["status"] for booking in history.bookings] == ["lapsed"]


def test_what_a_killed_worker_leaves_another_one_finishes(
    sql: Sql, slug: str, postgres_url: str, tmp_path: Path
) -> None:
    with working(postgres_url, "first", tmp_path) as worker:
        wait_until(lambda: sql.value(HELD) < HOLDS * 0.9)
        worker.kill()
        worker.wait()
    left = sql.value(HELD)
    assert HOLDS * 0.1 < left < HOLDS * 0.9, "the kill did not come in the middle"
    with working(postgres_url, "second", tmp_path):
        wait_until(lambda: sql.value(HELD) == 0)
    assert {row["worker"] for row in sql.rows("select worker from sweep")} == {"first", "second"}
    assert_each_was_released_once(sql, slug)


@pytest.mark.parametrize("names", [("one", "two"), ("one", "two", "three", "four")], ids=len)
def test_workers_that_sweep_at_once_share_the_work(
    sql: Sql, slug: str, postgres_url: str, tmp_path: Path, names: tuple[str, ...]
) -> None:
    with ExitStack() as running, Sql(postgres_url) as gate:
        gate.execute("begin; lock table unit in exclusive mode")
        for name in names:
            running.enter_context(working(postgres_url, name, tmp_path))
        wait_until(lambda: sql.value(WAITING) >= len(names))
        gate.execute("commit")
        wait_until(lambda: sql.value(HELD) == 0)
    assert {row["worker"] for row in sql.rows("select distinct worker from sweep")} == set(names)
    assert_each_was_released_once(sql, slug)
