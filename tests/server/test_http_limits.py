"""Clients that send too much, too slowly or nothing at all, and those that do not read."""

import asyncio
import json
from contextlib import suppress
from ipaddress import ip_network

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from holdfast.server.http_server import ConnectionCounts
from tests.server.connecting import (
    ECHO,
    GET,
    SHORT_SECONDS,
    Slow,
    body_of,
    connected,
    head_of,
    put,
    rest_of,
    serving,
    starlette,
    until,
)

CHUNKED = b"PUT /echo HTTP/1.1\r\nHost: holdfast.example\r\nTransfer-Encoding: chunked\r\n\r\n"


async def large(_: Request) -> Response:
    return PlainTextResponse("a" * 20_000_000)


def with_header(size: int) -> bytes:
    return GET.replace(b"\r\n\r\n", b"\r\nX-Filler: %b\r\n\r\n" % (b"a" * size))


async def test_a_head_of_64_kib_is_served_and_a_larger_one_is_not() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(with_header(65_000))
        assert json.loads(await body_of(reader))[0] == "GET"
        writer.write(with_header(66_000))
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("piece", [b"A: b\r\n", b"a" * 10_000], ids=["many lines", "an endless line"])
async def test_a_head_without_end_is_refused(piece: bytes) -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(GET[:-2] + b"A: ")
        writer.write(piece * (400_000 // len(piece)))
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 431 ")


async def test_a_head_that_takes_too_long_is_refused() -> None:
    async with connected(ECHO, head_seconds=SHORT_SECONDS) as (reader, writer):
        for _ in range(2):
            writer.write(GET)
            await body_of(reader)
        writer.write(GET[:20])
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 408 ")


async def test_the_time_of_a_head_does_not_run_while_earlier_requests_are_served() -> None:
    slow = Slow()
    app = starlette(echo=slow.answer)
    async with serving(app, head_seconds=SHORT_SECONDS, idle_seconds=SHORT_SECONDS / 5) as served:
        reader, writer = await served.connect()
        writer.write(GET * 2 + GET[:20])
        await slow.begun.wait()
        await asyncio.sleep(3 * SHORT_SECONDS)
        slow.go_on.set()
        writer.write(GET[20:])
        assert [await body_of(reader) for _ in range(3)] == [b'"served"'] * 3


@pytest.mark.parametrize("trailer", [b"a: b\r\n", b"a: " + b"b" * 65_536], ids=["many", "one endless"])
@pytest.mark.parametrize("path", [b"/echo", b"/nowhere"])
async def test_trailers_without_end_are_refused(trailer: bytes, path: bytes) -> None:
    async with connected(ECHO, framing_bytes=200_000) as (reader, writer):
        writer.write(CHUNKED.replace(b"/echo", path) + b"0\r\n")
        writer.write(trailer * (2_000_000 // len(trailer)))
        with suppress(ConnectionResetError):
            response = await rest_of(reader)
            assert response.startswith(b"HTTP/1.1 400" if path == b"/echo" else b"HTTP/1.1 404")


async def test_chunks_that_say_more_than_they_bring_are_refused() -> None:
    async with connected(ECHO, framing_bytes=200_000) as (reader, writer):
        writer.write(CHUNKED + b"1;%b\r\na\r\n" % (b"a" * 600_000))
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("sent", [put(b"a body")[:-3], CHUNKED + b"1\r\na\r\n"])
async def test_a_body_that_takes_too_long_is_refused(sent: bytes) -> None:
    async with connected(ECHO, body_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(sent)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_trickles_is_refused() -> None:
    async with connected(ECHO, body_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(put(b"a" * 10_000)[:-10_000])
        response = asyncio.create_task(rest_of(reader))
        while not response.done():
            writer.write(b"a")
            await asyncio.sleep(SHORT_SECONDS / 20)
        assert response.result().startswith(b"HTTP/1.1 408 ")


async def test_a_large_body_may_take_longer_as_long_as_enough_of_it_arrives() -> None:
    async with connected(ECHO, body_seconds=10 * SHORT_SECONDS, body_bytes=1000) as (reader, writer):
        writer.write(put(b"a" * 30_000)[:-30_000])
        for _ in range(15):
            writer.write(b"a" * 2000)
            await asyncio.sleep(SHORT_SECONDS)
        assert len(json.loads(await body_of(reader))[3]) == 30_000


async def test_the_time_of_a_body_does_not_run_while_the_application_does_not_read() -> None:
    go_on = asyncio.Event()

    async def read_late(request: Request) -> JSONResponse:
        await go_on.wait()
        return JSONResponse(len(await request.body()))

    async with connected(starlette(echo=read_late), body_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(put(b"a" * 2_000_000))
        await asyncio.sleep(3 * SHORT_SECONDS)
        go_on.set()
        assert await body_of(reader) == b"2000000"


async def test_the_time_of_a_body_does_not_run_before_the_client_is_told_to_continue() -> None:
    go_on = asyncio.Event()

    async def read_late(request: Request) -> JSONResponse:
        await go_on.wait()
        return JSONResponse(len(await request.body()))

    async with connected(starlette(echo=read_late), body_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(put(b"a body", b"/echo", b"Expect: 100-continue")[:-6])
        await asyncio.sleep(3 * SHORT_SECONDS)
        go_on.set()
        assert await head_of(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"a body")
        assert await body_of(reader) == b"6"


async def test_the_rest_of_a_refused_request_is_read_and_the_connection_stays_in_use() -> None:
    async with connected(ECHO) as (reader, writer):
        request = put(b"a" * 200_000, b"/nowhere")
        writer.write(request[:1000])
        assert await body_of(reader) == b"Not Found"
        writer.write(request[1000:] + put(b"a body"))
        assert json.loads(await body_of(reader))[3] == "a body"


async def test_not_more_than_a_little_of_a_refused_request_is_read() -> None:
    async with connected(ECHO, drain_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(put(b"a" * 20_000_000, b"/nowhere"))
        assert await body_of(reader) == b"Not Found"
        with suppress(ConnectionResetError):
            assert await rest_of(reader) == b""


async def test_a_client_that_never_sends_the_rest_of_a_refused_request_is_closed() -> None:
    async with connected(ECHO, drain_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(put(b"a body", b"/nowhere")[:-3])
        assert await body_of(reader) == b"Not Found"
        assert await rest_of(reader) == b""


async def test_a_client_that_still_sends_gets_the_refusal_of_what_is_not_http() -> None:
    async with connected(ECHO, drain_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(b"nonsense\r\n\r\n" + b"a" * 20_000_000)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
async def test_a_connection_without_a_request_is_closed(sent: bytes) -> None:
    async with connected(ECHO, idle_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(sent)
        assert await rest_of(reader) == b""


async def test_a_connection_that_was_idle_for_too_long_is_closed() -> None:
    async with connected(ECHO, idle_seconds=SHORT_SECONDS) as (reader, writer):
        for _ in range(3):
            writer.write(GET)
            await body_of(reader)
        assert await rest_of(reader) == b""


async def test_a_connection_that_waits_for_its_response_is_not_idle() -> None:
    slow = Slow()
    async with connected(starlette(echo=slow.answer), idle_seconds=SHORT_SECONDS) as (reader, writer):
        writer.write(GET)
        await asyncio.sleep(3 * SHORT_SECONDS)
        slow.go_on.set()
        assert await body_of(reader) == b'"served"'


@pytest.mark.parametrize("line", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
async def test_a_client_that_does_not_read_is_given_up(line: bytes) -> None:
    async with serving(starlette(echo=large), stalled_seconds=SHORT_SECONDS) as served:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write((GET[:-2] + line + b"\r\n") * 3)
        state = served.server.server_state
        await until(lambda: state.connections)
        await until(lambda: not state.connections and not state.tasks)


async def test_a_client_that_reads_slowly_gets_all_of_a_response() -> None:
    async with connected(starlette(echo=large), stalled_seconds=5 * SHORT_SECONDS) as (reader, writer):
        writer.write(GET)
        await head_of(reader)
        for _ in range(10):
            await reader.readexactly(2_000_000)
            await asyncio.sleep(SHORT_SECONDS)


async def test_connections_beyond_the_limit_of_an_address_are_refused() -> None:
    async with serving(ECHO, counts=FromElsewhere(ConnectionCounts(1))) as served:
        for _ in range(2):
            reader, writer = await served.connect()
            refused, _ = await served.connect()
            assert (await rest_of(refused)).startswith(b"HTTP/1.1 503 ")
            writer.write(GET)
            await body_of(reader)
            served.close()
            await until(lambda: not served.server.server_state.connections)


class FromElsewhere:
    """Counts as if the clients of the test were not on this machine."""

    def __init__(self, counts: ConnectionCounts) -> None:
        self._counts = counts

    def add(self, _: tuple[str, int] | None) -> bool:
        return self._counts.add(("192.0.2.1", 1))

    def remove(self, _: tuple[str, int] | None) -> None:
        self._counts.remove(("192.0.2.1", 1))


def test_the_addresses_of_one_ipv6_subscriber_are_counted_together() -> None:
    counts = ConnectionCounts(2)
    assert counts.add(("2001:db8::1", 1))
    assert counts.add(("2001:db8::2", 1))
    assert not counts.add(("2001:db8::3", 1))
    assert counts.add(("2001:db8:0:1::1", 1))


def test_an_ipv4_address_is_the_same_on_a_socket_of_ipv6() -> None:
    counts = ConnectionCounts(1)
    assert counts.add(("192.0.2.1", 1))
    assert not counts.add(("::ffff:192.0.2.1", 1))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.7"])
def test_this_machine_and_trusted_proxies_are_not_limited(host: str) -> None:
    counts = ConnectionCounts(1, [ip_network("192.0.2.0/28")])
    assert all(counts.add((host, 1)) for _ in range(3))


def test_a_limit_of_0_is_none() -> None:
    counts = ConnectionCounts(0)
    assert all(counts.add(("192.0.2.1", 1)) for _ in range(3))


def test_a_closed_connection_makes_room() -> None:
    counts = ConnectionCounts(1)
    for _ in range(3):
        assert counts.add(("192.0.2.1", 1))
        counts.remove(("192.0.2.1", 1))
