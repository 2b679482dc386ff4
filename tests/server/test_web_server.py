"""What a server does with its connections when it stops."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse

from holdfast.server.http_protocol import HttpProtocol
from tests.server.connecting import (
    GET,
    SHORT_SECONDS,
    Slow,
    body_of,
    head_of,
    rest_of,
    serving,
    starlette,
    until,
)


def is_paused(connection: object) -> bool:
    return isinstance(connection, HttpProtocol) and connection.flow.write_paused


class Stream:
    """A response that ends when the server stops."""

    def __init__(self, first: bytes = b"first") -> None:
        self.stopping, self._first = asyncio.Event(), first

    async def answer(self, _: Request) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield self._first
            await self.stopping.wait()
            yield b"last"

        return StreamingResponse(parts())


async def test_a_stream_ends_when_the_server_stops() -> None:
    stream = Stream()
    async with serving(starlette(echo=stream.answer), stopping=stream.stopping) as served:
        reader, writer = await served.connect()
        writer.write(GET)
        await reader.readuntil(b"first\r\n")
        served.server.stop()
        assert (await rest_of(reader)).endswith(b"last\r\n0\r\n\r\n")


async def test_a_stream_ends_when_its_client_leaves() -> None:
    stream = Stream()
    async with serving(starlette(echo=stream.answer)) as served:
        reader, writer = await served.connect()
        writer.write(GET + GET)
        await reader.readuntil(b"first\r\n")
        writer.transport.abort()
        await until(lambda: not served.server.server_state.tasks)


async def test_a_client_that_does_not_read_does_not_keep_the_server_from_stopping() -> None:
    stream = Stream(b"a" * 20_000_000)
    app = starlette(echo=stream.answer)
    async with serving(app, stopping=stream.stopping, drain_seconds=SHORT_SECONDS) as served:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(GET)
        state = served.server.server_state
        await until(lambda: any(is_paused(one) for one in state.connections))
        served.server.stop()
        await until(lambda: not state.connections and not state.tasks)


async def test_a_server_that_stops_answers_the_requests_it_has_and_closes() -> None:
    slow = Slow()
    async with serving(starlette(echo=slow.answer)) as served:
        idle, busy = await served.connect(), await served.connect()
        busy[1].write(GET * 2)
        await slow.begun.wait()
        served.server.stop()
        assert await rest_of(idle[0]) == b""
        slow.go_on.set()
        assert await body_of(busy[0]) == b'"served"'
        assert b"connection: close" in await head_of(busy[0])
        assert await rest_of(busy[0]) == b'"served"'
