"""A backlog sent by one worker with everything recorded, beside a bare loop that records nothing."""

from collections import defaultdict
from typing import Any

from benchmarks.arena import Arena
from benchmarks.delivering_drain import (
    COLUMNS,
    ENDPOINTS,
    Drained,
    drain,
    exported,
    medians,
    post_bare,
    prepare,
    row,
)
from benchmarks.delivering_receiver import Receiver, receiving
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import noise_caption, quietest
from holdfast.webhooks.dispatcher import AT_ONCE

UNITS = 3_000
HOLDFAST = "Holdfast, 1 worker process"
BARE = "bare aiohttp loop"
# The last is what the worker has in flight at most; aiohttp is given the best of them.
IN_FLIGHT = (16, 64, AT_ONCE)


def measure(arena: Arena) -> Finding:
    rounds, units = (1, 500) if arena.quick else (3, UNITS)
    runs: dict[str, list[Drained]] = defaultdict(list)
    with receiving(arena.logs, ENDPOINTS) as receiver:
        for number in range(1, rounds + 1):
            arena.progress(f"deliveries: round {number} of {rounds}: {HOLDFAST}")
            runs[HOLDFAST].append(quietest(arena, lambda: drained(arena, receiver, units)))
            arena.progress(f"deliveries: {runs[HOLDFAST][-1].per_second:,.0f}/s")
            _run_bare(arena, receiver, units, runs, f"deliveries: round {number} of {rounds}")
    caption = noise_caption(run for of_name in runs.values() for run in of_name)
    return _finding({name: medians(of_name) for name, of_name in runs.items()}, units, caption)


def drained(arena: Arena, receiver: Receiver, units: int, processes: int = 1) -> Drained:
    backlog = prepare(arena.ground("deliveries", UNITS).database_url, receiver, units)
    return drain(arena, receiver, backlog, processes)


def _run_bare(
    arena: Arena, receiver: Receiver, units: int, runs: dict[str, list[Drained]], stage: str
) -> None:
    backlog = prepare(arena.ground("deliveries", UNITS).database_url, receiver, units)
    lines = exported(arena, backlog)
    for in_flight in IN_FLIGHT:
        name = _bare(in_flight)
        arena.progress(f"{stage}: {name}")

        def take(in_flight: int = in_flight) -> Drained:
            return post_bare(arena, receiver, lines, backlog.count, in_flight)

        runs[name].append(quietest(arena, take))
        arena.progress(f"deliveries: {runs[name][-1].per_second:,.0f}/s")


def _bare(in_flight: int) -> str:
    return f"{BARE}, {in_flight} in flight"


def _finding(figures: dict[str, dict[str, Any]], units: int, noise: str) -> Finding:
    best = max((_bare(number) for number in IN_FLIGHT), key=lambda name: figures[name]["per_second"])
    ours = figures[HOLDFAST]["per_second"]
    text = f"deliveries to the {best}, which is its best"
    target = Target(text, ours / figures[best]["per_second"], 0.6, True)
    rows = [row(name, figure, HOLDFAST.__eq__) for name, figure in figures.items()]
    caption = (
        f"{units * ENDPOINTS:,} to {ENDPOINTS} endpoints; the worker has at most {AT_ONCE} in flight. "
        f"Sender, receiver and PostgreSQL share the machine's cores. {noise}"
    )
    title = "Deliveries with everything recorded"
    return Finding("deliveries", title, [Table(COLUMNS, rows, caption.strip())], [target], figures)
