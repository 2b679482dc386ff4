"""Units as a file: what an import understands, and what it says besides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO

from starlette.responses import Response, StreamingResponse

from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.operations.units import Units
from holdfast.web.api.parameters import slug_in_path
from holdfast.web.pages.backoffice.base import Visit
from holdfast.web.pages.forms import Form
from holdfast.web.pages.sessions import PAGE_HEADERS
from holdfast.web.request import Request
from holdfast.web.spreadsheets.csv_files import BYTE_ORDER_MARK, CellRow, csv_lines
from holdfast.web.spreadsheets.processes import WorkbookWriter
from holdfast.web.spreadsheets.unit_rows import headings, unit_row

UNITS_A_PAGE = 500
CSV = "text/csv; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_PIECE = 256 * 1024


class ExportPages:
    def __init__(self, inventory: Units) -> None:
        self._inventory = inventory
        self._workbooks = WorkbookWriter()

    async def csv(self, visit: Visit) -> Response:
        slug = _slug(visit.request)
        # An unknown project is refused before the answer begins.
        await self._inventory.project_id(slug)
        lines = self._csv(slug, visit.language.code, _statuses(visit.query))
        return StreamingResponse(lines, headers=_headers(f"{slug}-units.csv"), media_type=CSV)

    async def xlsx(self, visit: Visit) -> Response:
        slug, language = _slug(visit.request), visit.language
        await self._inventory.project_id(slug)
        pages = self._pages(slug, language.code, _statuses(visit.query))
        file = await self._workbooks.write(
            headings(language.code), pages, right_to_left=language.direction == "rtl"
        )
        headers = {**_headers(f"{slug}-units.xlsx"), "Content-Length": str(_length(file))}
        return StreamingResponse(_pieces(file), headers=headers, media_type=XLSX)

    async def _csv(self, slug: str, language: str, statuses: frozenset[Status]) -> AsyncIterator[bytes]:
        yield BYTE_ORDER_MARK.encode() + csv_lines([headings(language)])
        async for rows in self._pages(slug, language, statuses):
            yield csv_lines(rows)

    async def _pages(
        self, slug: str, language: str, statuses: frozenset[Status]
    ) -> AsyncIterator[list[CellRow]]:
        """One page is in memory at a time, and no connection is kept while it is being sent."""
        after, more = "", True
        only = next(iter(statuses)) if len(statuses) == 1 else None
        while more:
            units, _ = await self._inventory.page(slug, after, UNITS_A_PAGE, only, None)
            units, more = units[:UNITS_A_PAGE], len(units) > UNITS_A_PAGE
            if units:
                after = units[-1].code
                yield [unit_row(unit, language) for unit in units if _is_wanted(unit, statuses)]


def _is_wanted(unit: Unit, statuses: frozenset[Status]) -> bool:
    return not statuses or unit.status in statuses


def _statuses(query: Form) -> frozenset[Status]:
    """None at all is all of them; what is no status filters nothing."""
    return frozenset(Status(name) for name in query.all("status") if name in tuple(Status))


def _slug(request: Request) -> str:
    return slug_in_path(request)


def _headers(name: str) -> dict[str, str]:
    return {**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}


def _length(file: IO[bytes]) -> int:
    length = file.seek(0, 2)
    file.seek(0)
    return length


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
