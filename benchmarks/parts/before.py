"""PUT on this checkout and on another one, in turns, and with a new request id in each request."""

import os
from collections import defaultdict
from pathlib import Path

from benchmarks.arena import Arena
from benchmarks.contestants import holdfast
from benchmarks.parts.put import UNITS
from benchmarks.processes import DidNotStart
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Turn, medians, noise_caption, put_turn

NOW, BEFORE, WITH_IDS = "this checkout", "the checkout before", "this checkout, new X-Request-Id each time"
VARIABLE = "BENCH_BEFORE"


def measure(arena: Arena) -> Finding:
    program = _program_before()
    rounds, seconds = (1, 3) if arena.quick else (5, 8)
    turns: dict[str, list[Turn]] = defaultdict(list)
    grounds = {NOW: arena.ground("holdfast", UNITS), BEFORE: arena.ground("before", UNITS, program)}
    for number in range(1, rounds + 1):
        for name in (NOW, BEFORE) if number % 2 else (BEFORE, NOW):
            own = {"program": program} if name == BEFORE else {}
            with holdfast(grounds[name], arena.logs, processes=2, **own) as contestant:
                arena.progress(f"before: round {number} of {rounds}: {name}")
                turns[name].append(put_turn(arena, contestant, seconds))
                if name == NOW:
                    turns[WITH_IDS].append(put_turn(arena, contestant, seconds, new_ids=True))
    caption = noise_caption(turn for of_name in turns.values() for turn in of_name)
    return _finding({name: medians(of_name) for name, of_name in turns.items()}, caption)


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
    ]
    rows = [
        [
            name,
            f"{figure['per_second']:,.0f}",
            f"{figure['per_second'] / before['per_second']:.2f}×",
            f"{_cpu(figure):.3f}",
            f"{_cpu(figure) / _cpu(before):.2f}×",
        ]
        for name, figure in figures.items()
    ]
    columns = ["", "PUT/s", "to before", "CPU s per 1000", "to before"]
    title = "PUT, beside another checkout"
    return Finding("before", title, [Table(columns, rows, caption)], targets, dict(figures))


def _cpu(figure: dict[str, float]) -> float:
    return figure["server_cpu_per_1000"] + figure["postgres_cpu_per_1000"]
