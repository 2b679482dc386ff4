"""Connections that are used again, and those that must not be."""

import asyncio
import socket
from unittest.mock import Mock

import pytest

from holdfast.webhooks import connection
from holdfast.webhooks.attempt import Secret
from tests.support.delivery_engine import eventually
from tests.support.name_server import name_server
from tests.support.receiver_certificates import certified_for, trusting
from tests.support.receiver_posts import SECRET, a_post, a_sender
from tests.support.receivers import OK, Peer, answer_all, answering, receiving


async def test_one_connection_serves_one_attempt_after_another() -> None:
    async with receiving(answer_all) as receiver, a_sender() as sender:
        attempts = [await sender.send(a_post(receiver.url)) for _ in range(20)]
        assert receiver.connections == 1
    assert {(attempted.cause, attempted.address) for attempted in attempts} == {(None, "127.0.0.1")}
    assert attempts[0].timings.connect_ms is not None
    assert attempts[1].timings.connect_ms is None
    assert attempts[1].timings.first_byte_ms is not None


async def test_an_encrypted_connection_is_used_again_but_never_for_another_host() -> None:
    certificate = certified_for("shop.example", "other.example")
    async with (
        name_server(shop=["127.0.0.1"], other=["127.0.0.1"]) as names,
        receiving(answer_all, tls=certificate) as receiver,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        hosts = ("shop.example", "other.example", "shop.example")
        first, other, again = [await sender.send(a_post(receiver.url_at(host))) for host in hosts]
        assert receiver.connections == 2
    assert first.cause is other.cause is again.cause is None
    assert None not in (first.timings.tls_ms, other.timings.tls_ms)
    assert again.timings[:3] == (None, None, None)
    assert again.address == "127.0.0.1"


async def test_a_hundred_attempts_at_once_have_a_connection_each() -> None:
    all_there = asyncio.Event()

    async def talk(peer: Peer) -> None:
        await peer.request()
        if len(receiver.requests) == 100:
            all_there.set()
        await all_there.wait()
        await peer.send(OK)

    async with receiving(talk) as receiver, a_sender() as sender:
        attempts = await asyncio.gather(*(sender.send(a_post(receiver.url)) for _ in range(100)))
        assert {attempted.cause for attempted in attempts} == {None}
        assert receiver.connections == 100
        assert len({request.header("X-Service-Delivery") for request in receiver.requests}) == 100
        await sender.close()
        assert (sender._idle._sweep_timer, sender._idle._closing) == (None, set())
        await receiver.all_left()


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        OK + b"garbage",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000,
    ],
)
async def test_a_connection_that_is_in_doubt_is_closed_and_not_used_again(sent: bytes) -> None:
    async with receiving(answering(sent)) as receiver, a_sender() as sender:
        for number in (1, 2):
            attempted = await sender.send(a_post(receiver.url))
            assert attempted.cause is None
            assert attempted.response_body in (b"ok", b"x" * 16_384)
            assert receiver.connections == number
            await receiver.all_left()


async def test_a_connection_that_is_not_kept_is_closed_before_the_sender_wakes() -> None:
    opened = connection.Connection(asyncio.get_running_loop(), "127.0.0.1")
    opened._transport = transport = Mock(spec=asyncio.Transport)
    opened.send(b"")
    opened.data_received(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    transport.abort.assert_called_once()


async def test_a_connection_that_the_receiver_closed_is_not_used_again() -> None:
    async with receiving(answering(OK, then_close=True)) as receiver, a_sender() as sender:
        for _ in range(5):
            assert (await sender.send(a_post(receiver.url))).cause is None
            await receiver.all_left()
        assert receiver.connections == 5


async def test_a_connection_that_closes_while_the_secret_is_read_costs_no_attempt() -> None:
    closing = asyncio.Event()

    async def slow_secret() -> Secret:
        if not closing.is_set():
            closing.set()
            await receiver.all_left()
        return SECRET

    async with receiving(answering(OK, closing, then_close=True)) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        assert (await sender.send(a_post(receiver.url, secret=slow_secret))).cause is None
        assert (receiver.connections, len(receiver.requests)) == (2, 2)


async def test_a_receiver_that_closed_unnoticed_by_a_busy_loop_costs_no_attempt() -> None:
    """The end of the connection is in the socket, and the loop has not read it yet."""
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


async def test_an_idle_connection_that_receives_data_is_closed() -> None:
    speak = asyncio.Event()
    timed_out = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    async with receiving(answering(OK, speak, timed_out)) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        speak.set()
        await receiver.all_left()
        assert (await sender.send(a_post(receiver.url))).cause is None
        assert receiver.connections == 2


async def test_a_request_on_a_reused_connection_that_then_closes_is_never_sent_again() -> None:
    async def talk(peer: Peer) -> None:
        await answering(OK)(peer)
        await answering(then_close=True)(peer)

    async with receiving(talk) as receiver, a_sender() as sender:
        assert (await sender.send(a_post(receiver.url))).cause is None
        attempted = await sender.send(a_post(receiver.url))
        assert attempted.cause == "The connection was closed before an answer came."
        assert len(receiver.requests) == 2


async def test_idle_connections_are_closed_after_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(connection, "LONGEST_IDLE_SECONDS", 0.05)
    async with receiving(answer_all) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        await receiver.all_left()


async def test_idle_connections_are_limited_per_origin_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST_IDLE_SECONDS", 3600.0)
    monkeypatch.setattr(connection, "MOST_PER_ORIGIN", 3)
    monkeypatch.setattr(connection, "MOST_IN_ALL", 4)
    async with receiving(answer_all) as one, receiving(answer_all) as other, a_sender() as sender:
        for receiver in (one, other):
            attempts = await asyncio.gather(*(sender.send(a_post(receiver.url)) for _ in range(10)))
            assert {attempted.cause for attempted in attempts} == {None}
            await eventually(lambda: len(receiver.talks) == 3)  # noqa: B023
        await eventually(lambda: len(one.talks) == 1)


async def test_a_connection_is_not_used_past_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SWEEP_SECONDS", 3600.0)
    async with receiving(answer_all) as receiver, a_sender() as sender:
        await sender.send(a_post(receiver.url))
        for idle in sender._idle._origins:
            idle.usable_until = 0.0
        monkeypatch.setattr(connection, "LONGEST_LIFE_SECONDS", 0.0)
        for expected in (2, 3):
            assert (await sender.send(a_post(receiver.url))).cause is None
            assert receiver.connections == expected
