"""The report says what happened, and ends with the verdict."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.report import FaultResult, Result, fault_rows, longest_pause, text

KILLED = FaultResult("a web process is killed", "processes", 4.2, 0.5, "process 7 ended", 0.4)
UNSEEN = FaultResult("a web process is killed", "processes", 8.0, 0.5, "", 0.1)
HELD = Result(7, 10.0, [KILLED, UNSEEN], {}, [], 1200, 3600, 12.5, [10, 20])


@pytest.mark.parametrize(
    ("times", "pause"),
    [
        ([9.0, 10.5, 13.0, 13.5, 40.0], 26.5),
        ([9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0], 1.0),
        ([], None),
        ([9.0], None),
    ],
    ids=["until the first one after it", "steady", "none at all", "none any more"],
)
def test_the_longest_pause_is_between_the_start_of_a_fault_and_the_first_sign_of_life_after_it(
    times: list[float], pause: float | None
) -> None:
    assert longest_pause(times, 10.0, 12.0) == pause


def test_a_fault_without_effect_is_injected_but_not_seen() -> None:
    assert fault_rows([HELD, HELD]) == [("a web process is killed", "processes", 4, 2, 0.4, 0.4)]


def test_a_run_that_held_says_so_in_its_last_line() -> None:
    last = text(HELD, "make chaos SEED=7 MINUTES=1.5").splitlines()[-2:]
    assert last == [
        "Run it again with: make chaos SEED=7 MINUTES=1.5",
        "Everything held; faults seen: 1, of 1 kind; writes acknowledged: 1,200; deliveries received: 3,600.",
    ]


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (replace(HELD, violations={"I3": ["A-1: two holds"]}), "FAILED: I3."),
        (replace(HELD, errors=["a lock was not freed"]), "FAILED: the harness itself."),
        (replace(HELD, acknowledged=0), "FAILED: no writes."),
        (replace(HELD, arrivals=0), "FAILED: no deliveries."),
        (replace(HELD, faults=[UNSEEN]), "FAILED: no effects of faults."),
    ],
)
def test_a_run_that_failed_says_what_failed(result: Result, verdict: str) -> None:
    assert not result.held
    assert text(result, "").splitlines()[-1].startswith(verdict)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    HELD.save(tmp_path / "result.json")
    assert Result.load(tmp_path / "result.json") == HELD
