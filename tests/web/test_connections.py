"""Requests and answers on one connection, until it ends."""

import asyncio
import gc
import json
import weakref

import pytest
import uvloop
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.routing import resource
from tests.support.http_serving import listening
from tests.web.connecting import (
    ECHO,
    KEPT_SECONDS,
    REQUEST,
    SlowAnswer,
    answer_of,
    connected,
    echo,
    in_one_piece,
    in_two_turns,
    put,
    rest_of,
)


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


async def test_requests_sent_ahead_are_answered_in_turn() -> None:
    turns = iter(range(3))

    async def count(_: Call) -> JsonAnswer:
        return JsonAnswer(next(turns))

    async with connected(Front([resource("/slow", GET=count)])) as (reader, writer):
        writer.write(REQUEST * 3)
        assert [await answer_of(reader) for _ in range(3)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_an_answer_without_a_body_is_followed_by_the_next_one(method: str) -> None:
    async def unchanged(call: Call) -> ASGIApp | JsonAnswer:
        return Response(status_code=304) if method == "GET" else await in_one_piece(call)

    async with connected(Front([resource("/slow", GET=unchanged, PUT=echo)])) as (reader, writer):
        writer.write(REQUEST.replace(b"GET", method.encode()) + put(b"a body"))
        await reader.readuntil(b"\r\n\r\n")
        assert json.loads(await answer_of(reader))[3] == "a body"


async def test_a_server_that_leaves_answers_what_it_has_and_closes() -> None:
    slow, state = SlowAnswer(), ServerState()
    async with listening(Front([resource("/slow", GET=slow.answer)]), state=state) as address:
        idle = await asyncio.open_connection(*address)
        busy = await asyncio.open_connection(*address)
        busy[1].write(REQUEST * 2)
        await slow.begun.wait()
        for each in list(state.connections):
            each.shutdown()
        slow.go_on.set()
        assert await rest_of(idle[0]) == b""
        answers = await rest_of(busy[0])
        assert answers.count(b'{"answer":"in one piece"}') == 2
        assert answers.count(b"connection: close") == 1
        assert not state.connections
        for _, writer in (idle, busy):
            writer.close()


async def test_a_request_behind_an_answer_that_was_cut_short_is_not_served() -> None:
    served = False

    async def without_end(scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", b"1000000000")
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        while True:
            await send({"type": "http.response.body", "body": b"a" * 100_000, "more_body": True})

    async def page(_: Call) -> ASGIApp:
        return without_end

    async def note(call: Call) -> JsonAnswer:
        nonlocal served
        served = True
        return await in_one_piece(call)

    state = ServerState()
    async with listening(Front([resource("/slow", GET=page, PUT=note)]), state=state) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(REQUEST + put(b"a body"))
        await asyncio.sleep(3 * KEPT_SECONDS)
        (cut_short,) = state.tasks
        cut_short.cancel()
        await asyncio.wait([cut_short])
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
    assert not served


async def test_an_answer_that_fails_halfway_is_cut_short_and_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError

    async def page(_: Call) -> ASGIApp:
        return breaking

    async with connected(Front([resource("/slow", GET=page)])) as (reader, writer):
        writer.write(REQUEST)
        assert (await rest_of(reader)).endswith(b"\r\n\r\nhalf")
    assert [record.message for record in caplog.records] == ["answer cut short"]


async def test_many_small_requests_sent_ahead_are_no_large_head() -> None:
    requests = REQUEST * 3000
    async with connected(Front([resource("/slow", GET=in_one_piece)])) as (reader, writer):
        for piece in (requests[:20], requests[20:-20], requests[-20:]):
            writer.write(piece)
            await in_two_turns()
        for _ in range(3000):
            await answer_of(reader)


async def test_a_connection_that_is_over_leaves_nothing_for_the_garbage_collector() -> None:
    state = ServerState()
    gc.disable()
    try:
        async with listening(ECHO, state=state) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(put(b"a body"))
            await answer_of(reader)
            (served,) = state.connections
            over = asyncio.Event()
            gone = weakref.ref(served, lambda _: over.set())
            del served
            writer.write(put(b"a body")[:-3])
            await in_two_turns()
            writer.close()
            await writer.wait_closed()
            async with asyncio.timeout(100 * KEPT_SECONDS):
                await over.wait()
            assert gone() is None
    finally:
        gc.enable()
