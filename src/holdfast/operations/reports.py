"""How a project has fared over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.project import Project
from holdfast.domain.reports import (
    Conversion,
    SalesDay,
    StatusDay,
    Step,
    conversion,
    days_up_to,
    sales_days,
    status_days,
)
from holdfast.domain.status import Status
from holdfast.operations.units import Units
from holdfast.storage import projects, reports
from holdfast.storage.database import Database

__all__ = ["ProjectFigures", "Reports", "Sums"]

SUMMED_AT_ONCE = 10_000
UNSUMMED_AT_MOST = 500
"""So few events are read one by one, where they are wanted."""
COMPARED_EVERY = timedelta(minutes=5)
COUNTED_AT_ONCE = 5000
"""The units of a project that a page may count; the loop counts the others."""


class ProjectFigures(NamedTuple):
    project: Project
    statuses: Sequence[StatusDay]
    sales: Sequence[SalesDay]
    conversion: Conversion

    @property
    def value_sar(self) -> Decimal:
        return sum((day.value_sar for day in self.sales), Decimal(0))

    @property
    def units_sold(self) -> int:
        return sum(day.units for day in self.sales)


class _Read(NamedTuple):
    project: Project
    days: Sequence[date]
    counted: int
    """Units, when they were last counted by the time of their creation."""
    now: Mapping[Status, int]
    steps: Mapping[date, Mapping[Step, int]]
    created: Mapping[date, Mapping[Status, int]]
    sold: Mapping[date, tuple[int, Decimal]]


class Sums:
    """Of events and of units created, kept up by a loop: pages then find next to nothing left to sum.

    However many loops there are, one at a time does it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sum_up(self) -> None:
        while True:
            async with self._database.writing() as connection:
                if await reports.sum_events(connection, SUMMED_AT_ONCE) < SUMMED_AT_ONCE:
                    break
        async with self._database.writing() as connection:
            is_time = await reports.take_comparison(connection, COMPARED_EVERY)
        if is_time:
            await self._count_units()

    async def _count_units(self) -> None:
        async with self._database.reading() as connection:
            project_ids = await reports.miscounted(connection)
        for project_id in project_ids:
            async with self._database.writing() as connection:
                await reports.recount(connection, project_id)


class Reports:
    def __init__(self, database: Database, inventory: Units) -> None:
        self._database = database
        self._inventory = inventory

    async def of(self, slug: str, number_of_days: int, zone: str) -> ProjectFigures:
        """The last days, each as long as it is in that time zone."""
        project_id = await self._inventory.project_id(slug)
        await self._sum_up()
        found = await self._read(project_id, number_of_days, zone)
        total = sum(found.now.values())
        if found.counted != total and (total <= COUNTED_AT_ONCE or found.counted == 0):
            async with self._database.writing() as connection:
                await reports.recount(connection, project_id)
            found = await self._read(project_id, number_of_days, zone)
        return ProjectFigures(
            found.project,
            status_days(found.days, found.now, found.steps, found.created),
            sales_days(found.days, found.sold),
            conversion(found.days, found.steps),
        )

    async def _sum_up(self) -> None:
        """What little the loop has left; without a loop, or before its first round, more."""
        async with self._database.reading() as connection:
            unsummed = await reports.unsummed(connection)
        if unsummed > UNSUMMED_AT_MOST:
            async with self._database.writing() as connection:
                await reports.sum_events(connection, SUMMED_AT_ONCE)

    async def _read(self, project_id: UUID, number_of_days: int, zone: str) -> _Read:
        async with self._database.reading_snapshot() as connection:
            days = days_up_to(await reports.today(connection, zone), number_of_days)
            return _Read(
                await projects.get(connection, project_id),
                days,
                await reports.counted_units(connection, project_id),
                await reports.stored_counts(connection, project_id),
                await reports.steps(connection, project_id, days[0], zone),
                await reports.created(connection, project_id, days[0], zone),
                await reports.sold(connection, project_id, days[0], zone),
            )
