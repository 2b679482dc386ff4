"""The board of a project: the building as a picture, the same as a table, and both of them live."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import Fault
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Status
from holdfast.operations.boards import Boards
from holdfast.operations.live_updates import LiveUpdates
from holdfast.operations.units import Units
from holdfast.web.addresses import project_of
from holdfast.web.api.bodies import refuse_faults
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.board_cells import CellWriter
from holdfast.web.backoffice.pages.board_filters import NAMES, AskedFor, read_filters
from holdfast.web.backoffice.pages.board_news import BoardNews
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.html.live import EventStream
from holdfast.web.html.moments import milliseconds, told_until, whole_number
from holdfast.web.request import Request

ROWS = 100


class BoardPages:
    def __init__(self, boards: Boards, watching: LiveUpdates, inventory: Units) -> None:
        self._boards = boards
        self._watching = watching
        self._inventory = inventory

    async def show(self, visit: Visit) -> Response:
        slug, sent = slug_of(visit.request), visit.query
        asked = read_filters(visit, sent)
        if sent.text("view") == "table":
            return await self._table(visit, slug, asked)
        board = await self._boards.board(slug, whole_number(sent.text("building")) or 0)
        writer = CellWriter(visit.language, slug)
        return await visit.render(
            "board_part.html" if visit.is_fragment else "board.html",
            project=board.project,
            board=board,
            buildings=[writer.building(building, asked.filters) for building in board.buildings],
            asked=asked,
            statuses=list(Status),
            tab="board",
            since=milliseconds(board.seen_at),
            live=_live_address(slug, asked, "board"),
        )

    async def _table(self, visit: Visit, slug: str, asked: AskedFor) -> Response:
        after = asked.typed.raw("after")
        table = await self._boards.table(slug, asked.filters, after, ROWS)
        return await visit.render(
            "table_part.html" if visit.is_fragment else "table.html",
            project=table.project,
            table=table,
            board=table,
            rows=list(zip(table.units, table.floors, strict=True)),
            writer=CellWriter(visit.language, slug),
            asked=asked,
            statuses=list(Status),
            tab="table",
            since=milliseconds(table.seen_at),
            live=_live_address(slug, asked, "table"),
            first=_page_address(slug, asked, None) if after else None,
            next=_page_address(slug, asked, table.next_code) if table.next_code is not None else None,
        )

    async def live(self, visit: Visit) -> Response:
        slug, sent = slug_of(visit.request), visit.query
        filters = read_filters(visit, sent).filters
        project_id = await self._inventory.project_id(slug)
        turn = whole_number(sent.text("turn"))
        watcher = await self._watching.watch(project_id, told_until(visit.request, sent), turn)
        as_table = sent.text("view") == "table"
        news = BoardNews(self._watching, watcher, visit.language, slug, filters, as_table=as_table)
        return EventStream(news, partial(_is_still_signed_in, visit), visit.request.stopping)


def slug_of(request: Request) -> str:
    faults: list[Fault] = []
    slug = project_of(request, faults)
    refuse_faults(faults)
    return slug


async def _is_still_signed_in(visit: Visit) -> bool:
    """A board that is left open is no sign of anybody."""
    found = await visit.desk.signing_in.find(visit.token, takes_notice=False, is_click=False)
    return found is not None


def _filtering(asked: AskedFor) -> list[tuple[str, str]]:
    return [(name, value) for name in NAMES for value in asked.typed.all(name) if value]


def _live_address(slug: str, asked: AskedFor, view: str) -> str:
    return f"{PREFIX}/projects/{slug}/live?{urlencode([('view', view), *_filtering(asked)])}"


def _page_address(slug: str, asked: AskedFor, after: str | None) -> str:
    place = [] if after is None else [("after", after)]
    return f"{PREFIX}/projects/{slug}?{urlencode([('view', 'table'), *_filtering(asked), *place])}"


def board_routes(desk: Desk, boards: Boards, watching: LiveUpdates, inventory: Units) -> list[Route]:
    pages = BoardPages(boards, watching, inventory)
    project = f"{PREFIX}/projects/{{slug}}"
    return [
        desk.page(f"{project}/live", Permission.SEE_UNITS, GET=pages.live),
        desk.page(project, Permission.SEE_UNITS, GET=pages.show),
    ]
