"""Units as the cells of a board.

There are thousands on a page, so their HTML is written here and not in a template, in less than half of the
time. What somebody typed is escaped, unless it is plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from holdfast.domain.layout import NO_FILTERS, BoardUnit, Building, Filters
from holdfast.domain.status import Status
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.language import Language

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

    def building(self, building: Building, filters: Filters) -> BuildingOfCells:
        floors = [FloorOfCells(number, self._cells(units, filters)) for number, units in building.floors]
        units = [unit for floor in building.floors for unit in floor.units if unit is not None]
        available = sum(unit.status is Status.AVAILABLE and not unit.archived for unit in units)
        return BuildingOfCells(building.name, len(units), available, floors)

    def cell(self, unit: BoardUnit, filters: Filters = NO_FILTERS) -> str:
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

    def _cells(self, units: Iterable[BoardUnit | None], filters: Filters) -> Markup:
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
