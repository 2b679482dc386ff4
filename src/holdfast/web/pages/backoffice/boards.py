"""The board of a project: its units as a picture or as a table, both of them live."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup, escape
from starlette.responses import Response

from holdfast.domain.board import NO_FILTERS, BoardFilter, BoardUnit, Building
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Status
from holdfast.operations.boards import Board, Table
from holdfast.operations.live_updates import BoardChanges
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages
from holdfast.web.pages.forms import Form, parse_amount, parse_whole_number
from holdfast.web.pages.i18n import Language, in_language
from holdfast.web.pages.live import EventStream, ProjectUpdates, event, milliseconds, parse_last_seen
from holdfast.web.pages.templates import templates

ROWS_A_PAGE = 100
AMOUNTS = ("priceFrom", "priceTo", "sqmFrom", "sqmTo")
FILTER_NAMES = ("status", "type", *AMOUNTS, "bedrooms")

_ARABIC = str.maketrans("0123456789,.", "٠١٢٣٤٥٦٧٨٩٬\N{ARABIC DECIMAL SEPARATOR}")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_is_plain = re.compile(r"[A-Za-z0-9._~-]+").fullmatch
"""The same in HTML, and in an address."""
_GAP = '<i class="gap"></i>'


@pages.get("/projects/{slug}/live", Permission.SEE_UNITS)
async def stream_updates(request: StaffRequest, slug: str) -> Response:
    query, live_updates = request.query, request.services.live_updates
    filters = parse_filters(request).filters
    project_id = await request.services.units.project_id(slug)
    turn = parse_whole_number(query.text("turn"))
    watcher = await live_updates.watch(project_id, parse_last_seen(request, query), turn)
    as_table = query.text("view") == "table"
    render = partial(render_events, language=request.language, slug=slug, filters=filters, as_table=as_table)
    updates = ProjectUpdates(live_updates, watcher, render)
    return EventStream(updates, request.is_still_admitted, request.stopping)


@pages.get("/projects/{slug}", Permission.SEE_UNITS)
async def show_board(request: StaffRequest, slug: str) -> Response:
    chosen = parse_filters(request)
    if request.query.text("view") == "table":
        return await _show_table(request, slug, chosen)
    building = parse_whole_number(request.query.text("building")) or 0
    board = await request.services.boards.board(slug, building)
    return await _render(request, "board", board, chosen)


async def _show_table(request: StaffRequest, slug: str, chosen: ChosenFilters) -> Response:
    after = request.query.raw("after")
    table = await request.services.boards.table(slug, chosen.filters, after, ROWS_A_PAGE)
    first = f"{PREFIX}/projects/{slug}?{chosen.query('table')}"
    following = table.next_code and f"{first}&{urlencode({'after': table.next_code})}"
    rows = list(zip(table.units, table.floors, strict=True))
    return await _render(
        request, "table", table, chosen, rows=rows, first=first if after else None, next=following
    )


async def _render(
    request: StaffRequest, view: str, board: Board | Table, chosen: ChosenFilters, **values: Any
) -> Response:
    slug = board.project.slug
    return await request.render(
        f"{view}_part.html" if request.is_fragment else f"{view}.html",
        project=board.project,
        board=board,
        writer=CellWriter(request.language, slug),
        chosen=chosen,
        statuses=list(Status),
        tab=view,
        since=milliseconds(board.seen_at),
        live=f"{PREFIX}/projects/{slug}/live?{chosen.query(view)}",
        **values,
    )


class ChosenFilters(NamedTuple):
    """The filters of a board; a wrong one filters nothing, and its field says so."""

    filters: BoardFilter
    typed: Form
    faults: dict[str, str]

    @property
    def is_any(self) -> bool:
        return any(self.typed.text(name) for name in FILTER_NAMES)

    @property
    def is_narrowed(self) -> bool:
        """Whether more is chosen than the status, which is seen at once."""
        return any(self.typed.text(name) for name in FILTER_NAMES if name != "status")

    def query(self, view: str) -> str:
        chosen = [(name, value) for name in FILTER_NAMES for value in self.typed.all(name) if value]
        return urlencode([("view", view), *chosen])


def parse_filters(request: StaffRequest) -> ChosenFilters:
    sent = request.query
    faults: dict[str, str] = {}
    amounts = {name: parse_amount(sent.text(name)) for name in AMOUNTS}
    for name, amount in amounts.items():
        if sent.text(name) and amount is None:
            faults[name] = request._("Enter a number.")
    bedrooms = sent.text("bedrooms")
    is_number = bool(re.fullmatch(r"\d{1,3}", bedrooms))
    if bedrooms and not is_number:
        faults["bedrooms"] = request._("This must be a whole number.")
    filters = BoardFilter(
        statuses=frozenset(Status(value) for value in sent.all("status") if value in set(Status)),
        type=sent.raw("type")[:100] or None,
        price_from=amounts["priceFrom"],
        price_to=amounts["priceTo"],
        bedrooms=int(bedrooms) if is_number else None,
        sqm_price_from=amounts["sqmFrom"],
        sqm_price_to=amounts["sqmTo"],
    )
    return ChosenFilters(filters, sent, faults)


class CellWriter:
    """Writes cells as HTML: for thousands on a page, a template would take more than twice as long. What
    somebody typed is escaped, unless it is plain."""

    def __init__(self, language: Language, slug: str) -> None:
        self._base = f"/backoffice/projects/{slug}/units/"
        self._language = language
        self._is_arabic = language.code == "ar"
        self._in_arabic_digits = language.digits == "arab"
        self._types: dict[str, tuple[str, str]] = {}
        self.words = {
            "available": language.gettext("Available"),
            "held": language.gettext("On hold"),
            "reserved": language.gettext("Reserved"),
            "sold": language.gettext("Sold"),
            "unavailable": language.gettext("Unavailable"),
            "archived": language.gettext("Archived"),
        }
        self._sqm = language.gettext("m²")

    def count(self, building: Building) -> tuple[int, int]:
        """Return how many units there are, and how many are available."""
        units = [unit for floor in building.floors for unit in floor.units if unit is not None]
        return len(units), sum(unit.status is Status.AVAILABLE and not unit.archived for unit in units)

    def cell(self, unit: BoardUnit, filters: BoardFilter = NO_FILTERS) -> str:
        """One link, as light as can be. ``data-f`` is what the filters of the browser go by: price, bedrooms,
        price per m², type."""
        status = "archived" if unit.archived else unit.status.value
        word, (unit_type, own_type) = self.words[status], self._type(unit.type)
        bedrooms = "" if unit.bedrooms is None else unit.bedrooms
        code = unit.code if _is_plain(unit.code) else str(escape(unit.code))
        end = self._end(unit)
        more = (" timed" if end else "") + ("" if filters is NO_FILTERS or filters.match(unit) else " dim")
        return (
            f'<a class="u is-{status}{more}" href="{self.address(unit)}" aria-label="{code}, {word}"'
            f' title="{word} · {own_type} · {self.area(unit.area_sqm)} · {self.money(unit.price_sar)}"'
            f' data-f="{unit.price_sar}|{bedrooms}|{unit.sqm_price_sar}|{unit_type}"'
            f' data-v="{unit.version}"><bdi>{code}</bdi>{end}</a>'
        )

    def cells(self, units: Iterable[BoardUnit | None], filters: BoardFilter) -> Markup:
        # Cells compare by identity, which is faster.
        filters = NO_FILTERS if filters == NO_FILTERS else filters
        return Markup("".join(_GAP if unit is None else self.cell(unit, filters) for unit in units))  # noqa: S704

    def _end(self, unit: BoardUnit) -> str:
        if unit.status is not Status.HELD or unit.ends_at is None:
            return ""
        shown = self._digits(f"{unit.ends_at.astimezone(self._language.zone):%H:%M}")
        return f'<span data-ends="{unit.ends_at.timestamp()}">{shown}</span>'

    def _type(self, text: str) -> tuple[str, str]:
        """Return a type as it is stored and as this person reads it. Types are few."""
        texts = self._types.get(text)
        if texts is None:
            own = in_language(text, self._language.code)
            texts = self._types[text] = (str(escape(text)), str(escape(own)))
        return texts

    def address(self, unit: BoardUnit) -> str:
        return self._base + (unit.code if _is_plain(unit.code) else quote(unit.code, safe=""))

    def money(self, value: Decimal) -> str:
        """Format like ``Language.money``, in a tenth of the time; a test compares the two."""
        whole = int(value)
        amount = self._digits(f"{whole:,}" if whole == value else f"{value:,.2f}")
        return f"{amount}{_NO_BREAK}ر.س" if self._is_arabic else f"SAR{_NO_BREAK}{amount}"

    def area(self, value: Decimal) -> str:
        return f"{self._digits(f'{value:,f}')}{_NO_BREAK}{self._sqm}"

    def _digits(self, text: str) -> str:
        return text.translate(_ARABIC) if self._in_arabic_digits else text


def render_events(
    changes: BoardChanges, language: Language, slug: str, filters: BoardFilter, *, as_table: bool
) -> bytes:
    events = event("everything", b"{}") if changes.everything else b""
    if changes.units or changes.counts:
        by_status = changes.counts.by_status if changes.counts else {}
        document = {
            "counts": {status.value: language.number(units) for status, units in by_status.items()},
            "units": [
                {
                    "code": unit.code,
                    "version": unit.version,
                    "fits": filters.match(unit),
                    "html": fragment(unit, language, slug, as_table),
                }
                for unit in changes.units
            ],
        }
        events += event("units", msgspec.json.encode(document))
    return events


@lru_cache(maxsize=2000)
def fragment(unit: BoardUnit, language: Language, slug: str, as_table: bool) -> str:
    """Many see the same, in one of few languages."""
    writer = CellWriter(language, slug)
    if not as_table:
        return writer.cell(unit)
    template = templates().get_template("backoffice/table_row.html")
    return template.render(language=language, writer=writer, one=unit, place=None)
