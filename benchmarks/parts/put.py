"""PUT under 48 connections: Holdfast, its peers and the bare database, in turns."""

from collections import defaultdict

from benchmarks.arena import Arena
from benchmarks.contestants import Start, drf, fastapi_orm, holdfast, holdfast_on_two
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Turn, medians, noise_caption, pgbench_turn, put_turn

UNITS = 10_000
HOLDFAST, PGBENCH = "Holdfast, 2 processes", "pgbench, the upsert alone"
DRF, FASTAPI = "Django REST framework, 2 processes", "FastAPI + SQLAlchemy, 2 processes"
# Each is judged by the setting that serves it best on two cores; one process is displayed as well.
ENTRANTS: list[tuple[str, Start]] = [
    ("holdfast", holdfast_on_two),
    ("fastapi_orm", fastapi_orm(2)),
    ("drf", drf(2)),
    ("holdfast", holdfast),
    ("fastapi_orm", fastapi_orm(1)),
    ("drf", drf(1)),
]


def measure(arena: Arena) -> Finding:
    rounds, seconds = (1, 3) if arena.quick else (3, 10)
    turns: dict[str, list[Turn]] = defaultdict(list)
    for number in range(1, rounds + 1):
        for name, start in _from(ENTRANTS, number):
            with start(arena.ground(name, UNITS), arena.logs) as contestant:
                arena.progress(f"put: round {number} of {rounds}: {contestant.name}")
                turns[contestant.name].append(put_turn(arena, contestant, seconds))
                arena.progress(f"put: {contestant.name}: {turns[contestant.name][-1].per_second:,.0f}/s")
        arena.progress(f"put: round {number} of {rounds}: pgbench")
        turns[PGBENCH].append(pgbench_turn(arena, arena.ground("holdfast", UNITS), seconds))
    caption = noise_caption(turn for of_name in turns.values() for turn in of_name)
    return _finding({name: medians(of_name) for name, of_name in turns.items()}, caption)


def _from(entrants: list[tuple[str, Start]], number: int) -> list[tuple[str, Start]]:
    """Another one begins each round, so that none always follows the same neighbour."""
    first = number % len(entrants)
    return entrants[first:] + entrants[:first]


def _finding(figures: dict[str, dict[str, float]], caption: str) -> Finding:
    ours = figures[HOLDFAST]["per_second"]
    targets = [
        Target("PUT throughput to Django REST framework", ours / figures[DRF]["per_second"], 18, True),
        Target("PUT throughput to FastAPI + SQLAlchemy", ours / figures[FASTAPI]["per_second"], 11, True),
        Target("PUT throughput to pgbench", ours / figures[PGBENCH]["per_second"], 0.5, True),
    ]
    columns = [
        "", "PUT/s", "Holdfast is", "p50 ms", "p99 ms", "server CPU s per 1000", "PostgreSQL CPU s per 1000",
    ]  # fmt: skip
    ranked = sorted(figures.items(), key=lambda item: -item[1]["per_second"])
    rows = [_row(name, figure, ours) for name, figure in ranked]
    title = f"PUT with 48 connections over {UNITS:,} units"
    return Finding("put", title, [Table(columns, rows, caption)], targets, dict(figures))


def _row(name: str, figure: dict[str, float], ours: float) -> list[str]:
    alone = name == PGBENCH
    return [
        name,
        f"{figure['per_second']:,.0f}",
        f"{ours / figure['per_second']:.2f}×",
        "–" if alone else f"{figure['p50_ms']:.1f}",
        "–" if alone else f"{figure['p99_ms']:.1f}",
        "–" if alone else f"{figure['server_cpu_per_1000']:.2f}",
        f"{figure['postgres_cpu_per_1000']:.2f}",
    ]
