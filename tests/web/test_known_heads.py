"""A head that came before is recognised, and nothing else is."""

import json

import pytest

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http.heads import Head, KnownHeads
from holdfast.web.routing import resource
from tests.web.connecting import (
    ECHO,
    REQUEST,
    answer_of,
    connected,
    in_two_turns,
    put,
    rest_of,
)


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
    until_length = len(put(b"a" * 60).partition(b"\r\n\r\n")[0])
    async with connected(ECHO) as (reader, writer):
        for length in range(until_length - 4, until_length + 1):
            request = put(b"a" * length)
            writer.write(request)
            first = await answer_of(reader)
            assert json.loads(first)[3] == "a" * length
            for pieces in pieces_of(request):
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
