"""Put the measured tables into docs/reliability.md; ``make docs`` runs it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "reliability.md"
RESULTS = Path(__file__).parents[2] / "tests" / "chaos" / "results"


def document() -> str:
    """Return the page with the tables of the newest results between its markers."""
    text = PAGE.read_text(encoding="utf-8")
    runs, failovers = (json.loads((RESULTS / f"{name}.json").read_text()) for name in ("runs", "failovers"))
    tables = {"runs": _runs(runs), "faults": _faults(runs["rows"]), "failovers": _failovers(failovers)}
    for name, lines in tables.items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        text = "\n".join([f"{before}<!-- {name} -->", "", *lines, "", end]) + after
    return text


def _runs(runs: dict[str, Any]) -> Iterator[str]:
    seeds = runs["seeds"]
    yield "| | |"
    yield "|---|---|"
    without_gap = seeds == list(range(seeds[0], seeds[-1] + 1))
    named = f"{seeds[0]} to {seeds[-1]}" if without_gap else ", ".join(map(str, seeds))
    yield f"| Runs | {len(seeds)}, seeds {named}, {runs['date']}, {runs['machine']} |"
    yield f"| Runs in which an invariant was violated | {len(runs['not held'])} |"
    yield f"| Faults with effect | {runs['faults']:,} of {len(runs['rows'])} kinds |"
    yield f"| Writes acknowledged | {runs['acknowledged']:,} |"
    yield f"| Deliveries received | {runs['arrivals']:,} |"
    middle, most = runs["settled seconds"]
    yield f"| Settled after the last fault | {middle} s in the median, {most} s at most |"


def _faults(rows: list[list[Any]]) -> Iterator[str]:
    yield "| Fault | Injected | With effect | Longest pause, median | At most |"
    yield "|---|---|---|---|---|"
    for name, _, injected, seen, middle, most in rows:
        yield f"| {name} | {injected} | {seen} | {_seconds(middle)} | {_seconds(most)} |"


def _failovers(found: dict[str, Any]) -> Iterator[str]:
    yield "| | |"
    yield "|---|---|"
    yield f"| Failovers under load | {found['failovers']}, {found['date']}, {found['machine']} |"
    yield f"| Acknowledged writes, and lost ones | {found['acknowledged']:,}, {found['lost']} |"
    middle, most = found["without writes"]
    yield f"| Time without writes, p50 and p95 | {middle} s, {most} s |"
    yield f"| Deliveries, and doubled ones | {found['deliveries']:,}, {found['doubled']} |"
    if found["released late"]:
        middle, most = found["released late"]
        yield (
            f"| Holds that lapsed, and how much later a receiver knew | {found['holds released']:,};"
            f" {middle} s in the median, {most} s at most |"
        )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
