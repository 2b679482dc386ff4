"""A client of one connection, byte by byte, and small applications to talk to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http.connection import Application
from holdfast.web.routing import resource
from tests.support.http_serving import listening

KEPT_SECONDS = 0.1
REQUEST = b"GET /slow HTTP/1.1\r\nHost: holdfast.example\r\n\r\n"


@asynccontextmanager
async def connected(
    app: Application, kept_seconds: float = KEPT_SECONDS
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with listening(app, kept_seconds) as address:
        reader, writer = await asyncio.open_connection(*address)
        try:
            yield reader, writer
        finally:
            writer.close()


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


class SlowAnswer:
    """One that waits until it is told to go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def answer(self, call: Call) -> JsonAnswer:
        self.begun.set()
        await self.go_on.wait()
        return await in_one_piece(call)


async def echo(call: Call) -> JsonAnswer:
    body = await call.body()
    return JsonAnswer([call.method, call.path, call.exchange.query.decode(), body.decode()])


def put(body: bytes, path: bytes = b"/slow", *lines: bytes) -> bytes:
    head = b"PUT %b HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: %d\r\n" % (path, len(body))
    return head + b"".join(b"%b\r\n" % line for line in lines) + b"\r\n" + body


async def in_two_turns() -> None:
    """Enough for the server, which is in the same loop, to read what was sent."""
    for _ in range(2):
        await asyncio.sleep(0)


ECHO = Front([resource("/slow", PUT=echo, GET=echo)])
