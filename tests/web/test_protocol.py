"""Connections, as our HTTP protocol keeps and closes them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
import uvloop
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.protocol import HttpProtocol
from holdfast.web.routing import resource

KEPT_SECONDS = 0.1
REQUEST = b"GET /slow HTTP/1.1\r\nHost: holdfast.example\r\n\r\n"


@asynccontextmanager
async def connected(app: ASGIApp) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = uvicorn.Config(app, http=HttpProtocol, ws="none", log_config=None)
    config.load()
    config.timeout_keep_alive = KEPT_SECONDS  # type: ignore[assignment]
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: HttpProtocol(config, state, {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.partition(b":")[2]))


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side closes the connection."""
    async with asyncio.timeout(100 * KEPT_SECONDS):
        return await reader.read()


async def in_one_piece(_: Call) -> JsonAnswer:
    return JsonAnswer({"answer": "in one piece"})


async def as_a_page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("a page")(scope, receive, send)


@pytest.mark.parametrize("app", [Front([resource("/slow", GET=in_one_piece)]), as_a_page])
async def test_a_connection_that_was_idle_for_too_long_is_closed(app: ASGIApp) -> None:
    async with connected(app) as (reader, writer):
        for _ in range(3):
            writer.write(REQUEST)
            await answer_of(reader)
        assert await rest_of(reader) == b""


async def test_a_connection_in_use_stays_open_however_old_it_is() -> None:
    async with connected(Front([resource("/slow", GET=in_one_piece)])) as (reader, writer):
        for _ in range(6):
            writer.write(REQUEST)
            await answer_of(reader)
            await asyncio.sleep(KEPT_SECONDS / 2)


async def test_a_connection_whose_body_never_comes_is_closed_after_its_answer() -> None:
    async with connected(Front([])) as (reader, writer):
        writer.write(b"PUT /nowhere HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: 5\r\n\r\n")
        assert b'"status":404' in await answer_of(reader)
        assert await rest_of(reader) == b""


async def test_a_page_that_fails_before_its_start_is_answered_as_a_problem() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError

    async def page(_: Call) -> ASGIApp:
        return broken

    async with connected(Front([resource("/slow", GET=page)])) as (reader, writer):
        writer.write(REQUEST)
        assert b'"status":500' in await answer_of(reader)


def test_a_client_that_left_in_between_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """On the loop of the real server, which does not take a write to a lost connection lightly."""

    async def leave() -> None:
        begun, gone = asyncio.Event(), asyncio.Event()

        async def wait(_: Call) -> JsonAnswer:
            begun.set()
            await gone.wait()
            gone.clear()
            return await in_one_piece(_)

        async with connected(Front([resource("/slow", GET=wait)])) as (reader, writer):
            writer.write(REQUEST * 3)
            await begun.wait()
            begun.clear()
            gone.set()
            await answer_of(reader)
            await begun.wait()
            writer.transport.abort()
            await asyncio.sleep(KEPT_SECONDS)
            gone.set()
            await asyncio.sleep(KEPT_SECONDS)

    uvloop.run(leave())
    assert not caplog.records


async def test_a_connection_that_waits_for_its_answer_is_not_idle() -> None:
    go_on = asyncio.Event()

    async def slow(_: Call) -> JsonAnswer:
        await go_on.wait()
        return await in_one_piece(_)

    async with connected(Front([resource("/slow", GET=slow)])) as (reader, writer):
        go_on.set()
        writer.write(REQUEST)
        await answer_of(reader)
        go_on.clear()
        writer.write(REQUEST)
        asyncio.get_running_loop().call_later(3 * KEPT_SECONDS, go_on.set)
        assert await answer_of(reader) == b'{"answer":"in one piece"}'


async def test_requests_sent_ahead_are_answered_in_turn() -> None:
    turns = iter(range(3))

    async def count(_: Call) -> JsonAnswer:
        return JsonAnswer(next(turns))

    async with connected(Front([resource("/slow", GET=count)])) as (reader, writer):
        writer.write(REQUEST * 3)
        assert [await answer_of(reader) for _ in range(3)] == [b"0", b"1", b"2"]
