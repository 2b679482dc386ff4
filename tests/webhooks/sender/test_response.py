"""Responses: parsed from bytes, however these are cut into pieces, and turned into results."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.delivery import AttemptResult
from holdfast.webhooks import causes
from holdfast.webhooks.attempt import AttemptTrace
from holdfast.webhooks.connection import LONGEST_BODY, LONGEST_HEAD, ResponseParser
from tests.support.receivers import OK

KIB = 1024
HEAD = b"HTTP/1.1 200 OK\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
CHUNKED_HEAD = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n"
TWO_LENGTHS = HEAD + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


def parse(*pieces: bytes) -> ResponseParser:
    response = ResponseParser()
    for piece in pieces:
        if not response.is_complete:
            response.feed(piece)
    return response


def parsed(response: ResponseParser) -> tuple[object, ...]:
    outcome = response.status_code, response.headers, response.body
    return *outcome, response.is_clipped, response.is_complete, response.error


def result_of(*pieces: bytes) -> AttemptResult:
    return AttemptTrace().response_result(parse(*pieces))


@given(
    st.sampled_from([OK, CHUNKED, INTERIM + OK, INTERIM * 3 + CHUNKED]),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_how_the_bytes_are_cut_makes_no_difference(whole: bytes, places: list[int]) -> None:
    edges = [0, *sorted(place % len(whole) for place in places), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    assert parsed(parse(*pieces)) == parsed(parse(whole))
    assert parse(*pieces).body == b"ok"


PIECES = st.binary(max_size=300) | st.sampled_from([OK, CHUNKED, INTERIM, b"HTTP/1.1 ", b"\r\n", b"0"])


@given(st.lists(PIECES, max_size=8))
def test_no_bytes_whatever_raise_or_are_kept_beyond_the_limits(pieces: list[bytes]) -> None:
    response = parse(*pieces)
    response.end(is_reset=False)
    assert response.is_complete
    assert (response.error is None) == (response.status_code is not None)
    assert len(response.body) <= LONGEST_BODY


@pytest.mark.parametrize(("length", "is_clipped"), [(LONGEST_BODY, False), (LONGEST_BODY + 1, True)])
def test_a_body_of_16_kib_is_whole_and_one_byte_more_is_clipped(length: int, is_clipped: bool) -> None:
    response = parse(HEAD + b"Content-Length: %d\r\n\r\n" % length, b"x" * length)
    assert response.body == b"x" * LONGEST_BODY
    assert (response.is_complete, response.is_clipped) == (True, is_clipped)
    assert bool(response.idle_seconds) == (not is_clipped)


@pytest.mark.parametrize(
    ("first", "endless"),
    [
        (HEAD + b"X: ", b"x" * 1000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (HEAD + b"X: " + b"x" * 64 * KIB + b"\r\n" + EMPTY, b""),
    ],
    ids=["a header", "interim responses", "at once"],
)
def test_a_head_of_more_than_64_kib_is_an_error(first: bytes, endless: bytes) -> None:
    response = parse(first)
    fed = len(first)
    while not response.is_complete:
        response.feed(endless)
        fed += len(endless)
    assert fed < LONGEST_HEAD + 2000
    assert response.status_code is None
    assert response.error == "The headers of the answer are longer than 64 KiB."


@pytest.mark.parametrize(
    ("first", "endless"),
    [(b"0\r\nX-Trailer: ", b"x" * KIB), (b"1;x=", b"x" * KIB), (b"", b"1\r\n\0\r\n")],
    ids=["trailer", "chunk extension", "tiny chunks"],
)
def test_what_never_ends_around_a_body_is_clipped(first: bytes, endless: bytes) -> None:
    response = parse(CHUNKED_HEAD + first)
    for _ in range(512 * KIB // len(endless)):
        response.feed(endless)
    assert (response.is_complete, response.is_clipped) == (True, True)
    assert len(response.body) <= LONGEST_BODY


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
def test_a_connection_is_kept_no_longer_than_its_receiver_says(field: bytes, seconds: float) -> None:
    assert parse(HEAD + field + EMPTY).idle_seconds == seconds


@pytest.mark.parametrize(
    "doubtful",
    [TWO_LENGTHS, OK + OK, OK + b"HTTP/1.1 500 No\r\nX: y\r\nContent-Length: 2\r\n\r\nno", OK + b"garbage"],
)
def test_what_follows_a_response_changes_nothing_and_ends_the_connection(doubtful: bytes) -> None:
    response = parse(doubtful)
    assert (response.status_code, response.body, response.error) == (200, b"ok", None)
    assert (response.is_clipped, response.idle_seconds) == (False, 0.0)
    assert all(name != b"X" for name, _ in response.headers)


@pytest.mark.parametrize(
    "sloppy",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
        b"\r\nHTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok",
        HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nok and more",
    ],
)
def test_sloppy_responses_of_real_servers_are_understood(sloppy: bytes) -> None:
    response = parse(sloppy)
    assert (response.status_code, response.body, response.error) == (200, b"ok", None)


@pytest.mark.parametrize(
    ("sent", "is_reset", "error"),
    [
        (b"", False, causes.CLOSED_EARLY),
        (b"", True, causes.RESET_EARLY),
        (HEAD, False, causes.CLOSED_IN_HEADERS),
        (HEAD, True, causes.RESET_IN_HEADERS),
        (b"\x00\xff\x13garbage\r\n\r\n", False, causes.NOT_HTTP),
        (b"220 mail.example ESMTP\r\n", False, causes.NOT_HTTP),
        (b"HTTP/1.1 twohundred OK\r\n\r\n", False, causes.NOT_HTTP),
        (HEAD + b"no colon here\r\n\r\n", False, causes.HEAD_NOT_HTTP),
        (HEAD + b"X-Zero: a\0b\r\n\r\n", False, causes.HEAD_NOT_HTTP),
    ],
)
def test_without_a_valid_head_the_attempt_has_failed(sent: bytes, is_reset: bool, error: str) -> None:
    response = parse(sent) if sent else ResponseParser()
    response.end(is_reset=is_reset)
    result = AttemptTrace().response_result(response)
    assert (result.cause, result.status_code) == (error, None)


@pytest.mark.parametrize(
    ("sent", "is_reset", "body", "is_clipped"),
    [
        (HEAD + b"\r\npart", True, b"part", True),
        (HEAD + b"Content-Length: 9\r\n\r\npart", False, b"part", True),
        (CHUNKED_HEAD + b"10\r\npart", False, b"part", True),
        (CHUNKED_HEAD + b"4\r\npart\r\nnot a size", False, b"part", True),
        (b"HTTP/1.0 200 OK\r\n\r\nwhole", False, b"whole", False),
    ],
)
def test_a_body_that_breaks_off_after_a_200_is_a_success(
    sent: bytes, is_reset: bool, body: bytes, is_clipped: bool
) -> None:
    response = parse(sent)
    response.end(is_reset=is_reset)
    result = AttemptTrace().response_result(response)
    assert (result.cause, result.response_body, result.response_clipped) == (None, body, is_clipped)


def test_interim_responses_are_skipped() -> None:
    result = result_of(b"HTTP/1.1 100 Continue\r\n\r\n" + INTERIM, OK)
    assert (result.cause, result.response_body) == (None, b"ok")
    assert result.response_headers == (("Content-Length", "2"),)


def test_many_and_long_headers_are_kept_and_trailers_are_not() -> None:
    fields = b"".join(b"X-Header-%d: %d\r\n" % (number, number) for number in range(199))
    many = result_of(HEAD + fields + EMPTY)
    assert many.cause is None
    assert len(many.response_headers) == 200
    assert many.response_headers[7] == ("X-Header-7", "7")
    head = HEAD + b"X-Long: " + b"v" * 63 * KIB + b"\r\n" + EMPTY
    assert result_of(head[:5000], head[5000:]).response_headers[0] == ("X-Long", "v" * 63 * KIB)
    assert result_of(CHUNKED).response_headers == (("Transfer-Encoding", "chunked"),)


@pytest.mark.parametrize("upgrade", [b"", b"Upgrade: websocket\r\nConnection: Upgrade\r\n"])
def test_a_101_is_a_failure(upgrade: bytes) -> None:
    result = result_of(b"HTTP/1.1 101 Switching Protocols\r\n" + upgrade + b"\r\n")
    assert result.cause == "The receiver answered 101 and asks for another protocol."
    assert (result.status_code, result.response_clipped) == (101, True)


def test_every_2xx_is_delivered_and_nothing_else_is() -> None:
    for status in (200, 201, 204, 226, 299, 300, 304, 400, 401, 404, 410, 429, 500, 503, 599, 999):
        result = result_of(b"HTTP/1.1 %d Any\r\nContent-Length: 0\r\n\r\n" % status)
        expected = None if status < 300 else f"The receiver answered {status}."
        assert (result.status_code, result.cause and str(result.cause)) == (status, expected)
        assert result.is_gone == (status == 410)
    for status in (301, 302, 303, 307, 308):
        result = result_of(b"HTTP/1.1 %d Moved\r\nContent-Length: 0\r\n\r\n" % status)
        assert str(result.cause) == f"The receiver answered {status} and redirects are not followed."
