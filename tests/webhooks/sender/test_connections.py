"""Connections: to which addresses, with which certificates, and which of them are used again."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext
from unittest.mock import Mock

import pytest
import trustme
from aiodns.error import ARES_ENOTFOUND, DNSError
from pycares import AddrInfoResult

from holdfast.domain.delivery import AttemptResult
from holdfast.webhooks import connection
from holdfast.webhooks.attempt import Secret
from holdfast.webhooks.causes import NOT_ALLOWED
from holdfast.webhooks.resolver import NameUnresolved, Resolver
from holdfast.webhooks.sender import Sender, connect_first
from tests.support.delivery_engine import eventually
from tests.support.name_server import NameServer, name_server
from tests.support.receiver_certificates import certified_for, expired_for, self_signed, trusting
from tests.support.receiver_posts import LOOPBACK, SECRET, TRUSTS_NOBODY, a_post, a_sender, let_deadlines_pass
from tests.support.receivers import OK, Peer, Talk, answer_all, answering, never_accepting, receiving
from tests.support.server import PATIENCE_SECONDS

A, AAAA = 1, 28
UNKNOWN_ISSUER = "The certificate's issuer is not known."


@asynccontextmanager
async def resolving(
    *, allowed: Sequence[str] = LOOPBACK, tls: SSLContext = TRUSTS_NOBODY, **addresses: list[str]
) -> AsyncIterator[tuple[NameServer, Sender]]:
    """A name server, and a sender that uses it."""
    async with (
        name_server(**addresses) as names,
        a_sender(name_servers=[names.place], allowed=allowed, tls=tls) as sender,
    ):
        yield names, sender


async def test_a_name_that_leads_nowhere_is_a_failure() -> None:
    async with resolving(empty=[]) as (names, sender):
        names.failing.add("broken.example")
        for name, cause in (
            ("nobody", "The host name does not exist."),
            ("empty", "The host name has no address."),
            ("broken", "The host name could not be resolved."),
        ):
            found = await sender.send(a_post(f"https://{name}.example/"))
            assert (found.cause, found.address, found.request_headers) == (cause, None, ())
            assert (found.timings.dns_ms is None, found.timings.connect_ms) == (False, None)
    resolver = Resolver()
    resolver._queries["bare.example"] = answer = asyncio.get_running_loop().create_future()
    answer.set_result(AddrInfoResult([], []))
    with pytest.raises(NameUnresolved, match="has no address"):
        await resolver.resolve("bare.example")


async def test_a_name_that_nobody_waits_for_fails_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    query: asyncio.Future[AddrInfoResult] = asyncio.get_running_loop().create_future()
    resolver = Resolver()
    resolver._queries["broken.example"] = query
    query.set_exception(DNSError(ARES_ENOTFOUND))
    resolver._end_query("broken.example", query)
    del query
    gc.collect()
    assert caplog.records == []


async def test_a_name_server_that_hangs_is_asked_once_for_all_and_delays_nobody_else() -> None:
    async with receiving(answer_all) as receiver, resolving(good=["127.0.0.1"]) as (names, sender):
        names.hanging.add("hung.example")
        waiting = [asyncio.ensure_future(sender.send(a_post("https://hung.example/"))) for _ in range(100)]
        await names.asked.wait()
        assert (await sender.send(a_post(receiver.url_at("good.example")))).cause is None
        let_deadlines_pass(sender)
        causes = {str(attempted.cause) for attempted in await asyncio.gather(*waiting)}
        assert causes == {"The host name could not be resolved within 60 seconds."}
        # If the test stands still, the resolver asks again.
        assert names.questions["hung.example", A] < 10


async def test_one_of_several_that_wait_for_a_name_may_be_cancelled() -> None:
    async with receiving(answer_all) as receiver, resolving(slow=["127.0.0.1"]) as (names, sender):
        names.hanging.add("slow.example")
        post = a_post(receiver.url_at("slow.example"))
        first, second = asyncio.ensure_future(sender.send(post)), asyncio.ensure_future(sender.send(post))
        await names.asked.wait()
        first.cancel()
        names.go_on()
        assert (await second).cause is None
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_single_blocked_address_of_a_name_blocks_it() -> None:
    async with receiving(answer_all) as receiver, resolving(mixed=["127.0.0.1", "fd00::1"]) as (_, sender):
        attempted = await sender.send(a_post(receiver.url_at("mixed.example")))
        assert receiver.connections == 0
    assert str(attempted.cause) == NOT_ALLOWED
    assert attempted.address is None


async def test_a_name_that_moves_to_a_blocked_address_is_blocked_from_then_on() -> None:
    async with (
        receiving(answer_all) as receiver,
        receiving(answer_all, host="127.0.0.2", port=receiver.port) as inside,
        resolving(moving=["127.0.0.1"], allowed=["127.0.0.1/32"]) as (names, sender),
    ):
        post = a_post(receiver.url_at("moving.example"))
        sending = asyncio.ensure_future(sender.send(post))
        await eventually(lambda: names.questions["moving.example", AAAA] > 0)
        names.addresses["moving.example"] = ["127.0.0.2"]
        # The address that was checked is contacted, and the name is not resolved again.
        # An open connection leads there too.
        for attempted in (await sending, await sender.send(post)):
            assert (attempted.cause, attempted.address) == (None, "127.0.0.1")
        assert names.questions["moving.example", A] == 1
        await sender.close()
        moved = await sender.send(post)
        assert str(moved.cause) == NOT_ALLOWED
        assert inside.connections == 0


@pytest.mark.parametrize(
    ("found", "host"),
    [(["127.0.0.2", "127.0.0.3", "127.0.0.1"], "127.0.0.1"), (["127.0.0.1", "::1"], "::1")],
)
async def test_a_dead_address_is_passed_over_for_one_that_answers(found: list[str], host: str) -> None:
    async with receiving(answer_all, host=host) as receiver, resolving(half=found) as (_, sender):
        attempted = await sender.send(a_post(receiver.url_at("half.example")))
    assert (attempted.cause, attempted.address) == (None, host)


async def test_an_address_that_hangs_is_overtaken_by_one_that_answers() -> None:
    loop = asyncio.get_running_loop()
    async with never_accepting() as port, resolving(half=["127.0.0.1", "127.0.0.2"]) as (_, sender):
        with socket.create_server(("127.0.0.2", port)) as listener:
            listener.setblocking(False)
            sending = asyncio.ensure_future(sender.send(a_post(f"http://half.example:{port}/")))
            accepted, _ = await loop.sock_accept(listener)
            with accepted:
                await loop.sock_recv(accepted, 65_536)
                await loop.sock_sendall(accepted, b"HTTP/1.1 204 OK\r\n\r\n")
                attempted = await sending
    assert (attempted.cause, attempted.address) == (None, "127.0.0.2")
    assert attempted.timings.connect_ms is not None


async def test_a_socket_that_connects_too_late_is_closed() -> None:
    winner, loser = socket.socketpair()

    async def connect_late() -> socket.socket:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        return loser

    async def connect() -> socket.socket:
        return winner

    with winner:
        assert await connect_first([connect_late, connect]) is winner
        assert (loser.fileno(), winner.fileno() == -1) == (-1, False)


async def test_localhost_is_contacted_only_in_the_family_that_is_allowed() -> None:
    async with (
        receiving(answer_all, host="127.0.0.1") as receiver,
        receiving(answer_all, host="::1", port=receiver.port) as other,
        a_sender(allowed=["127.0.0.0/8"]) as sender,
    ):
        attempted = await sender.send(a_post(receiver.url_at("localhost")))
        assert other.connections == 0
    assert (attempted.cause, attempted.address) == (None, "127.0.0.1")


async def test_when_no_address_answers_the_refusal_is_the_cause() -> None:
    async with resolving(dead=["127.0.0.1", "127.0.0.2"]) as (_, sender):
        attempted = await sender.send(a_post("http://dead.example:9/"))
    assert attempted.cause == "The connection was refused."
    assert attempted.address in ("127.0.0.1", "127.0.0.2")


async def attempt_with(certificate: SSLContext, host: str = "shop.example") -> AttemptResult:
    async with (
        receiving(answer_all, tls=certificate) as receiver,
        resolving(shop=["127.0.0.1"], tls=trusting()) as (_, sender),
    ):
        attempted = await sender.send(a_post(receiver.url_at(host)))
        assert len(receiver.requests) == (attempted.cause is None)
    return attempted


async def test_a_good_certificate_lets_the_delivery_through_with_all_its_times() -> None:
    attempted = await attempt_with(certified_for("shop.example"))
    assert (attempted.cause, attempted.status_code, attempted.address) == (None, 200, "127.0.0.1")
    assert all(milliseconds is not None and milliseconds >= 0 for milliseconds in attempted.timings)
    assert (await attempt_with(certified_for("shop.example"), "shop.example.")).cause is None
    assert (await attempt_with(certified_for("127.0.0.1"), "127.0.0.1")).cause is None
    wrong = await attempt_with(certified_for("127.0.0.2"), "127.0.0.1")
    assert wrong.cause == "The certificate is for another host."


@pytest.mark.parametrize(
    ("certificate", "cause"),
    [
        (lambda: expired_for("shop.example"), "The certificate has expired."),
        (self_signed, "The certificate is self-signed."),
        (lambda: certified_for("other.example"), "The certificate is for another host."),
        (lambda: certified_for("shop.example", issuer=trustme.CA()), UNKNOWN_ISSUER),
    ],
    ids=["expired", "self-signed", "wrong host", "unknown issuer"],
)
async def test_a_bad_certificate_is_a_failure(certificate: Callable[[], SSLContext], cause: str) -> None:
    attempted = await attempt_with(certificate())
    assert (attempted.cause, attempted.status_code) == (cause, None)
    assert (attempted.request_headers, attempted.secret_id) == ((), None)
    assert attempted.timings.tls_ms is not None


async def test_the_authorities_of_the_system_are_trusted_by_default() -> None:
    certificate = certified_for("127.0.0.1")
    async with receiving(answer_all, tls=certificate) as receiver, a_sender(tls=None) as sender:
        attempted = await sender.send(a_post(receiver.url))
        assert receiver.requests == []
    assert attempted.cause == UNKNOWN_ISSUER


async def speak_http(peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    await peer.close()


async def alert(peer: Peer) -> None:
    await peer.send(b"\x15\x03\x03\x00\x02\x02\x28")


@pytest.mark.parametrize(
    ("talk", "cause"),
    [
        (speak_http, "The receiver does not speak TLS."),
        (Peer.close, "The connection was closed during the TLS handshake."),
        (alert, "The TLS handshake failed: handshake failure."),
    ],
)
async def test_a_handshake_that_fails_is_a_failure(talk: Talk, cause: str) -> None:
    async with receiving(talk) as receiver, a_sender(tls=trusting()) as sender:
        attempted = await sender.send(a_post(f"https://127.0.0.1:{receiver.port}/"))
        await receiver.all_left()
    assert str(attempted.cause) == cause


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
        receiving(answer_all, tls=certificate) as receiver,
        resolving(shop=["127.0.0.1"], other=["127.0.0.1"], tls=trusting()) as (_, sender),
    ):
        hosts = ("shop.example", "other.example", "shop.example")
        first, other, again = [await sender.send(a_post(receiver.url_at(host))) for host in hosts]
        assert receiver.connections == 2
    assert first.cause is other.cause is again.cause is None
    assert None not in (first.timings.tls_ms, other.timings.tls_ms)
    assert again.timings[:3] == (None, None, None)
    assert again.address == "127.0.0.1"


async def test_a_hundred_attempts_at_once_have_a_connection_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LONGEST_SHUTDOWN_SECONDS", PATIENCE_SECONDS)
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
