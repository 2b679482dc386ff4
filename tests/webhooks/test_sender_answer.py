"""Answers read out of bytes, however these are cut into pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.webhooks.connection import LONGEST_BODY, LONGEST_HEAD, ResponseParser
from tests.support.receivers import OK

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


def read(*pieces: bytes) -> ResponseParser:
    answer = ResponseParser()
    for piece in pieces:
        if not answer.is_complete:
            answer.feed(piece)
    return answer


def seen(answer: ResponseParser) -> tuple[object, ...]:
    return (
        answer.status_code,
        answer.headers,
        answer.body,
        answer.is_clipped,
        answer.is_complete,
        answer.error,
    )


@given(
    st.sampled_from([OK, CHUNKED, INTERIM + OK, INTERIM * 3 + CHUNKED]),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_how_the_bytes_are_cut_makes_no_difference(whole: bytes, places: list[int]) -> None:
    edges = [0, *sorted(place % len(whole) for place in places), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    assert seen(read(*pieces)) == seen(read(whole))
    assert read(*pieces).body == b"ok"


@given(
    st.lists(
        st.binary(max_size=300) | st.sampled_from([OK, CHUNKED, INTERIM, b"HTTP/1.1 ", b"\r\n", b"0"]),
        max_size=8,
    )
)
def test_no_bytes_whatever_raise_or_are_kept_beyond_the_bounds(pieces: list[bytes]) -> None:
    answer = read(*pieces)
    answer.end(is_reset=False)
    assert answer.is_complete
    assert (answer.error is None) == (answer.status_code is not None)
    assert len(answer.body) <= LONGEST_BODY


@pytest.mark.parametrize(("length", "is_clipped"), [(LONGEST_BODY, False), (LONGEST_BODY + 1, True)])
def test_a_body_of_16_kib_is_whole_and_one_byte_more_is_cut(length: int, is_clipped: bool) -> None:
    answer = read(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length, b"x" * length)
    assert answer.body == b"x" * LONGEST_BODY
    assert answer.is_complete
    assert answer.is_clipped == is_clipped
    assert bool(answer.idle_seconds) == (not is_clipped)


def test_a_long_head_in_small_pieces_is_bounded() -> None:
    answer = ResponseParser()
    fed = 0
    answer.feed(b"HTTP/1.1 200 OK\r\nX: ")
    while not answer.is_complete:
        answer.feed(b"x" * 1000)
        fed += 1000
    assert fed < LONGEST_HEAD + 2000
    assert answer.error == "The headers of the answer are longer than 64 KiB."


@pytest.mark.parametrize(
    ("field", "seconds"),
    [
        (b"", 4.0),
        (b"Keep-Alive: timeout=5\r\n", 4.0),
        (b"Keep-Alive: timeout=3, max=100\r\n", 2.0),
        (b"keep-alive: max=5, Timeout = 2\r\n", 1.0),
        (b"Keep-Alive: timeout=1\r\n", 0.0),
        (b"Keep-Alive: timeout=0\r\n", 0.0),
        (b"Keep-Alive: timeout=soon\r\n", 4.0),
        (b"Connection: close\r\n", 0.0),
    ],
)
def test_a_connection_waits_no_longer_than_its_receiver_says(field: bytes, seconds: float) -> None:
    answer = read(b"HTTP/1.1 200 OK\r\n" + field + b"Content-Length: 0\r\n\r\n")
    assert answer.idle_seconds == seconds


@pytest.mark.parametrize(
    "sloppy",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
        b"\r\nHTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok and more",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
def test_sloppy_answers_of_real_servers_are_understood(sloppy: bytes) -> None:
    answer = read(sloppy)
    assert (answer.status_code, answer.body, answer.error) == (200, b"ok", None)
