"""This checkout and another one, in turns: PUT, bulk PUT, and a page while a crowd wants one unit."""

import os
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from statistics import median

from benchmarks.arena import Arena
from benchmarks.contestants import HOLDFAST_COMMAND, add_project, holdfast
from benchmarks.parts import bulk, storefront
from benchmarks.parts.put import UNITS
from benchmarks.parts.selling import BEHIND_A_PROXY
from benchmarks.processes import DidNotStart
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Disturbed, medians, noise_caption, put_turn

NOW, BEFORE, WITH_IDS = "this checkout", "the checkout before", "this checkout, new X-Request-Id each time"
GROUNDS = {NOW: "holdfast", BEFORE: "before"}
BULK_UNITS = 20_000
VARIABLE = "BENCH_BEFORE"
BULK, PAGE = "bulk_units_per_second", "page_p95_ms"

Figures = dict[str, float]


def measure(arena: Arena) -> Finding:
    count, seconds = (1, 3) if arena.quick else (5, 8)
    programs = {NOW: HOLDFAST_COMMAND, BEFORE: _program_before()}
    rounds: list[dict[str, Figures]] = []
    disturbed: list[Disturbed] = []
    for number in range(1, count + 1):
        rounds.append({})
        for name in (NOW, BEFORE) if number % 2 else (BEFORE, NOW):
            program, ground_name = programs[name], GROUNDS[name]
            arena.progress(f"before: round {number} of {count}: {name}")
            ground = arena.ground(ground_name, UNITS, program)
            with holdfast(ground, arena.logs, processes=2, program=program) as contestant:
                # First, on databases alike: this checkout has two loads of PUT, the other one.
                slug = f"bulk-{number}"
                add_project(ground.database_url, slug, program)
                passes = bulk.take_passes(arena, contestant, slug, bulk.NDJSON, BULK_UNITS)
                loads = {NOW: (NOW, WITH_IDS), BEFORE: (BEFORE,)}[name]
                turns = {
                    of: put_turn(arena, contestant, seconds, new_ids=of == WITH_IDS)
                    for of in (loads if number % 2 else reversed(loads))
                }
            shop = arena.ground(ground_name, storefront.UNITS, program)
            with holdfast(shop, arena.logs, 2, BEHIND_A_PROXY, program) as contestant:
                storefront.take_unit(contestant)
                crowd = storefront.take_run(arena, contestant, seconds, storefront.CLIENTS)
            rounds[-1] |= {of: medians([turn]) for of, turn in turns.items()}
            written = [one.seconds for one in passes if one.outcome != "unchanged"]
            rounds[-1][name][BULK] = len(written) * BULK_UNITS / sum(written)
            rounds[-1][name][PAGE] = crowd.figures[storefront.PROJECT_PAGE]["p95_ms"]
            disturbed += [*turns.values(), *passes, crowd]
    return _finding(rounds, noise_caption(disturbed))


def _program_before() -> str:
    program = Path(os.environ.get(VARIABLE, "")) / ".venv" / "bin" / "holdfast"
    if not program.is_file():
        raise DidNotStart(f"Name another checkout in {VARIABLE}, one in which `make setup` was run.")
    return str(program)


def _finding(rounds: list[dict[str, Figures]], caption: str) -> Finding:
    """Ratios are those within a round, whose turns are close in time; of the rounds, the median."""

    def ratio(of: Callable[[Figures], float], name: str = NOW, to: str = BEFORE) -> float:
        return median(of(one[name]) / of(one[to]) for one in rounds)

    crowd = f"project page, p95, while {storefront.CLIENTS} clients want one unit, to the checkout before"
    targets = [
        Target("CPU of server and PostgreSQL per PUT to the checkout before", ratio(_cpu), 1.5, False),
        Target(
            "PUT with a new X-Request-Id each time to PUT without", ratio(_rate, WITH_IDS, NOW), 0.95, True
        ),
        Target("bulk PUT to the checkout before", ratio(itemgetter(BULK)), 0.85, True),
        Target(crowd, ratio(itemgetter(PAGE)), 1.5, False),
    ]
    rows = [
        [
            name,
            f"{median(_rate(one[name]) for one in rounds):,.0f}",
            f"{ratio(_rate, name):.2f}×",
            f"{median(_cpu(one[name]) for one in rounds):.3f}",
            f"{ratio(_cpu, name):.2f}×",
            *(
                f"{median(one[name][figure] for one in rounds):,.0f}" if figure in rounds[0][name] else "–"
                for figure in (BULK, PAGE)
            ),
        ]
        for name in rounds[0]
    ]
    columns = ["", "PUT/s", "to before", "CPU s per 1000", "to before", "bulk units/s", "page p95 ms"]
    title = "Beside another checkout"
    return Finding("before", title, [Table(columns, rows, caption)], targets, {"rounds": rounds})


def _rate(figures: Figures) -> float:
    return figures["per_second"]


def _cpu(figures: Figures) -> float:
    return figures["server_cpu_per_1000"] + figures["postgres_cpu_per_1000"]
