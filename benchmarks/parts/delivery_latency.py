"""From a status change to its receiver: one at a time on an idle server, and under a steady load."""

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import database
from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, Ground, holdfast
from benchmarks.delivering import LOOPBACK_ALLOWED, add_endpoints, forget_endpoints, lag_figure, tidy
from benchmarks.delivering_receiver import Receiver, receiving
from benchmarks.delivering_stream import Changes, lags_ms, now, status_changes, stream
from benchmarks.one_connection import OneConnection
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import cpu_of, noise_caption, quietest

UNITS = 2_000
PER_SECOND = 500
WARM_UP_CHANGES, WARM_UP_SECONDS = 20, 3
# Longer and shorter than what server and worker do after a change, so that one may come at any point of it.
PAUSE_SECONDS = (0.02, 0.12)


@dataclass(frozen=True, slots=True)
class Lags:
    milliseconds: list[float]
    foreign_percent: float


def ground(arena: Arena) -> Ground:
    return arena.ground("holdfast", UNITS)


def measure(arena: Arena) -> Finding:
    singles, seconds = (50, 4) if arena.quick else (1_000, 30)
    names = "idle, one at a time", f"under {PER_SECOND} status changes/s"
    with receiving(arena.logs, 1) as receiver:
        forget_endpoints(ground(arena).database_url)
        add_endpoints(ground(arena).database_url, receiver.urls(1))
        arena.progress(f"delivery_latency: {names[0]}")
        idle = quietest(arena, lambda: _idle(arena, receiver, singles))
        arena.progress(f"delivery_latency: {names[1]}")
        busy = quietest(arena, lambda: _busy(arena, receiver, seconds))
        forget_endpoints(ground(arena).database_url)
    figures = {name: lag_figure(lags.milliseconds) for name, lags in zip(names, (idle, busy), strict=True)}
    return _finding(figures, noise_caption([idle, busy]))


def _idle(arena: Arena, receiver: Receiver, count: int) -> Lags:
    chance = random.Random(1)

    def load(contestant: Contestant, changes: Changes) -> int:
        with OneConnection(contestant) as client:
            for target, body in itertools.islice(changes, count):
                client.request("PUT", target, body)
                time.sleep(chance.uniform(*PAUSE_SECONDS))
        return count

    def warm_up(contestant: Contestant, changes: Changes) -> None:
        stream(contestant, changes, WARM_UP_CHANGES, 1)

    return _measured(arena, receiver, warm_up, load)


def _busy(arena: Arena, receiver: Receiver, seconds: float) -> Lags:
    def load(contestant: Contestant, changes: Changes) -> int:
        return stream(contestant, changes, PER_SECOND, seconds)

    def warm_up(contestant: Contestant, changes: Changes) -> None:
        stream(contestant, changes, PER_SECOND, WARM_UP_SECONDS)

    return _measured(arena, receiver, warm_up, load)


def _measured(
    arena: Arena,
    receiver: Receiver,
    warm_up: Callable[[Contestant, Changes], None],
    load: Callable[[Contestant, Changes], int],
) -> Lags:
    url = ground(arena).database_url
    database.make_ready(url)
    tidy(url)
    receiver.forget()
    with holdfast(ground(arena), arena.logs, settings=LOOPBACK_ALLOWED) as contestant:
        changes = status_changes(UNITS)
        warm_up(contestant, changes)
        server_cpu, since, started = cpu_of(contestant), now(url), time.perf_counter()
        account = Account(arena, lambda: server_cpu() + receiver.cpu_seconds())
        count = load(contestant, changes)
        foreign_percent = account.close(time.perf_counter() - started).foreign_percent
        return Lags(lags_ms(contestant, receiver, since, count, receiver.urls(1)), foreign_percent)


def _finding(figures: dict[str, dict[str, float]], noise: str) -> Finding:
    idle, busy = figures.values()
    targets = [
        Target("from a status change to its receiver, idle, p50", idle["p50_ms"], 10, False, " ms"),
        Target("the same, p99", idle["p99_ms"], 50, False, " ms"),
        Target(f"the same under {PER_SECOND} status changes/s, p99", busy["p99_ms"], 250, False, " ms"),
    ]
    shown = ("p50_ms", "p99_ms", "max_ms")
    rows = [
        [name, f"{figure['deliveries']:,}", *(f"{figure[key]:.1f}" for key in shown)]
        for name, figure in figures.items()
    ]
    columns = ["from a status change to its receiver", "deliveries", "p50 ms", "p99 ms", "max ms"]
    promised = [[target.text, target.measured, target.bound, target.unit] for target in targets]
    held: dict[str, Any] = {"lags": figures, "promised": promised}
    title = "From a status change to its receiver"
    return Finding("delivery_latency", title, [Table(columns, rows, noise)], targets, held)
