"""Connections that are counted, closed when the server stops, or left by their clients."""

import asyncio
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_network
from typing import Any
from unittest.mock import Mock, call

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import ConnectionCounts, ResponseTransport
from tests.server.connecting import ECHO, GET, Slow, body_of, head_of, put, rest_of, serving, starlette
from tests.support.delivery_engine import eventually

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
BODY_LIKE_A_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


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


async def test_a_client_that_does_not_read_does_not_keep_the_server_from_stopping() -> None:
    stream = Stream(b"a" * 20_000_000)
    app = starlette(echo=stream.answer)
    async with serving(app, stopping=stream.stopping, drain_seconds=0.1) as served:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(GET)
        state = served.server.server_state
        await eventually(lambda: any(is_paused(one) for one in state.connections))
        served.server.stop()
        await eventually(lambda: not state.connections and not state.tasks)


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


async def test_connections_beyond_the_limit_of_an_address_are_refused_and_logged(
    request_log: Callable[[], list[dict[str, Any]]],
) -> None:
    async with serving(ECHO, counts=FromElsewhere(1)) as served:
        for _ in range(2):
            reader, writer = await served.connect()
            refused, _ = await served.connect()
            assert (await rest_of(refused)).startswith(b"HTTP/1.1 503 ")
            writer.write(GET)
            await body_of(reader)
            served.close()
            await eventually(lambda: not served.server.server_state.connections)
    assert [line["reason"] for line in request_log()] == ["too many connections"] * 2


class FromElsewhere(ConnectionCounts):
    """Counts as if the clients of the test were not on this machine."""

    def add(self, _: tuple[str, int] | None) -> bool:
        return super().add(("192.0.2.1", 1))

    def remove(self, _: tuple[str, int] | None) -> None:
        super().remove(("192.0.2.1", 1))


def test_connections_of_an_address_are_counted_and_make_room_when_they_close() -> None:
    counts = ConnectionCounts(2)
    # All addresses of one IPv6 subscriber count together.
    assert counts.add(("2001:db8::1", 1))
    assert counts.add(("2001:db8::2", 1))
    assert not counts.add(("2001:db8::3", 1))
    assert counts.add(("2001:db8:0:1::1", 1))
    # An IPv4 address is the same on a socket of IPv6.
    assert counts.add(("192.0.2.1", 1))
    assert counts.add(("::ffff:192.0.2.1", 1))
    assert not counts.add(("192.0.2.1", 1))
    for _ in range(2):
        counts.remove(("192.0.2.1", 1))
    assert counts.add(("192.0.2.1", 1))
    # A /56 has twice and a /48 four times as many; the zone of a link makes no difference.
    for wider, limit in ("", 4), ("0", 8):
        hosts = [f"fe80:0:{limit}:{number:x}{wider}0::1%{number}" for number in range(limit + 1)]
        assert [counts.add((host, 1)) for host in hosts] == [True] * limit + [False]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.7"])
def test_this_machine_and_trusted_proxies_are_not_limited_and_0_is_no_limit(host: str) -> None:
    for counts in (ConnectionCounts(1, [ip_network("192.0.2.0/28")]), ConnectionCounts(0)):
        assert all(counts.add((host, 1)) for _ in range(3))


async def read_after_leaving(request_bytes: bytes) -> list[str]:
    """What a handler reads that begins to read when its client is gone already."""
    begun, is_gone, found = asyncio.Event(), asyncio.Event(), asyncio.Future[list[str]]()

    async def read(request: Request) -> Response:
        begun.set()
        await is_gone.wait()
        try:
            body = (await request.body()).decode()
        except ClientDisconnect:
            body = "cut short"
        found.set_result([body, (await request.receive())["type"]])
        return Response()

    async with serving(starlette(echo=read)) as served:
        _, writer = await served.connect()
        writer.write(request_bytes)
        await begun.wait()
        writer.transport.abort()
        await eventually(lambda: not served.server.server_state.connections)
        is_gone.set()
        await eventually(found.done)
        return found.result()


async def test_a_request_that_came_in_whole_is_served_though_its_client_is_gone() -> None:
    assert await read_after_leaving(put(b"whole")) == ["whole", "http.disconnect"]
    assert await read_after_leaving(put(b"whole")[:-1]) == ["cut short", "http.disconnect"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ([HEAD, b"body"], [HEAD + b"body"]),
        ([HEAD, b"bo", b"dy"], [HEAD + b"bo", b"dy"]),
        ([HEAD, BODY_LIKE_A_HEAD, BODY_LIKE_A_HEAD], [HEAD + BODY_LIKE_A_HEAD, BODY_LIKE_A_HEAD]),
        ([HEAD, b""], [HEAD]),
        ([CONTINUE, HEAD, b"body"], [CONTINUE, HEAD + b"body"]),
        ([CHUNKED_HEAD, b"4\r\nbody\r\n"], [CHUNKED_HEAD, b"4\r\nbody\r\n"]),
    ],
)
def test_a_head_of_known_length_is_sent_with_the_beginning_of_its_body(
    written: list[bytes], sent: list[bytes]
) -> None:
    transport = Mock(asyncio.Transport)
    response = ResponseTransport(transport, "GET")
    for data in written:
        response.write(data)
    assert transport.mock_calls == [call.write(data) for data in sent]


def test_a_head_is_sent_at_once_if_no_body_follows_and_before_the_connection_is_closed() -> None:
    transport = Mock(asyncio.Transport)
    ResponseTransport(transport, "HEAD").write(HEAD)
    assert transport.mock_calls == [call.write(HEAD)]
    response = ResponseTransport(transport, "GET")
    response.write(HEAD)
    response.close()
    assert transport.mock_calls == [call.write(HEAD), call.write(HEAD), call.close()]
