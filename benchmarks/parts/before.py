"""This checkout and another one, both running, in short turns: PUT, bulk PUT, a page, a crowd at one unit."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks import workload
from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import HOLDFAST_COMMAND, NOTHING_SET, Contestant, add_project, holdfast
from benchmarks.one_connection import OneConnection
from benchmarks.parts import bulk, storefront
from benchmarks.parts.put import UNITS
from benchmarks.parts.selling import BEHIND_A_PROXY
from benchmarks.processes import DidNotStart
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import STATUS_CHANGES, cpu_of, noise_caption, proved
from benchmarks.wrk import Answered, put_load

NOW, BEFORE = "this checkout", "the checkout before"
GROUNDS = {NOW: "holdfast", BEFORE: "before"}
VARIABLE = "BENCH_BEFORE"
LEAST = 0.95
BULK_UNITS = 4_000
LONE_PUTS, LONE_PAGES = 500, 100
PUT, PUT_WITH_IDS = "PUT, 48 connections", "PUT, 48 connections, new X-Request-Id each time"
LONE_PUT = "PUT, one connection"
PAGE = "project page, one visitor"
REFUSED = f"hold refused, {storefront.CLIENTS} clients want one unit"


@dataclass(frozen=True, slots=True)
class Taken:
    milliseconds: float
    """Of one request, or of a thousand units of a bulk PUT."""
    cpu_seconds: float | None
    """Of server and PostgreSQL, for a thousand."""
    foreign_percent: float


Load = Callable[[Arena, Contestant, int], dict[str, Taken]]
"""Takes the number of the round, 0 to warm up."""
Round = dict[str, dict[str, Taken]]
"""By load and checkout."""


def measure(arena: Arena) -> Finding:
    count, seconds = (2, 1) if arena.quick else (20, 2)
    writes: list[Load] = [
        partial(_put, seconds=seconds, new_ids=False),
        partial(_put, seconds=seconds, new_ids=True),
        _lone_put,
        _bulk,
    ]
    rounds: list[Round] = [{} for _ in range(count)]
    with _both(arena, UNITS, NOTHING_SET) as contestants:
        for name, program in _programs().items():
            for number in range(count + 1):
                add_project(contestants[name].ground.database_url, _bulk_slug(number), program)
        _take_turns(arena, contestants, writes, rounds)
    # One hold lasts through all rounds.
    with _both(arena, storefront.UNITS, BEHIND_A_PROXY | {"HOLDFAST_HOLD_SECONDS": "3600"}) as contestants:
        for contestant in contestants.values():
            storefront.take_unit(contestant)
        _take_turns(arena, contestants, [_page, partial(_crowd, seconds=seconds)], rounds)
    return _finding(rounds)


@contextmanager
def _both(arena: Arena, units: int, settings: Mapping[str, str]) -> Iterator[dict[str, Contestant]]:
    with ExitStack() as stack:
        contestants = {}
        for name, program in _programs().items():
            logs = arena.logs / GROUNDS[name]
            logs.mkdir(exist_ok=True)
            ground = arena.ground(GROUNDS[name], units, program)
            contestants[name] = stack.enter_context(holdfast(ground, logs, 2, settings, program))
        yield contestants


def _programs() -> dict[str, str]:
    program = Path(os.environ.get(VARIABLE, "")) / ".venv" / "bin" / "holdfast"
    if not program.is_file():
        raise DidNotStart(f"Name another checkout in {VARIABLE}, one in which `make setup` was run.")
    return {NOW: HOLDFAST_COMMAND, BEFORE: str(program)}


def _take_turns(
    arena: Arena, contestants: dict[str, Contestant], loads: list[Load], rounds: list[Round]
) -> None:
    """The turns of a load follow each other at once: what disturbs one disturbs the other too."""
    for load in loads:
        for contestant in contestants.values():
            load(arena, contestant, 0)
    for number, taken in enumerate(rounds, start=1):
        for load in loads:
            for name in (NOW, BEFORE) if number % 2 else (BEFORE, NOW):
                arena.progress(f"before: round {number} of {len(rounds)}: {name}")
                for what, figure in load(arena, contestants[name], number).items():
                    taken.setdefault(what, {})[name] = figure


def _put(arena: Arena, contestant: Contestant, _: int, *, seconds: int, new_ids: bool) -> dict[str, Taken]:
    def load() -> Answered:
        return put_load(contestant, UNITS, seconds, new_ids=new_ids)

    turn = proved(arena, contestant.ground, load, cpu_of(contestant), STATUS_CHANGES)
    cpu = turn.server_cpu_per_1000 + turn.postgres_cpu_per_1000
    return {PUT_WITH_IDS if new_ids else PUT: Taken(1000 / turn.per_second, cpu, turn.foreign_percent)}


def _lone_put(arena: Arena, contestant: Contestant, number: int) -> dict[str, Taken]:
    changes = islice(workload.changes(UNITS, seed=number), LONE_PUTS)
    with OneConnection(contestant) as client:
        times = (
            client.request("PUT", workload.unit_path(workload.SLUG, unit), body)[0] for unit, body in changes
        )
        return {LONE_PUT: _one_by_one(arena, contestant, times)}


def _one_by_one(arena: Arena, contestant: Contestant, times: Iterator[float]) -> Taken:
    account = Account(arena, cpu_of(contestant))
    taken = list(times)
    spent = account.close(sum(taken))
    cpu = 1000 * (spent.server_cpu_seconds + spent.postgres_cpu_seconds) / len(taken)
    return Taken(1000 * median(taken), cpu, spent.foreign_percent)


def _bulk(arena: Arena, contestant: Contestant, number: int) -> dict[str, Taken]:
    return {
        f"bulk PUT, units {one.outcome}": Taken(
            1_000_000 / one.per_second,
            one.server_cpu_per_1000 + one.postgres_cpu_per_1000,
            one.foreign_percent,
        )
        for one in bulk.take_passes(arena, contestant, _bulk_slug(number), bulk.NDJSON, BULK_UNITS)
    }


def _bulk_slug(number: int) -> str:
    return f"bulk-{number}"


def _crowd(arena: Arena, contestant: Contestant, _: int, *, seconds: int) -> dict[str, Taken]:
    crowd = storefront.take_run(arena, contestant, seconds, storefront.CLIENTS)
    each = 1000 / crowd.figures[storefront.REFUSED]["per_second"]
    return {REFUSED: Taken(each, None, crowd.foreign_percent)}


def _page(arena: Arena, contestant: Contestant, _: int) -> dict[str, Taken]:
    """Without the crowd, in which its time swings too much to compare."""
    path = storefront.PAGES[storefront.PROJECT_PAGE]
    with OneConnection(contestant, cookie=storefront.VISITOR) as visitor:
        times = (visitor.request("GET", path)[0] for _ in range(LONE_PAGES))
        return {PAGE: _one_by_one(arena, contestant, times)}


def _finding(rounds: list[Round]) -> Finding:
    """Ratios are those within a round; of the rounds, the median."""
    targets = [
        Target(f"{what}: speed to the checkout before", _speed(rounds, what), LEAST, True)
        for what in rounds[0]
    ]
    with_ids = median(one[PUT][NOW].milliseconds / one[PUT_WITH_IDS][NOW].milliseconds for one in rounds)
    targets.append(Target("PUT with a new X-Request-Id each time to PUT without", with_ids, LEAST, True))
    rows = [
        [
            what,
            *(f"{median(one[what][name].milliseconds for one in rounds):.2f}" for name in (BEFORE, NOW)),
            f"{_speed(rounds, what):.2f}×",
            _cpu(rounds, what),
        ]
        for what in rounds[0]
    ]
    columns = ["", "ms before", "ms now", "speed to before", "CPU to before"]
    taken = [figure for one in rounds for of_load in one.values() for figure in of_load.values()]
    caption = f"Of a bulk PUT, the time of 1,000 units. {len(rounds)} rounds. {noise_caption(taken)}".strip()
    stored = [
        {what: {name: asdict(figure) for name, figure in of_load.items()} for what, of_load in one.items()}
        for one in rounds
    ]
    return Finding(
        "before", "Beside another checkout", [Table(columns, rows, caption)], targets, {"rounds": stored}
    )


def _speed(rounds: list[Round], what: str) -> float:
    return median(one[what][BEFORE].milliseconds / one[what][NOW].milliseconds for one in rounds)


def _cpu(rounds: list[Round], what: str) -> str:
    pairs = [(one[what][NOW].cpu_seconds, one[what][BEFORE].cpu_seconds) for one in rounds]
    ratios = [now / before for now, before in pairs if now is not None and before]
    return f"{median(ratios):.2f}×" if ratios else "–"
