"""Requests on one connection: framing, pipelining, what is not HTTP, and what is too large or too slow."""

import asyncio
import gc
import json
import weakref
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_network
from typing import Any

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
    connected_without_time,
    head_of,
    look_twice,
    put,
    response_to,
    rest_of,
    serving,
    starlette,
)
from tests.support.delivery_engine import eventually

RequestLog = Callable[[], list[dict[str, Any]]]
CHUNKED = b"PUT /echo HTTP/1.1\r\nHost: holdfast.example\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = [b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAAB"]


async def large(_: Request) -> Response:
    return PlainTextResponse("a" * 20_000_000)


def with_header(size: int, more: bytes = b"") -> bytes:
    return GET[:-2] + b"X-Filler: %b\r\n%b\r\n" % (b"a" * size, more)


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    numbers = iter(range(3))

    async def count(_: Request) -> JSONResponse:
        return JSONResponse(next(numbers))

    async with connected(starlette(echo=count)) as (reader, writer):
        writer.write(GET * 3)
        assert [await body_of(reader) for _ in range(3)] == [b"0", b"1", b"2"]


async def test_many_small_requests_sent_ahead_are_not_a_large_head() -> None:
    requests = GET * 3000
    async with connected_without_time(ECHO) as (reader, writer, connection):
        writer.write(requests[:20])
        await eventually(lambda: connection.data_bytes == 20)
        writer.write(requests[20:-20])
        for _ in range(2999):
            assert json.loads(await body_of(reader))[0] == "GET"
        writer.write(requests[-20:])
        assert json.loads(await body_of(reader))[0] == "GET"


@pytest.mark.parametrize("lines", [[], [*UPGRADE, b"X: 0"]], ids=["plain", "offers another protocol"])
async def test_a_request_is_read_wherever_it_is_cut(lines: list[bytes]) -> None:
    request = put(b"a body", b"/echo", *lines)
    async with connected(ECHO) as (reader, writer):
        for at in range(1, len(request)):
            writer.write(request[:at])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            writer.write(request[at:])
            assert json.loads(await body_of(reader))[:4] == ["PUT", "/echo", "", "a body"]


async def test_a_large_body_is_read_piece_by_piece_and_what_follows_is_not_a_large_head() -> None:
    body, following = b"a" * 900_000, put(b"a body")
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(put(body) + following[:50])
            assert json.loads(await body_of(reader))[3] == body.decode()
            writer.write(following[50:])
            assert json.loads(await body_of(reader))[3] == "a body"


async def test_chunks_are_joined_and_trailers_dropped() -> None:
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(CHUNKED + b"2\r\nab\r\n1;extension=1\r\nc\r\n0\r\n\r\n")
            assert json.loads(await body_of(reader))[3] == "abc"
        writer.write(CHUNKED + b"2\r\nab\r\n0\r\nAuthorization: Bearer late\r\n\r\n" + GET)
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


async def test_the_application_sees_all_headers_but_the_offer() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"", b"/echo?a=b", b"X-Before: 1", *UPGRADE, b"X-After: 2"))
        seen = json.loads(await body_of(reader))[4]
        assert {"x-before: 1", "x-after: 2"} <= set(seen)
        assert not any(line.startswith("upgrade:") for line in seen)
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
    response = await response_to(put(b"a body", b"/nowhere", b"Expect: 100-continue")[:-6])
    assert response.startswith(b"HTTP/1.1 404")
    assert b"connection: close" in response
    # A client of HTTP/1.0 does not wait for that.
    request = put(b"a body", b"/echo", b"Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert (await response_to(request)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("line", [b"GET /echo HTTP/1.0", b"GET /echo HTTP/1.1\r\nConnection: close"])
async def test_a_connection_is_closed_where_the_client_wants_that(line: bytes) -> None:
    response = await response_to(line + b"\r\nHost: holdfast.example\r\n\r\n" + put(b"too late"))
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
async def test_what_is_not_http_is_refused_and_logged(
    request_bytes: bytes, caplog: pytest.LogCaptureFixture, request_log: RequestLog
) -> None:
    response = await response_to(request_bytes)
    assert response.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close\r\n" in response
    assert response.endswith(b"\r\n\r\nBad Request")
    assert response.count(b"HTTP/1.1") == 1
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    (line,) = request_log()
    assert line["message"] == f"400 Bad Request: {line['reason']}"
    assert line["client"] == "127.0.0.1"
    assert f"x-request-id: {line['requestId']}\r\n".encode() in response
    assert 8 < len(line["reason"]) < 80


REASONS = {
    b"CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n": "CONNECT is not supported",
    b"GET /p/a/bookings/R/hft_secret\xff HTTP/1.1\r\nHost: x\r\n\r\n": "Invalid char in url path",
    b"GET http://[/hft_secret HTTP/1.1\r\nHost: x\r\n\r\n": "the address is not valid",
    b"\x16\x03\x01\x02\x00\x01\x00": "Invalid method encountered",
}


@pytest.mark.parametrize(("request_bytes", "reason"), REASONS.items(), ids=REASONS.values())
async def test_the_log_says_why_and_nothing_of_the_path(
    request_bytes: bytes, reason: str, request_log: RequestLog
) -> None:
    assert (await response_to(request_bytes)).startswith(b"HTTP/1.1 400 ")
    (line,) = request_log()
    assert line["reason"] == reason
    assert "hft_" not in str(line)


async def test_the_log_has_the_address_that_a_trusted_proxy_reports(request_log: RequestLog) -> None:
    trusting = ConnectionCounts(0, [ip_network("127.0.0.0/8")])
    # Of half a head nobody knows whether the line of the proxy has come, or only one of its client.
    sent = GET[:-2] + b"X-Forwarded-For: 203.0.113.7\r\n" + b"A: b\r\n" * 1001
    await response_to(sent, counts=trusting)
    await response_to(CHUNKED[:-2] + b"X-Forwarded-For: 203.0.113.8\r\n\r\nno length\r\n", counts=trusting)
    # What came with an earlier request says nothing about this one.
    await response_to(GET[:-2] + b"X-Forwarded-For: 203.0.113.9\r\n\r\nnonsense\r\n", counts=trusting)
    assert [(line["client"], line["message"][:3]) for line in request_log()] == [
        ("127.0.0.1", "431"), ("203.0.113.8", "400"), ("127.0.0.1", "400"),
    ]  # fmt: skip


TOO_MUCH = {
    "a head of more than 64 KiB": (431, with_header(66_000)),
    "many lines": (431, GET[:-2] + b"A: b\r\n" * 70_000),
    "more than 1,000 lines": (431, GET[:-2] + b"A: b\r\n" * 1001 + b"\r\n"),
    "a path of more than 4 KiB": (431, GET.replace(b"/echo", b"/" + b"%41" * 1400)),
    "line ends without a request": (431, b"\r\n" * 100_000),
    "an endless line": (431, GET[:-2] + b"A: " + b"a" * 400_000),
    "a length of many zeros": (431, put(b"a").replace(b": 1\r\n", b": " + b"0" * 5000 + b"1\r\n")),
    "chunks that say more than they bring": (400, CHUNKED + b"1;%b\r\na\r\n" % (b"a" * 600_000)),
    "chunks of one byte": (400, CHUNKED + b"1\r\na\r\n" * 10_000),
    "more than 100 trailers": (400, CHUNKED + b"0\r\n" + b"a: b\r\n" * 101),
}


async def test_a_head_of_nearly_64_kib_and_tokens_that_are_sent_one_by_one_are_read() -> None:
    assert (await response_to(with_header(65_000, b"Connection: close\r\n"))).startswith(b"HTTP/1.1 200 ")
    async with connected(ECHO) as (reader, writer):
        writer.write(CHUNKED + b"2\r\n{}\r\n" * 3000 + b"0\r\n\r\n")
        assert json.loads(await body_of(reader))[3] == "{}" * 3000


@pytest.mark.parametrize(("status", "sent"), TOO_MUCH.values(), ids=TOO_MUCH.keys())
async def test_what_is_too_large_is_refused_and_logged(
    status: int, sent: bytes, request_log: RequestLog
) -> None:
    assert (await response_to(sent)).startswith(b"HTTP/1.1 %d " % status)
    (line,) = request_log()
    assert line["message"].startswith(f"{status} ")
    assert line["reason"]


@pytest.mark.parametrize("broken", [b"nonsense\r\n\r\n", CHUNKED + b"no length\r\n"], ids=["head", "body"])
async def test_what_is_not_http_is_dropped_after_earlier_requests_are_answered(broken: bytes) -> None:
    slow = Slow()
    async with connected(starlette(echo=slow.answer)) as (reader, writer):
        writer.write(GET + GET + broken)
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


@pytest.mark.parametrize("trailer", [b"a: b\r\n", b"a: " + b"b" * 65_536], ids=["many", "one endless"])
@pytest.mark.parametrize("path", [b"/echo", b"/nowhere"])
async def test_trailers_without_end_are_refused(trailer: bytes, path: bytes) -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(CHUNKED.replace(b"/echo", path))
        if path == b"/nowhere":
            assert await body_of(reader) == b"Not Found"
        writer.write(b"0\r\n" + trailer * (2_000_000 // len(trailer)))
        with suppress(ConnectionResetError):
            response = await rest_of(reader)
            assert response.startswith(b"HTTP/1.1 400") if path == b"/echo" else not response


TOO_SLOW = {
    "a head": GET[:20],
    "a head after other requests": GET + GET + GET[:20],
    "a body": put(b"a body")[:-3],
    "chunks": CHUNKED + b"1\r\na\r\n",
}


@pytest.mark.parametrize("sent", TOO_SLOW.values(), ids=TOO_SLOW.keys())
async def test_what_takes_too_long_is_refused_and_logged(sent: bytes, request_log: RequestLog) -> None:
    async with connected_without_time(ECHO, ["head_seconds", "body_seconds"]) as (reader, writer, connection):
        writer.write(sent)
        await eventually(lambda: connection.data_bytes == len(sent))
        for _ in range(sent.count(GET)):
            assert json.loads(await body_of(reader))[0] == "GET"
        look_twice(connection)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 408 ")
    (line,) = request_log()
    assert line["message"] == f"408 Request Timeout: slow {'head' if b'GET' in sent else 'body'}"


@pytest.mark.parametrize("following", [b"", GET * 2 + GET[:20]], ids=["idle", "head"])
async def test_no_time_runs_while_a_response_is_waited_for(following: bytes) -> None:
    slow = Slow()
    async with connected_without_time(starlette(echo=slow.answer)) as (reader, writer, connection):
        writer.write(GET + following)
        await slow.begun.wait()
        look_twice(connection)
        slow.go_on.set()
        assert await body_of(reader) == b'"served"'
        if following:
            writer.write(GET[20:])
            assert [await body_of(reader) for _ in range(3)] == [b'"served"'] * 3


async def test_what_is_within_its_time_is_served_however_often_somebody_looks() -> None:
    request = put(b"a body")
    async with connected_without_time(ECHO, passed=()) as (reader, writer, connection):
        look_twice(connection)
        for sent, part in ((request[:20], "head"), (request[20:-3], "body")):
            writer.write(sent)
            await eventually(lambda: connection.part == part)  # noqa: B023
            look_twice(connection)
        writer.write(request[-3:])
        assert json.loads(await body_of(reader))[3] == "a body"
        look_twice(connection)
        writer.write(put(b"a body", b"/nowhere")[:-3])
        assert await body_of(reader) == b"Not Found"
        look_twice(connection)
        writer.write(b"ody" + GET)
        assert json.loads(await body_of(reader))[0] == "GET"


async def test_a_body_that_trickles_is_refused() -> None:
    async with connected_without_time(ECHO, ["body_seconds"]) as (reader, writer, connection):
        writer.write(put(b"a" * 10_000)[:-10_000])
        for received in (0, 1):
            await eventually(lambda: (connection.part, connection.received) == ("body", received))  # noqa: B023
            connection.check_deadline()
            writer.write(b"a")
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_large_body_may_take_longer_as_long_as_enough_of_it_arrives() -> None:
    async with connected_without_time(ECHO) as (reader, writer, connection):
        connection.body_bytes = 1000
        writer.write(put(b"a" * 80_000)[:-80_000])
        for received in range(0, 80_000, 2000):
            await eventually(lambda: (connection.part, connection.received) == ("body", received))  # noqa: B023
            connection.check_deadline()
            writer.write(b"a" * 2000)
        assert len(json.loads(await body_of(reader))[3]) == 80_000


@pytest.mark.parametrize("expects", [False, True], ids=["sent at once", "waits to be told to continue"])
async def test_the_time_of_a_body_does_not_run_while_the_application_does_not_read(expects: bool) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def read_late(request: Request) -> JSONResponse:
        begun.set()
        await go_on.wait()
        return JSONResponse(len(await request.body()))

    body = b"a" * 2_000_000
    async with connected_without_time(starlette(echo=read_late)) as (reader, writer, connection):
        request = put(body, b"/echo", *([b"Expect: 100-continue"] if expects else []))
        writer.write(request.removesuffix(body) if expects else request)
        await begun.wait()
        await eventually(lambda: expects or connection.flow.read_paused)
        look_twice(connection)
        go_on.set()
        if expects:
            assert await head_of(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
        assert await body_of(reader) == b"2000000"


async def test_the_rest_of_a_refused_request_is_read_and_the_connection_stays_in_use() -> None:
    async with connected(ECHO) as (reader, writer):
        request = put(b"a" * 60_000, b"/nowhere")
        writer.write(request[:1000])
        assert await body_of(reader) == b"Not Found"
        writer.write(request[1000:] + put(b"a body"))
        assert json.loads(await body_of(reader))[3] == "a body"


@pytest.mark.parametrize("sent", [put(b"a" * 20_000_000, b"/nowhere"), put(b"a body", b"/nowhere")[:-3]])
async def test_not_more_than_a_little_of_a_refused_request_is_read_nor_waited_for(sent: bytes) -> None:
    async with connected_without_time(ECHO, ["drain_seconds"]) as (reader, writer, connection):
        writer.write(sent)
        assert await body_of(reader) == b"Not Found"
        look_twice(connection)
        with suppress(ConnectionResetError):
            assert await rest_of(reader) == b""


async def test_a_client_that_still_sends_gets_the_refusal_of_what_is_not_http() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(b"nonsense\r\n\r\n" + b"a" * 20_000_000)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("sent", [b"", b"\r\n", GET * 3])
async def test_a_connection_that_is_idle_for_too_long_is_closed(sent: bytes) -> None:
    async with connected_without_time(ECHO, ["idle_seconds"]) as (reader, writer, connection):
        writer.write(sent)
        await eventually(lambda: connection.data_bytes == len(sent))
        for _ in range(sent.count(GET)):
            await body_of(reader)
        look_twice(connection)
        assert await rest_of(reader) == b""


@pytest.mark.parametrize("line", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
async def test_a_client_that_does_not_read_is_given_up(line: bytes) -> None:
    async with serving(starlette(echo=large), stalled_seconds=SHORT_SECONDS) as served:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write((GET[:-2] + line + b"\r\n") * 3)
        state = served.server.server_state
        await eventually(lambda: state.connections)
        await eventually(lambda: not state.connections and not state.tasks)


async def test_a_client_that_reads_slowly_gets_all_of_a_response() -> None:
    async with connected_without_time(starlette(echo=large)) as (reader, writer, connection):
        writer.write(GET)
        await head_of(reader)
        received, seen = 0, -1
        while received < 20_000_000:
            unsent = connection.transport.get_write_buffer_size()
            if unsent != seen:
                connection.check_deadline()
            seen = unsent
            piece = await reader.read(500_000)
            assert piece
            received += len(piece)
        assert received == 20_000_000


async def test_a_request_that_is_served_sees_its_client_leave(caplog: pytest.LogCaptureFixture) -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def wait_for_disconnect(request: Request) -> Response:
        begun.set()
        await request.receive()
        assert (await request.receive())["type"] == "http.disconnect"
        left.set()
        return Response()

    async with serving(starlette(echo=wait_for_disconnect)) as served:
        _, writer = await served.connect()
        writer.write(GET * 3)
        await begun.wait()
        writer.transport.abort()
        await eventually(lambda: left.is_set() and not served.server.server_state.tasks)
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
            await eventually(lambda: getattr(gone(), "part", None) == "body")
            writer.close()
            await writer.wait_closed()
            async with asyncio.timeout(60):
                await collected.wait()
            assert gone() is None
    finally:
        gc.enable()
