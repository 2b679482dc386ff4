"""Connections, as our HTTP protocol keeps and closes them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
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
        assert await reader.read() == b""


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
