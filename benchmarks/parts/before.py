"""This checkout and another one, in turns: PUT, bulk PUT, and a page while a crowd wants one unit."""

import os
from collections import defaultdict
from itertools import chain
from pathlib import Path
from statistics import median

from benchmarks.arena import Arena
from benchmarks.contestants import HOLDFAST_COMMAND, add_project, holdfast
from benchmarks.parts import bulk, storefront
from benchmarks.parts.put import UNITS
from benchmarks.parts.selling import BEHIND_A_PROXY
from benchmarks.processes import DidNotStart
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Turn, medians, noise_caption, put_turn

NOW, BEFORE, WITH_IDS = "this checkout", "the checkout before", "this checkout, new X-Request-Id each time"
GROUNDS = {NOW: "holdfast", BEFORE: "before"}
BULK_UNITS = 20_000
VARIABLE = "BENCH_BEFORE"


def measure(arena: Arena) -> Finding:
    rounds, seconds = (1, 3) if arena.quick else (5, 8)
    programs = {NOW: HOLDFAST_COMMAND, BEFORE: _program_before()}
    turns: dict[str, list[Turn]] = defaultdict(list)
    bulk_seconds: dict[str, list[float]] = defaultdict(list)
    crowds: dict[str, list[storefront.Run]] = defaultdict(list)
    for number in range(1, rounds + 1):
        for name in (NOW, BEFORE) if number % 2 else (BEFORE, NOW):
            program, ground_name = programs[name], GROUNDS[name]
            arena.progress(f"before: round {number} of {rounds}: {name}")
            ground = arena.ground(ground_name, UNITS, program)
            with holdfast(ground, arena.logs, processes=2, program=program) as contestant:
                turns[name].append(put_turn(arena, contestant, seconds))
                if name == NOW:
                    turns[WITH_IDS].append(put_turn(arena, contestant, seconds, new_ids=True))
                slug = f"bulk-{number}"
                add_project(ground.database_url, slug, program)
                passes = bulk.take_passes(arena, contestant, slug, bulk.NDJSON, BULK_UNITS)
                bulk_seconds[name].append(sum(one.seconds for one in passes if one.outcome != "unchanged"))
            shop = arena.ground(ground_name, storefront.UNITS, program)
            with holdfast(shop, arena.logs, 2, BEHIND_A_PROXY, program) as contestant:
                storefront.take_unit(contestant)
                crowds[name].append(storefront.take_run(arena, contestant, seconds, storefront.CLIENTS))
    caption = noise_caption([*chain(*turns.values()), *chain(*crowds.values())])
    figures = {name: medians(of_name) for name, of_name in turns.items()}
    for name in programs:
        figures[name]["bulk_units_per_second"] = 2 * BULK_UNITS / median(bulk_seconds[name])
        figures[name]["page_p95_ms"] = median(
            run.figures[storefront.PROJECT_PAGE]["p95_ms"] for run in crowds[name]
        )
    return _finding(figures, caption)


def _program_before() -> str:
    program = Path(os.environ.get(VARIABLE, "")) / ".venv" / "bin" / "holdfast"
    if not program.is_file():
        raise DidNotStart(f"Name another checkout in {VARIABLE}, one in which `make setup` was run.")
    return str(program)


def _finding(figures: dict[str, dict[str, float]], caption: str) -> Finding:
    now, before = figures[NOW], figures[BEFORE]
    targets = [
        Target(
            "CPU of server and PostgreSQL per PUT to the checkout before",
            _cpu(now) / _cpu(before),
            1.5,
            False,
        ),
        Target(
            "PUT with a new X-Request-Id each time to PUT without",
            figures[WITH_IDS]["per_second"] / now["per_second"],
            0.95,
            True,
        ),
        Target(
            "bulk PUT to the checkout before",
            now["bulk_units_per_second"] / before["bulk_units_per_second"],
            0.85,
            True,
        ),
        Target(
            f"project page, p95, while {storefront.CLIENTS} clients want one unit, to the checkout before",
            now["page_p95_ms"] / before["page_p95_ms"],
            1.5,
            False,
        ),
    ]
    rows = [
        [
            name,
            f"{figure['per_second']:,.0f}",
            f"{figure['per_second'] / before['per_second']:.2f}×",
            f"{_cpu(figure):.3f}",
            f"{_cpu(figure) / _cpu(before):.2f}×",
            f"{figure['bulk_units_per_second']:,.0f}" if "bulk_units_per_second" in figure else "–",
            f"{figure['page_p95_ms']:,.0f}" if "page_p95_ms" in figure else "–",
        ]
        for name, figure in figures.items()
    ]
    columns = [
        "",
        "PUT/s",
        "to before",
        "CPU s per 1000",
        "to before",
        "bulk units/s",
        "page p95 ms",
    ]
    title = "Beside another checkout"
    return Finding("before", title, [Table(columns, rows, caption)], targets, dict(figures))


def _cpu(figure: dict[str, float]) -> float:
    return figure["server_cpu_per_1000"] + figure["postgres_cpu_per_1000"]
