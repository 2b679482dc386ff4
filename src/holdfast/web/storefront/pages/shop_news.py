"""What a browser that shows a project or a unit is told. The same for all, in any language."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from holdfast.domain.board import BoardUnit, Counts
from holdfast.domain.status import Status
from holdfast.operations.watching import Watcher, Watching
from holdfast.web.html.live import event
from holdfast.web.html.moments import milliseconds


class ShopNews:
    """For one browser; the source of its stream."""

    def __init__(self, watching: Watching, watcher: Watcher) -> None:
        self._watching = watching
        self._watcher = watcher
        self._has_begun = False

    async def arrival(self) -> None:
        await self._watcher.arrival()

    def take(self) -> bytes:
        news = self._watcher.take()
        on_sale = [unit for unit in news.units if unit.status is not Status.UNAVAILABLE]
        # Of what is not on sale nothing is told, but that there is something to look at anew.
        told = event("anew", b"{}") if news.everything or len(on_sale) < len(news.units) else b""
        if on_sale or news.counts:
            told += event("units", _document(on_sale, news.counts))
        return told + self._beat()

    def beat(self) -> bytes:
        """None while the database is not heard: whoever hears nothing shows that it is not up to date."""
        if self._has_begun and not self._watching.is_current:
            return b""
        self._has_begun = True
        return self._beat()

    def close(self) -> None:
        self._watcher.close()

    def _beat(self) -> bytes:
        moment = self._watcher.moment
        now = self._watching.now() or moment
        assert moment is not None
        assert now is not None
        return event("beat", b'{"now":%d}' % milliseconds(now), str(milliseconds(moment)))


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
