"""Live updates as a streaming response: heartbeats, and every way in which a stream ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from starlette.types import Message

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.web.pages.live import EventStream, event
from tests.support.server import PATIENCE_SECONDS

BEAT = event("heartbeat", b"0")
SOON = 0.01
NEVER = 600.0


class Source:
    """Tells what it is given."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._news: list[bytes] = []
        self.is_closed = False

    def tell(self, news: bytes) -> None:
        self._news.append(news)
        self._arrived.set()

    async def wait(self) -> None:
        await self._arrived.wait()

    def take(self) -> bytes:
        self._arrived.clear()
        news, self._news = self._news, []
        return b"".join(event("news", one) for one in news)

    def heartbeat(self) -> bytes:
        return BEAT

    def close(self) -> None:
        self.is_closed = True


class Scene:
    """A stream, its source, and its client as an ASGI server stands for it."""

    def __init__(self) -> None:
        self.source = Source()
        self.stopping = asyncio.Event()
        self.left = asyncio.Event()
        self.ends = 0
        self.task: asyncio.Task[None] | None = None
        self._sent: asyncio.Queue[Message] = asyncio.Queue()

    @asynccontextmanager
    async def watching(
        self,
        is_admitted: Callable[[], Awaitable[bool]],
        *,
        method: str = "GET",
        heartbeat_seconds: float = NEVER,
        admitted_for_seconds: float = NEVER,
    ) -> AsyncIterator[Message]:
        """The head of the response; whatever happens within, the stream must have ended after it."""
        stream = EventStream(
            self.source,
            is_admitted,
            self.stopping,
            on_end=self._end,
            heartbeat_seconds=heartbeat_seconds,
            admitted_for_seconds=admitted_for_seconds,
        )
        scope = {"type": "http", "method": method, "asgi": {"spec_version": "2.3"}}
        self.task = asyncio.create_task(stream(scope, self._receive, self._sent.put))
        yield await self._next()
        await asyncio.wait_for(asyncio.gather(self.task, return_exceptions=True), PATIENCE_SECONDS)
        assert (self.source.is_closed, self.ends) == (True, 1)

    async def body(self) -> bytes:
        body: bytes = (await self._next())["body"]
        return body

    async def rest(self) -> bytes:
        """All that comes until the end."""
        parts: bytes = b""
        while True:
            message = await self._next()
            parts += message["body"]
            if not message.get("more_body"):
                return parts

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _next(self) -> Message:
        return await asyncio.wait_for(self._sent.get(), PATIENCE_SECONDS)

    def _end(self) -> None:
        self.ends += 1


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def test_a_stream_is_kept_by_nobody_and_tells_what_happens_until_its_client_goes(scene: Scene) -> None:
    async with scene.watching(yes) as head:
        headers = dict(head["headers"])
        assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"x-accel-buffering"] == b"no"
        assert b"content-length" not in headers
        assert await scene.body() == BEAT
        for news in (b"1", b"2"):
            scene.source.tell(news)
            assert await scene.body() == event("news", news)
        scene.left.set()


async def test_a_heartbeat_comes_while_nothing_happens(scene: Scene) -> None:
    async with scene.watching(yes, heartbeat_seconds=SOON):
        assert [await scene.body() for _ in range(3)] == [BEAT] * 3
        scene.left.set()


async def test_a_stream_ends_in_order_when_the_server_stops_or_is_stopping_already(scene: Scene) -> None:
    async with scene.watching(yes):
        assert await scene.body() == BEAT
        scene.stopping.set()
        assert await scene.rest() == b""
    late = Scene()
    late.stopping.set()
    async with late.watching(yes) as head:
        assert head["status"] == 200
        assert await late.rest() == BEAT


async def test_a_server_that_stops_during_a_check_does_not_say_that_one_may_watch_no_longer(
    scene: Scene,
) -> None:
    async def nobody_knows_yet() -> bool:
        scene.stopping.set()
        return await asyncio.Event().wait()

    async with scene.watching(nobody_knows_yet, heartbeat_seconds=SOON, admitted_for_seconds=SOON):
        assert b"ended" not in await scene.rest()


async def test_a_stream_ends_when_its_task_is_cancelled(scene: Scene) -> None:
    async with scene.watching(yes):
        assert await scene.body() == BEAT
        assert scene.task is not None
        scene.task.cancel()


async def test_a_stream_of_one_who_may_watch_no_longer_says_so_and_ends(scene: Scene) -> None:
    async with scene.watching(no, heartbeat_seconds=SOON, admitted_for_seconds=SOON):
        rest = await scene.rest()
        assert rest.startswith(BEAT)
        assert rest.endswith(event("ended", b"{}"))


async def test_while_the_database_is_away_watchers_may_stay(scene: Scene) -> None:
    asked = asyncio.Event()

    async def nobody_can_tell() -> bool:
        asked.set()
        raise DatabaseUnavailable

    async with scene.watching(nobody_can_tell, heartbeat_seconds=SOON, admitted_for_seconds=SOON):
        await asyncio.wait_for(asked.wait(), PATIENCE_SECONDS)
        assert [await scene.body() for _ in range(3)] == [BEAT] * 3
        scene.left.set()


async def test_whoever_asks_for_the_head_of_a_stream_gets_no_more(scene: Scene) -> None:
    async with scene.watching(yes, method="HEAD") as head:
        assert dict(head["headers"])[b"content-type"] == b"text/event-stream; charset=utf-8"
        assert await scene.rest() == b""
