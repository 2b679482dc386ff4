"""A crowd that wants one unit, and what it costs a visitor who only looks around."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks import workload
from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, Ground, holdfast_on_two
from benchmarks.one_connection import OneConnection
from benchmarks.parts.selling import BEHIND_A_PROXY
from benchmarks.report.findings import Finding, Table
from benchmarks.turn import ATTEMPTS, cpu_of, free_units, noise_caption, quietest
from benchmarks.wrk import Answered, same_load, same_load_meanwhile, voided

CLIENTS = 500
UNITS = 125
WANTED = 7
PROJECT_PAGE, UNIT_PAGE, REFUSED = "project page", "unit page", "hold, refused with 409"
PAGES = {
    PROJECT_PAGE: f"/p/{workload.SLUG}",
    UNIT_PAGE: f"/p/{workload.SLUG}/units/{workload.code(WANTED)}",
}
VISITOR = "holdfast_visitor=benchmark-visitor-who-looks-around"
MOST_PAGES, PAGES_WARMED = 400, 3
ANSWERED_HOLD = re.compile(rb'"message":"POST [^ "]+/hold (\d+)"')

Times = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Run:
    figures: dict[str, dict[str, float]]
    foreign_percent: float


def measure(arena: Arena) -> Finding:
    rounds, seconds, attempts = (1, 3, 1) if arena.quick else (3, 10, ATTEMPTS)
    idle: list[Run] = []
    busy: list[Run] = []
    with holdfast_on_two(_ground(arena), arena.logs, BEHIND_A_PROXY) as contestant:
        for number in range(1, rounds + 1):
            arena.progress(f"storefront: round {number} of {rounds}")
            take_unit(contestant)
            idle.append(quietest(arena, lambda: take_run(arena, contestant, seconds, clients=0), attempts))
            busy.append(quietest(arena, lambda: take_run(arena, contestant, seconds, CLIENTS), attempts))
            arena.progress(f"storefront: p95 {busy[-1].figures[PROJECT_PAGE]['p95_ms']:.1f} ms in the crowd")
    free_units(_ground(arena))
    return _finding(_medians(idle), _medians(busy), noise_caption([*idle, *busy]))


def _ground(arena: Arena) -> Ground:
    return arena.ground("storefront", UNITS)


def take_unit(contestant: Contestant) -> None:
    """Somebody has the unit from here on, for longer than a round lasts; and everything is warm."""
    free_units(contestant.ground)
    with OneConnection(contestant, as_buyer=True) as buyer:
        buyer.request("POST", _hold_path())
    with OneConnection(contestant, cookie=VISITOR) as visitor:
        for path in [*PAGES.values()] * PAGES_WARMED:
            visitor.request("GET", path)


def _hold_path() -> str:
    return f"{workload.offer_path(WANTED)}/hold"


def take_run(arena: Arena, contestant: Contestant, seconds: int, clients: int) -> Run:
    """Idle, the visitor comes first and then one caller who is refused; else all at the same time."""
    started, account = time.perf_counter(), Account(arena, cpu_of(contestant))
    with _nothing_but_conflicts(contestant):
        if clients:
            with same_load_meanwhile(contestant, "POST", _hold_path(), seconds + 2, clients) as answered:
                times = _look_around(contestant, seconds)
            refused = answered[0]
        else:
            times = _look_around(contestant, seconds)
            refused = same_load(contestant, "POST", _hold_path(), seconds, connections=1)
    spent = account.close(time.perf_counter() - started)
    figures = {name: _figure(taken) for name, taken in times.items()}
    return Run({**figures, REFUSED: _refused_figure(refused)}, spent.foreign_percent)


def _look_around(contestant: Contestant, seconds: int) -> Times:
    """One page after the other, by turns; neither more pages nor more time than said."""
    times: Times = {name: [] for name in PAGES}
    until = time.perf_counter() + seconds
    with OneConnection(contestant, cookie=VISITOR) as visitor:
        for _ in range(MOST_PAGES):
            for name, path in PAGES.items():
                times[name].append(1000 * visitor.request("GET", path)[0])
            if time.perf_counter() > until:
                break
    return times


@contextmanager
def _nothing_but_conflicts(contestant: Contestant) -> Iterator[None]:
    """Void unless every hold was refused because the unit is held, and not by a limit."""
    read = contestant.log.stat().st_size
    yield
    statuses = Counter(ANSWERED_HOLD.findall(contestant.log.read_bytes()[read:]))
    if set(statuses) != {b"409"}:
        raise voided(contestant, f"Holds of a unit that is held were answered {dict(statuses)}.")


def _figure(taken: list[float]) -> dict[str, float]:
    p95 = quantiles(taken, n=20, method="inclusive")[18] if len(taken) > 1 else taken[0]
    return {"p50_ms": median(taken), "p95_ms": p95, "count": len(taken)}


def _refused_figure(answered: Answered) -> dict[str, float]:
    return {
        "p50_ms": answered.p50_ms,
        "p95_ms": answered.p95_ms,
        "count": answered.requests,
        "per_second": answered.per_second,
    }


def _medians(runs: list[Run]) -> dict[str, dict[str, float]]:
    return {
        name: {key: median(run.figures[name][key] for run in runs) for key in ("p50_ms", "p95_ms", "count")}
        for name in runs[0].figures
    }


def _finding(idle: dict[str, dict[str, float]], busy: dict[str, dict[str, float]], noise: str) -> Finding:
    columns = [
        "",
        "idle p50 ms",
        "p95 ms",
        "in the crowd p50 ms",
        "p95 ms",
        "p95 to idle",
        "answers in the crowd",
    ]
    rows = [_row(name, idle[name], busy[name]) for name in idle]
    caption = (
        "The refused hold has one connection when idle. Clients ask again as soon as they are answered. "
        + noise
    ).strip()
    title = f"{CLIENTS} clients that want one unit, and a visitor who looks around"
    return Finding("storefront", title, [Table(columns, rows, caption)], [], {"idle": idle, "crowd": busy})


def _row(name: str, idle: dict[str, float], busy: dict[str, float]) -> list[str]:
    return [
        name,
        f"{idle['p50_ms']:.1f}",
        f"{idle['p95_ms']:.1f}",
        f"{busy['p50_ms']:.1f}",
        f"{busy['p95_ms']:.1f}",
        f"{busy['p95_ms'] / idle['p95_ms']:.1f}×",
        f"{busy['count']:,.0f}",
    ]
