"""Reports: the figures of a project over time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from holdfast.domain import reports as domain
from holdfast.domain.project import Project
from holdfast.operations.units import Units
from holdfast.storage import projects, reports
from holdfast.storage.database import Database

SUMMED_AT_ONCE = 10_000
MAX_UNSUMMED = 500
"""So few events are read one by one."""
COMPARED_EVERY = timedelta(minutes=5)
COUNTED_AT_ONCE = 5000
"""The units of a project that a page may count; the loop counts the others."""


class ProjectFigures(NamedTuple):
    project: Project
    statuses: Sequence[domain.StatusDay]
    sales: Sequence[domain.SalesDay]
    conversion: domain.Conversion

    @property
    def value_sar(self) -> Decimal:
        return sum((day.value_sar for day in self.sales), Decimal(0))

    @property
    def units_sold(self) -> int:
        return sum(day.units for day in self.sales)


async def sum_up(database: Database) -> None:
    """Leave pages next to nothing to sum. However many processes call this, one at a time does it."""
    while True:
        async with database.writing() as connection:
            if await reports.sum_events(connection, SUMMED_AT_ONCE) < SUMMED_AT_ONCE:
                break
    async with database.writing() as connection:
        if not await reports.take_comparison(connection, COMPARED_EVERY):
            return
    for project_id in await database.read(reports.miscounted):
        async with database.writing() as connection:
            await reports.recount(connection, project_id)


class Reports:
    def __init__(self, database: Database, units: Units) -> None:
        self._database = database
        self._units = units

    async def load(self, slug: str, number_of_days: int, zone: str) -> ProjectFigures:
        """Return the figures of the last days, each as long as it is in that time zone."""
        project_id = await self._units.project_id(slug)
        # The loop leaves few events; without a loop, or before its first round, there are more.
        if await self._database.read(reports.unsummed) > MAX_UNSUMMED:
            await self._write_first(reports.sum_events, SUMMED_AT_ONCE)
        figures, is_miscounted = await self._load(project_id, number_of_days, zone)
        if is_miscounted:
            await self._write_first(reports.recount, project_id)
            figures, _ = await self._load(project_id, number_of_days, zone)
        return figures

    async def _write_first(self, statement: Callable[..., Awaitable[object]], argument: object) -> None:
        async def write() -> None:
            async with self._database.writing() as connection:
                await statement(connection, argument)

        await self._database.write_for_reader("reports", write)

    async def _load(self, project_id: UUID, number_of_days: int, zone: str) -> tuple[ProjectFigures, bool]:
        """Return also whether units were created that have to be counted first."""
        async with self._database.reading_snapshot() as connection:
            days = domain.days_up_to(await reports.today(connection, zone), number_of_days)
            project = await projects.get(connection, project_id)
            counted = await reports.counted_units(connection, project_id)
            now = await reports.stored_counts(connection, project_id)
            steps = await reports.steps(connection, project_id, days[0], zone)
            created = await reports.created(connection, project_id, days[0], zone)
            sold = await reports.sold(connection, project_id, days[0], zone)
        total = sum(now.values())
        is_miscounted = counted != total and (total <= COUNTED_AT_ONCE or counted == 0)
        statuses = domain.status_days(days, now, steps, created)
        figures = ProjectFigures(
            project, statuses, domain.sales_days(days, sold), domain.conversion(days, steps)
        )
        return figures, is_miscounted
