"""Answers whose length nobody knows beforehand, and those that have no end of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.html.live import EventStream, event
from holdfast.web.http import connection
from holdfast.web.routing import resource
from tests.support.http_serving import listening
from tests.web.connecting import KEPT_SECONDS, REQUEST, connected, rest_of

HEAD = REQUEST.replace(b"GET", b"HEAD")
CHUNKED = b"transfer-encoding: chunked"


class Told:
    """A source that is told what to tell."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._news: list[bytes] = []
        self.closed = asyncio.Event()

    def tell(self, news: bytes) -> None:
        self._news.append(news)
        self._arrived.set()

    async def arrival(self) -> None:
        await self._arrived.wait()

    def take(self) -> bytes:
        self._arrived.clear()
        news, self._news = self._news, []
        return b"".join(event("news", one) for one in news)

    def beat(self) -> bytes:
        return event("beat", b"0")

    def close(self) -> None:
        self.closed.set()


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


def streaming(told: Told) -> Front:
    async def watch(_: Call) -> ASGIApp:
        return EventStream(told, yes, beat_seconds=60)

    return Front([resource("/slow", GET=watch)])


@asynccontextmanager
async def watching(
    told: Told, state: ServerState
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Somebody who has heard the first beat."""
    async with listening(streaming(told), KEPT_SECONDS, state) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(REQUEST)
        await reader.readuntil(b"event: beat\ndata: 0\n\n")
        try:
            yield reader, writer
        finally:
            writer.close()


async def turns_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)


async def all_served(state: ServerState) -> None:
    await turns_until(lambda: not state.tasks)


async def test_what_happens_is_told_as_it_happens_however_long_nothing_does() -> None:
    told = Told()
    async with watching(told, ServerState()) as (reader, _):
        await asyncio.sleep(3 * KEPT_SECONDS)
        for news in (b"1", b"2"):
            told.tell(news)
            assert (await reader.readuntil(b"\n\n")).endswith(b"event: news\ndata: %b\n\n" % news)


async def test_a_stream_ends_at_once_when_the_server_is_asked_to_leave() -> None:
    told, state = Told(), ServerState()
    async with watching(told, state) as (reader, _):
        for one in list(state.connections):
            one.shutdown()
        await all_served(state)
        assert (await rest_of(reader)).endswith(b"0\r\n\r\n")
        assert told.closed.is_set()


async def test_a_stream_that_is_asked_for_while_the_server_leaves_ends_too() -> None:
    told, state = Told(), ServerState()
    async with listening(streaming(told), KEPT_SECONDS, state) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(REQUEST)
        await turns_until(lambda: state.tasks)
        for one in list(state.connections):
            one.shutdown()
        await all_served(state)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 200")
        writer.close()


def test_a_stream_ends_when_its_client_goes() -> None:
    """On the loop of the real server, which does not take a write to a lost connection lightly."""

    async def leave() -> None:
        told, state = Told(), ServerState()
        async with watching(told, state) as (_, writer):
            writer.transport.abort()
            async with asyncio.timeout(10):
                await told.closed.wait()
            await all_served(state)

    uvloop.run(leave())


async def test_a_client_that_takes_nothing_does_not_keep_the_server_from_leaving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", 600)
    told, state = Told(), ServerState()
    async with watching(told, state) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        told.tell(b'"%b"' % (b"a" * 20_000_000))
        (served,) = state.connections
        await turns_until(lambda: served._writing_paused)  # type: ignore[union-attr]
        served.shutdown()
        await all_served(state)
        assert told.closed.is_set()


async def test_a_stream_of_one_who_may_watch_no_longer_says_so_and_ends() -> None:
    told = Told()

    async def watch(_: Call) -> ASGIApp:
        return EventStream(told, no, beat_seconds=KEPT_SECONDS / 4, admitted_for_seconds=KEPT_SECONDS / 2)

    async with connected(Front([resource("/slow", GET=watch)])) as (reader, writer):
        writer.write(REQUEST)
        text = await reader.readuntil(b"0\r\n\r\n")
        assert text.count(b"event: beat") > 1
        assert b"event: ended" in text


async def test_whoever_asks_for_the_head_of_a_stream_gets_no_more() -> None:
    told = Told()
    async with connected(streaming(told)) as (reader, writer):
        writer.write(HEAD)
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"content-type: text/event-stream" in head
        assert await rest_of(reader) == b""
        assert told.closed.is_set()


async def download(_: Call) -> ASGIApp:
    async def parts() -> AsyncIterator[bytes]:
        for part in (b"one", b"", b"two"):
            yield part

    return StreamingResponse(parts(), media_type="text/csv")


DOWNLOAD = Front([resource("/slow", GET=download)])


async def test_an_answer_of_unknown_length_comes_in_chunks_and_leaves_the_connection_in_use() -> None:
    async with connected(DOWNLOAD) as (reader, writer):
        for _ in range(2):
            writer.write(REQUEST)
            assert CHUNKED in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_an_answer_of_unknown_length_ends_with_the_connection_for_clients_that_know_no_chunks() -> None:
    async with connected(DOWNLOAD) as (reader, writer):
        writer.write(REQUEST.replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = (await rest_of(reader)).partition(b"\r\n\r\n")
        assert CHUNKED not in head
        assert body == b"onetwo"
