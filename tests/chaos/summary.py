"""The figures of docs/reliability.md.

`python -m tests.chaos.summary dist/chaos/seed-*` sums up many runs of `make chaos`, and
`python -m tests.chaos.summary --failovers dist/failovers` a run of failovers alone:
`python -m tests.chaos --only "the standby is promoted" --count 20 --output dist/failovers`.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.machine import file_system_of
from tests.chaos.history import read
from tests.chaos.report import Result, fault_rows
from tests.chaos.state import FinalState

RESULTS = Path(__file__).parent / "results"


def summarise(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the figures of the runs in these folders."""
    results = [Result.load(folder / "result.json") for folder in folders]
    settled = [one.settled_seconds for one in results if one.settled_seconds is not None]
    return {
        "seeds": sorted(one.seed for one in results),
        "not held": sorted(one.seed for one in results if not one.held),
        "acknowledged": sum(one.acknowledged for one in results),
        "arrivals": sum(one.arrivals for one in results),
        "faults": sum(bool(fault.effect) for one in results for fault in one.faults),
        "settled seconds": [round(median(settled), 1), max(settled)] if settled else [],
        "rows": fault_rows(results),
    }


def failovers(folder: Path) -> dict[str, Any]:
    """Return the figures of a run that does nothing but promote the standby."""
    result = Result.load(folder / "result.json")
    pauses = sorted(one.pause_seconds for one in result.faults if one.effect and one.pause_seconds)
    received = Counter(
        record["delivery"]
        for record in read(folder / "history.jsonl")
        if record["kind"] == "arrival" and 200 <= (record["status"] or 0) < 300
    )
    late = _seconds_late(folder)
    return {
        "failovers": len(pauses),
        "acknowledged": result.acknowledged,
        "lost": len(result.violations.get("I1", [])),
        "without writes": [
            round(median(pauses), 1),
            round(quantiles(pauses, n=20, method="inclusive")[-1], 1),
        ],
        "deliveries": len(received),
        "doubled": sum(count > 1 for count in received.values()),
        "holds released": len(late),
        "released late": [round(median(late), 1), round(max(late), 1)] if late else [],
    }


def _seconds_late(folder: Path) -> list[float]:
    """Return for each hold that the clock has ended how long after its end the first receiver knew."""
    state = FinalState.load(folder / "state.json")
    known_at: dict[str, float] = {}
    for record in read(folder / "history.jsonl"):
        if record["kind"] == "arrival":
            known_at.setdefault(record["delivery"], record["at"])
    first: dict[tuple[str, str], float] = {}
    times = {(event["unit_id"], event["unit_version"]): event["created_at"] for event in state.events}
    for delivery in state.deliveries:
        if (at := known_at.get(delivery["id"])) is not None:
            unit_id = delivery["unit_id"]
            ended = unit_id, times[unit_id, delivery["unit_version"]]
            first[ended] = min(at, first.get(ended, at))
    by_clock = ((one["subject_id"], one["at"]) for one in state.audit_entries if one["actor_kind"] == "clock")
    return [
        first[ended] - datetime.fromisoformat(ended[1]).timestamp() for ended in by_clock if ended in first
    ]


def main(arguments: Sequence[str]) -> int:
    is_failovers = arguments[:1] == ["--failovers"]
    folders = [Path(argument) for argument in arguments[is_failovers:]]
    if not folders:
        print(__doc__)
        return 2
    figures = failovers(folders[0]) if is_failovers else summarise(folders)
    ended_at = max((folder / "result.json").stat().st_mtime for folder in folders)
    figures["date"] = datetime.fromtimestamp(ended_at).astimezone().strftime("%Y-%m-%d")
    figures["machine"] = f"{os.cpu_count()} cores, {file_system_of(Path.cwd())}"
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / ("failovers.json" if is_failovers else "runs.json")
    path.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n")
    print(f"Wrote {path}; `make docs` puts it into docs/reliability.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
