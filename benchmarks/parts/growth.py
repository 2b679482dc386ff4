"""PUT throughput with few and with very many units, beside the bare database's own fall."""

from collections import defaultdict

from benchmarks.arena import Arena
from benchmarks.contestants import holdfast_on_two
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Turn, medians, noise_caption, pgbench_turn, put_turn

FEW = 10_000
HOLDFAST, PGBENCH = "Holdfast", "pgbench, the upsert alone"


def many(arena: Arena) -> int:
    return 100_000 if arena.quick else 1_000_000


def measure(arena: Arena) -> Finding:
    rounds, seconds = (1, 3) if arena.quick else (5, 10)
    turns: dict[tuple[str, int], list[Turn]] = defaultdict(list)
    sizes = (FEW, many(arena))
    for number in range(1, rounds + 1):
        for units in sizes:
            ground = arena.ground("holdfast", units)
            arena.progress(f"growth: round {number} of {rounds}: Holdfast with {units:,} units")
            with holdfast_on_two(ground, arena.logs) as contestant:
                turns[HOLDFAST, units].append(put_turn(arena, contestant, seconds))
            arena.progress(f"growth: round {number} of {rounds}: pgbench with {units:,} units")
            turns[PGBENCH, units].append(pgbench_turn(arena, ground, seconds))
    figures = {
        name: {str(units): medians(turns[name, units]) for units in sizes} for name in (HOLDFAST, PGBENCH)
    }
    caption = noise_caption(turn for of_one in turns.values() for turn in of_one)
    return _finding(sizes, figures, caption)


def _finding(
    sizes: tuple[int, int], figures: dict[str, dict[str, dict[str, float]]], caption: str
) -> Finding:
    few, most = (str(units) for units in sizes)
    falls = {
        name: 100 * (1 - figure[most]["per_second"] / figure[few]["per_second"])
        for name, figure in figures.items()
    }
    rows = [
        [
            name,
            f"{figure[few]['per_second']:,.0f}",
            f"{figure[most]['per_second']:,.0f}",
            f"{falls[name]:.1f} %",
        ]
        for name, figure in figures.items()
    ]
    columns = ["", f"PUT/s with {sizes[0]:,} units", f"with {sizes[1]:,} units", "fall"]
    beyond = falls[HOLDFAST] - falls[PGBENCH]
    target = Target(f"fall at {sizes[1]:,} units beyond pgbench's own", beyond, 10, False, " points")
    return Finding(
        "growth", "Growth", [Table(columns, rows, caption)], [target], dict(figures) | {"falls": falls}
    )
