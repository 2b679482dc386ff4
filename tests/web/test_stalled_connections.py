"""Connections that keep somebody waiting."""

import asyncio
from contextlib import suppress

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http import connection
from holdfast.web.routing import Handler, resource
from tests.web.connecting import (
    ECHO,
    KEPT_SECONDS,
    REQUEST,
    answer_of,
    connected,
    in_one_piece,
    put,
    rest_of,
)

UNHURRIED_SECONDS = 1.5
"""Where a busy machine must not be taken for a client that stalls."""


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
    front = Front([resource("/slow", GET=in_one_piece)])
    async with connected(front, kept_seconds=UNHURRIED_SECONDS) as (reader, writer):
        for _ in range(6):
            writer.write(REQUEST)
            await answer_of(reader)
            await asyncio.sleep(UNHURRIED_SECONDS / 3)


async def test_a_connection_whose_body_never_comes_is_closed_after_its_answer() -> None:
    async with connected(Front([])) as (reader, writer):
        writer.write(b"PUT /nowhere HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: 5\r\n\r\n")
        assert b'"status":404' in await answer_of(reader)
        assert await rest_of(reader) == b""


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


@pytest.mark.parametrize("in_one", [True, False])
async def test_a_client_that_takes_a_long_answer_slowly_gets_all_of_it(
    in_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", UNHURRIED_SECONDS)
    numbers = b"1," * 3_000_000
    parts: list[bytes | bytearray] = [b"[" + numbers, bytearray(numbers + b"1]")]

    async def much(_: Call) -> JsonAnswer:
        await asyncio.sleep(1.2 * UNHURRIED_SECONDS)
        return JsonAnswer.of_parts([b"".join(parts)] if in_one else parts)

    async with connected(Front([resource("/slow", GET=much)])) as (reader, writer):
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        received = 0
        while received < sum(map(len, parts)):
            received += len(await reader.readexactly(min(1_500_000, sum(map(len, parts)) - received)))
            await asyncio.sleep(UNHURRIED_SECONDS / 5)


async def test_the_time_of_a_head_does_not_run_while_earlier_requests_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "STALLED_SECONDS", 10 * KEPT_SECONDS)

    async def slow(call: Call) -> JsonAnswer:
        await asyncio.sleep(6 * KEPT_SECONDS)
        return await in_one_piece(call)

    async with connected(Front([resource("/slow", GET=slow)])) as (reader, writer):
        writer.write(REQUEST * 2 + REQUEST[:20])
        for _ in range(2):
            await answer_of(reader)
        await asyncio.sleep(3 * KEPT_SECONDS)
        writer.write(REQUEST[20:])
        await answer_of(reader)
