"""One connection: what all the checks, the event and the log line cost a caller who waits for each answer."""

from contextlib import ExitStack
from itertools import islice
from statistics import median, quantiles

from benchmarks import database, workload
from benchmarks.arena import Arena
from benchmarks.contestants import KEEPING_ALIVE, Start, drf, fastapi_orm, holdfast, plain_asyncpg
from benchmarks.one_connection import OneConnection
from benchmarks.parts.put import UNITS
from benchmarks.report.findings import Finding, Table, Target

HOLDFAST, PLAIN = "Holdfast, 1 process", "plain asyncpg handler"
ENTRANTS: list[tuple[str, Start]] = [
    ("holdfast", holdfast),
    ("plain_asyncpg", plain_asyncpg()),
    ("fastapi_orm", fastapi_orm(1)),
    ("drf", drf(1, KEEPING_ALIVE)),
]
BLOCK = 50


def measure(arena: Arena) -> Finding:
    blocks = 4 if arena.quick else 40
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        loads = []
        for name, start in ENTRANTS:
            contestant = stack.enter_context(start(arena.ground(name, UNITS), arena.logs))
            database.make_ready(contestant.ground.database_url)
            loads.append((contestant, workload.changes(UNITS, seed=1)))
            times[contestant.name] = []
        # The first block warms up and is thrown away.
        for block in range(blocks + 1):
            arena.progress(f"latency: {block * BLOCK} of {blocks * BLOCK} requests each")
            for contestant, changes in loads:
                # A connection for each block: while others have their turn it would be closed as idle.
                with OneConnection(contestant) as client:
                    taken = [
                        client.request("PUT", workload.unit_path(workload.SLUG, number), body)[0]
                        for number, body in islice(changes, BLOCK)
                    ]
                times[contestant.name] += taken if block else []
    return _finding(times)


def _finding(times: dict[str, list[float]]) -> Finding:
    figures = {name: _figure(taken) for name, taken in times.items()}
    ratio = figures[HOLDFAST]["p50_ms"] / figures[PLAIN]["p50_ms"]
    rows = [
        [name, *(f"{figure[key]:.2f}" for key in ("p50_ms", "p90_ms", "p99_ms")),
         f"{figure['p50_ms'] / figures[PLAIN]['p50_ms']:.2f}×"]
        for name, figure in sorted(figures.items(), key=lambda item: item[1]["p50_ms"])
    ]  # fmt: skip
    table = Table(["", "p50 ms", "p90 ms", "p99 ms", "p50 to the plain handler's"], rows)
    target = Target("p50 on one connection to a plain asyncpg handler's", ratio, 1.5, False)
    return Finding("latency", "PUT on one connection", [table], [target], dict(figures))


def _figure(taken: list[float]) -> dict[str, float]:
    hundredths = quantiles(taken, n=100)
    return {
        "p50_ms": median(taken) * 1000,
        "p90_ms": hundredths[89] * 1000,
        "p99_ms": hundredths[98] * 1000,
    }
