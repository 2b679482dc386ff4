"""Answers that are not as they should be: the status decides, and the cause is named."""

import asyncio

import pytest

from holdfast.webhooks.attempt import Secret
from tests.support.receiver_posts import (
    SECRET,
    a_post,
    a_sender,
    attempt_at,
    attempt_at_and_leave,
    in_time,
)
from tests.support.receivers import (
    OK,
    Peer,
    answer_all,
    answering,
    receiving,
)

KIB = 1024
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


async def test_two_hundred_headers_are_a_success() -> None:
    fields = b"".join(b"X-Header-%d: %d\r\n" % (number, number) for number in range(199))
    attempted = await attempt_at_and_leave(answering(HEAD + fields + b"Content-Length: 0\r\n\r\n"))
    assert attempted.cause is None
    assert len(attempted.response_headers) == 200
    assert attempted.response_headers[7] == ("X-Header-7", "7")


async def test_a_header_of_nine_kib_is_a_success() -> None:
    value = "v" * 9 * KIB
    head = HEAD + b"X-Long: " + value.encode() + b"\r\nContent-Length: 0\r\n\r\n"
    attempted = await attempt_at_and_leave(answering(head[:5000], head[5000:]))
    assert attempted.cause is None
    assert attempted.response_headers[0] == ("X-Long", value)


@pytest.mark.parametrize("ending", [b"\r\nContent-Length: 0\r\n\r\n", b""], ids=["that end", "that go on"])
async def test_headers_of_more_than_64_kib_are_a_failure(ending: bytes) -> None:
    attempted = await attempt_at(answering(HEAD + b"X-Long: " + b"v" * 64 * KIB + ending))
    assert attempted.cause == "The headers of the answer are longer than 64 KiB."
    assert attempted.status_code is None


async def test_headers_of_just_under_64_kib_are_a_success() -> None:
    head = HEAD + b"X-Long: " + b"v" * (63 * KIB) + b"\r\nContent-Length: 0\r\n\r\n"
    assert (await attempt_at_and_leave(answering(head))).cause is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_its_target_is_never_contacted(status: int) -> None:
    async with receiving(answer_all) as target:
        head = f"HTTP/1.1 {status} Moved\r\nLocation: {target.url}\r\nContent-Length: 0\r\n\r\n"
        attempted = await attempt_at_and_leave(answering(head.encode()))
        assert target.connections == 0
    assert str(attempted.cause) == f"The receiver answered {status} and redirects are not followed."
    assert attempted.status_code == status
    assert ("Location", target.url) in attempted.response_headers


async def test_a_reset_before_the_status_line_is_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        peer.reset()

    attempted = await attempt_at(talk)
    assert attempted.cause == "The connection was reset before an answer came."
    assert len(attempted.request_headers) == 8


async def test_a_reset_after_the_status_line_is_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        await asyncio.sleep(0.1)  # So that the status line is read before the reset overtakes it.
        peer.reset()

    attempted = await attempt_at(talk)
    assert attempted.cause == "The connection was reset before the headers of the answer ended."
    assert attempted.status_code is None


async def test_a_reset_in_the_body_of_a_200_is_a_success_that_is_marked_as_cut() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"\r\npart")
        await asyncio.sleep(0.1)
        peer.reset()

    attempted = await attempt_at(talk)
    assert attempted.cause is None
    assert attempted.response_body == b"part"
    assert attempted.response_clipped


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        (b"", "The connection was closed before an answer came."),
        (HEAD, "The connection was closed before the headers of the answer ended."),
    ],
)
async def test_an_answer_that_ends_too_early_is_a_failure(sent: bytes, cause: str) -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)
        await peer.close()

    assert (await attempt_at(talk)).cause == cause


@pytest.mark.parametrize(
    ("garbage", "cause"),
    [
        (b"\x00\xff\x13garbage\r\n\r\n", "The answer is not HTTP."),
        (b"220 mail.example ESMTP\r\n", "The answer is not HTTP."),
        (b"HTTP/1.1 twohundred OK\r\n\r\n", "The answer is not HTTP."),
        (HEAD + b"no colon here\r\n\r\n", "The head of the answer is not valid HTTP."),
        (HEAD + b"X-Zero: a\0b\r\n\r\n", "The head of the answer is not valid HTTP."),
    ],
)
async def test_garbage_is_a_failure(garbage: bytes, cause: str) -> None:
    attempted = await attempt_at(answering(garbage))
    assert attempted.cause == cause
    assert attempted.status_code is None
    assert attempted.duration_ms < 500


async def test_a_receiver_that_speaks_first_gets_no_request() -> None:
    spoken = asyncio.Event()

    async def talk(peer: Peer) -> None:
        await peer.send(b"SSH-2.0-OpenSSH_9.9\r\n")
        spoken.set()

    async with receiving(talk) as receiver, a_sender() as sender:

        async def slow_secret() -> Secret:
            await spoken.wait()
            await asyncio.sleep(0.05)
            return SECRET

        attempted = await in_time(sender, a_post(receiver.url, secret=slow_secret))
        await receiver.all_left()
    assert attempted.cause == "The receiver sent data before it was asked."
    assert attempted.request_headers == ()


@pytest.mark.parametrize("upgrade", [b"", b"Upgrade: websocket\r\nConnection: Upgrade\r\n"])
async def test_a_101_is_a_failure(upgrade: bytes) -> None:
    attempted = await attempt_at(answering(b"HTTP/1.1 101 Switching Protocols\r\n" + upgrade + b"\r\n"))
    assert attempted.cause == "The receiver answered 101 and asks for another protocol."
    assert attempted.status_code == 101


async def test_interim_answers_are_skipped() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    attempted = await attempt_at_and_leave(answering(interim, OK))
    assert attempted.cause is None
    assert attempted.response_headers == (("Content-Length", "2"),)
    assert attempted.response_body == b"ok"


async def test_a_truncated_chunk_after_a_200_is_a_success_that_is_marked_as_cut() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\nhalf")
        await peer.close()

    attempted = await attempt_at(talk)
    assert attempted.cause is None
    assert attempted.response_body == b"half"
    assert attempted.response_clipped


async def test_a_body_without_a_length_ends_with_the_connection_and_is_whole() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.0 200 OK\r\n\r\nwhole")
        await peer.close()

    attempted = await attempt_at(talk)
    assert attempted.response_body == b"whole"
    assert not attempted.response_clipped


async def test_a_410_says_that_the_endpoint_is_gone() -> None:
    attempted = await attempt_at_and_leave(answering(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"))
    assert attempted.is_gone
    assert str(attempted.cause) == "The receiver answered 410."
