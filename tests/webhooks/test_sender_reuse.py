"""Connections that are used again, and those that must not be."""

import asyncio
import socket
import time

import pytest

from holdfast.webhooks import connection
from holdfast.webhooks.attempt import Secret
from tests.support.receiver_posts import SECRET, a_post, a_sender, eventually
from tests.support.receivers import OK, Peer, answer_all, receiving


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


async def test_one_connection_serves_one_attempt_after_another() -> None:
    async with receiving(answer_all) as receiver, a_sender() as sender:
        attempts = [await sender.send(a_post(receiver.url)) for _ in range(100)]
        assert receiver.connections == 1
    assert {attempted.cause for attempted in attempts} == {None}
    assert {attempted.address for attempted in attempts} == {"127.0.0.1"}
    assert attempts[0].timings.connect_ms is not None
    assert attempts[1].timings.connect_ms is None
    assert attempts[1].timings.first_byte_ms is not None


async def test_attempts_at_once_never_share_a_connection() -> None:
    waiting = 0
    all_there = asyncio.Event()

    async def talk(peer: Peer) -> None:
        nonlocal waiting
        while True:
            await peer.request()
            waiting += 1
            if waiting == 10:
                all_there.set()
            await all_there.wait()
            await peer.send(OK)

    async with receiving(talk) as receiver, a_sender() as sender:
        attempts = await asyncio.gather(*(sender.send(a_post(receiver.url)) for _ in range(10)))
        assert receiver.connections == 10
    assert {attempted.cause for attempted in attempts} == {None}


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + OK,
        OK + b"garbage",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000,
    ],
    ids=["close", "1.0", "keep-alive 1", "two lengths", "two answers", "garbage", "longer than is read"],
)
async def test_a_connection_with_a_doubt_about_it_is_not_used_again(sent: bytes) -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)

    async with receiving(talk) as receiver, a_sender() as sender:
        for number in (1, 2):
            attempted = await sender.send(a_post(receiver.url))
            assert attempted.cause is None
            assert attempted.response_body in (b"ok", b"x" * 16_384)
            assert receiver.connections == number
            await receiver.all_left()


async def test_a_connection_that_the_receiver_closed_is_not_used_again() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.close()

    async with receiving(talk) as receiver, a_sender() as sender:
        for _ in range(20):
            assert (await sender.send(a_post(receiver.url))).cause is None
            await receiver.all_left()
        assert receiver.connections == 20


async def test_a_connection_that_closes_while_the_secret_is_read_costs_no_attempt() -> None:
    closing = asyncio.Event()

    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await closing.wait()
        await peer.close()

    async def slow_secret() -> Secret:
        if not closing.is_set():
            closing.set()
            await receiver.all_left()
        return SECRET

    async with receiving(talk) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        attempted = await sender.send(a_post(receiver.url, secret=slow_secret))
        assert attempted.cause is None
        assert receiver.connections == 2
        assert len(receiver.requests) == 2


async def test_a_receiver_that_closed_unnoticed_by_a_busy_loop_costs_no_attempt() -> None:
    """The end of the connection lies in the socket, and the loop has not come round to it yet."""
    loop = asyncio.get_running_loop()

    async def answer_one() -> socket.socket:
        accepted, _ = await loop.sock_accept(listener)
        await loop.sock_recv(accepted, 65_536)
        await loop.sock_sendall(accepted, OK)
        return accepted

    async def secret_after_the_end() -> Secret:
        first.close()
        return SECRET

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with a_sender() as sender:
            _, first = await asyncio.gather(sender.send(a_post(url)), answer_one())
            post = a_post(url, secret=secret_after_the_end)
            attempted, second = await asyncio.gather(sender.send(post), answer_one())
            second.close()
    assert attempted.cause is None
    assert attempted.timings.connect_ms is not None


async def test_an_idle_connection_that_gets_data_unasked_is_dropped_at_once() -> None:
    speak = asyncio.Event()

    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await speak.wait()
        await peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    async with receiving(talk) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        speak.set()
        await receiver.all_left()
        assert (await sender.send(a_post(receiver.url))).cause is None
        assert receiver.connections == 2


async def test_a_request_on_a_reused_connection_that_then_closes_is_never_sent_again() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await peer.close()

    async with receiving(talk) as receiver, a_sender() as sender:
        assert (await sender.send(a_post(receiver.url))).cause is None
        attempted = await sender.send(a_post(receiver.url))
        assert attempted.cause == "The connection was closed before an answer came."
        assert len(receiver.requests) == 2


async def test_idle_connections_are_closed_after_their_time() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2, max=100\r\nContent-Length: 0\r\n\r\n")

    async with receiving(talk) as receiver, a_sender() as sender:
        started_at = time.perf_counter()
        await sender.send(a_post(receiver.url))
        await eventually(lambda: not receiver.talks)
        assert 0.9 < time.perf_counter() - started_at < 1.9


async def test_a_connection_past_its_time_is_not_used_even_before_it_is_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_SWEEP_SECONDS", 60.0)
    monkeypatch.setattr(connection, "LONGEST_IDLE_SECONDS", 0.05)
    async with receiving(answer_all) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        await asyncio.sleep(0.1)
        assert (await sender.send(a_post(receiver.url))).cause is None
        assert receiver.connections == 2


async def test_idle_connections_are_bounded_per_origin_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_PER_ORIGIN", 3)
    monkeypatch.setattr(connection, "MOST_IN_ALL", 4)

    async def burst(url: str) -> None:
        attempts = await asyncio.gather(*(sender.send(a_post(url)) for _ in range(10)))
        assert {attempted.cause for attempted in attempts} == {None}

    async with (
        receiving(answer_all) as one,
        receiving(answer_all) as other,
        a_sender(timeout_seconds=30) as sender,
    ):
        await burst(one.url)
        await eventually(lambda: len(one.talks) == 3)
        await burst(other.url)
        await eventually(lambda: len(one.talks) + len(other.talks) == 4)
        assert len(other.talks) == 3


async def test_a_connection_does_not_live_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST_LIFE_SECONDS", 0.0)
    async with receiving(answer_all) as receiver, a_sender() as sender:
        for _ in range(3):
            assert (await sender.send(a_post(receiver.url))).cause is None
        assert receiver.connections == 3


async def test_closing_the_sender_closes_what_is_idle() -> None:
    async with receiving(answer_all) as receiver, a_sender() as sender:
        await asyncio.gather(*(sender.send(a_post(receiver.url)) for _ in range(5)))
        await sender.close()
        await receiver.all_left()
