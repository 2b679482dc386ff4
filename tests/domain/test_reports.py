"""From what is known today back through the days."""

from datetime import date
from decimal import Decimal

from holdfast.domain.reports import SalesDay, StatusPair, conversion, days_up_to, sales_days, status_days
from holdfast.domain.status import Status

FIRST, SECOND, THIRD = days = days_up_to(date(2026, 11, 16), 3)
AVAILABLE, HELD, RESERVED, SOLD, UNAVAILABLE = Status
STEPS: dict[date, dict[StatusPair, int]] = {
    SECOND: {(AVAILABLE, HELD): 4, (HELD, AVAILABLE): 1},
    THIRD: {(HELD, RESERVED): 2, (RESERVED, SOLD): 1, (AVAILABLE, SOLD): 3},
}


def test_each_day_is_the_next_one_without_its_steps_and_its_new_units_and_the_last_is_today() -> None:
    assert days == [date(2026, 11, 14), date(2026, 11, 15), date(2026, 11, 16)]
    now = {AVAILABLE: 4, HELD: 1, RESERVED: 1, SOLD: 4, UNAVAILABLE: 2}
    created = {SECOND: {AVAILABLE: 6}, THIRD: {UNAVAILABLE: 2}}
    first, second, third = status_days(days, now, STEPS, created)
    assert third.units == now
    assert second.units == {AVAILABLE: 7, HELD: 3, RESERVED: 0, SOLD: 0, UNAVAILABLE: 0}
    assert first.units == {AVAILABLE: 4, HELD: 0, RESERVED: 0, SOLD: 0, UNAVAILABLE: 0}


def test_a_day_without_sales_is_there_with_none() -> None:
    sold = {SECOND: (2, Decimal("1500000.50"))}
    assert sales_days(days, sold)[:2] == [SalesDay(FIRST, 0, Decimal(0)), SalesDay(SECOND, *sold[SECOND])]


def test_conversion_counts_the_steps_of_the_period_alone() -> None:
    found = conversion(days, STEPS)
    assert found == (4, 2, 1, 3)
    assert (found.reserved_percent, found.sold_percent) == (50, 50)
    assert conversion([FIRST], STEPS) == (0, 0, 0, 0)
    assert conversion([FIRST], STEPS).reserved_percent is None
