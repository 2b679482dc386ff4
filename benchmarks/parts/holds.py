"""Holds of different units by different buyers, beside PUT, in turns."""

from collections import defaultdict

from benchmarks import holding
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, holdfast_on_two
from benchmarks.parts.selling import BEHIND_A_PROXY, ground, units_to_change, units_to_hold
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import Turn, hold_turn, medians, noise_caption, put_turn

HOLD, PUT = "hold", "PUT"


def measure(arena: Arena) -> Finding:
    rounds, seconds = (1, 3) if arena.quick else (3, 10)
    turns: dict[str, list[Turn]] = defaultdict(list)
    for number in range(1, rounds + 1):
        for name in (HOLD, PUT) if number % 2 else (PUT, HOLD):
            with holdfast_on_two(ground(arena), arena.logs, BEHIND_A_PROXY) as contestant:
                arena.progress(f"holds: round {number} of {rounds}: {name}")
                turns[name].append(_turn(arena, contestant, name, seconds))
                arena.progress(f"holds: {name}: {turns[name][-1].per_second:,.0f}/s")
    holding.release_all(ground(arena).database_url)
    caption = noise_caption(turn for of_name in turns.values() for turn in of_name)
    return _finding({name: medians(of_name) for name, of_name in turns.items()}, caption)


def _turn(arena: Arena, contestant: Contestant, name: str, seconds: int) -> Turn:
    if name == PUT:
        return put_turn(arena, contestant, seconds, units_to_change(arena))
    return hold_turn(arena, contestant, seconds, units_to_hold(arena))


def _finding(figures: dict[str, dict[str, float]], caption: str) -> Finding:
    put = figures[PUT]["per_second"]
    columns = [
        "", "requests/s", "to PUT", "p50 ms", "p99 ms", "server CPU s per 1000", "PostgreSQL CPU s per 1000",
    ]  # fmt: skip
    rows = [_row(name, figures[name], put) for name in (PUT, HOLD)]
    target = Target("hold throughput to PUT", figures[HOLD]["per_second"] / put, 0.5, True)
    title = "Holds of different units with 48 connections"
    return Finding("holds", title, [Table(columns, rows, caption)], [target], dict(figures))


def _row(name: str, figure: dict[str, float], put: float) -> list[str]:
    return [
        name,
        f"{figure['per_second']:,.0f}",
        f"{figure['per_second'] / put:.2f}×",
        f"{figure['p50_ms']:.1f}",
        f"{figure['p99_ms']:.1f}",
        f"{figure['server_cpu_per_1000']:.2f}",
        f"{figure['postgres_cpu_per_1000']:.2f}",
    ]
