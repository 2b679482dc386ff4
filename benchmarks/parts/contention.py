"""One unit that everybody wants: what it costs to tell all but one of them that they are too late."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import database, holding, workload
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, holdfast_on_two
from benchmarks.parts.selling import BEHIND_A_PROXY, ground, units_to_hold
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import (
    WARM_UP_SECONDS,
    Turn,
    cpu_of,
    free_units,
    medians,
    noise_caption,
    quietest,
    settled,
    timed,
)
from benchmarks.wrk import Answered, same_load, voided

CONNECTIONS = 200
HOLD, GET = "hold, refused with 409", "GET of the same unit"
BOOKINGS = "select count(*) from booking"
ANSWERED_HOLD = re.compile(rb'"message":"POST [^ "]+/hold (\d+)"')


def measure(arena: Arena) -> Finding:
    rounds, seconds = (1, 3) if arena.quick else (3, 10)
    turns: dict[str, list[Turn]] = defaultdict(list)
    for number in range(1, rounds + 1):
        for name in (HOLD, GET) if number % 2 else (GET, HOLD):
            with holdfast_on_two(ground(arena), arena.logs, BEHIND_A_PROXY) as contestant:
                arena.progress(f"contention: round {number} of {rounds}: {name}")
                turns[name].append(_turn(arena, contestant, name, seconds))
                arena.progress(f"contention: {name}: {turns[name][-1].per_second:,.0f}/s")
    holding.release_all(ground(arena).database_url)
    caption = noise_caption(turn for of_name in turns.values() for turn in of_name)
    return _finding({name: medians(of_name) for name, of_name in turns.items()}, caption)


def _turn(arena: Arena, contestant: Contestant, name: str, seconds: int) -> Turn:
    path = workload.offer_path(units_to_hold(arena).start)
    server_cpu = cpu_of(contestant)

    def hold(for_seconds: int) -> Answered:
        return same_load(contestant, "POST", f"{path}/hold", for_seconds, CONNECTIONS)

    def read() -> Answered:
        return _all_read(contestant, same_load(contestant, "GET", path, seconds, CONNECTIONS))

    def hold_free_unit() -> Turn:
        free_units(contestant.ground)
        with _one_winner(contestant):
            return timed(arena, lambda: hold(seconds), server_cpu)

    # For both: what is read is the unit that all but one were refused.
    hold(min(seconds, WARM_UP_SECONDS))
    return quietest(arena, hold_free_unit if name == HOLD else lambda: timed(arena, read, server_cpu))


def _all_read(contestant: Contestant, answered: Answered) -> Answered:
    if answered.refused:
        raise voided(contestant, f"{answered.refused} reads were refused.")
    return answered


@contextmanager
def _one_winner(contestant: Contestant) -> Iterator[None]:
    """Void unless one booking was made, and everybody else was told 409 and nothing else."""
    bookings = database.value(contestant.ground.database_url, BOOKINGS)
    read = contestant.log.stat().st_size
    yield
    settled(contestant.ground)
    made = database.value(contestant.ground.database_url, BOOKINGS) - bookings
    statuses = Counter(ANSWERED_HOLD.findall(contestant.log.read_bytes()[read:]))
    if made != 1 or statuses.pop(b"201", 0) != 1 or set(statuses) != {b"409"}:
        raise voided(contestant, f"{made} bookings were made, and the other answers were {dict(statuses)}.")


def _finding(figures: dict[str, dict[str, float]], caption: str) -> Finding:
    read = figures[GET]
    columns = [
        "", "answers/s", "to GET", "p50 ms", "p99 ms", "server CPU s per 1000", "PostgreSQL CPU s per 1000",
    ]  # fmt: skip
    rows = [_row(name, figures[name], read) for name in (GET, HOLD)]
    ratio = figures[HOLD]["per_second"] / read["per_second"]
    target = Target(f"409 of a contested unit to GET of it, {CONNECTIONS} connections", ratio, 1, True)
    title = f"One unit, {CONNECTIONS} connections that want it"
    return Finding("contention", title, [Table(columns, rows, caption)], [target], dict(figures))


def _row(name: str, figure: dict[str, float], read: dict[str, float]) -> list[str]:
    return [
        name,
        f"{figure['per_second']:,.0f}",
        f"{figure['per_second'] / read['per_second']:.2f}×",
        f"{figure['p50_ms']:.1f}",
        f"{figure['p99_ms']:.1f}",
        f"{figure['server_cpu_per_1000']:.3f}",
        f"{figure['postgres_cpu_per_1000']:.3f}",
    ]
