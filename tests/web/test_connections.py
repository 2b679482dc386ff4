"""Connections, as our HTTP protocol keeps and closes them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http import connection
from holdfast.web.http.connection import Application
from holdfast.web.routing import Handler, resource
from tests.support.http_serving import listening

KEPT_SECONDS = 0.1
REQUEST = b"GET /slow HTTP/1.1\r\nHost: holdfast.example\r\n\r\n"


@asynccontextmanager
async def connected(app: Application) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with listening(app, KEPT_SECONDS) as address:
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


async def as_a_page(_: Call) -> ASGIApp:
    return PlainTextResponse("a page")


@pytest.mark.parametrize("handler", [in_one_piece, as_a_page])
async def test_a_connection_that_was_idle_for_too_long_is_closed(handler: Handler) -> None:
    async with connected(Front([resource("/slow", GET=handler)])) as (reader, writer):
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


async def echo(call: Call) -> JsonAnswer:
    body = await call.body()
    return JsonAnswer([call.method, call.path, call.exchange.query.decode(), body.decode()])


def put(body: bytes, path: bytes = b"/slow", *lines: bytes) -> bytes:
    head = b"PUT %b HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: %d\r\n" % (path, len(body))
    return head + b"".join(b"%b\r\n" % line for line in lines) + b"\r\n" + body


ECHO = Front([resource("/slow", PUT=echo, GET=echo)])


async def test_a_head_that_came_before_is_read_as_the_first_time() -> None:
    async with connected(ECHO) as (reader, writer):
        for body in (b"first", b"again", b"third"):
            writer.write(put(body, b"/slow?a=%b" % body))
            assert json.loads(await answer_of(reader)) == [
                "PUT",
                "/slow",
                f"a={body.decode()}",
                body.decode(),
            ]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(lambda request: [request[:-3], request[-3:]], id="whose body comes in pieces"),
        pytest.param(lambda request: [request[:20], request[20:]], id="whose head comes in pieces"),
        pytest.param(lambda request: [request[:1], request[1:]], id="whose first byte comes alone"),
        pytest.param(lambda request: [request + request], id="with another one behind it"),
        pytest.param(lambda request: [request + request[:9], request[9:]], id="with half of another one"),
    ],
)
async def test_a_known_head_of_a_request(rest: Callable[[bytes], list[bytes]]) -> None:
    async with connected(ECHO) as (reader, writer):
        request = put(b"a body")
        writer.write(request)
        first = await answer_of(reader)
        pieces = rest(request)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        for _ in range(sum(map(len, pieces)) // len(request)):
            assert await answer_of(reader) == first
        writer.write(request)
        assert await answer_of(reader) == first


@pytest.mark.parametrize("line", [b"PUT /slow HTTP/1.0", b"PUTT /slow HTTP/1.1", b"PUT"])
async def test_a_known_head_does_not_vouch_for_the_first_line(line: bytes) -> None:
    async with connected(ECHO) as (reader, writer):
        request = put(b"a body")
        writer.write(request)
        await answer_of(reader)
        writer.write(line + request[request.index(b"\r\n") :])
        assert b"connection: close" in await rest_of(reader)


async def test_the_body_of_a_known_head_is_the_one_that_was_sent_with_it() -> None:
    async with connected(ECHO) as (reader, writer):
        request = put(b"a body")
        writer.write(request)
        await answer_of(reader)
        writer.write(request + b"GET /slow HTTP/1.1\r\nHost: holdfast.example\r\n\r\n")
        assert json.loads(await answer_of(reader))[3] == "a body"
        assert json.loads(await answer_of(reader)) == ["GET", "/slow", "", ""]


async def test_chunks_are_put_together_however_often_their_head_comes() -> None:
    head = b"PUT /slow HTTP/1.1\r\nHost: holdfast.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with connected(ECHO) as (reader, writer):
        for _ in range(3):
            writer.write(head + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
            assert json.loads(await answer_of(reader))[3] == "abc"


async def test_a_connection_that_the_client_wants_closed_is_closed_however_often_its_head_came() -> None:
    for _ in range(2):
        async with connected(ECHO) as (reader, writer):
            writer.write(put(b"a body", b"/slow", b"Connection: close") + put(b"too late"))
            answer = await rest_of(reader)
            assert answer.count(b"HTTP/1.1 200 OK") == 1
            assert b"connection: close" in answer


async def test_the_client_is_told_to_go_on_before_its_body_is_read() -> None:
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            request = put(b"a body", b"/slow", b"Expect: 100-continue")
            writer.write(request[:-6])
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(request[-6:])
            assert json.loads(await answer_of(reader))[3] == "a body"


async def test_what_is_no_request_is_refused_after_those_before_it_are_answered() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"a body") + b"nonsense\r\n\r\n")
        assert json.loads(await answer_of(reader))[3] == "a body"
        assert await rest_of(reader) == b""


async def test_a_broken_body_is_refused_while_its_request_waits_for_it() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(b"PUT /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        await asyncio.sleep(0)
        writer.write(b"no length\r\n")
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_a_large_body_is_read_piece_by_piece() -> None:
    async with connected(ECHO) as (reader, writer):
        body = b"a" * 900_000
        writer.write(put(body))
        assert json.loads(await answer_of(reader))[3] == body.decode()


async def test_an_answer_before_the_body_leaves_the_connection_usable() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"a" * 900_000, b"/nowhere"))
        assert b'"status":404' in await answer_of(reader)
        writer.write(put(b"a body"))
        assert json.loads(await answer_of(reader))[3] == "a body"


async def test_a_connection_that_never_says_anything_is_closed() -> None:
    async with connected(ECHO) as (reader, _):
        assert await rest_of(reader) == b""


@pytest.mark.parametrize("part", [b"PUT /slow HTTP/1.1\r\nHo", put(b"a body")[:-3]])
async def test_a_request_that_never_ends_is_given_up(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", 2 * KEPT_SECONDS)
    async with connected(ECHO) as (reader, writer):
        writer.write(part)
        assert await rest_of(reader) == b""


async def test_a_client_that_takes_no_answers_gets_no_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", 2 * KEPT_SECONDS)
    answered = 0

    async def much(_: Call) -> JsonAnswer:
        nonlocal answered
        answered += 1
        return JsonAnswer("a" * 1_000_000)

    async with connected(Front([resource("/slow", GET=much)])) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(REQUEST * 100)
        await asyncio.sleep(5 * KEPT_SECONDS)
        assert 0 < answered < 20
