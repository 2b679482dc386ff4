"""Reports of a project: units by status for each day, sales, and conversion of holds to sales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from holdfast.domain.status import Status

PERIODS_DAYS = (30, 90, 365)

StatusPair = tuple[Status, Status]


class StatusDay(NamedTuple):
    day: date
    units: Mapping[Status, int]


class SalesDay(NamedTuple):
    day: date
    units: int
    value_sar: Decimal


class Conversion(NamedTuple):
    """How often units took each step on the way to a sale, in a period."""

    holds: int
    reservations: int
    sales: int
    """Of what was reserved before."""
    walk_in_sales: int

    @property
    def reserved_percent(self) -> int | None:
        return _percent(self.reservations, self.holds)

    @property
    def sold_percent(self) -> int | None:
        return _percent(self.sales, self.reservations)


def days_up_to(last: date, number: int) -> list[date]:
    return [last - timedelta(days=back) for back in reversed(range(number))]


def status_days(
    days: Sequence[date],
    now: Mapping[Status, int],
    steps: Mapping[date, Mapping[StatusPair, int]],
    created: Mapping[date, Mapping[Status, int]],
) -> list[StatusDay]:
    """Count backwards from today, undoing the steps and the new units of each day."""
    units = dict(now)
    found = []
    for day in reversed(days):
        found.append(StatusDay(day, dict(units)))
        for (source, target), number in steps.get(day, {}).items():
            units[source] += number
            units[target] -= number
        for status, number in created.get(day, {}).items():
            units[status] -= number
    return found[::-1]


def sales_days(days: Sequence[date], sold: Mapping[date, tuple[int, Decimal]]) -> list[SalesDay]:
    return [SalesDay(day, *sold.get(day, (0, Decimal(0)))) for day in days]


def conversion(days: Sequence[date], steps: Mapping[date, Mapping[StatusPair, int]]) -> Conversion:
    def count(source: Status, target: Status) -> int:
        return sum(steps.get(day, {}).get((source, target), 0) for day in days)

    return Conversion(
        count(Status.AVAILABLE, Status.HELD),
        count(Status.HELD, Status.RESERVED),
        count(Status.RESERVED, Status.SOLD),
        count(Status.AVAILABLE, Status.SOLD),
    )


def _percent(part: int, whole: int) -> int | None:
    return round(100 * part / whole) if whole else None
