"""Receivers that misbehave: the outcome is right, the cause is named, and the slot is free in time."""

import asyncio
import gzip
import tracemalloc

import pytest

from holdfast.domain.delivery import AttemptResult
from holdfast.webhooks.sender import Sender
from tests.support.receiver_posts import (
    a_post,
    a_sender,
    attempt,
    attempt_at,
    attempt_at_and_leave,
    in_time,
)
from tests.support.receivers import (
    OK,
    Peer,
    Received,
    answering,
    never_accepting,
    receiving,
    unused_port,
)

KIB = 1024
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


async def test_a_receiver_that_never_accepts_costs_its_deadline_and_no_more() -> None:
    async with never_accepting() as port:
        attempted = await attempt(f"http://127.0.0.1:{port}/")
    assert attempted.cause == "No connection within one second."
    assert attempted.status_code is None
    assert attempted.request_headers == ()
    assert attempted.secret_id is None
    assert attempted.address == "127.0.0.1"
    assert attempted.timings.connect_ms == pytest.approx(1000, abs=300)


async def test_a_port_where_nobody_listens_refuses_the_connection() -> None:
    attempted = await attempt(f"http://127.0.0.1:{unused_port()}/")
    assert attempted.cause == "The connection was refused."
    assert attempted.request_headers == ()
    assert attempted.duration_ms < 500


async def test_a_receiver_that_accepts_and_never_answers_is_given_up_at_the_deadline() -> None:
    attempted = await attempt_at(answering())
    assert attempted.cause == "No answer within one second."
    assert attempted.status_code is None
    assert attempted.duration_ms == pytest.approx(1000, abs=300)
    assert len(attempted.request_headers) == 8
    assert attempted.timings.first_byte_ms is None


async def test_dripping_headers_do_not_put_the_deadline_off() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        while True:
            await peer.drip(b"X-Drip: drop\r\n")

    attempted = await attempt_at(talk)
    assert attempted.cause == "The headers of the answer did not end within one second."
    assert attempted.status_code is None
    assert attempted.timings.first_byte_ms is not None


async def test_a_dripping_body_is_a_success_that_is_cut_at_the_deadline() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"Content-Length: 100000\r\n\r\n")
        await peer.drip(b"x" * 1000)

    attempted = await attempt_at(talk)
    assert attempted.cause is None
    assert attempted.status_code == 200
    assert set(attempted.response_body) == set(b"x")
    assert attempted.response_clipped
    assert attempted.duration_ms == pytest.approx(1000, abs=300)


async def test_a_dripping_body_after_a_500_fails_for_its_status() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 500 Oh\r\nContent-Length: 100000\r\n\r\n")
        await peer.drip(b"x" * 1000)

    attempted = await attempt_at(talk)
    assert str(attempted.cause) == "The receiver answered 500."
    assert attempted.response_clipped


async def test_ten_seconds_are_ten_seconds() -> None:
    async def after(seconds: float, sender: Sender) -> AttemptResult:
        async def talk(peer: Peer) -> None:
            await peer.request()
            await asyncio.sleep(seconds)
            await peer.send(OK)

        async with receiving(talk) as receiver:
            return await in_time(sender, a_post(receiver.url), 10.0)

    async with a_sender(timeout_seconds=10.0) as sender:
        early, late, never = await asyncio.gather(*(after(seconds, sender) for seconds in (9.9, 10.1, 3600)))
    assert early.cause is None
    assert early.status_code == 200
    assert early.timings.first_byte_ms == pytest.approx(9900, abs=90)
    assert late.cause == never.cause == "No answer within ten seconds."
    assert late.duration_ms == pytest.approx(10_000, abs=90)


async def test_an_endless_body_is_a_success_that_is_cut_at_16_kib_and_closed_at_once() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"\r\n")
        while True:
            await peer.send(b"x" * 64 * KIB)

    async with receiving(talk) as receiver, a_sender() as sender:
        tracemalloc.start()
        attempted = await in_time(sender, a_post(receiver.url))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await receiver.all_left()
    assert attempted.cause is None
    assert attempted.response_body == b"x" * 16 * KIB
    assert attempted.response_clipped
    assert attempted.duration_ms < 500
    assert peak < 4 * KIB * KIB
    assert receiver.bytes_sent < 32 * KIB * KIB


@pytest.mark.parametrize(
    "endless",
    [b"0\r\nX-Trailer: " + b"x" * 64 * KIB, b"1;x=" + b"x" * 64 * KIB, b"1\r\nx\r\n"],
    ids=["trailer", "chunk extension", "tiny chunks"],
)
async def test_whatever_goes_on_for_ever_around_a_body_is_cut_as_well(endless: bytes) -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + endless)
        while True:
            await peer.send(endless[-64 * KIB :] * (KIB if len(endless) < KIB else 1))

    attempted = await attempt_at(talk)
    assert attempted.cause is None
    assert attempted.response_clipped
    assert attempted.duration_ms < 900


async def test_interim_answers_without_end_are_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        while True:
            await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    attempted = await attempt_at(talk)
    assert attempted.cause == "The headers of the answer are longer than 64 KiB."
    assert attempted.duration_ms < 900


async def test_a_gzip_bomb_is_stored_as_it_came_and_never_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 10 * KIB * KIB)
    assert len(bomb) < 16 * KIB
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    attempted = await attempt_at_and_leave(answering(head + bomb))
    assert attempted.cause is None
    assert attempted.response_body == bomb
    assert not attempted.response_clipped


async def test_a_receiver_that_never_reads_a_large_request_is_given_up_at_the_deadline() -> None:
    async def talk(peer: Peer) -> None:
        await asyncio.sleep(3600)

    async with receiving(talk) as receiver, a_sender() as sender:
        attempted = await in_time(sender, a_post(receiver.url, body=b"x" * 20 * KIB * KIB))
    assert attempted.cause == "No answer within one second."


async def test_an_answer_that_comes_before_the_request_was_read_counts() -> None:
    async def talk(peer: Peer) -> None:
        await asyncio.sleep(0.1)
        await peer.send(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async with receiving(talk) as receiver, a_sender() as sender:
        attempted = await in_time(sender, a_post(receiver.url, body=b"x" * 20 * KIB * KIB))
        await receiver.all_left()
    assert str(attempted.cause) == "The receiver answered 413."


async def test_a_misbehaving_receiver_takes_nothing_from_its_neighbours() -> None:
    seen: list[Received] = []

    async def talk(peer: Peer) -> None:
        while True:
            seen.append(await peer.request())
            await peer.send(OK)

    async with receiving(answering()) as hung, receiving(talk) as healthy, a_sender() as sender:
        waiting = [asyncio.ensure_future(sender.send(a_post(hung.url))) for _ in range(50)]
        for _ in range(20):
            attempted = await sender.send(a_post(healthy.url))
            assert attempted.cause is None
            assert attempted.duration_ms < 500
        assert {attempted.cause for attempted in await asyncio.gather(*waiting)} == {
            "No answer within one second."
        }
    assert len(seen) == 20
