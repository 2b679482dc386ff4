"""The figures of a project: units by status and sales over time, as plots and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import NamedTuple

from starlette.responses import Response

from holdfast.domain.permissions import Permission
from holdfast.domain.reports import PERIODS_DAYS, SalesDay
from holdfast.domain.status import Status
from holdfast.web.pages.backoffice.base import StaffRequest, pages

DEFAULT_DAYS = 90
DAILY_UP_TO = 90
# Of a picture that pages stretch as they need.
WIDTH = 1000
HEIGHT = 300

_FROM_BOTTOM = (Status.SOLD, Status.RESERVED, Status.HELD, Status.AVAILABLE)


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float


@pages.get("/projects/{slug}/figures", Permission.SEE_UNITS)
async def show_figures(request: StaffRequest, slug: str) -> Response:
    chosen, zone = request.query.text("days"), request.language.zone
    days = next((number for number in PERIODS_DAYS if str(number) == chosen), DEFAULT_DAYS)
    figures = await request.services.reports.load(slug, days, str(zone))
    step = 1 if days <= DAILY_UP_TO else 7
    status_days = figures.statuses[::-step][::-1]
    status_top = round_up(max(sum(day.units[status] for status in _FROM_BOTTOM) for day in status_days))
    series = [(status.value, [day.units[status] for day in status_days]) for status in _FROM_BOTTOM]
    # Each bar stands for ``step`` days, and is named by the last of them.
    ends = range(len(figures.sales), 0, -step)
    sales_days = [_sum_days(figures.sales[max(0, end - step) : end]) for end in ends][::-1]
    sales_top = round_up(float(max(day.value_sar for day in sales_days)))
    return await request.render(
        "figures.html",
        project=figures.project,
        figures=figures,
        tab="figures",
        days=days,
        periods=PERIODS_DAYS,
        is_daily=step == 1,
        statuses=_FROM_BOTTOM,
        status_days=status_days,
        status_top=status_top,
        areas=areas(series, status_top),
        sales_days=sales_days,
        sales_top=sales_top,
        bars=bars([float(day.value_sar) for day in sales_days], sales_top),
        width=WIDTH,
        height=HEIGHT,
        # A time of the day, for the filter that writes dates.
        noon=lambda day: datetime.combine(day, time(12), zone),
    )


def _sum_days(days: Sequence[SalesDay]) -> SalesDay:
    value = sum((day.value_sar for day in days), Decimal(0))
    return SalesDay(days[-1].day, sum(day.units for day in days), value)


def round_up(highest: float) -> int:
    """Return 1, 2, 4 or 10 with zeros behind it that is not lower: each has a half or is one."""
    step = 1
    while True:
        for factor in (1, 2, 4, 10):
            if factor * step >= highest:
                return factor * step
        step *= 10


def areas(series: Sequence[tuple[str, Sequence[float]]], top: float) -> list[tuple[str, str]]:
    """Draw the series upon each other, the first at the bottom: name and path of each."""
    floor: list[float] = [0.0] * len(series[0][1])
    drawn = []
    for name, values in series:
        ceiling = [below + value for below, value in zip(floor, values, strict=True)]
        points = [*_points(ceiling, top), *reversed(_points(floor, top))]
        drawn.append((name, "M" + "L".join(points) + "Z"))
        floor = ceiling
    return drawn


def bars(values: Sequence[float], top: float) -> list[Bar]:
    width = WIDTH / (len(values) or 1)
    return [
        Bar(
            round(at * width + width * 0.12, 2),
            round(HEIGHT - HEIGHT * value / top, 2),
            round(width * 0.76, 2),
            round(HEIGHT * value / top, 2),
        )
        for at, value in enumerate(values)
        if value
    ]


def _points(values: Sequence[float], top: float) -> list[str]:
    last = max(len(values) - 1, 1)
    return [
        f"{round(WIDTH * at / last, 2):g} {round(HEIGHT - HEIGHT * value / top, 2):g}"
        for at, value in enumerate(values)
    ]
