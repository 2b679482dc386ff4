"""What a browser that watches a project is told: news when there are some, and that it is up to date."""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.operations.live_updates import LiveUpdates, News, Watcher
from holdfast.web.html.live import event
from holdfast.web.html.moments import milliseconds


class WatchedProject(ABC):
    """For one browser; the source of its stream. Each surface says in its own way what is new."""

    def __init__(self, watching: LiveUpdates, watcher: Watcher) -> None:
        self._watching = watching
        self._watcher = watcher
        self._has_begun = False

    @abstractmethod
    def told(self, news: News) -> bytes:
        """The events that tell it; none is fine."""

    async def arrival(self) -> None:
        await self._watcher.arrival()

    def take(self) -> bytes:
        return self.told(self._watcher.take()) + self._beat()

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
