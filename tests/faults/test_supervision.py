"""Processes die, are killed and are stopped; `serve` answers for all of them, and nothing is done twice."""

import asyncio
import os
import re
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from holdfast.background.holds import EXPIRED_AT_ONCE
from holdfast.storage.embedded.server import running_postmaster
from tests.support import commands
from tests.support import server as servers
from tests.support.concurrent_requests import Answer, open_lines
from tests.support.history_checker import faults_of
from tests.support.import_files import checked, commit
from tests.support.lapsed_holds import leave_lapsed_holds
from tests.support.payment_system import SETTINGS
from tests.support.processes import children, postmaster, stop_postgres, wait_until_gone
from tests.support.projects import add_project
from tests.support.sales_project import NO_HOLD_LIMIT, Market, expect, new_market, stock_up
from tests.support.server import PATIENCE_SECONDS, RunningServer, wait_until
from tests.support.sql import Sql
from tests.support.staff_client import People, Person
from tests.support.unit_history import read_histories
from tests.support.workers import Worker

ROWS = 3_000
TURN = 4711
STORED = "select coalesce(sum(rows_counted), 0) from import_result where stored"
CREATED = "select count(*) from audit_entry where action = 'create' and actor_kind = 'staff'"

# After its first part an import waits for as long as somebody else has the turn.
STAND_STILL = f"""
    create function stand_still() returns trigger language plpgsql as $$
        begin
            if exists (select from import_result where stored) then
                perform pg_advisory_xact_lock_shared({TURN});
            end if;
            return null;
        end $$;
    create trigger stand_still after insert on unit for each statement execute function stand_still();
"""
# Each batch of released holds tells whose it was. After its first, the first worker waits for its turn.
NOTE_SWEEPS = f"""
    create table sweep (worker text);
    create function note_sweep() returns trigger language plpgsql as $$
        begin
            if exists (select from sweep where worker = 'first') then
                perform pg_advisory_xact_lock_shared({TURN});
            end if;
            insert into sweep values (current_setting('tests.worker'));
            return null;
        end $$;
    create trigger note_sweep after update on unit for each statement execute function note_sweep();
"""
HELD = "select count(*) from unit where status = 'held'"
STANDS_STILL = f"select exists (select from pg_locks where objid = {TURN} and not granted)"


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    stop_postgres(tmp_path / "data")


@pytest.fixture
def settings(data: Path) -> dict[str, str]:
    return {"HOLDFAST_DATA_DIR": str(data)}


def is_ready(server: RunningServer) -> bool:
    """A connection may wait for a process that is being started, or have been taken by a killed one."""
    try:
        return httpx.get(f"{server.address}/readyz", timeout=PATIENCE_SECONDS).status_code == 200
    except httpx.TransportError:
        return False


def port_is_free(server: RunningServer) -> bool:
    address = urlsplit(server.address)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex((address.hostname, address.port)) != 0


def kill_and_see_it_replaced(server: RunningServer, kind: str) -> None:
    before = children(server, kind)
    before[0].kill()
    wait_until(lambda: f"(process {before[0].pid}) ended: signal 9" in server.log.read_text())
    wait_until(lambda: len(children(server, kind)) == len(before))
    assert before[0] not in children(server, kind)
    wait_until(lambda: is_ready(server))


def kill_the_supervisor(server: RunningServer) -> None:
    family = psutil.Process(server.process.pid).children()
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    wait_until_gone(family)
    assert port_is_free(server)


def stop_by_signal(server: RunningServer, number: signal.Signals, data: Path) -> None:
    """Everything goes along, the database too."""
    database = postmaster(data)
    assert database is not None
    family = [*psutil.Process(server.process.pid).children(), database]
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE_SECONDS) == 0
    assert running_postmaster(data / "postgres") is None
    wait_until_gone(family)
    assert port_is_free(server)


def test_whatever_is_killed_is_started_again_and_the_database_is_adopted_by_the_next_supervisor(
    tmp_path: Path, data: Path, settings: dict[str, str]
) -> None:
    with servers.serving(tmp_path, settings, "--processes", "2") as server:
        assert (len(children(server, "web")), len(children(server, "work"))) == (2, 1)
        *_, owners_password = (data / "database-passwords").read_text().split()[0].split(":")
        for child in children(server):
            with suppress(psutil.AccessDenied):  # root needs CAP_SYS_PTRACE to look, and others may not
                assert owners_password not in str(child.environ())
        for kind in ("web", "work"):
            kill_and_see_it_replaced(server, kind)
        killed = postmaster(data)
        assert killed is not None
        killed.kill()
        restarted = "the embedded PostgreSQL had ended and was started again"
        wait_until(lambda: restarted in server.log.read_text())
        wait_until(lambda: is_ready(server))

        # A command works beside it, another server does not.
        project = commands.run_for_json(settings, "project", "add", "tower", "--name", "The Tower")
        second = commands.finish_process(settings, "serve", "--port", "0")
        assert "already running on" in commands.refused(second)
        assert is_ready(server)

        database = postmaster(data)
        assert database is not None
        kill_the_supervisor(server)
    assert database.is_running()
    port = str(urlsplit(server.address).port)
    with servers.serving(tmp_path, settings, "--port", port) as successor:
        assert is_ready(successor)
        assert postmaster(data) == database
        assert commands.run_for_json(settings, "project", "list")["projects"] == [project]
        stop_by_signal(successor, signal.SIGHUP, data)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_stop_takes_everything_along(
    tmp_path: Path, data: Path, settings: dict[str, str], number: signal.Signals
) -> None:
    with servers.serving(tmp_path, settings, "--processes", "2") as server:
        stop_by_signal(server, number, data)


def test_a_signal_before_it_is_ready_takes_everything_along(data: Path, settings: dict[str, str]) -> None:
    with servers.started(settings, "serve", "--port", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        next(line for line in process.stderr if "making a database" in line)
        process.send_signal(signal.SIGINT)
        assert (process.stdout.read(), process.wait(PATIENCE_SECONDS)) == ("", 0)
    assert postmaster(data) is None


@pytest.fixture
def own_server(tmp_path: Path, postgres_url: str) -> Iterator[RunningServer]:
    settings = {"HOLDFAST_DATABASE_URL": postgres_url, **NO_HOLD_LIMIT, **SETTINGS}
    with servers.serving(tmp_path, settings, "--processes", "2") as running:
        yield running


@pytest.fixture
def sql(postgres_url: str) -> Iterator[Sql]:
    with Sql(postgres_url) as connection:
        yield connection


def test_a_process_that_cannot_be_started_is_tried_again_and_raises_its_file_limit(
    own_server: RunningServer,
) -> None:
    supervisor, before = own_server.process.pid, children(own_server, "web")
    _, most = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (3, most))
    before[0].kill()
    failed = re.compile(r"web \d could not be started: \[Errno 24\] Too many open files")
    wait_until(lambda: len(failed.findall(own_server.log.read_text())) > 1)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (most - 1, most))
    wait_until(lambda: len(children(own_server, "web")) == len(before))
    (successor,) = set(children(own_server, "web")) - set(before)
    wait_until(lambda: resource.prlimit(successor.pid, resource.RLIMIT_NOFILE) == (most, most))
    wait_until(lambda: is_ready(own_server))


@pytest.mark.slow
def test_processes_that_hang_are_replaced(tmp_path: Path, postgres_url: str) -> None:
    with servers.serving(tmp_path, {"HOLDFAST_DATABASE_URL": postgres_url}) as server:
        before = children(server)
        for process in before:
            process.suspend()
        told = [f"(process {process.pid}) hangs and is killed" for process in before]
        wait_until(lambda: all(line in server.log.read_text() for line in told))
        wait_until(lambda: len(set(children(server)) - set(before)) == len(before))
        wait_until(lambda: is_ready(server))


def kill_web_processes(server: RunningServer) -> None:
    for child in children(server, "web"):
        child.kill()


def commit_and_be_hung_up_on(person: Person, address: str) -> None:
    with suppress(httpx.TransportError):
        commit(person, address)


def page_with(person: Person, address: str, text: str) -> str:
    """The page, once it says so; while the server starts again nobody answers."""
    page = ""

    def says_so() -> bool:
        nonlocal page
        with suppress(httpx.TransportError):
            page = person.see(address)
        return text in page

    wait_until(says_so)
    return page


@pytest.mark.slow
def test_an_import_that_was_killed_says_so_and_is_begun_again_without_doing_anything_twice(
    own_server: RunningServer, sql: Sql, postgres_url: str
) -> None:
    project, people = add_project(sql), People(sql, own_server.address)
    person = people.signed_in("sales")
    rows = "".join(f"A-{number},Villa,100,{number}\r\n" for number in range(ROWS))
    address, _ = checked(person, project, "Code,Type,Area,Price\r\n" + rows)
    page_with(person, address, "What the import will do")
    sql.execute(STAND_STILL)
    with Sql(postgres_url) as turn:
        turn.execute(f"select pg_advisory_lock({TURN})")
        sending = threading.Thread(target=commit_and_be_hung_up_on, args=(person, address))
        sending.start()
        wait_until(lambda: sql.value(STANDS_STILL))
        kill_web_processes(own_server)
        sending.join()
    page = page_with(person, address, "The import was interrupted")
    done = re.search(r"([\d,]+) of 3,000 rows", page)
    assert done is not None
    assert 0 < int(done[1].replace(",", "")) < ROWS
    commit(person, address)
    page_with(person, address, "The file is imported")
    assert sql.value(STORED) == ROWS
    assert sql.value("select count(*) from unit") == sql.value(CREATED) == ROWS
    people.leave()


@pytest.mark.slow
def test_payments_are_taken_once_though_processes_are_killed(
    own_server: RunningServer, sql: Sql, postgres_url: str
) -> None:
    market = new_market(own_server.address, postgres_url)
    answers = asyncio.run(pay_again_after_a_kill(own_server, market, [f"B-{number}" for number in range(20)]))
    assert {expect(answer, 200).body["status"] for answer in answers} == {"reserved"}
    histories = read_histories(sql, market.slug)
    assert [fault for history in histories for fault in faults_of(history)] == []
    for history in histories:
        (booking,) = history.bookings
        assert booking["payment_id"] == f"pay_{booking['reference']}"
        assert [entry["action"] for entry in history.entries].count("confirm-deposit") == 1
        assert [event["type"] for event in history.events] == ["unit.held", "unit.reserved"]


async def pay_again_after_a_kill(server: RunningServer, market: Market, codes: list[str]) -> list[Answer]:
    """The payments are on their way when every web process is gone."""
    await stock_up(market, codes)
    async with open_lines(market.address, len(codes)) as lines:
        held = [expect(await lines[0].ask(market.hold(code)), 201).body for code in codes]
        for booking in held:
            expect(await lines[0].ask(market.sign(booking)), 200)
        for line, booking in zip(lines, held, strict=True):
            line.send(market.pay(f"pay_{booking['reference']}", booking))
        await lines[0].answer()
        kill_web_processes(server)
    return [await told_again(market, booking) for booking in held]


async def told_again(market: Market, booking: dict[str, Any]) -> Answer:
    """As a payment system does it: until there is an answer."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                async with open_lines(market.address, 1) as (line,):
                    return await line.ask(market.pay(f"pay_{booking['reference']}", booking))
            await asyncio.sleep(0.1)


@pytest.mark.slow
def test_what_a_killed_worker_leaves_another_one_finishes(
    sql: Sql, postgres_url: str, tmp_path: Path
) -> None:
    """Of thousands of lapsed holds; each is released once."""
    holds, settings = 2 * EXPIRED_AT_ONCE + 200, {"HOLDFAST_DATABASE_URL": postgres_url}
    slug = asyncio.run(leave_lapsed_holds(postgres_url, holds))
    sql.execute(NOTE_SWEEPS)
    with Sql(postgres_url) as turn:
        turn.execute(f"select pg_advisory_lock({TURN})")
        first = Worker("first", settings, tmp_path)
        try:
            wait_until(lambda: sql.value(STANDS_STILL))
        finally:
            first.kill()
    assert sql.value(HELD) == holds - EXPIRED_AT_ONCE
    second = Worker("second", settings, tmp_path)
    try:
        wait_until(lambda: sql.value(HELD) == 0)
    finally:
        second.kill()
    assert sql.value("select array_agg(distinct worker order by worker) from sweep") == ["first", "second"]
    histories = read_histories(sql, slug)
    assert len(histories) == holds
    for history in histories:
        assert faults_of(history) == []
        assert [event["type"] for event in history.events] == ["unit.held", "unit.released"]
        assert [entry["action"] for entry in history.entries] == ["create", "open", "lapse-hold"]
        assert [booking["status"] for booking in history.bookings] == ["lapsed"]
