"""The result of a run as text: faults, invariants, the plot of the throughput, the verdict."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Self

from tests.chaos.faults import Injection
from tests.chaos.history import History

INVARIANTS = {
    "I1": "what was acknowledged is stored exactly once, what is unknown at most once",
    "I2": "every event reached every subscribed endpoint, or its delivery failed",
    "I3": "holds of one unit never overlap",
    "I4": "attempts keep to their number and their schedule, with the same id and bytes",
    "I5": "a repeated request makes no second event",
    "I6": "the feed has no gap, is ordered, and is the same for every reader",
    "I7": "no 5xx but 503",
    "I8": "settled within 60 s of the last fault",
    "I9": "connections, memory and queues stay within their limits",
    "I10": "no id was given out twice",
}
AFTER_SECONDS = 5.0
"""A pause that a fault leaves behind counts as its own for so long."""
BAR_WIDTH = 40


@dataclass
class FaultResult:
    name: str
    lane: str
    at: float
    seconds: float
    effect: str
    pause_seconds: float | None
    """The longest time without an acknowledged write; for receivers, without a successful delivery."""


@dataclass
class Result:
    seed: int
    seconds: float
    faults: list[FaultResult]
    violations: dict[str, list[str]]
    errors: list[str]
    """Of the harness itself: something did not run."""
    acknowledged: int
    arrivals: int
    settled_seconds: float | None
    per_second: list[int] = field(default_factory=list)
    """Acknowledged writes."""

    @classmethod
    def of(
        cls,
        seed: int,
        plan: Sequence[Injection],
        history: History,
        violations: Mapping[str, list[str]],
        errors: list[str],
        began_at: float,
    ) -> Self:
        writes, arrivals = history.acknowledged_at, history.arrived_at
        first = writes[0] if writes else began_at
        per_second = [0] * (int(writes[-1] - first) + 1 if writes else 0)
        for at in writes:
            per_second[int(at - first)] += 1
        faults = [
            FaultResult(
                one.kind.name,
                one.kind.lane,
                round(one.begun_at - first, 1),
                round(one.ended_at - one.begun_at, 1),
                one.effect,
                longest_pause(
                    arrivals if one.kind.lane == "receivers" else writes, one.begun_at, one.ended_at
                ),
            )
            for one in plan
        ]
        return cls(
            seed,
            round(writes[-1] - first if writes else 0.0, 1),
            faults,
            {name: found for name, found in violations.items() if found},
            errors,
            len(writes),
            len(arrivals),
            history.settled_seconds,
            per_second,
        )

    @property
    def kinds_seen(self) -> int:
        return len({fault.name for fault in self.faults if fault.effect})

    @property
    def held(self) -> bool:
        return not self.violations and not self.errors and not self.missing

    @property
    def missing(self) -> list[str]:
        """Return that without which a run shows nothing."""
        counts = {
            "writes": self.acknowledged,
            "deliveries": self.arrivals,
            "effects of faults": self.kinds_seen,
        }
        return [f"no {name}" for name, count in counts.items() if not count]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1))

    @classmethod
    def load(cls, path: Path) -> Self:
        found: dict[str, Any] = json.loads(path.read_text())
        faults = [FaultResult(**one) for one in found.pop("faults")]
        return cls(faults=faults, **found)


def longest_pause(times: Sequence[float], begun_at: float, ended_at: float) -> float | None:
    """Return the longest time between two of these, from the fault's start until soon after its end."""
    first, last = bisect_left(times, begun_at), bisect_right(times, ended_at + AFTER_SECONDS)
    within = [begun_at, *times[first : last + 1]]
    if len(within) == 1:
        return None
    return round(max(later - earlier for earlier, later in pairwise(within)), 2)


def fault_rows(results: Sequence[Result]) -> list[tuple[str, str, int, int, float | None, float | None]]:
    """Return for each kind of fault: name, lane, injected, with effect, pause in the median and at most."""
    by_kind: dict[tuple[str, str], list[FaultResult]] = defaultdict(list)
    for result in results:
        for fault in result.faults:
            by_kind[fault.lane, fault.name].append(fault)
    rows = []
    for (lane, name), own in sorted(by_kind.items()):
        seen = [one for one in own if one.effect]
        pauses = [one.pause_seconds for one in seen if one.pause_seconds is not None]
        rows.append(
            (
                name,
                lane,
                len(own),
                len(seen),
                round(median(pauses), 2) if pauses else None,
                max(pauses, default=None),
            )
        )
    return rows


def text(result: Result, command: str) -> str:
    return "\n".join(
        [*_plot(result), "", *_faults(result), "", *_invariants(result), "", *_end(result, command)]
    )


def _plot(result: Result) -> Iterator[str]:
    yield "Acknowledged writes in each second, with the faults that began in it"
    most = max(result.per_second, default=1) or 1
    begun: dict[int, list[str]] = defaultdict(list)
    for fault in result.faults:
        begun[int(fault.at)].append(fault.name if fault.effect else f"({fault.name})")
    for second, count in enumerate(result.per_second):
        bar = "█" * round(BAR_WIDTH * count / most)
        yield f"{second:4} s {count:5} {bar:{BAR_WIDTH}} {'; '.join(begun[second])}".rstrip()


def _faults(result: Result) -> Iterator[str]:
    yield f"{'Fault':52} {'Injected':>8} {'Seen':>5} {'Longest pause, median':>22} {'at most':>8}"
    for name, _, injected, seen, middle, most in fault_rows([result]):
        yield f"{name:52} {injected:8} {seen:5} {_seconds(middle):>22} {_seconds(most):>8}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def _invariants(result: Result) -> Iterator[str]:
    for name, sentence in INVARIANTS.items():
        found = result.violations.get(name, [])
        yield f"{name:4} {'violated' if found else 'held':9} {sentence}"
        for one in found[:5]:
            yield f"       {one}"
        if len(found) > 5:
            yield f"       and {len(found) - 5} more"


def _end(result: Result, command: str) -> Iterator[str]:
    for error in result.errors:
        yield f"The harness failed: {error}"
    yield f"Run it again with: {command}"
    seen = [fault for fault in result.faults if fault.effect]
    counts = (
        f"faults seen: {len(seen)}, of {result.kinds_seen} {'kind' if result.kinds_seen == 1 else 'kinds'};"
        f" writes acknowledged: {result.acknowledged:,}; deliveries received: {result.arrivals:,}"
    )
    if result.held:
        yield f"Everything held; {counts}."
    else:
        wrong = [*result.violations, *result.missing, *(["the harness itself"] if result.errors else [])]
        yield f"FAILED: {', '.join(wrong)}. {counts}."
