"""Receivers whose TLS is not to be trusted: nothing is sent to them, and the cause is named."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_network
from pathlib import Path

import pytest
import trustme

from holdfast.domain.delivery import AttemptResult
from holdfast.webhooks.address_guard import AddressGuard
from holdfast.webhooks.resolver import Resolver
from holdfast.webhooks.sender import Sender
from tests.support.name_server import NameServer, name_server
from tests.support.receiver_certificates import certified_for, expired_for, self_signed_for, trusting
from tests.support.receiver_posts import a_post, a_sender, in_time
from tests.support.receivers import Peer, answer_all, receiving


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def names() -> AsyncIterator[NameServer]:
    async with name_server(shop=["127.0.0.1"]) as server:
        yield server


async def attempt_at(
    names: NameServer, certificate: ssl.SSLContext, host: str = "shop.example"
) -> AttemptResult:
    async with (
        receiving(answer_all, tls=certificate) as receiver,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        attempted = await in_time(sender, a_post(receiver.url_at(host)))
        assert len(receiver.requests) == (attempted.cause is None)
    return attempted


async def test_a_good_certificate_lets_the_delivery_through_with_all_its_times(names: NameServer) -> None:
    attempted = await attempt_at(names, certified_for("shop.example"))
    assert attempted.cause is None
    assert attempted.status_code == 200
    assert attempted.address == "127.0.0.1"
    assert all(milliseconds is not None and milliseconds >= 0 for milliseconds in attempted.timings)


async def test_a_dot_at_the_end_of_the_name_changes_nothing(names: NameServer) -> None:
    assert (await attempt_at(names, certified_for("shop.example"), "shop.example.")).cause is None


async def test_an_address_in_the_url_is_checked_against_the_certificate_too(names: NameServer) -> None:
    assert (await attempt_at(names, certified_for("127.0.0.1"), "127.0.0.1")).cause is None
    wrong = await attempt_at(names, certified_for("127.0.0.2"), "127.0.0.1")
    assert wrong.cause == "The certificate is for another host."


@pytest.mark.parametrize(
    ("certificate", "cause"),
    [
        (lambda folder: expired_for("shop.example"), "The certificate has expired."),
        (lambda folder: self_signed_for("shop.example", folder), "The certificate is self-signed."),
        (lambda folder: certified_for("other.example"), "The certificate is for another host."),
        (
            lambda folder: certified_for("shop.example", issuer=trustme.CA()),
            "The certificate's issuer is not known.",
        ),
    ],
    ids=["expired", "self-signed", "wrong host", "unknown issuer"],
)
async def test_a_bad_certificate_is_a_failure_and_nothing_is_sent(
    names: NameServer, certificate: Callable[[Path], ssl.SSLContext], cause: str, tmp_path: Path
) -> None:
    attempted = await attempt_at(names, certificate(tmp_path))
    assert attempted.cause == cause
    assert attempted.status_code is None
    assert attempted.request_headers == ()
    assert attempted.secret_id is None
    assert attempted.timings.tls_ms is not None


async def test_without_other_orders_the_authorities_of_the_system_are_the_ones_to_trust() -> None:
    resolver = Resolver()
    sender = Sender(AddressGuard([ip_network("127.0.0.0/8")]), resolver, timeout_seconds=1)
    async with receiving(answer_all, tls=certified_for("127.0.0.1")) as receiver:
        attempted = await in_time(sender, a_post(receiver.url))
        assert receiver.requests == []
    await sender.close()
    await resolver.close()
    assert attempted.cause == "The certificate's issuer is not known."


async def test_a_receiver_that_does_not_speak_tls_is_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await peer.close()

    async with receiving(talk) as receiver, a_sender(tls=trusting()) as sender:
        attempted = await in_time(sender, a_post(f"https://127.0.0.1:{receiver.port}/"))
    assert attempted.cause == "The receiver does not speak TLS."


async def test_a_connection_that_closes_in_the_handshake_is_a_failure() -> None:
    async def talk(peer: Peer) -> None:
        await peer.close()

    async with receiving(talk) as receiver, a_sender(tls=trusting()) as sender:
        attempted = await in_time(sender, a_post(f"https://127.0.0.1:{receiver.port}/"))
    assert attempted.cause == "The connection was closed during the TLS handshake."


async def test_a_handshake_that_hangs_is_given_up_at_the_deadline() -> None:
    async def talk(peer: Peer) -> None:
        await peer.left()

    async with receiving(talk) as receiver, a_sender(tls=trusting()) as sender:
        attempted = await in_time(sender, a_post(f"https://127.0.0.1:{receiver.port}/"))
        await receiver.all_left()
    assert attempted.cause == "The TLS handshake did not end within one second."
    assert attempted.timings.tls_ms == pytest.approx(1000, abs=300)


async def test_a_receiver_that_breaks_off_the_handshake_is_quoted() -> None:
    async def talk(peer: Peer) -> None:
        await peer.send(b"\x15\x03\x03\x00\x02\x02\x28")

    async with receiving(talk) as receiver, a_sender(tls=trusting()) as sender:
        attempted = await in_time(sender, a_post(f"https://127.0.0.1:{receiver.port}/"))
        await receiver.all_left()
    assert str(attempted.cause) == "The TLS handshake failed: handshake failure."


async def test_an_encrypted_connection_is_used_again_without_another_handshake(names: NameServer) -> None:
    async with (
        receiving(answer_all, tls=certified_for("shop.example")) as receiver,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        url = receiver.url_at("shop.example")
        first, second = await sender.send(a_post(url)), await sender.send(a_post(url))
        assert receiver.connections == 1
    assert first.timings.tls_ms is not None
    assert second.cause is None
    assert second.timings[:3] == (None, None, None)
    assert second.address == "127.0.0.1"


async def test_an_endless_encrypted_body_is_cut_and_closed(names: NameServer) -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await peer.send(b"x" * 65_536)

    async with (
        receiving(talk, tls=certified_for("shop.example")) as receiver,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        attempted = await in_time(sender, a_post(receiver.url_at("shop.example")))
        await receiver.all_left()
    assert attempted.cause is None
    assert attempted.response_body == b"x" * 16_384
    assert attempted.duration_ms < 900


async def test_hosts_that_share_an_address_never_share_a_connection() -> None:
    both = certified_for("shop.example", "other.example")
    async with (
        name_server(shop=["127.0.0.1"], other=["127.0.0.1"]) as names,
        receiving(answer_all, tls=both) as receiver,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        for host in ("shop.example", "other.example", "shop.example"):
            assert (await sender.send(a_post(receiver.url_at(host)))).cause is None
        assert receiver.connections == 2


async def test_many_handshakes_at_once_all_succeed(names: NameServer) -> None:
    async with (
        receiving(answer_all, tls=certified_for("shop.example")) as receiver,
        a_sender(name_servers=[names.place], tls=trusting(), timeout_seconds=10) as sender,
    ):
        url = receiver.url_at("shop.example")
        attempts = await asyncio.gather(*(sender.send(a_post(url)) for _ in range(40)))
    assert {attempted.cause for attempted in attempts} == {None}
