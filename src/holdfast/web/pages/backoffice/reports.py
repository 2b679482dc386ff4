"""The geometry of plots: a picture of a thousand by three hundred, which pages stretch as they need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, tzinfo
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.permissions import Permission
from holdfast.domain.reports import PERIODS_DAYS, SalesDay, StatusDay
from holdfast.domain.status import Status
from holdfast.operations.reports import Reports
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.backoffice.boards import slug_of

WIDTH = 1000
HEIGHT = 300

Number = float


class Area(NamedTuple):
    name: str
    path: str


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def top_of(highest: Number) -> int:
    """A round number that is not lower: 1, 2, 4, 5 or 10 with zeros behind it; each has a half or is one."""
    step = 1
    while True:
        for factor in (1, 2, 4, 10):
            if factor * step >= highest:
                return factor * step
        step *= 10


def areas(series: Sequence[tuple[str, Sequence[Number]]], top: Number) -> list[Area]:
    """Upon each other, the first at the bottom."""
    floor: list[Number] = [0.0] * len(series[0][1])
    drawn = []
    for name, values in series:
        ceiling = [below + value for below, value in zip(floor, values, strict=True)]
        points = [*_points(ceiling, top), *reversed(_points(floor, top))]
        drawn.append(Area(name, "M" + "L".join(points) + "Z"))
        floor = ceiling
    return drawn


def bars(values: Sequence[Number], top: Number) -> list[Bar]:
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


def _points(values: Sequence[Number], top: Number) -> list[str]:
    last = max(len(values) - 1, 1)
    return [
        f"{round(WIDTH * at / last, 2):g} {round(HEIGHT - HEIGHT * value / top, 2):g}"
        for at, value in enumerate(values)
    ]


# How a project has fared: plots, with the numbers behind them.

DEFAULT_DAYS = 90
DAILY_UP_TO = 90
_UPWARDS = (Status.SOLD, Status.RESERVED, Status.HELD, Status.AVAILABLE)


class StatusPlot(NamedTuple):
    days: Sequence[StatusDay]
    areas: Sequence[Area]
    top: int


class SalesPlot(NamedTuple):
    days: Sequence[SalesDay]
    bars: Sequence[Bar]
    top: int


class FigurePages:
    def __init__(self, figures: Reports) -> None:
        self._figures = figures

    async def show(self, visit: Visit) -> Response:
        asked = visit.query.text("days")
        days = next((number for number in PERIODS_DAYS if str(number) == asked), DEFAULT_DAYS)
        found = await self._figures.of(slug_of(visit.request), days, str(visit.language.zone))
        step = 1 if days <= DAILY_UP_TO else 7
        return await visit.render(
            "figures.html",
            project=found.project,
            figures=found,
            tab="figures",
            days=days,
            periods=PERIODS_DAYS,
            is_daily=step == 1,
            statuses=_UPWARDS,
            status_plot=_status_plot(found.statuses, step),
            sales_plot=_sales_plot(found.sales, step),
            width=WIDTH,
            height=HEIGHT,
            noon=partial(_noon, visit.language.zone),
        )


def _status_plot(days: Sequence[StatusDay], step: int) -> StatusPlot:
    shown = days[::-step][::-1]
    top = top_of(max(sum(day.units[status] for status in _UPWARDS) for day in shown))
    series = [(status.value, [day.units[status] for day in shown]) for status in _UPWARDS]
    return StatusPlot(shown, areas(series, top), top)


def _sales_plot(days: Sequence[SalesDay], step: int) -> SalesPlot:
    """Each stands for the days up to it, from the one before."""
    ends = range(len(days), 0, -step)
    shown = [_together(days[max(0, end - step) : end]) for end in ends][::-1]
    top = top_of(float(max(day.value_sar for day in shown)))
    return SalesPlot(shown, bars([float(day.value_sar) for day in shown], top), top)


def _together(days: Sequence[SalesDay]) -> SalesDay:
    value = sum((day.value_sar for day in days), Decimal(0))
    return SalesDay(days[-1].day, sum(day.units for day in days), value)


def _noon(zone: tzinfo, day: date) -> datetime:
    """A moment of that day, for those who write moments."""
    return datetime.combine(day, time(12), zone)


def figure_routes(desk: Desk, figures: Reports) -> list[Route]:
    path = f"{PREFIX}/projects/{{slug}}/figures"
    return [desk.page(path, Permission.SEE_UNITS, GET=FigurePages(figures).show)]
