"""Attempts to sign in: the waits grow and end, and what is long ago is forgotten."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.domain.login import (
    ADDRESS_FAILURES,
    ADDRESS_WINDOW,
    FORGET_AFTER,
    FREE_FAILURES,
    LONGEST_WAIT,
    Attempts,
    SubjectKind,
    add_attempt,
    attempt_subject,
    current_attempts,
    wait_before_next,
)

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
AGO = timedelta(minutes=3)
A_MOMENT = timedelta(milliseconds=1)
NONE = timedelta(0)


def account_wait(failures: int, last_at: datetime = NOW) -> timedelta:
    return wait_before_next(SubjectKind.ACCOUNT, Attempts(failures, last_at - AGO, last_at), NOW)


def address_wait(failures: int, first_at: datetime) -> timedelta:
    return wait_before_next(SubjectKind.ADDRESS, Attempts(failures, first_at, NOW), NOW)


def test_a_few_failures_of_an_account_cost_nothing() -> None:
    assert [account_wait(failures) for failures in range(FREE_FAILURES)] == [NONE] * FREE_FAILURES


def test_then_each_wait_is_twice_the_last_up_to_a_quarter_of_an_hour() -> None:
    waits = [account_wait(failures).total_seconds() for failures in range(5, 14)]
    assert waits == [15, 30, 60, 120, 240, 480, 900, 900, 900]
    assert account_wait(10**9) == LONGEST_WAIT


def test_a_wait_ends() -> None:
    assert account_wait(FREE_FAILURES, NOW - timedelta(seconds=15) + A_MOMENT) == A_MOMENT
    assert account_wait(FREE_FAILURES, NOW - timedelta(seconds=15)) == NONE
    assert account_wait(10**9, NOW - LONGEST_WAIT) == NONE


def test_an_address_is_held_up_by_many_failures_only_and_until_its_time_is_over() -> None:
    assert address_wait(ADDRESS_FAILURES - 1, NOW - AGO) == NONE
    assert address_wait(ADDRESS_FAILURES, NOW - AGO) == ADDRESS_WINDOW - AGO
    assert address_wait(ADDRESS_FAILURES, NOW - ADDRESS_WINDOW) == NONE


@pytest.mark.parametrize(
    ("kind", "first_ago", "last_ago", "is_forgotten"),
    [
        (SubjectKind.ACCOUNT, FORGET_AFTER * 2, FORGET_AFTER, True),
        (SubjectKind.ACCOUNT, FORGET_AFTER * 2, FORGET_AFTER - A_MOMENT, False),
        (SubjectKind.ADDRESS, ADDRESS_WINDOW, NONE, True),
        (SubjectKind.ADDRESS, ADDRESS_WINDOW - A_MOMENT, NONE, False),
    ],
)
def test_what_is_long_ago_is_forgotten(
    kind: SubjectKind, first_ago: timedelta, last_ago: timedelta, is_forgotten: bool
) -> None:
    attempts = Attempts(7, NOW - first_ago, NOW - last_ago)
    assert current_attempts(kind, attempts, NOW) == (Attempts(0, NOW, NOW) if is_forgotten else attempts)


def test_one_more_is_counted_and_dated() -> None:
    assert add_attempt(Attempts(3, NOW - AGO, NOW - AGO), NOW) == Attempts(4, NOW - AGO, NOW)


def test_an_account_and_an_address_of_the_same_name_are_counted_apart() -> None:
    subjects = {attempt_subject(kind, name) for kind in SubjectKind for name in ("a", "b", "\udcff", "")}
    assert len(subjects) == 8
