"""Heads that differ in X-Forwarded-For alone are one, and each client keeps its own addresses."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.front import Front
from holdfast.web.http.exchange import Exchange
from holdfast.web.http.heads import Head, KnownHeads
from holdfast.web.http.reading import Beginning, RequestReader
from holdfast.web.routing import resource
from tests.web.connecting import answer_of, connected

LINE = b"GET /slow HTTP/1.1"
LINES = [b"Host: holdfast.example", b"Accept: */*", b"X-Request-Id: of-the-proxy"]


def request(*lines: bytes) -> bytes:
    return b"\r\n".join([LINE, *lines, b"", b""])


def forwarded(addresses: bytes, at: int = 1) -> bytes:
    return request(*LINES[:at], b"X-Forwarded-For: " + addresses, *LINES[at:])


def parsed(data: bytes) -> Head:
    """What the parser makes of it."""
    found: list[Head] = []

    def begin(beginning: Beginning) -> Exchange | None:
        found.append(beginning.head)
        return None

    RequestReader(KnownHeads(), begin, lambda: 0.0).read(data)
    (head,) = found
    return head


def after_learning(*learned: bytes) -> KnownHeads:
    known = KnownHeads()
    for data in learned:
        known.learn(data, parsed(data))
    return known


addresses = st.one_of(
    st.ip_addresses().map(str), st.sampled_from(["192.0.2.1, 10.0.0.1", "::1,10.0.0.1"])
).map(str.encode)


@given(addresses, addresses, st.integers(0, 3))
def test_another_client_of_the_proxy_has_the_same_head_but_for_its_address(
    first: bytes, second: bytes, at: int
) -> None:
    known = after_learning(forwarded(first, at))
    found = known.request_in(forwarded(second, at))
    assert found is not None
    assert found.head.lines == parsed(forwarded(second, at)).lines
    assert found.head.values == parsed(forwarded(second, at)).values


def test_the_one_that_was_learnt_is_left_as_it_was() -> None:
    known = after_learning(forwarded(b"192.0.2.1"))
    for client in (b"192.0.2.2", b"192.0.2.1"):
        found = known.request_in(forwarded(client))
        assert found is not None
        assert found.head.values[b"x-forwarded-for"] == client


async def test_what_follows_from_a_head_is_worked_out_once_and_addresses_are_told_apart() -> None:
    async def tell(call: Call) -> JsonAnswer:
        return JsonAnswer([call.request_id, call.exchange.head.values[b"x-forwarded-for"].decode()])

    async with connected(Front([resource("/slow", GET=tell)])) as (reader, writer):
        for client in ("192.0.2.1", "192.0.2.2", "192.0.2.1, 192.0.2.2"):
            writer.write(forwarded(client.encode()))
            assert json.loads(await answer_of(reader)) == ["of-the-proxy", client]


NOT_ALIKE = {
    "two lines": request(*LINES, b"X-Forwarded-For: 192.0.2.1", b"X-Forwarded-For: 192.0.2.2"),
    "two spellings": request(*LINES, b"X-Forwarded-For: 192.0.2.1", b"x-forwarded-for: 192.0.2.2"),
    "no address": request(*LINES, b"X-Forwarded-For: _hidden"),
    "spaces": request(*LINES, b"X-Forwarded-For:  192.0.2.1 "),
    "nothing": request(*LINES, b"X-Forwarded-For: "),
    "very long": request(*LINES, b"X-Forwarded-For: " + b"1" * 3000),
    "another name": request(*LINES, b"X-Forwarded-Forward: 192.0.2.1"),
    "none": request(*LINES),
}


@pytest.mark.parametrize("other", NOT_ALIKE)
def test_a_head_that_is_not_quite_so_is_the_parsers_to_read(other: str) -> None:
    assert after_learning(forwarded(b"192.0.2.1", 3)).request_in(NOT_ALIKE[other]) is None


@pytest.mark.parametrize("other", NOT_ALIKE)
def test_a_head_that_is_not_quite_so_stands_for_no_other(other: str) -> None:
    known = after_learning(NOT_ALIKE[other])
    assert known.request_in(forwarded(b"192.0.2.9", 3)) is None
    found = known.request_in(NOT_ALIKE[other])
    assert other == "very long" or (found is not None and found.head.lines == parsed(NOT_ALIKE[other]).lines)


def test_a_line_that_goes_on_in_the_next_is_never_taken_apart() -> None:
    folded = Head([(b"x-forwarded-for", b"192.0.2.1"), (b"host", b"holdfast.example 192.0.2.7")])
    known = KnownHeads()
    known.learn(request(b"X-Forwarded-For: 192.0.2.1", b"Host: holdfast.example", b" 192.0.2.7"), folded)
    moved = request(b"Host: holdfast.example", b"X-Forwarded-For: 192.0.2.1", b" 192.0.2.7")
    assert known.request_in(moved) is None
