"""Healthy endpoints alone, and beside one that never answers and one that refuses every connection."""

import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks import database
from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, holdfast
from benchmarks.delivering import LOOPBACK_ALLOWED, add_endpoints, forget_endpoints, lag_figure, tidy
from benchmarks.delivering_receiver import Receiver, receiving
from benchmarks.delivering_stream import lags_ms, now, status_changes, stream
from benchmarks.parts.delivery_latency import UNITS, ground
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import cpu_of, noise_caption, quietest
from benchmarks.wrk import InvalidRun
from holdfast.storage.delivery_queue import FAILING_LANE_CAP

ENDPOINTS = 50
PER_SECOND = 20
"""Status changes, each of which goes to all endpoints."""
# After these the endpoint that hangs has as many attempts in flight as it may have.
WARM_UP_SECONDS = 3
ALONE, BESIDE = f"{ENDPOINTS} healthy", f"{ENDPOINTS} healthy, 1 hung, 1 refusing"

HANGING = "select count(*) from in_flight join endpoint on endpoint.id = endpoint_id where url = $1"
REFUSED = "select count(*) from attempt where url = $1 and ended_at >= $2 and cause is not null"


@dataclass(frozen=True, slots=True)
class Run:
    figure: dict[str, float]
    foreign_percent: float


def measure(arena: Arena) -> Finding:
    rounds, seconds = (1, 4) if arena.quick else (5, 15)
    runs: dict[str, list[Run]] = defaultdict(list)
    with receiving(arena.logs, ENDPOINTS) as receiver:
        for number in range(1, rounds + 1):
            for name in (ALONE, BESIDE)[:: 1 if number % 2 else -1]:
                arena.progress(f"isolation: round {number} of {rounds}: {name}")

                def take(name: str = name) -> Run:
                    return _run(arena, receiver, name == BESIDE, seconds)

                runs[name].append(quietest(arena, take))
                arena.progress(f"isolation: p99 {runs[name][-1].figure['p99_ms']:.1f} ms")
        forget_endpoints(ground(arena).database_url)
    caption = noise_caption(run for of_name in runs.values() for run in of_name)
    return _finding({name: _medians(runs[name]) for name in (ALONE, BESIDE)}, caption)


def _run(arena: Arena, receiver: Receiver, with_sick: bool, seconds: float) -> Run:
    url, healthy = ground(arena).database_url, receiver.urls(ENDPOINTS)
    sick = [receiver.hanging_url, receiver.refusing_url] if with_sick else []
    forget_endpoints(url)
    add_endpoints(url, [*healthy, *sick])
    database.make_ready(url)
    tidy(url)
    receiver.forget()
    with holdfast(ground(arena), arena.logs, settings=LOOPBACK_ALLOWED) as contestant:
        changes = status_changes(UNITS)
        stream(contestant, changes, PER_SECOND, WARM_UP_SECONDS)
        server_cpu, since, started = cpu_of(contestant), now(url), time.perf_counter()
        account = Account(arena, lambda: server_cpu() + receiver.cpu_seconds())
        count = stream(contestant, changes, PER_SECOND, seconds)
        foreign_percent = account.close(time.perf_counter() - started).foreign_percent
        if with_sick:
            _prove_sick(contestant, receiver, since, count)
        lags = lags_ms(contestant, receiver, since, count, healthy)
        return Run(lag_figure(lags), foreign_percent)


def _prove_sick(contestant: Contestant, receiver: Receiver, since: Any, count: int) -> None:
    """Void unless the one held all that a failing one may, and the other refused as often as it was told."""
    url = contestant.ground.database_url
    hanging = database.value(url, HANGING, receiver.hanging_url)
    refused = database.value(url, REFUSED, receiver.refusing_url, since)
    if hanging < FAILING_LANE_CAP or refused < count * 0.9:
        raise InvalidRun(f"Only {hanging} attempts hung and {refused} of {count} were refused.")


def _medians(runs: list[Run]) -> dict[str, Any]:
    figure: dict[str, Any] = {name: median(run.figure[name] for run in runs) for name in runs[0].figure}
    return figure | {"runs": [round(run.figure["p99_ms"], 2) for run in runs]}


def _finding(figures: dict[str, dict[str, Any]], noise: str) -> Finding:
    ratio = figures[BESIDE]["p99_ms"] / figures[ALONE]["p99_ms"]
    target = Target("p99 of healthy endpoints beside a hung and a refusing one to alone", ratio, 1.2, False)
    columns = ["from a status change to healthy receivers", "deliveries a run", "p50 ms", "p99 ms", "max ms"]
    rows = [
        [name, f"{figure['deliveries']:,}", *(f"{figure[key]:.1f}" for key in ("p50_ms", "p99_ms", "max_ms"))]
        for name, figure in figures.items()
    ]
    caption = f"{PER_SECOND} status changes a second, each for every endpoint. {noise}".strip()
    title = "Healthy endpoints beside sick ones"
    return Finding("isolation", title, [Table(columns, rows, caption)], [target], figures)
