"""One contestant's turn under a load of writes, with proof that the writes it answered are stored."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol, TypeVar

from benchmarks import database, holding
from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, Ground
from benchmarks.pgbench import upsert_load
from benchmarks.processes import cpu_seconds
from benchmarks.quietness import NOTICEABLE_PERCENT
from benchmarks.wrk import CONNECTIONS, Answered, InvalidRun, hold_load, put_load

STATUS_CHANGES = 0.2
WARM_UP_SECONDS = 3
ATTEMPTS = 4


class Disturbed(Protocol):
    @property
    def foreign_percent(self) -> float: ...


Taken = TypeVar("Taken", bound=Disturbed)


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


def put_turn(
    arena: Arena, contestant: Contestant, seconds: int, units: int | None = None, *, new_ids: bool = False
) -> Turn:
    """Over all units of the ground, or the first so many of them; see ``put_load`` for ``new_ids``."""
    count = units or contestant.ground.units

    def load() -> Answered:
        return put_load(contestant, count, seconds, new_ids=new_ids)

    def take() -> Turn:
        return proved(arena, contestant.ground, load, cpu_of(contestant), STATUS_CHANGES)

    put_load(contestant, count, min(seconds, WARM_UP_SECONDS))
    return quietest(arena, take)


def hold_turn(arena: Arena, contestant: Contestant, seconds: int, units: range) -> Turn:
    """Each hold takes another one of the units, which are all free before the turn."""

    def load() -> Answered:
        return hold_load(contestant, units, seconds)

    def take() -> Turn:
        free_units(contestant.ground)
        return proved(arena, contestant.ground, load, cpu_of(contestant), status_changes=1)

    free_units(contestant.ground)
    hold_load(contestant, units, min(seconds, WARM_UP_SECONDS))
    return quietest(arena, take)


def pgbench_turn(arena: Arena, ground: Ground, seconds: int) -> Turn:
    def load() -> Answered:
        return upsert_load(ground.database_url, ground.units, seconds)

    upsert_load(ground.database_url, ground.units, min(seconds, WARM_UP_SECONDS))
    return quietest(arena, lambda: proved(arena, ground, load, lambda: 0.0, status_changes=None))


def quietest(arena: Arena, take: Callable[[], Taken], attempts: int = ATTEMPTS) -> Taken:
    """The first turn in which the machine was left alone, or else the one with the least disturbance."""
    turns: list[Taken] = []
    while len(turns) < attempts:
        turns.append(take())
        if turns[-1].foreign_percent < NOTICEABLE_PERCENT:
            break
        arena.progress(f"others had {turns[-1].foreign_percent:.0f} % of the machine, so this does not count")
    return min(turns, key=lambda turn: turn.foreign_percent)


def timed(arena: Arena, load: Callable[[], Answered], server_cpu: Callable[[], float]) -> Turn:
    account = Account(arena, server_cpu)
    answered = load()
    spent = account.close(answered.seconds)
    thousands = answered.requests / 1000
    return Turn(
        answered.requests,
        answered.per_second,
        answered.p50_ms,
        answered.p99_ms,
        server_cpu_per_1000=spent.server_cpu_seconds / thousands,
        postgres_cpu_per_1000=spent.postgres_cpu_seconds / thousands,
        foreign_percent=spent.foreign_percent,
    )


def proved(
    arena: Arena,
    ground: Ground,
    load: Callable[[], Answered],
    server_cpu: Callable[[], float],
    status_changes: float | None,
) -> Turn:
    """``status_changes``: the share of the requests that tell an event; None where none is told at all."""
    settled(ground)
    database.make_ready(ground.database_url)
    stored = settled(ground)
    turn = timed(arena, load, server_cpu)
    _check(turn.requests, stored, settled(ground), status_changes)
    return turn


def settled(ground: Ground) -> tuple[int, int]:
    """What is stored once the last requests of a load, whose answers nobody waited for, are through."""
    before, now = None, database.changes_stored(ground.database_url)
    while now != before:
        time.sleep(0.2)
        before, now = now, database.changes_stored(ground.database_url)
    return now


def free_units(ground: Ground) -> None:
    settled(ground)
    holding.release_all(ground.database_url)
    holding.wait_until_numbered(ground.database_url)


def cpu_of(contestant: Contestant) -> Callable[[], float]:
    return lambda: cpu_seconds(contestant.pid)


def _check(
    requests: int, before: tuple[int, int], after: tuple[int, int], status_changes: float | None
) -> None:
    changes, written = after[0] - before[0], after[1] - before[1]
    if not requests <= changes <= requests + CONNECTIONS:
        raise InvalidRun(f"{requests} answers, but {changes} changes are stored.")
    expected = None if status_changes is None else changes * status_changes
    if expected is not None and abs(written - expected) > _tolerance(status_changes, changes):
        raise InvalidRun(f"{changes} changes, but {written} events are stored.")


def _tolerance(status_changes: float | None, changes: int) -> float:
    """Where every request changes the status, every one has its event."""
    return 0 if status_changes == 1 else CONNECTIONS + changes * 0.01


def medians(turns: list[Turn]) -> dict[str, Any]:
    rows = [asdict(turn) for turn in turns]
    return {name: median(row[name] for row in rows) for name in rows[0] if name != "requests"} | {
        "runs": [round(turn.per_second, 1) for turn in turns]
    }


def noise_caption(turns: Iterable[Disturbed]) -> str:
    """Said where it matters: numbers of a machine that was not left alone are displayed as such."""
    worst = max(turn.foreign_percent for turn in turns)
    if worst < NOTICEABLE_PERCENT:
        return ""
    return f"The machine was not quiet: in the worst run others had {worst:.0f} % of its processors."
