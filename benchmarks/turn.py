"""One contestant's turn under the PUT load, with proof that the writes it answered are stored."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks import database
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, Ground
from benchmarks.pgbench import upsert_load
from benchmarks.processes import cpu_seconds
from benchmarks.quietness import NOTICEABLE_PERCENT, busy_seconds, foreign_percent, own_seconds
from benchmarks.wrk import CONNECTIONS, Answered, InvalidRun, put_load

STATUS_CHANGES = 0.2
WARM_UP_SECONDS = 3
ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Turn:
    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_per_1000: float
    postgres_cpu_per_1000: float
    foreign_percent: float
    """The share of the machine that went to others meanwhile."""


def put_turn(arena: Arena, contestant: Contestant, seconds: int) -> Turn:
    def load() -> Answered:
        return put_load(contestant, contestant.ground.units, seconds)

    put_load(contestant, contestant.ground.units, min(seconds, WARM_UP_SECONDS))
    return quietest(
        arena,
        lambda: _measured(arena, contestant.ground, load, lambda: cpu_seconds(contestant.pid), events=True),
    )


def pgbench_turn(arena: Arena, ground: Ground, seconds: int) -> Turn:
    def load() -> Answered:
        return upsert_load(ground.database_url, ground.units, seconds)

    upsert_load(ground.database_url, ground.units, min(seconds, WARM_UP_SECONDS))
    return quietest(arena, lambda: _measured(arena, ground, load, lambda: 0.0, events=False))


def quietest(arena: Arena, take: Callable[[], Turn]) -> Turn:
    """The first turn in which the machine was left alone, or else the one with the least disturbance."""
    turns: list[Turn] = []
    while len(turns) < ATTEMPTS:
        turns.append(take())
        if turns[-1].foreign_percent < NOTICEABLE_PERCENT:
            break
        arena.progress(f"others had {turns[-1].foreign_percent:.0f} % of the machine, so this does not count")
    return min(turns, key=lambda turn: turn.foreign_percent)


def _measured(
    arena: Arena, ground: Ground, load: Callable[[], Answered], server_cpu: Callable[[], float], events: bool
) -> Turn:
    database.make_ready(ground.database_url)
    stored = _settled(ground)
    busy, own = busy_seconds(), own_seconds()
    cpu_before, postgres_before = server_cpu(), arena.postgres_cpu_seconds()
    answered = load()
    cpu, postgres = server_cpu() - cpu_before, arena.postgres_cpu_seconds() - postgres_before
    ours = own_seconds() - own + cpu + postgres
    foreign = foreign_percent(busy_seconds() - busy, ours, answered.seconds)
    _check(answered, stored, _settled(ground), events)
    thousands = answered.requests / 1000
    return Turn(
        answered.requests,
        answered.per_second,
        answered.p50_ms,
        answered.p99_ms,
        server_cpu_per_1000=cpu / thousands,
        postgres_cpu_per_1000=postgres / thousands,
        foreign_percent=foreign,
    )


def _settled(ground: Ground) -> tuple[int, int]:
    """What is stored once the last requests of a load, whose answers nobody waited for, are through."""
    before, now = None, database.changes_stored(ground.database_url)
    while now != before:
        time.sleep(0.2)
        before, now = now, database.changes_stored(ground.database_url)
    return now


def _check(answered: Answered, before: tuple[int, int], after: tuple[int, int], events: bool) -> None:
    changes, written = after[0] - before[0], after[1] - before[1]
    if not answered.requests <= changes <= answered.requests + CONNECTIONS:
        raise InvalidRun(f"{answered.requests} answers, but {changes} changes are stored.")
    if events and abs(written - changes * STATUS_CHANGES) > CONNECTIONS + changes * 0.01:
        raise InvalidRun(f"{changes} changes, but {written} events are stored.")


def medians(turns: list[Turn]) -> dict[str, Any]:
    rows = [asdict(turn) for turn in turns]
    return {name: median(row[name] for row in rows) for name in rows[0] if name != "requests"} | {
        "runs": [round(turn.per_second, 1) for turn in turns]
    }


def noise_caption(turns: Iterable[Turn]) -> str:
    """Said where it matters: numbers of a machine that was not left alone are displayed as such."""
    worst = max(turn.foreign_percent for turn in turns)
    if worst < NOTICEABLE_PERCENT:
        return ""
    return f"The machine was not quiet: in the worst run others had {worst:.0f} % of its processors."
