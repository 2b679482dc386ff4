"""What a browser that shows a board is told: the cells and rows that are different now, and the counts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from holdfast.domain.layout import BoardUnit, Filters
from holdfast.operations.live_updates import LiveUpdates, News, Watcher
from holdfast.web.backoffice.pages.board_cells import CellWriter
from holdfast.web.html.language import Language
from holdfast.web.html.live import event
from holdfast.web.html.templates import templates
from holdfast.web.html.watched import WatchedProject


class BoardNews(WatchedProject):
    def __init__(
        self,
        watching: LiveUpdates,
        watcher: Watcher,
        language: Language,
        slug: str,
        filters: Filters,
        *,
        as_table: bool,
    ) -> None:
        super().__init__(watching, watcher)
        self._language = language
        self._slug = slug
        self._filters = filters
        self._as_table = as_table

    def told(self, news: News) -> bytes:
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
