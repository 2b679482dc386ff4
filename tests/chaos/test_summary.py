"""The published figures follow from what the runs have left."""

from dataclasses import replace
from pathlib import Path

from tests.chaos.history import History
from tests.chaos.report import FaultResult, Result
from tests.chaos.state import FinalState
from tests.chaos.summary import failovers, summarise

SEEN = FaultResult("the standby is promoted", "database", 4.0, 2.0, "two takes writes instead of one", 0.4)
RESULT = Result(7, 60.0, [SEEN, replace(SEEN, pause_seconds=0.8)], {}, [], 1200, 3600, 12.5)


def saved(folder: Path, result: Result) -> Path:
    folder.mkdir()
    result.save(folder / "result.json")
    return folder


def test_many_runs_are_summed_up(tmp_path: Path) -> None:
    broken = replace(RESULT, seed=3, violations={"I1": ["lost"]}, faults=[replace(SEEN, effect="")])
    found = summarise([saved(tmp_path / "7", RESULT), saved(tmp_path / "3", broken)])
    assert found == {
        "seeds": [3, 7],
        "not held": [3],
        "acknowledged": 2400,
        "arrivals": 7200,
        "faults": 2,
        "settled seconds": [12.5, 12.5],
        "rows": [("the standby is promoted", "database", 3, 2, 0.6, 0.8)],
    }


def test_failovers_are_summed_up(tmp_path: Path) -> None:
    """A hold lapses, and its event arrives half a second later, twice."""
    folder = saved(tmp_path / "failovers", replace(RESULT, violations={"I1": ["lost", "lost too"]}))
    lapsed_at, seconds = "2026-11-01T00:00:00.000Z", 1793491200.0
    with History(folder / "history.jsonl") as history:
        for at, delivery, status in (
            (0.5, "d-1", 200),
            (0.9, "d-1", 200),
            (0.1, "d-2", 500),
            (0.2, "d-2", 200),
        ):
            history.note("arrival", at=seconds + at, delivery=delivery, status=status)
    FinalState(
        units=[],
        events=[{"unit_id": "u-1", "unit_version": version, "created_at": lapsed_at} for version in (2, 3)],
        audit_entries=[{"subject_id": "u-1", "at": lapsed_at, "actor_kind": "clock"}],
        bookings=[],
        deliveries=[{"id": "d-1", "unit_id": "u-1", "unit_version": 3}],
        attempts=[],
        in_flight=[],
        endpoints=[],
        sequences={},
    ).save(folder / "state.json")
    assert failovers(folder) == {
        "failovers": 2,
        "acknowledged": 1200,
        "lost": 2,
        "without writes": [0.6, 0.8],
        "deliveries": 2,
        "doubled": 1,
        "holds released": 1,
        "released late": [0.5, 0.5],
    }
