"""Faults of the databases: their processes, their disks, their clock, and which of them is the primary."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import asyncpg
import psutil

from tests.chaos.faults import Injection, Kind, Run, until
from tests.chaos.history import CLOCK_STEP_SECONDS
from tests.chaos.postgres import UNREACHABLE, Node, ServerFailed
from tests.chaos.scene import Scene

LANE = "database"
OBSERVE_SECONDS = 3.0
POLL_SECONDS = 0.05

# Holdfast's sessions, those first that do something now.
_BACKENDS = """
    select pid, state from pg_stat_activity
    where usename = 'holdfast' and backend_type = 'client backend' order by state <> 'active', pid
"""
_WAITING_COMMITS = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
_WAL_SENDERS = "select pid from pg_stat_replication where application_name = $1"
_IS_SYNCHRONOUS = "select true from pg_stat_replication where application_name = $1 and sync_state = 'sync'"
# Both need more disk than there is: the first ends with an error, the second takes the server down.
_NEED_TABLE_SPACE = "create temp table junk as select repeat('x', 1000) from generate_series(1, 1000000)"
_NEED_WAL_SPACE = """
    select pg_logical_emit_message(false, 'chaos', repeat('x', 1000000), true) from generate_series(1, 300)
"""

KINDS: list[Kind] = []


def database_fault(
    name: str, seconds: tuple[float, float] = (0.0, 0.0), *, takes_seconds: float = 1.0, weight: int = 2
) -> Callable[[Run], Run]:
    def add(fault: Run) -> Run:
        @functools.wraps(fault)
        async def run(scene: Scene, injection: Injection) -> None:
            try:
                # A fault of another lane may have been first; then this one has no effect.
                with suppress(ServerFailed, psutil.NoSuchProcess, ProcessLookupError, *UNREACHABLE):
                    async with asyncio.timeout(injection.seconds + 15):
                        await fault(scene, injection)
            finally:
                await asyncio.to_thread(scene.pair.ensure_whole)

        KINDS.append(Kind(name, LANE, run, seconds, takes_seconds, weight))
        return run

    return add


# Processes


@database_fault("a database backend is killed", weight=3)
async def backend_is_killed(scene: Scene, injection: Injection) -> None:
    node = scene.pair.primary
    mark = node.log_size()
    pid, state = await _some_backend(node, injection)
    os.kill(pid, signal.SIGKILL)
    if await until(lambda: "all server processes terminated; reinitializing" in node.log_since(mark)):
        injection.saw(f"an {state} backend was killed, and the server started all others anew")


@database_fault("a database backend is paused", (0.5, 3))
async def backend_is_paused(scene: Scene, injection: Injection) -> None:
    pid, state = await _some_backend(scene.pair.primary, injection)
    backend = psutil.Process(pid)
    with _paused(backend):
        if await until(lambda: backend.status() == psutil.STATUS_STOPPED):
            injection.saw(f"an {state} backend stood still")
        await asyncio.sleep(injection.seconds)


@database_fault("the postmaster is killed", (0.2, 1.5))
async def postmaster_is_killed(scene: Scene, injection: Injection) -> None:
    await _end(scene.pair.primary, injection, signal.SIGKILL)


@database_fault("the database crashes", (0.2, 1.5))
async def database_crashes(scene: Scene, injection: Injection) -> None:
    await _end(scene.pair.primary, injection, signal.SIGQUIT)


@database_fault("the database is restarted", (0.2, 1.5))
async def database_is_restarted(scene: Scene, injection: Injection) -> None:
    await _end(scene.pair.primary, injection, signal.SIGINT)


@database_fault("the database crashes in a checkpoint", (0.2, 1))
async def database_crashes_in_a_checkpoint(scene: Scene, injection: Injection) -> None:
    node = scene.pair.primary
    mark = node.log_size()
    postmaster = node.processes()[0]
    checkpoint = asyncio.create_task(node.fetch("checkpoint"))
    try:
        if await until(lambda: "checkpoint starting" in node.log_since(mark), poll_seconds=0.002):
            postmaster.send_signal(signal.SIGQUIT)
        if await until(lambda: not node.is_running()) and "checkpoint complete" not in node.log_since(mark):
            injection.saw("the server ended after the start of a checkpoint and before its end")
    finally:
        await asyncio.gather(checkpoint, return_exceptions=True)
    await asyncio.sleep(injection.seconds)


@database_fault("the postmaster is paused", (0.5, 3))
async def postmaster_is_paused(scene: Scene, injection: Injection) -> None:
    node = scene.pair.primary
    with _paused(node.processes()[0]):
        until = time.monotonic() + injection.seconds
        try:
            await node.fetch("select 1", seconds=0.4)
        except TimeoutError:
            injection.saw("a new connection was not answered")
        await asyncio.sleep(max(0, until - time.monotonic()))


# The standby


@database_fault("the standby is killed", (0.2, 2))
async def standby_is_killed(scene: Scene, injection: Injection) -> None:
    standby = _standby(scene)
    await asyncio.to_thread(standby.kill)
    await _watch_commits(scene, injection, "the standby was killed")


@database_fault("the standby is stopped", (0.5, 4))
async def standby_is_stopped(scene: Scene, injection: Injection) -> None:
    standby = _standby(scene)
    await asyncio.to_thread(standby.stop)
    await _watch_commits(scene, injection, "the standby was stopped")


@database_fault("the standby hangs", (0.5, 4.5))
async def standby_hangs(scene: Scene, injection: Injection) -> None:
    standby = _standby(scene)
    try:
        standby.signal_all(signal.SIGSTOP)
        await _watch_commits(scene, injection)
    finally:
        standby.signal_all(signal.SIGCONT)


@database_fault("the replication link is cut", (0.5, 4))
async def replication_link_is_cut(scene: Scene, injection: Injection) -> None:
    primary, standby = scene.pair.primary, _standby(scene)
    link = scene.network.replication[primary.name]
    try:
        link.refuse()
        link.cut()
        gone = await until(lambda: _has_no_rows(primary, _WAL_SENDERS, standby.name))
        await _watch_commits(scene, injection, "the WAL sender ended" if gone else "")
    finally:
        await link.accept()


@database_fault("the WAL sender is killed")
async def wal_sender_is_killed(scene: Scene, injection: Injection) -> None:
    # SIGTERM: after SIGKILL the server starts all others anew, and that is another fault.
    primary = scene.pair.primary
    sender = psutil.Process(await primary.value(_WAL_SENDERS, _standby(scene).name))
    sender.terminate()
    if await until(lambda: not sender.is_running()):
        injection.saw(f"the WAL sender {sender.pid} ended")


@database_fault("the standby is promoted", (0.2, 1), takes_seconds=1.5, weight=1)
async def standby_is_promoted(scene: Scene, injection: Injection) -> None:
    pair = scene.pair
    old, new = pair.primary, _standby(scene)
    if not pair.is_synchronous or await _has_no_rows(old, _IS_SYNCHRONOUS, new.name):
        return
    promotions = pair.promotions
    links = scene.network.app[old.name], scene.network.replication[old.name]
    try:
        # Nobody may get an answer from the old primary once there is a new one.
        for link in links:
            link.refuse()
            link.cut()
        await asyncio.to_thread(old.kill)
        await asyncio.to_thread(pair.promote)
        if pair.promotions == promotions:
            return
        injection.saw(f"{new.name} takes writes instead of {old.name}")
        await asyncio.sleep(injection.seconds)
        await asyncio.to_thread(pair.ensure_whole)
    finally:
        for link in links:
            await link.accept()


# Disks


@database_fault("the primary loses its power", (0.2, 1), takes_seconds=1.5, weight=1)
async def primary_loses_power(scene: Scene, injection: Injection) -> None:
    await _lose_power(injection, scene.pair.primary)


@database_fault("the standby loses its power", (0.2, 1), takes_seconds=1.5, weight=1)
async def standby_loses_power(scene: Scene, injection: Injection) -> None:
    await _lose_power(injection, _standby(scene))


@database_fault("both databases lose their power", (0.2, 1), takes_seconds=2, weight=1)
async def both_lose_power(scene: Scene, injection: Injection) -> None:
    await _lose_power(injection, scene.pair.primary, _standby(scene))


@database_fault("the disk is full", (0.5, 3), takes_seconds=2, weight=1)
async def disk_is_full(scene: Scene, injection: Injection) -> None:
    node = scene.pair.primary
    mark = node.log_size()
    statement = injection.chance.choice((_NEED_TABLE_SPACE, _NEED_WAL_SPACE))
    try:
        await asyncio.to_thread(node.disk.fill)
        with suppress(*UNREACHABLE):
            await node.fetch(statement, seconds=OBSERVE_SECONDS)
        if await until(lambda: "No space left on device" in node.log_since(mark)):
            panicked = " and went down" if "PANIC" in node.log_since(mark) else ""
            injection.saw(f"the server had no space left{panicked}")
        await asyncio.sleep(injection.seconds)
    finally:
        await asyncio.to_thread(node.disk.empty)


@database_fault("the disk fails", (0.2, 1), takes_seconds=2, weight=1)
async def disk_fails(scene: Scene, injection: Injection) -> None:
    node = scene.pair.primary
    mark = node.log_size()
    try:
        await asyncio.to_thread(node.disk.fail)
        if await until(lambda: "Input/output error" in node.log_since(mark)):
            panicked = ", and went down" if "PANIC" in node.log_since(mark) else ""
            injection.saw(f"the server's files failed with an I/O error{panicked}")
        await asyncio.sleep(injection.seconds)
    finally:
        await asyncio.to_thread(_mount_anew, node)


@database_fault("the disk hangs", (0.5, 3), weight=1)
async def disk_hangs(scene: Scene, injection: Injection) -> None:
    node = scene.pair.primary
    try:
        await asyncio.to_thread(node.disk.freeze)
        if await until(lambda: any(_waits_for_disk(process) for process in node.processes())):
            injection.saw("a process of the server waited for its disk")
        await asyncio.sleep(injection.seconds)
    finally:
        await asyncio.to_thread(node.disk.thaw)


# The clock


@database_fault("the databases' clock goes ahead 10 minutes", takes_seconds=2, weight=1)
async def clock_goes_ahead(scene: Scene, injection: Injection) -> None:
    await _step_clock(scene, injection, CLOCK_STEP_SECONDS)


@database_fault("the databases' clock goes back 10 minutes", (0.5, 3), takes_seconds=3, weight=1)
async def clock_goes_back(scene: Scene, injection: Injection) -> None:
    try:
        await _step_clock(scene, injection, -CLOCK_STEP_SECONDS)
        await asyncio.sleep(injection.seconds)
    finally:
        _note_step(scene, CLOCK_STEP_SECONDS)


async def _step_clock(scene: Scene, injection: Injection, seconds: int) -> None:
    """Step it, and see it in a session that is open already and in a new one."""
    node = scene.pair.primary
    connection = await node.connect()
    try:
        before = await _clock_offset(connection)
        _note_step(scene, seconds)

        async def has_stepped() -> bool:
            new = await node.value("select extract(epoch from clock_timestamp())::float8") - time.time()
            offsets = await _clock_offset(connection), new
            return all(abs(offset - before - seconds) < 5 for offset in offsets)

        if await until(has_stepped):
            injection.saw(f"clock_timestamp() moved by {seconds} s in an old and in a new session")
    finally:
        connection.terminate()


async def _clock_offset(connection: asyncpg.Connection) -> float:
    at: float = await connection.fetchval("select extract(epoch from clock_timestamp())::float8", timeout=2)
    return at - time.time()


def _note_step(scene: Scene, seconds: int) -> None:
    scene.pair.step_clock(seconds)
    scene.history.note("clock", seconds=seconds)


# Parts of several faults


def _standby(scene: Scene) -> Node:
    standby = scene.pair.standby
    if standby is None:
        raise ServerFailed("There is no standby.")
    return standby


async def _some_backend(node: Node, injection: Injection) -> tuple[int, str]:
    backends = await node.fetch(_BACKENDS)
    if not backends:
        raise ServerFailed("Holdfast has no session.")
    found = injection.chance.choice(backends[: max(1, len(backends) // 2)])
    return found["pid"], found["state"] or "unknown"


async def _end(node: Node, injection: Injection, number: signal.Signals) -> None:
    """End the server by a signal to its postmaster; `ensure_whole` starts it."""
    node.processes()[0].send_signal(number)
    if await until(lambda: not node.is_running(), seconds=10):
        injection.saw(f"the postmaster ended by {number.name}")
    await asyncio.sleep(injection.seconds)


@contextmanager
def _paused(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            process.resume()


async def _watch_commits(scene: Scene, injection: Injection, effect: str = "") -> None:
    """Stay for the fault's time, and see commits that wait for the standby. ``effect`` counts without any."""
    until = time.monotonic() + injection.seconds
    try:
        while time.monotonic() < until:
            if waiting := await scene.pair.primary.value(_WAITING_COMMITS):
                injection.saw(f"{waiting} commits waited{': ' if effect else ''}{effect}")
            await asyncio.sleep(2 * POLL_SECONDS)
    finally:
        if effect:
            injection.saw(effect)


async def _lose_power(injection: Injection, *nodes: Node) -> None:
    marks = [node.log_size() for node in nodes]
    try:
        for node in nodes:
            await asyncio.to_thread(node.disk.lose_power)
        for node in nodes:
            await asyncio.to_thread(node.kill)
        await asyncio.sleep(injection.seconds)
    finally:
        for node in nodes:
            await asyncio.to_thread(_mount_anew, node)
    for node in nodes:
        await asyncio.to_thread(node.start)
    logs = [node.log_since(mark) for node, mark in zip(nodes, marks, strict=True)]
    has_lost = [await asyncio.to_thread(node.disk.has_lost_unflushed) for node in nodes]
    if all(has_lost) and all("database system was interrupted" in log for log in logs):
        injection.saw("what was not flushed is lost, and the server recovered from the rest")


def _mount_anew(node: Node) -> None:
    node.kill()
    node.disk.unmount()
    node.disk.mount()


def _waits_for_disk(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_DISK_SLEEP)
    return False


async def _has_no_rows(node: Node, statement: str, *arguments: object) -> bool:
    return not await node.fetch(statement, *arguments)
