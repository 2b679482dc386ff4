"""For development: what the feed has, posted to one URL, signed as a delivery is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import uuid4

import msgspec

from holdfast.domain.delivery import AttemptResult
from holdfast.operations.events import EventFeed, FeedItem, event_document
from holdfast.webhooks.attempt import Post, Secret
from holdfast.webhooks.sender import Sender

ITEMS_AT_ONCE = 100


class Forwarded(NamedTuple):
    item: FeedItem
    attempted: AttemptResult


class Forwarder:
    """One event after the other, each once: whoever listens sees for himself what came of it."""

    def __init__(
        self, feed: EventFeed, sender: Sender, url: str, secret: str, events: Sequence[str] = ()
    ) -> None:
        self._feed = feed
        self._sender = sender
        self._url = url
        self._secret = Secret(uuid4(), secret)
        self._events = frozenset(events)
        self._position: int | None = None

    async def start(self) -> None:
        """From here on, not from the beginning."""
        _, self._position = await self._feed.span(None)

    async def run_once(self, tell: Callable[[Forwarded], None]) -> bool:
        """Whether there may be more at once."""
        page = await self._feed.read(self._position, ITEMS_AT_ONCE, None)
        for item in page.items:
            if not self._events or item.type in self._events:
                tell(Forwarded(item, await self._sender.send(self._post(item))))
            self._position = item.position
        self._position = page.next_position
        return len(page.items) == ITEMS_AT_ONCE

    def _post(self, item: FeedItem) -> Post:
        body = msgspec.json.encode(event_document(item, item.project_slug))
        return Post(self._url, item.type, item.id, body, self._read_secret, time.time)

    async def _read_secret(self) -> Secret:
        return self._secret
