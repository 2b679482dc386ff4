"""Connections, as our HTTP protocol keeps and closes them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http import connection
from holdfast.web.http.connection import Application
from holdfast.web.http.heads import Head, KnownHeads
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


async def in_two_turns() -> None:
    """Enough for the server, which is in the same loop, to read what was sent."""
    for _ in range(2):
        await asyncio.sleep(0)


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


def pieces_of(request: bytes) -> list[list[bytes]]:
    whole = [[request[:at], request[at:]] for at in range(1, len(request))]
    return [*whole, [request + request], [request + request[:9], request[9:]]]


async def test_a_known_head_is_waited_for_wherever_it_is_cut() -> None:
    """Also where the announced length is just that of the part that came, taken for a body."""
    lengths = range(30, 60)
    async with connected(ECHO) as (reader, writer):
        for length in lengths:
            request = put(b"a" * length)
            writer.write(request)
            first = await answer_of(reader)
            assert json.loads(first)[3] == "a" * length
            for pieces in pieces_of(request)[:: 1 if length == 42 else 13]:
                for piece in pieces:
                    writer.write(piece)
                    await in_two_turns()
                for _ in range(sum(map(len, pieces)) // len(request)):
                    assert await answer_of(reader) == first


def test_a_part_of_a_known_head_is_no_request() -> None:
    known = KnownHeads()
    for length in range(100):
        request = put(b"a" * length)
        head = Head([(b"host", b"holdfast.example"), (b"content-length", b"%d" % length)])
        known.learn(request, head)
        assert known.request_in(request) == ("PUT", b"/slow", b"", head, b"a" * length)
        for end in range(len(request)):
            assert known.request_in(request[:end]) is None
        assert known.request_in(request + b"a") is None


@pytest.mark.parametrize("before", [b"\r\n", b"\r\n\r\n", b"\r\n\r\n\r\n"])
def test_what_stands_behind_empty_lines_is_not_taken_for_header_lines(before: bytes) -> None:
    known = KnownHeads()
    known.learn(before + REQUEST, Head([(b"host", b"holdfast.example")]))
    assert known.request_in(b"GET /slow HTTP/1.1" + before + REQUEST) is None


@pytest.mark.parametrize("before", [b"\r\n", b"\r\n\r\n", b"\r\n\r\n\r\n"])
async def test_empty_lines_before_a_request_teach_nothing(before: bytes) -> None:
    """Or the next one without header lines would be taken for one with these."""

    async def tokens(call: Call) -> JsonAnswer:
        return JsonAnswer(call.tokens)

    async with connected(Front([resource("/slow", GET=tokens)])) as (reader, writer):
        writer.write(before + b"GET /slow HTTP/1.1\r\nAuthorization: Bearer of-another\r\n\r\n")
        assert await answer_of(reader) == b'["of-another"]'
        for request in (b"GET /slow HTTP/1.1\r\n\r\n", before + b"GET /slow HTTP/1.1\r\n\r\n"):
            writer.write(request)
            assert await answer_of(reader) == b"[]"


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


async def test_a_client_that_takes_no_answers_gets_no_more_of_them_and_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", 2 * KEPT_SECONDS)
    answered = 0

    async def much(_: Call) -> JsonAnswer:
        nonlocal answered
        answered += 1
        return JsonAnswer("a" * 1_000_000)

    async with connected(Front([resource("/slow", GET=much)])) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(REQUEST * 100)
        await asyncio.sleep(5 * KEPT_SECONDS)
        assert 0 < answered < 20
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        with suppress(ConnectionResetError):
            assert (await rest_of(reader)).count(b"HTTP/1.1 200") <= answered


async def test_a_client_that_takes_a_long_answer_slowly_gets_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", 3 * KEPT_SECONDS)
    parts: list[bytes | bytearray] = [b"[" + b"1," * 3_000_000, bytearray(b"1," * 3_000_000 + b"1]")]

    async def much(_: Call) -> JsonAnswer:
        await asyncio.sleep(5 * KEPT_SECONDS)
        return JsonAnswer.of_parts(parts)

    async with connected(Front([resource("/slow", GET=much)])) as (reader, writer):
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        received = 0
        while received < sum(map(len, parts)):
            received += len(await reader.readexactly(min(1_500_000, sum(map(len, parts)) - received)))
            await asyncio.sleep(KEPT_SECONDS)


async def test_an_answer_before_the_client_was_told_to_go_on_ends_the_connection() -> None:
    """It may send the body after that, or its next request: nobody could tell which."""
    async with connected(ECHO) as (reader, writer):
        writer.write(put(b"a body", b"/nowhere", b"Expect: 100-continue")[:-6])
        answer = await rest_of(reader)
        assert answer.startswith(b"HTTP/1.1 404")
        assert b"connection: close" in answer


@pytest.mark.parametrize("cut", [b"Upgrade: h2c", b"Upgrade: h2c\r\n", b"Connection: Upgrade\r\nUpg"])
async def test_an_offer_of_another_protocol_that_comes_in_pieces_never_loses_a_body(cut: bytes) -> None:
    request = put(b"a body", b"/slow", b"Connection: Upgrade", b"Upgrade: h2c", b"X: 0")
    at = request.index(cut) + len(cut)
    async with connected(ECHO) as (reader, writer):
        writer.write(request[:at])
        await in_two_turns()
        writer.write(request[at:])
        answer = await rest_of(reader)
        assert answer.startswith(b"HTTP/1.1 400") or b'"a body"' in answer


async def test_a_whole_head_with_such_an_offer_is_served() -> None:
    async with connected(ECHO) as (reader, writer):
        for _ in range(2):
            writer.write(put(b"a body", b"/slow", b"Connection: Upgrade", b"Upgrade: h2c"))
            assert json.loads(await answer_of(reader))[3] == "a body"


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_an_answer_without_a_body_is_followed_by_the_next_one(method: str) -> None:
    async def unchanged(call: Call) -> ASGIApp | JsonAnswer:
        return Response(status_code=304) if method == "GET" else await in_one_piece(call)

    async with connected(Front([resource("/slow", GET=unchanged, PUT=echo)])) as (reader, writer):
        writer.write(REQUEST.replace(b"GET", method.encode()) + put(b"a body"))
        await reader.readuntil(b"\r\n\r\n")
        assert json.loads(await answer_of(reader))[3] == "a body"


async def test_a_server_that_leaves_answers_what_it_has_and_closes() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> JsonAnswer:
        begun.set()
        await go_on.wait()
        return await in_one_piece(call)

    state = ServerState()
    async with listening(Front([resource("/slow", GET=slow)]), state=state) as address:
        idle = await asyncio.open_connection(*address)
        busy = await asyncio.open_connection(*address)
        busy[1].write(REQUEST * 2)
        await begun.wait()
        for each in list(state.connections):
            each.shutdown()
        go_on.set()
        assert await rest_of(idle[0]) == b""
        answers = await rest_of(busy[0])
        assert answers.count(b'{"answer":"in one piece"}') == 2
        assert answers.count(b"connection: close") == 1
        assert not state.connections
        for _, writer in (idle, busy):
            writer.close()


async def test_trailers_are_dropped() -> None:
    head = b"PUT /slow HTTP/1.1\r\nHost: holdfast.example\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def tokens(call: Call) -> JsonAnswer:
        await call.body()
        return JsonAnswer(call.tokens)

    async with connected(Front([resource("/slow", PUT=tokens, GET=tokens)])) as (reader, writer):
        writer.write(head + b"2\r\nab\r\n0\r\nAuthorization: Bearer late\r\n\r\n" + REQUEST)
        assert [await answer_of(reader) for _ in range(2)] == [b"[]", b"[]"]


async def test_a_target_with_a_host_and_no_path_is_the_root() -> None:
    async with connected(Front([resource("/", GET=echo)])) as (reader, writer):
        writer.write(b"GET http://holdfast.example HTTP/1.1\r\nHost: holdfast.example\r\n\r\n")
        assert json.loads(await answer_of(reader))[1] == "/"


async def test_a_request_answered_before_its_broken_body_gets_no_second_answer() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(b"PUT /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert b'"status":404' in await answer_of(reader)
        writer.write(b"no length\r\n")
        assert await rest_of(reader) == b""
