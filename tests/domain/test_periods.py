"""How long holds and reservations last, and how far they are extended."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidInput
from holdfast.domain.holds import LONGEST_RESERVATION_DAYS, HoldPeriods, check_end, extended_end
from tests.domain.bookings import MILLISECOND
from tests.domain.units import MINUTE, NOW, PROJECT

DAY = timedelta(days=1)
LAST_MOMENT = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)


def test_a_project_without_periods_of_its_own_has_those_of_the_server() -> None:
    periods = HoldPeriods(hold_seconds=90, reservation_days=2)
    assert periods.hold(PROJECT) == timedelta(seconds=90)
    assert periods.reservation(PROJECT) == 2 * DAY


def test_a_project_may_have_periods_of_its_own() -> None:
    own = PROJECT._replace(hold_seconds=1.5, reservation_days=0.5)
    assert HoldPeriods().hold(own) == timedelta(seconds=1.5)
    assert HoldPeriods().reservation(own) == timedelta(hours=12)


@given(st.floats(0, 604_800, exclude_min=True), st.floats(0, 3_650, exclude_min=True))
def test_periods_are_whole_milliseconds_and_never_nothing(seconds: float, days: float) -> None:
    own = PROJECT._replace(hold_seconds=seconds, reservation_days=days)
    for period, wanted in (
        (HoldPeriods().hold(own), seconds),
        (HoldPeriods().reservation(own), days * 86_400),
    ):
        assert period >= MILLISECOND
        assert period % MILLISECOND == timedelta(0)
        assert abs(period.total_seconds() - wanted) <= 0.001


def test_an_extension_without_a_time_is_one_more_period() -> None:
    assert extended_end(NOW + MINUTE, None, 5 * MINUTE, NOW) == NOW + 6 * MINUTE


def test_an_extension_ends_at_the_time_that_was_asked_for() -> None:
    assert extended_end(NOW + MINUTE, NOW + MINUTE + MILLISECOND, DAY, NOW) == NOW + MINUTE + MILLISECOND
    assert extended_end(NOW + MINUTE, NOW + MINUTE, DAY, NOW) == NOW + MINUTE
    longest = NOW + LONGEST_RESERVATION_DAYS * DAY
    assert extended_end(NOW + MINUTE, longest, DAY, NOW) == longest


@pytest.mark.parametrize(
    "asked", [NOW + MINUTE - MILLISECOND, NOW, NOW + (LONGEST_RESERVATION_DAYS * DAY) + MILLISECOND]
)
def test_an_extension_moves_the_end_away_within_bounds(asked: datetime) -> None:
    with pytest.raises(InvalidInput) as refused:
        extended_end(NOW + MINUTE, asked, DAY, NOW)
    assert [fault.pointer for fault in refused.value.faults] == ["/until"]


@pytest.mark.parametrize(
    "asked", [NOW - DAY, NOW, NOW + (LONGEST_RESERVATION_DAYS * DAY) + MILLISECOND, LAST_MOMENT]
)
def test_some_ends_are_refused_whatever_the_unit_is(asked: datetime) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_end(asked, NOW)
    assert [fault.pointer for fault in refused.value.faults] == ["/until"]


@pytest.mark.parametrize("asked", [None, NOW + MILLISECOND, NOW + LONGEST_RESERVATION_DAYS * DAY])
def test_any_other_end_is_a_question_to_the_unit(asked: datetime | None) -> None:
    check_end(asked, NOW)


def test_no_number_of_extensions_leads_beyond_the_end_of_time() -> None:
    with pytest.raises(InvalidInput):
        extended_end(LAST_MOMENT, None, LONGEST_RESERVATION_DAYS * DAY, NOW)
