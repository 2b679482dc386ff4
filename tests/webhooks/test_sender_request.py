"""The request of an attempt, byte for byte, and what is told of it."""

import hashlib
import hmac
import socket
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path
from uuid import UUID

import pytest

from holdfast.domain.addresses import IPAddress
from holdfast.webhooks.address_guard import AddressGuard
from holdfast.webhooks.attempt import Post, Secret
from holdfast.webhooks.resolver import Resolver
from holdfast.webhooks.sender import Sender
from tests.support.receiver_posts import BODY, SECRET, TRUSTS_NOBODY, a_post, a_sender, attempt, read_secret
from tests.support.receivers import OK, Peer, answer_all, answering, receiving, unused_port

DELIVERY = UUID("0191e5b0-1111-7000-8000-000000000002")


async def test_the_request_is_exactly_what_the_specification_says() -> None:
    def unix_time() -> float:
        return 1_790_000_000.999

    async with receiving(answer_all) as receiver, a_sender() as sender:
        post = Post(receiver.url, "unit.sold", DELIVERY, BODY, read_secret, unix_time)
        attempted = await sender.send(post)
    (request,) = receiver.requests
    digest = hmac.new(SECRET.text.encode(), b"1790000000." + BODY, hashlib.sha256).hexdigest()
    assert request.line == "POST /hook?of=test HTTP/1.1"
    assert request.headers == (
        ("Host", f"127.0.0.1:{receiver.port}"),
        ("Content-Type", "application/json"),
        ("User-Agent", "Service-Webhooks/1"),
        ("X-Service-Event", "unit.sold"),
        ("X-Service-Delivery", str(DELIVERY)),
        ("X-Service-Timestamp", "1790000000"),
        ("X-Service-Signature", f"sha256={digest}"),
        ("Content-Length", str(len(BODY))),
    )
    assert request.body == BODY
    assert attempted.request_headers == request.headers
    assert attempted.secret_id == SECRET.id


async def test_openssl_agrees_with_the_signature_of_the_captured_bytes(tmp_path: Path) -> None:
    async with receiving(answer_all) as receiver:
        await attempt(receiver.url)
    (request,) = receiver.requests
    captured = tmp_path / "signed"
    captured.write_bytes(request.header("X-Service-Timestamp").encode() + b"." + request.body)
    assert request.header("X-Service-Signature") == f"sha256={_digest_by_openssl(captured)}"


def _digest_by_openssl(captured: Path) -> str:
    command = ["openssl", "dgst", "-sha256", "-hmac", SECRET.text, "-r", str(captured)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[0]


async def test_the_answer_is_told_as_it_came() -> None:
    answer = b"HTTP/1.1 202 Accepted\r\nX-Twice: 1\r\nx-twice: \xe9\r\nContent-Length: 3\r\n\r\n\x00\xff\n"
    async with receiving(answering(answer)) as receiver:
        attempted = await attempt(receiver.url)
    assert attempted.cause is None
    assert attempted.status_code == 202
    assert attempted.response_headers == (("X-Twice", "1"), ("x-twice", "é"), ("Content-Length", "3"))
    assert attempted.response_body == b"\x00\xff\n"
    assert not attempted.response_clipped
    assert attempted.address == "127.0.0.1"
    assert attempted.timings.dns_ms is None
    assert attempted.timings.tls_ms is None
    assert attempted.timings.connect_ms is not None
    assert attempted.timings.first_byte_ms is not None
    assert 0 < attempted.timings.connect_ms + attempted.timings.first_byte_ms < attempted.duration_ms


async def test_every_2xx_is_delivered_and_nothing_else_is() -> None:
    for status in (200, 201, 204, 226, 299, 300, 304, 400, 401, 404, 429, 500, 503, 599, 999):
        async with receiving(answering(b"HTTP/1.1 %d Any\r\nContent-Length: 0\r\n\r\n" % status)) as receiver:
            attempted = await attempt(receiver.url)
        expected = None if status < 300 else f"The receiver answered {status}."
        assert (attempted.status_code, _text(attempted.cause)) == (status, expected)


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x/", "https://user:pass@x/", "https://[::1", "http://127.0.0.1:1:2/", "https://\ud800/"],
)
async def test_a_url_that_cannot_be_is_a_failure_and_no_exception(url: str) -> None:
    attempted = await attempt(url)
    assert attempted.cause is not None
    assert str(attempted.cause).startswith("The URL")
    assert attempted.request_headers == ()


async def test_an_address_that_is_refused_is_never_contacted() -> None:
    async with receiving(answer_all) as receiver, a_sender(allowed=[]) as sender:
        for host in ("127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
            attempted = await sender.send(a_post(f"https://{host}:{receiver.port}/"))
            assert attempted.cause is not None
            assert str(attempted.cause).endswith(", which is a loopback address.")
            assert attempted.address is None
        assert receiver.connections == 0


async def test_a_socket_that_led_elsewhere_gets_no_request() -> None:
    class LedAstray(AddressGuard):
        def check_peer(self, connected: socket.socket, address: IPAddress) -> None:
            super().check_peer(connected, ip_address("127.0.0.2"))

    resolver = Resolver()
    guard = LedAstray([ip_network("127.0.0.0/8")])
    sender = Sender(guard, resolver, timeout_seconds=1, tls=TRUSTS_NOBODY)
    async with receiving(answer_all) as receiver:
        attempted = await sender.send(a_post(receiver.url))
        await receiver.all_left()
        assert receiver.requests == []
    assert attempted.cause == "The connection led to another address than the one that was checked."
    assert attempted.request_headers == ()


async def test_a_mapped_address_is_contacted_where_its_ipv4_is_allowed() -> None:
    async with receiving(answer_all) as receiver, a_sender(allowed=["127.0.0.0/8"]) as sender:
        attempted = await sender.send(a_post(f"http://[::ffff:127.0.0.1]:{receiver.port}/"))
    assert attempted.cause is None


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving(answer_all) as proxy, receiving(answer_all) as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv(name.upper(), f"http://127.0.0.1:{proxy.port}")
        assert (await attempt(receiver.url)).cause is None
        assert proxy.connections == 0
        assert receiver.connections == 1


async def test_the_secret_is_read_when_the_connection_stands() -> None:
    async with receiving(answer_all) as receiver, a_sender() as sender:

        async def secret() -> Secret:
            seen.append(receiver.connections)
            return Secret(SECRET.id, f"secret number {len(seen)}")

        seen: list[int] = []
        await sender.send(a_post(f"http://127.0.0.1:{unused_port()}/", secret=secret))
        assert seen == []
        for _ in range(2):
            await sender.send(a_post(receiver.url, secret=secret))
        assert seen == [seen[0], 1]
    for number, request in enumerate(receiver.requests, 1):
        signed = request.header("X-Service-Timestamp").encode() + b"." + BODY
        digest = hmac.new(f"secret number {number}".encode(), signed, hashlib.sha256).hexdigest()
        assert request.header("X-Service-Signature") == f"sha256={digest}"


async def test_an_error_of_the_one_who_reads_the_secret_is_his_own() -> None:
    async def secret() -> Secret:
        raise LookupError("endpoint removed")

    async with receiving(answer_all) as receiver, a_sender() as sender:
        with pytest.raises(LookupError, match="endpoint removed"):
            await sender.send(a_post(receiver.url, secret=secret))
        await receiver.all_left()
        assert receiver.requests == []


async def test_a_large_body_arrives_whole() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)

    body = bytes(range(256)) * 4096
    async with receiving(talk) as receiver, a_sender() as sender:
        assert (await sender.send(a_post(receiver.url, body=body))).cause is None
    assert receiver.requests[0].body == body


def _text(message: object) -> str | None:
    return None if message is None else str(message)
