"""What a browser that shows a project or a unit is told. The same for all, in any language."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from holdfast.domain.layout import BoardUnit, Counts
from holdfast.domain.status import Status
from holdfast.operations.live_updates import News
from holdfast.web.html.live import event
from holdfast.web.html.moments import milliseconds
from holdfast.web.html.watched import WatchedProject


class ShopNews(WatchedProject):
    def told(self, news: News) -> bytes:
        on_sale = [unit for unit in news.units if unit.status is not Status.UNAVAILABLE]
        # Of what is not on sale nothing is told, but that there is something to look at anew.
        told = event("anew", b"{}") if news.everything or len(on_sale) < len(news.units) else b""
        if on_sale or news.counts:
            told += event("units", _document(on_sale, news.counts))
        return told


def _document(units: list[BoardUnit], counts: Counts | None) -> bytes:
    return b'{"units":[%b],"counts":%b}' % (b",".join(map(_told, units)), _counted(counts))


def _counted(counts: Counts | None) -> bytes:
    if counts is None:
        return b"null"
    shown = {str(status): n for status, n in counts.by_status.items() if status is not Status.UNAVAILABLE}
    return msgspec.json.encode(shown)


@lru_cache(maxsize=2000)
def _told(unit: BoardUnit) -> bytes:
    """Many watch the same."""
    ends_at = None if unit.status is not Status.HELD or unit.ends_at is None else milliseconds(unit.ends_at)
    return msgspec.json.encode(
        {"code": unit.code, "status": unit.status, "version": unit.version, "endsAt": ends_at}
    )
