"""Units as the cells of a board.

There are thousands on a page, so their HTML is written here and not in a template, in less than half of the
time. What somebody typed is escaped, unless it is plain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup, escape
from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.layout import NO_FILTERS, BoardFilter, BoardUnit, Building
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Status
from holdfast.operations.boards import Boards
from holdfast.operations.live_updates import LiveUpdates, News, Watcher
from holdfast.operations.units import Units
from holdfast.web.api.parameters import slug_in_path
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.forms import Form, parse_amount
from holdfast.web.pages.i18n import Language, in_language
from holdfast.web.pages.live import (
    EventStream,
    ProjectUpdates,
    event,
    milliseconds,
    parse_last_seen,
    parse_whole_number,
)
from holdfast.web.pages.templates import templates
from holdfast.web.request import Request

_ARABIC = str.maketrans("0123456789,.", "٠١٢٣٤٥٦٧٨٩٬\N{ARABIC DECIMAL SEPARATOR}")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_is_plain = re.compile(r"[A-Za-z0-9._~-]+").fullmatch
"""The same in HTML, and in an address."""
_GAP = '<i class="gap"></i>'


class FloorOfCells(NamedTuple):
    number: int | None
    cells: Markup


class BuildingOfCells(NamedTuple):
    name: str | None
    units: int
    available: int
    floors: Sequence[FloorOfCells]


class CellWriter:
    """For one person."""

    def __init__(self, language: Language, slug: str) -> None:
        self._base = f"/backoffice/projects/{slug}/units/"
        self._language = language
        self._is_arabic = language.code == "ar"
        self._in_arabic_digits = language.digits == "arab"
        self._known: dict[str, tuple[str, str]] = {}
        self.words = status_words(language)
        self._sqm = language.gettext("m²")

    def building(self, building: Building, filters: BoardFilter) -> BuildingOfCells:
        floors = [FloorOfCells(number, self._cells(units, filters)) for number, units in building.floors]
        units = [unit for floor in building.floors for unit in floor.units if unit is not None]
        available = sum(unit.status is Status.AVAILABLE and not unit.archived for unit in units)
        return BuildingOfCells(building.name, len(units), available, floors)

    def cell(self, unit: BoardUnit, filters: BoardFilter = NO_FILTERS) -> str:
        """One link, as light as can be. ``data-f`` is what the filters of the browser go by: price, bedrooms,
        price per m², type."""
        look = "archived" if unit.archived else unit.status.value
        word, (kind, own_kind) = self.words[look], self._kind(unit.type)
        code = unit.code if _is_plain(unit.code) else str(escape(unit.code))
        end = self._end(unit)
        more = (" timed" if end else "") + ("" if filters is NO_FILTERS or filters.match(unit) else " dim")
        return (
            f'<a class="u is-{look}{more}" href="{self.address(unit)}" aria-label="{code}, {word}"'
            f' title="{word} · {own_kind} · {self.area(unit.area_sqm)} · {self.money(unit.price_sar)}"'
            f' data-f="{unit.price_sar}|{_or_nothing(unit.bedrooms)}|{unit.sqm_price_sar}|{kind}"'
            f' data-v="{unit.version}"><bdi>{code}</bdi>{end}</a>'
        )

    def _cells(self, units: Iterable[BoardUnit | None], filters: BoardFilter) -> Markup:
        wanted = NO_FILTERS if filters == NO_FILTERS else filters
        return Markup("".join(_GAP if unit is None else self.cell(unit, wanted) for unit in units))  # noqa: S704

    def _end(self, unit: BoardUnit) -> str:
        if unit.status is not Status.HELD or unit.ends_at is None:
            return ""
        shown = self._digits(f"{unit.ends_at.astimezone(self._language.zone):%H:%M}")
        return f'<span data-ends="{unit.ends_at.timestamp()}">{shown}</span>'

    def _kind(self, text: str) -> tuple[str, str]:
        """As it is kept, and as this person reads it. Types are few."""
        found = self._known.get(text)
        if found is None:
            own = in_language(text, self._language.code)
            found = self._known[text] = (str(escape(text)), str(escape(own)))
        return found

    def address(self, unit: BoardUnit) -> str:
        return self._base + (unit.code if _is_plain(unit.code) else quote(unit.code, safe=""))

    def money(self, value: Decimal) -> str:
        """As ``Language.money``, in a tenth of the time; a test holds the two against each other."""
        whole = int(value)
        amount = self._digits(f"{whole:,}" if whole == value else f"{value:,.2f}")
        return f"{amount}{_NO_BREAK}ر.س" if self._is_arabic else f"SAR{_NO_BREAK}{amount}"

    def area(self, value: Decimal) -> str:
        return f"{self._digits(f'{value:,f}')}{_NO_BREAK}{self._sqm}"

    def _digits(self, text: str) -> str:
        return text.translate(_ARABIC) if self._in_arabic_digits else text


def _or_nothing(number: int | None) -> str:
    return "" if number is None else str(number)


def status_words(language: Language) -> dict[str, str]:
    return {
        "available": language.gettext("Available"),
        "held": language.gettext("Held"),
        "reserved": language.gettext("Reserved"),
        "sold": language.gettext("Sold"),
        "unavailable": language.gettext("Unavailable"),
        "archived": language.gettext("Archived"),
    }


# Which units a board is asked for. A wrong filter filters nothing, and says so beside its field.

AMOUNTS = ("priceFrom", "priceTo", "sqmFrom", "sqmTo")
NAMES = ("status", "type", *AMOUNTS, "bedrooms")
MOST_BEDROOMS = 999
LONGEST_TYPE = 100

_WHOLE = re.compile(r"\d{1,3}")


class AskedFor(NamedTuple):
    filters: BoardFilter
    typed: Form
    faults: dict[str, str]

    @property
    def is_any(self) -> bool:
        return any(self.typed.text(name) for name in NAMES)

    @property
    def is_narrowed(self) -> bool:
        """By more than the status, which is seen at once."""
        return any(self.typed.text(name) for name in NAMES if name != "status")


def read_filters(visit: Visit, sent: Form) -> AskedFor:
    faults: dict[str, str] = {}
    amounts = {name: _amount(visit, sent, name, faults) for name in AMOUNTS}
    filters = BoardFilter(
        statuses=frozenset(Status(value) for value in sent.all("status") if value in set(Status)),
        type=sent.raw("type")[:LONGEST_TYPE] or None,
        price_from=amounts["priceFrom"],
        price_to=amounts["priceTo"],
        bedrooms=_bedrooms(visit, sent, faults),
        sqm_price_from=amounts["sqmFrom"],
        sqm_price_to=amounts["sqmTo"],
    )
    return AskedFor(filters, sent, faults)


def _amount(visit: Visit, sent: Form, name: str, faults: dict[str, str]) -> Decimal | None:
    text = sent.text(name)
    amount = parse_amount(text)
    if text and amount is None:
        faults[name] = visit._("This must be an amount.")
    return amount


def _bedrooms(visit: Visit, sent: Form, faults: dict[str, str]) -> int | None:
    text = sent.text("bedrooms")
    if not text:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    faults["bedrooms"] = visit._("This must be a whole number.")
    return None


# What a browser that shows a board is told: the cells and rows that are different now, and the counts.


class BoardNews(ProjectUpdates):
    def __init__(
        self,
        watching: LiveUpdates,
        watcher: Watcher,
        language: Language,
        slug: str,
        filters: BoardFilter,
        *,
        as_table: bool,
    ) -> None:
        super().__init__(watching, watcher)
        self._language = language
        self._slug = slug
        self._filters = filters
        self._as_table = as_table

    def render_events(self, news: News) -> bytes:
        told = event("everything", b"{}") if news.everything else b""
        if news.units or news.counts:
            told += event("units", msgspec.json.encode(self._document(news)))
        return told

    def _document(self, news: News) -> dict[str, Any]:
        number = self._language.number
        counts = (
            {}
            if news.counts is None
            else {status.value: number(units) for status, units in news.counts.by_status.items()}
        )
        return {"counts": counts, "units": [self._unit(unit) for unit in news.units]}

    def _unit(self, unit: BoardUnit) -> dict[str, Any]:
        return {
            "code": unit.code,
            "version": unit.version,
            "fits": self._filters.match(unit),
            "html": fragment(unit, self._language, self._slug, self._as_table),
        }


@lru_cache(maxsize=2000)
def fragment(unit: BoardUnit, language: Language, slug: str, as_table: bool) -> str:
    """Many see the same, in one of few languages."""
    writer = CellWriter(language, slug)
    if not as_table:
        return writer.cell(unit)
    template = templates().get_template("backoffice/table_row.html")
    return template.render(language=language, writer=writer, one=unit, place=None)


# The board of a project: the building as a picture, the same as a table, and both of them live.

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
        board = await self._boards.board(slug, parse_whole_number(sent.text("building")) or 0)
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
        turn = parse_whole_number(sent.text("turn"))
        watcher = await self._watching.watch(project_id, parse_last_seen(visit.request, sent), turn)
        as_table = sent.text("view") == "table"
        news = BoardNews(self._watching, watcher, visit.language, slug, filters, as_table=as_table)
        return EventStream(news, partial(_is_still_signed_in, visit), visit.request.stopping)


def slug_of(request: Request) -> str:
    return slug_in_path(request)


async def _is_still_signed_in(visit: Visit) -> bool:
    """A board that is left open is no sign of anybody."""
    found = await visit.desk.login.find(visit.token, takes_notice=False, is_click=False)
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
