"""A day of deliveries in so little room that it fits beside a name: a bar for each hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.operations.deliveries import HOURS, Hour

WIDTH, HEIGHT = 120, 28
_STEP = WIDTH / HOURS
_BAR = _STEP - 1.25
_LEAST = 2.0
"""What there is at all can be seen."""


class Bar(NamedTuple):
    x: float
    begins_at: datetime
    delivered: int
    failed: int
    delivered_height: float
    failed_height: float

    @property
    def width(self) -> float:
        return _BAR


class Sparkline(NamedTuple):
    bars: list[Bar]
    delivered: int
    failed: int

    @property
    def ended(self) -> int:
        return self.delivered + self.failed

    @property
    def success_percent(self) -> float | None:
        """Never 100 while one failed."""
        if not self.ended:
            return None
        exact = 100 * self.delivered / self.ended
        return min(round(exact, 1), 99.9) if self.failed else 100


def sparkline(hours: Sequence[Hour], now: datetime) -> Sparkline:
    """The present hour is the last bar."""
    by_start = {hour.begins_at: hour for hour in hours}
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    highest = max((hour.delivered + hour.failed for hour in hours), default=0)
    bars = [
        _bar(place, start, by_start.get(start), highest)
        for place in range(HOURS)
        for start in [first + timedelta(hours=place)]
    ]
    return Sparkline(bars, sum(bar.delivered for bar in bars), sum(bar.failed for bar in bars))


def _bar(place: int, start: datetime, hour: Hour | None, highest: int) -> Bar:
    delivered, failed = (hour.delivered, hour.failed) if hour else (0, 0)
    failed_height = _height(failed, highest, HEIGHT)
    # What little failed is never drawn over the edge.
    delivered_height = _height(delivered, highest, HEIGHT - failed_height)
    return Bar(round(place * _STEP, 2), start, delivered, failed, delivered_height, failed_height)


def _height(count: int, highest: int, most: float) -> float:
    return round(min(max(HEIGHT * count / highest, _LEAST), most), 2) if count else 0
