"""Deliveries: when the next attempt comes, and when there is none any more."""

from datetime import timedelta

import pytest

from holdfast.domain.delivery import (
    AttemptDecision,
    DeliveryStatus,
    Outcome,
    Progress,
    Schedule,
    Trigger,
    decide_after_attempt,
    decide_after_lost,
)

SCHEDULE = Schedule()


def test_the_gap_doubles_from_thirty_seconds_over_eight_attempts() -> None:
    gaps = [
        decide_after_attempt(Progress(1, tried, tried), False, SCHEDULE).gap.total_seconds()
        for tried in range(7)
    ]
    assert gaps == [30, 60, 120, 240, 480, 960, 1920]
    assert 3600 < sum(gaps) < 3900


def test_the_eighth_failure_is_the_last() -> None:
    assert decide_after_attempt(Progress(1, 6, 6), False, SCHEDULE).outcome is Outcome.RETRY
    assert decide_after_attempt(Progress(1, 7, 7), False, SCHEDULE) == AttemptDecision(Outcome.FAILED)


@pytest.mark.parametrize("tried", [0, 3, 7])
def test_a_success_ends_it_whenever_it_comes(tried: int) -> None:
    assert decide_after_attempt(Progress(1, tried, tried), True, SCHEDULE) == AttemptDecision(
        Outcome.DELIVERED
    )


def test_a_new_series_counts_from_its_own_start() -> None:
    assert decide_after_attempt(Progress(3, 0, 16), False, SCHEDULE) == AttemptDecision(
        Outcome.RETRY, timedelta(seconds=30)
    )


def test_a_lost_attempt_counts_and_the_next_one_comes_at_once() -> None:
    assert decide_after_lost(Progress(1, 0, 0), SCHEDULE) == AttemptDecision(Outcome.RETRY, timedelta())
    assert decide_after_lost(Progress(1, 7, 7), SCHEDULE) == AttemptDecision(Outcome.FAILED, timedelta())


@pytest.mark.parametrize("attempts", [1, 2, 30])
def test_there_are_as_many_attempts_as_the_schedule_has(attempts: int) -> None:
    schedule = Schedule(0.5, attempts)
    outcomes = [
        decide_after_attempt(Progress(1, tried, tried), False, schedule).outcome for tried in range(attempts)
    ]
    assert outcomes == [Outcome.RETRY] * (attempts - 1) + [Outcome.FAILED]


@pytest.mark.parametrize(
    ("progress", "trigger"),
    [
        (Progress(1, 0, 0), Trigger.FIRST),
        (Progress(1, 1, 1), Trigger.RETRY),
        (Progress(2, 0, 8), Trigger.RESEND),
        (Progress(2, 0, 0), Trigger.RESEND),
        (Progress(2, 3, 11), Trigger.RETRY),
    ],
)
def test_what_brings_an_attempt_about(progress: Progress, trigger: Trigger) -> None:
    assert progress.trigger is trigger


def test_an_outcome_that_ends_a_delivery_has_the_name_of_its_status() -> None:
    for outcome in (Outcome.DELIVERED, Outcome.FAILED):
        assert DeliveryStatus(outcome).name == outcome.name
