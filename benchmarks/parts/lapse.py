"""Holds that end: how late they are released, steadily, all at the same moment, and one by one."""

from collections.abc import Callable
from dataclasses import asdict
from statistics import median, quantiles
from typing import Any

from benchmarks import holding
from benchmarks.arena import Arena
from benchmarks.contestants import holdfast_on_two
from benchmarks.parts.lapse_runs import (
    AtOnce,
    Lags,
    at_once,
    at_once_under_puts,
    single_holds,
    steadily,
)
from benchmarks.parts.selling import ground, units_to_hold
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Taken, noise_caption, quietest

# Each run takes a minute or two with its preparation.
ATTEMPTS = 2
HOLDS_OF_A_SECOND = {"HOLDFAST_HOLD_SECONDS": "1"}


def measure(arena: Arena) -> Finding:
    count, spread, singles, before = (10_000, 10, 10, 3) if arena.quick else (100_000, 60, 50, 10)
    units = units_to_hold(arena)[:count]

    def taken(name: str, run: Callable[[], Taken]) -> Taken:
        arena.progress(f"lapse: {name}")
        return quietest(arena, run, ATTEMPTS)

    with holdfast_on_two(ground(arena), arena.logs) as ours:
        steady = taken("steadily", lambda: steadily(arena, ours, units, spread))
        idle = taken("at once", lambda: at_once(arena, ours, units))
        busy = taken("at once under PUT", lambda: at_once_under_puts(arena, ours, units, before))
    with holdfast_on_two(ground(arena), arena.logs, HOLDS_OF_A_SECOND) as ours:
        single = taken("one by one", lambda: single_holds(arena, ours, units[:singles]))
    holding.release_all(ground(arena).database_url)
    caption = noise_caption([steady, idle, busy, single])
    names = f"{count:,} holds, ends over {spread} s", f"{singles} holds, one by one"
    lags = dict(zip(names, map(_lag_figure, (steady, single)), strict=True))
    return _finding(count, lags, {"idle": idle, "under PUT with 48 connections": busy}, caption)


def _lag_figure(lags: Lags) -> dict[str, float]:
    milliseconds = [1000 * seconds for seconds in lags.seconds]
    return {
        "releases": len(milliseconds),
        "p50_ms": median(milliseconds),
        "p99_ms": quantiles(milliseconds, n=100, method="inclusive")[98],
        "max_ms": max(milliseconds),
    }


def _finding(
    count: int, lags: dict[str, dict[str, float]], at_once: dict[str, AtOnce], caption: str
) -> Finding:
    (steady, single), (idle, busy) = lags.values(), at_once.values()
    put_kept = (busy.put_meanwhile or 0) / (busy.put_before or 1)
    singles = f"single hold released after its end, the latest of {single['releases']}"
    targets = [
        Target(f"hold released after its end, {count:,} live, p99", steady["p99_ms"] / 1000, 1, False, " s"),
        Target(f"{count:,} holds that end at once, released, idle", idle.seconds, 10, False, " s"),
        Target("the same under PUT with 48 connections", busy.seconds, 30, False, " s"),
        Target("PUT throughput meanwhile to before", put_kept, 0.5, True),
        Target(singles, single["max_ms"], 50, False, " ms"),
    ]
    tables = [_lag_table(lags), _at_once_table(count, at_once, caption)]
    figures: dict[str, Any] = {
        "lags": lags,
        "at_once": {name: asdict(run) for name, run in at_once.items()},
        "promised": [[target.text, target.measured, target.bound, target.unit] for target in targets],
    }
    return Finding("lapse", "Holds that lapse", tables, targets, figures)


def _lag_table(lags: dict[str, dict[str, float]]) -> Table:
    columns = ["from the end of a hold to its release", "p50 ms", "p99 ms", "max ms"]
    shown = ("p50_ms", "p99_ms", "max_ms")
    return Table(columns, [[name, *(f"{one[key]:.1f}" for key in shown)] for name, one in lags.items()])


def _at_once_table(count: int, runs: dict[str, AtOnce], caption: str) -> Table:
    columns = [
        f"{count:,} holds that end at once", "all released after s", "releases/s", "PUT/s before",
        "PUT/s meanwhile", "server CPU s per 1000", "PostgreSQL CPU s per 1000",
    ]  # fmt: skip
    rows = [
        [
            name,
            f"{run.seconds:.2f}",
            f"{count / run.seconds:,.0f}",
            *(_or_dash(number, ",.0f") for number in (run.put_before, run.put_meanwhile)),
            *(_or_dash(number, ".3f") for number in (run.server_cpu_per_1000, run.postgres_cpu_per_1000)),
        ]
        for name, run in runs.items()
    ]
    return Table(columns, rows, caption)


def _or_dash(number: float | None, form: str) -> str:
    return "–" if number is None else f"{number:{form}}"
