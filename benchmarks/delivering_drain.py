"""A backlog that is sent as fast as its sender can: watched from the receiver's side, and proved."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import TOP
from benchmarks.delivering import add_endpoints, forget_endpoints, pause_all, resume_all, workers
from benchmarks.delivering_backlog import export, fill, prove_recorded
from benchmarks.delivering_receiver import Arrival, Receiver
from benchmarks.processes import cpu_seconds, running
from benchmarks.wrk import InvalidRun

ENDPOINTS = 20
# Between these shares of the backlog the sender is warm, and still has more than it can send at once.
FIRST, LAST = 0.1, 0.9
LOOK_SECONDS = 0.05
STALLED_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Drained:
    per_second: float
    sender_cpu_per_1000: float
    postgres_cpu_per_1000: float
    receiver_cpu_per_1000: float
    deliveries_per_connection: float
    foreign_percent: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """So many deliveries wait in the database, for endpoints that are paused."""

    url: str
    count: int
    since: datetime


def prepare(url: str, receiver: Receiver, units: int) -> Backlog:
    """One event of each unit for each of the endpoints."""
    forget_endpoints(url)
    add_endpoints(url, receiver.urls(ENDPOINTS))
    return Backlog(url, units * ENDPOINTS, fill(url, units))


def drain(arena: Arena, receiver: Receiver, backlog: Backlog, processes: int) -> Drained:
    """By workers that are all there when the endpoints are resumed."""
    pause_all(backlog.url)
    receiver.forget()
    with workers(backlog.url, arena.logs, processes) as pids:
        resume_all(backlog.url)
        drained, arrivals = _watch(arena, receiver, pids, backlog.count)
        prove_recorded(backlog.url, backlog.since, arrivals, backlog.count)
    return drained


def post_bare(arena: Arena, receiver: Receiver, lines: Path, count: int, in_flight: int) -> Drained:
    """The same by the bare loop, which reads them from a file and records nothing."""
    receiver.forget()
    with _bare_loop(arena, lines, in_flight) as pid:
        drained, arrivals = _watch(arena, receiver, [pid], count)
    if not len({arrival.delivery_id for arrival in arrivals}) == len(arrivals) == count:
        raise InvalidRun(f"The bare loop was to post {count} deliveries; {len(arrivals)} came.")
    return drained


def exported(arena: Arena, backlog: Backlog) -> Path:
    path = arena.logs / "backlog.tsv"
    export(backlog.url, path)
    return path


@contextmanager
def _bare_loop(arena: Arena, lines: Path, in_flight: int) -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.peers.aiohttp_loop", str(lines), str(in_flight)]
    environment = {"PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
    with running(command, environment, arena.logs / "aiohttp.log", lambda: True) as process:
        yield process.pid


def _watch(
    arena: Arena, receiver: Receiver, pids: Sequence[int], count: int
) -> tuple[Drained, list[Arrival]]:
    def senders_cpu() -> float:
        return sum(cpu_seconds(pid) for pid in pids)

    first = _look_until(receiver, int(count * FIRST))
    received, started = receiver.cpu_seconds(), time.perf_counter()
    account = Account(arena, lambda: senders_cpu() + receiver.cpu_seconds())
    last = _look_until(receiver, int(count * LAST))
    spent, received = account.close(time.perf_counter() - started), receiver.cpu_seconds() - received
    _look_until(receiver, count)
    connections, arrivals = receiver.counts().connections, receiver.arrivals()
    thousands = (last - first) / 1000
    drained = Drained(
        per_second=(last - first) / (arrivals[last - 1].at - arrivals[first - 1].at),
        sender_cpu_per_1000=(spent.server_cpu_seconds - received) / thousands,
        postgres_cpu_per_1000=spent.postgres_cpu_seconds / thousands,
        receiver_cpu_per_1000=received / thousands,
        deliveries_per_connection=count / max(connections, 1),
        foreign_percent=spent.foreign_percent,
    )
    return drained, arrivals


def _look_until(receiver: Receiver, wanted: int) -> int:
    """How many have come, once that is at least so many."""
    before, progressed = -1, time.monotonic()
    while (now := receiver.counts().arrivals) < wanted:
        if now != before:
            before, progressed = now, time.monotonic()
        if time.monotonic() > progressed + STALLED_SECONDS:
            raise InvalidRun(f"Nothing came for {STALLED_SECONDS} s; {now} of {wanted} were there.")
        time.sleep(LOOK_SECONDS)
    return now


def medians(runs: list[Drained]) -> dict[str, Any]:
    rows = [asdict(run) for run in runs]
    return {name: median(row[name] for row in rows) for name in rows[0]} | {
        "runs": [round(run.per_second, 1) for run in runs]
    }


COLUMNS = [
    "", "deliveries/s", "sender CPU s per 1000", "PostgreSQL CPU s per 1000", "receiver CPU s per 1000",
    "deliveries a connection",
]  # fmt: skip


def row(name: str, figure: dict[str, Any], in_database: Callable[[str], bool] = lambda _: True) -> list[str]:
    return [
        name,
        f"{figure['per_second']:,.0f}",
        f"{figure['sender_cpu_per_1000']:.3f}",
        f"{figure['postgres_cpu_per_1000']:.3f}" if in_database(name) else "–",
        f"{figure['receiver_cpu_per_1000']:.3f}",
        f"{figure['deliveries_per_connection']:,.0f}",
    ]
