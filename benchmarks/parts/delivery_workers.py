"""The same backlog sent by one worker process and by two."""

from collections import defaultdict
from typing import Any

from benchmarks.arena import Arena
from benchmarks.delivering_drain import COLUMNS, ENDPOINTS, Drained, medians, row
from benchmarks.delivering_receiver import receiving
from benchmarks.parts.deliveries import UNITS, drained
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import noise_caption, quietest

ONE, TWO = "Holdfast, 1 worker process", "Holdfast, 2 worker processes"


def measure(arena: Arena) -> Finding:
    rounds, units = (1, 500) if arena.quick else (5, UNITS)
    runs: dict[str, list[Drained]] = defaultdict(list)
    with receiving(arena.logs, ENDPOINTS) as receiver:
        for number in range(1, rounds + 1):
            for name, processes in _from({ONE: 1, TWO: 2}, number):
                arena.progress(f"delivery_workers: round {number} of {rounds}: {name}")

                def take(processes: int = processes) -> Drained:
                    return drained(arena, receiver, units, processes)

                runs[name].append(quietest(arena, take))
                arena.progress(f"delivery_workers: {runs[name][-1].per_second:,.0f}/s")
    caption = noise_caption(run for of_name in runs.values() for run in of_name)
    return _finding({name: medians(runs[name]) for name in (ONE, TWO)}, caption)


def _from(entrants: dict[str, int], number: int) -> list[tuple[str, int]]:
    """Another one begins each round."""
    return list(entrants.items())[:: 1 if number % 2 else -1]


def _finding(figures: dict[str, dict[str, Any]], noise: str) -> Finding:
    ratio = figures[TWO]["per_second"] / figures[ONE]["per_second"]
    caption = f"The receiver and PostgreSQL are on the same cores. {noise}".strip()
    table = Table(COLUMNS, [row(name, figure) for name, figure in figures.items()], caption)
    target = Target("deliveries by two worker processes to one", ratio, 1.2, True)
    return Finding("delivery_workers", "Deliveries by two workers", [table], [target], figures)
