"""From bytes to requests: framing, and what is no request."""

import asyncio
import json
from contextlib import suppress
from typing import cast

import pytest
from uvicorn.server import ServerState

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http.connection import HttpConnection
from holdfast.web.routing import resource
from tests.support.http_serving import listening
from tests.web.connecting import (
    ECHO,
    REQUEST,
    SlowAnswer,
    answer_of,
    connected,
    echo,
    in_two_turns,
    put,
    rest_of,
)


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


async def test_a_length_of_many_zeros_is_refused() -> None:
    async with connected(ECHO) as (reader, writer):
        writer.write(b"PUT /slow HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"0" * 5000 + b"1\r\n\r\na")
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_a_head_without_end_is_not_kept_while_another_request_is_served() -> None:
    slow, state = SlowAnswer(), ServerState()
    async with listening(Front([resource("/slow", GET=slow.answer)]), state=state) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(REQUEST + b"GET /slow HTTP/1.1\r\nA: ")
        await slow.begun.wait()
        for _ in range(200):
            writer.write(b"a" * 10_000 + b"\r\nA: ")
            await writer.drain()
            await in_two_turns()
        (served,) = state.connections
        assert cast(HttpConnection, served)._reader._header_lines == []
        slow.go_on.set()
        with suppress(ConnectionResetError):
            assert (await rest_of(reader)).count(b"HTTP/1.1") == 1
        writer.close()
