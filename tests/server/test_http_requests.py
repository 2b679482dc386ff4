"""Requests on one connection: framing, pipelining, and what is not HTTP."""

import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.server.connecting import (
    ECHO,
    GET,
    Slow,
    body_of,
    connected,
    head_of,
    put,
    read_by_server,
    rest_of,
    serving,
    starlette,
)

CHUNKED = b"PUT /echo HTTP/1.1\r\nHost: holdfast.example\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = [b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAAB"]


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    numbers = iter(range(3))

    async def count(_: Request) -> JSONResponse:
        return JSONResponse(next(numbers))

    async with connected(starlette(echo=count)) as (reader, writer):
        writer.write(GET * 3)
        assert [await body_of(reader) for _ in range(3)] == [b"0", b"1", b"2"]


async def test_many_small_requests_sent_ahead_are_not_a_large_head() -> None:
    async with connected(ECHO) as (reader, writer):
        requests = GET * 3000
        for piece in (requests[:20], requests[20:-20], requests[-20:]):
            writer.write(piece)
            await read_by_server()
        for _ in range(3000):
            assert json.loads(await body_of(reader))[0] == "GET"


async def test_a_request_is_read_wherever_it_is_cut() -> None:
    request = put(b"a body")
    async with connected(ECHO) as (reader, writer):
        for at in range(1, len(request)):
            writer.write(request[:at])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            writer.write(request[at:])
            assert json.loads(await body_of(reader)) == ["PUT", "/echo", "", "a body"]


async def test_a_large_body_is_read_piece_by_piece() -> None:
    body = b"a" * 900_000
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(put(body))
            assert json.loads(await body_of(reader))[3] == body.decode()


async def test_a_request_close_behind_a_large_body_is_not_a_large_head() -> None:
    following = put(b"a body")
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"a" * 200_000) + following[:50])
        assert len(json.loads(await body_of(reader))[3]) == 200_000
        writer.write(following[50:])
        assert json.loads(await body_of(reader))[3] == "a body"


async def test_chunks_are_joined() -> None:
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(CHUNKED + b"2\r\nab\r\n1;extension=1\r\nc\r\n0\r\n\r\n")
            assert json.loads(await body_of(reader))[3] == "abc"


async def test_trailers_are_dropped() -> None:
    async with connected(ECHO) as (reader, writer):
        head = CHUNKED.replace(b"/echo", b"/headers")
        writer.write(head + b"2\r\nab\r\n0\r\nAuthorization: Bearer late\r\n\r\n" + GET)
        assert b"late" not in await body_of(reader)
        assert json.loads(await body_of(reader))[0] == "GET"


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_an_offer_of_another_protocol_is_declined_and_the_body_is_read(framing: str) -> None:
    request = put(b"a body", b"/echo", *UPGRADE)
    if framing == "chunks":
        request = request.replace(b"Content-Length: 6", b"Transfer-Encoding: chunked")
        request = request.removesuffix(b"a body") + b"6\r\na body\r\n0\r\n\r\n"
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(request * 2)
            for _ in range(2):
                assert json.loads(await body_of(reader))[3] == "a body"


async def test_an_offer_of_another_protocol_is_declined_wherever_it_is_cut() -> None:
    request = put(b"a body", b"/echo", *UPGRADE, b"X: 0")
    async with connected(ECHO) as (reader, writer):
        for at in range(1, len(request)):
            writer.write(request[:at])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            writer.write(request[at:])
            assert json.loads(await body_of(reader))[3] == "a body"


async def test_the_application_sees_all_headers_but_the_offer() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"", b"/headers?a=b", b"X-Before: 1", *UPGRADE, b"X-After: 2"))
        seen = json.loads(await body_of(reader))
        assert "x-before: 1" in seen
        assert "x-after: 2" in seen
        assert not any(line.startswith("upgrade:") for line in seen)


async def test_an_offer_of_a_websocket_is_declined() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
        assert json.loads(await body_of(reader))[0] == "GET"


async def test_the_client_is_told_to_continue_before_its_body_is_read() -> None:
    request = put(b"a body", b"/echo", b"Expect: 100-continue")
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(request[:-6])
            assert await head_of(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(request[-6:])
            assert json.loads(await body_of(reader))[3] == "a body"


async def test_a_response_before_the_client_was_told_to_continue_ends_the_connection() -> None:
    """The client may send the body after that, or its next request: the server could not tell which."""
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"a body", b"/nowhere", b"Expect: 100-continue")[:-6])
        response = await rest_of(reader)
        assert response.startswith(b"HTTP/1.1 404")
        assert b"connection: close" in response


async def test_a_client_of_http_1_0_is_not_told_to_continue() -> None:
    request = put(b"a body", b"/echo", b"Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")
    async with connected(ECHO) as (reader, writer):
        writer.write(request)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("line", [b"GET /echo HTTP/1.0", b"GET /echo HTTP/1.1\r\nConnection: close"])
async def test_a_connection_is_closed_where_the_client_wants_that(line: bytes) -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(line + b"\r\nHost: holdfast.example\r\n\r\n" + put(b"too late"))
        response = await rest_of(reader)
        assert response.count(b"HTTP/1.1 200") == 1
        assert b"connection: close" in response


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_a_response_without_a_body_is_followed_by_the_next_one(method: str) -> None:
    async def unchanged(request: Request) -> Response:
        return Response(status_code=304) if request.method == "GET" else PlainTextResponse("not sent")

    async with connected(starlette(echo=unchanged)) as (reader, writer):
        writer.write(GET.replace(b"GET", method.encode()) + GET.replace(b"/echo", b"/nowhere"))
        await head_of(reader)
        assert await body_of(reader) == b"Not Found"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"http://holdfast.example/echo?a=b", "/echo", "a=b"),
        (b"http://holdfast.example", "/", ""),
        (b"http://holdfast.example?a=b", "/", "a=b"),
        (b"/echo#part", "/echo", ""),
    ],
)
async def test_a_target_may_be_a_whole_address(target: bytes, path: str, query: str) -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(b"GET %b HTTP/1.1\r\nHost: holdfast.example\r\n\r\n" % target)
        assert json.loads(await body_of(reader))[1:3] == [path, query]


INVALID = {
    "not HTTP": b"nonsense\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a tunnel": b"CONNECT holdfast.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel to a path": b"CONNECT /echo HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes in a path": b"GET /\xd8\xb9\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "no path": b"GET echo HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": put(b"a", b"/echo", b"Content-Length: 2"),
    "the same length twice": put(b"a", b"/echo", b"Content-Length: 1"),
    "a length and chunks": put(b"1\r\na\r\n0\r\n\r\n", b"/echo", b"Transfer-Encoding: chunked"),
    "chunks and a length": CHUNKED[:-2] + b"Content-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "a huge length": b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %b\r\n\r\na" % (b"9" * 40),
    "a negative length": b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\na",
    "an unknown encoding": b"PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\na",
    "a folded line": b"GET /echo HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "a zero byte": b"GET /echo HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
    "a broken chunk": CHUNKED + b"2\r\nab\r\nno length\r\n",
}


@pytest.mark.parametrize("request_bytes", INVALID.values(), ids=INVALID.keys())
async def test_what_is_not_http_is_refused(request_bytes: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(request_bytes)
        response = await rest_of(reader)
        assert response.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"connection: close\r\n" in response
        assert response.endswith(b"\r\n\r\nBad Request")
        assert response.count(b"HTTP/1.1") == 1
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


async def test_a_length_of_many_zeros_is_refused() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(b"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"0" * 5000 + b"1\r\n\r\na")
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 431 ")


async def test_what_is_not_http_is_refused_after_earlier_requests_are_answered() -> None:
    slow = Slow()
    async with connected(starlette(echo=slow.answer)) as (reader, writer):
        writer.write(GET + b"nonsense\r\n\r\n")
        await slow.begun.wait()
        slow.go_on.set()
        assert await body_of(reader) == b'"served"'
        assert await rest_of(reader) == b""


async def test_a_waiting_request_with_a_broken_body_is_never_served() -> None:
    slow = Slow()
    async with connected(starlette(echo=slow.answer)) as (reader, writer):
        writer.write(GET + GET + CHUNKED + b"no length\r\n")
        await slow.begun.wait()
        slow.go_on.set()
        response = await rest_of(reader)
        assert response.count(b"HTTP/1.1 200") == response.count(b"HTTP/1.1") == 2


async def test_a_request_answered_before_its_broken_body_gets_no_second_response() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(CHUNKED.replace(b"/echo", b"/nowhere"))
        assert await body_of(reader) == b"Not Found"
        writer.write(b"no length\r\n")
        assert await rest_of(reader) == b""


async def test_a_client_that_left_is_seen_by_the_request_that_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def wait_for_disconnect(request: Request) -> Response:
        begun.set()
        await request.receive()
        assert (await request.receive())["type"] == "http.disconnect"
        left.set()
        return Response()

    async with connected(starlette(echo=wait_for_disconnect)) as (_, writer):
        writer.write(GET * 3)
        await begun.wait()
        writer.transport.abort()
        async with asyncio.timeout(10):
            await left.wait()
        await read_by_server()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_response_that_fails_halfway_is_cut_short() -> None:
    async def failing(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"half", "more_body": True})  # type: ignore[operator]
        raise RuntimeError

    async def handler(_: Request) -> object:
        return failing

    async with connected(starlette(echo=handler)) as (reader, writer):
        writer.write(GET + GET)
        assert (await rest_of(reader)).endswith(b"\r\n\r\nhalf")


async def test_nothing_of_a_closed_connection_is_left_for_the_garbage_collector() -> None:
    import gc
    import weakref

    gc.disable()
    try:
        async with serving(ECHO) as served:
            reader, writer = await served.connect()
            writer.write(put(b"a body"))
            await body_of(reader)
            (connection,) = served.server.server_state.connections
            collected = asyncio.Event()
            gone = weakref.ref(connection, lambda _: collected.set())
            del connection
            writer.write(put(b"a body")[:-3])
            await read_by_server()
            writer.close()
            await writer.wait_closed()
            async with asyncio.timeout(10):
                await collected.wait()
            assert gone() is None
    finally:
        gc.enable()
