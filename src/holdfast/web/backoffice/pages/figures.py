"""How a project has fared: plots, with the numbers behind them."""

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
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.board import slug_of
from holdfast.web.backoffice.pages.plots import HEIGHT, WIDTH, Area, Bar, areas, bars, top_of
from holdfast.web.backoffice.visits import PREFIX, Visit

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
