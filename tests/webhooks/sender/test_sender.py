"""Attempts: the request, byte for byte, its result, its deadline, and receivers that misbehave."""

import asyncio
from ipaddress import ip_address

import psutil
import pytest

from holdfast.domain.delivery import CUT_OFF, SIGNING_TIMED_OUT
from holdfast.domain.signature import sign
from holdfast.webhooks.address_guard import AddressGuard
from holdfast.webhooks.attempt import Secret
from holdfast.webhooks.causes import Phase, explain_timeout
from holdfast.webhooks.connection import ResponseParser
from tests.support import receiver_posts as posts
from tests.support.delivery_engine import NOWHERE, eventually
from tests.support.name_server import name_server
from tests.support.receiver_certificates import certified_for, trusting
from tests.support.receiver_posts import a_post, a_sender, attempt, attempt_at, attempt_until
from tests.support.receivers import Peer, Talk, answer_all, answering, never_accepting, receiving

HEAD = b"HTTP/1.1 200 OK\r\n"
LARGE = bytes(range(256)) * 80 * 1024


@pytest.fixture
def has_read(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the sender has read something of a response."""
    event = asyncio.Event()
    feed = ResponseParser.feed

    def feed_and_tell(response: ResponseParser, data: bytes) -> None:
        feed(response, data)
        event.set()

    monkeypatch.setattr(ResponseParser, "feed", feed_and_tell)
    return event


async def test_the_request_is_exactly_what_the_specification_says() -> None:
    async with receiving(answer_all) as receiver, a_sender() as sender:
        post = a_post(receiver.url)._replace(unix_time=lambda: 1_790_000_000.999)
        attempted = await sender.send(post)
    (request,) = receiver.requests
    assert request.line == "POST /hook?of=test HTTP/1.1"
    assert request.headers == (
        ("Host", f"127.0.0.1:{receiver.port}"),
        ("Content-Type", "application/json"),
        ("User-Agent", "Service-Webhooks/1"),
        ("X-Service-Event", "unit.held"),
        ("X-Service-Delivery", str(post.delivery_id)),
        ("X-Service-Timestamp", "1790000000"),
        ("X-Service-Signature", sign(posts.SECRET.text, 1_790_000_000, posts.BODY)),
        ("Content-Length", str(len(posts.BODY))),
    )
    assert request.body == posts.BODY
    assert attempted.request_headers == request.headers
    assert attempted.secret_id == posts.SECRET.id
    assert posts.SECRET.text not in repr(posts.SECRET)


async def test_the_response_is_recorded_as_it_came() -> None:
    answer = b"HTTP/1.1 202 Accepted\r\nX-Twice: 1\r\nx-twice: \xe9\r\nContent-Length: 3\r\n\r\n\x00\xff\n"
    async with receiving(answering(answer)) as receiver:
        attempted = await attempt(receiver.url)
    assert (attempted.cause, attempted.status_code, attempted.address) == (None, 202, "127.0.0.1")
    assert attempted.response_headers == (("X-Twice", "1"), ("x-twice", "é"), ("Content-Length", "3"))
    assert (attempted.response_body, attempted.response_clipped) == (b"\x00\xff\n", False)
    assert [time is None for time in attempted.timings] == [True, False, True, False]
    assert 0 < sum(filter(None, attempted.timings)) < attempted.duration_ms


async def test_an_invalid_url_is_a_failure_and_no_exception() -> None:
    for url in (
        "",
        "ftp://x/",
        "https://user:pass@x/",
        "https://[::1",
        "http://127.0.0.1:1:2/",
        "https://\ud800/",
    ):
        attempted = await attempt(url)
        assert str(attempted.cause).startswith("The URL")
        assert attempted.request_headers == ()


async def test_a_blocked_address_is_never_contacted() -> None:
    async with receiving(answer_all) as receiver, a_sender(allowed=[]) as sender:
        for host in ("127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
            attempted = await sender.send(a_post(f"https://{host}:{receiver.port}/"))
            assert str(attempted.cause).endswith(", which is a loopback address.")
            assert attempted.address is None
        assert receiver.connections == 0
    async with receiving(answer_all) as receiver, a_sender(allowed=["127.0.0.0/8"]) as sender:
        # One that is mapped into IPv6 counts as its IPv4.
        assert (await sender.send(a_post(f"http://[::ffff:127.0.0.1]:{receiver.port}/"))).cause is None


async def test_a_socket_that_leads_elsewhere_gets_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    check = AddressGuard.check_peer
    elsewhere = ip_address("127.0.0.2")
    monkeypatch.setattr(AddressGuard, "check_peer", lambda guard, sock, _: check(guard, sock, elsewhere))
    attempted = await attempt_at(answer_all)
    assert attempted.cause == "The connection led to another address than the one that was checked."
    assert attempted.request_headers == ()


async def test_the_secret_is_read_for_each_request_once_the_connection_is_open() -> None:
    connections: list[int] = []

    async def secret() -> Secret:
        connections.append(receiver.connections)
        return Secret(posts.SECRET.id, f"secret number {len(connections)}")

    async with receiving(answer_all) as receiver, a_sender() as sender:
        refused = await sender.send(a_post(NOWHERE, secret=secret))
        assert refused.cause == "The connection was refused."
        assert (refused.request_headers, refused.secret_id, connections) == ((), None, [])
        for _ in range(2):
            await sender.send(a_post(receiver.url, secret=secret))
        assert connections[1:] == [1]
    for number, request in enumerate(receiver.requests, 1):
        timestamp = int(request.header("X-Service-Timestamp"))
        signature = sign(f"secret number {number}", timestamp, posts.BODY)
        assert request.header("X-Service-Signature") == signature


@pytest.mark.parametrize("error", [LookupError, TimeoutError])
async def test_an_error_while_the_secret_is_read_is_raised(error: type[Exception]) -> None:
    async def secret() -> Secret:
        raise error("endpoint removed")

    async with receiving(answer_all) as receiver, a_sender() as sender:
        with pytest.raises(error, match="endpoint removed"):
            await sender.send(a_post(receiver.url, secret=secret))
        await receiver.all_left()
        assert receiver.requests == []


async def test_a_large_body_arrives_whole_and_an_early_response_counts() -> None:
    async def refuse(peer: Peer) -> None:
        await peer.read_some()
        await peer.send(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async with receiving(answer_all) as receiver, receiving(refuse) as refusing, a_sender() as sender:
        assert (await sender.send(a_post(receiver.url, body=LARGE))).cause is None
        early = await sender.send(a_post(refusing.url, body=LARGE))
        await refusing.all_left()
    assert receiver.requests[0].body == LARGE
    assert str(early.cause) == "The receiver answered 413."


async def test_a_connection_that_breaks_off_is_a_failure_before_the_body(has_read: asyncio.Event) -> None:
    async def reset_after(peer: Peer, sent: bytes) -> None:
        await peer.request()
        if sent:
            has_read.clear()
            await peer.send(sent)
            await has_read.wait()
        peer.reset()

    early = await attempt_at(lambda peer: reset_after(peer, b""))
    assert early.cause == "The connection was reset before an answer came."
    assert len(early.request_headers) == 8
    in_body = await attempt_at(lambda peer: reset_after(peer, HEAD + b"\r\npart"))
    assert (in_body.cause, in_body.response_body, in_body.response_clipped) == (None, b"part", True)
    in_headers = await attempt_at(answering(HEAD, then_close=True))
    assert in_headers.cause == "The connection was closed before the headers of the answer ended."


async def greet(peer: Peer) -> None:
    await peer.send(b"SSH-2.0-OpenSSH_9.9\r\n")


@pytest.mark.parametrize(
    ("talk", "cause"),
    [
        (greet, "The receiver sent data before the request."),
        (Peer.close, "The connection was closed before an answer came."),
    ],
)
async def test_a_receiver_that_speaks_or_closes_first_gets_no_request(talk: Talk, cause: str) -> None:
    async def slow_secret() -> Secret:
        await eventually(lambda: receiver.connections and not receiver.talks)
        return posts.SECRET

    async with receiving(talk) as receiver, a_sender() as sender:
        attempted = await sender.send(a_post(receiver.url, secret=slow_secret))
    assert (attempted.cause, attempted.request_headers) == (cause, ())


async def test_an_endless_body_is_clipped_at_16_kib_and_the_connection_closed() -> None:
    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"\r\n")
        while True:
            await peer.send(b"x" * 65_536)

    for tls in (None, certified_for("127.0.0.1")):
        async with receiving(talk, tls=tls) as receiver, a_sender(tls=trusting()) as sender:
            attempted = await sender.send(a_post(receiver.url))
            await receiver.all_left()
        assert (attempted.cause, attempted.response_clipped) == (None, True)
        assert attempted.response_body == b"x" * 16_384
        assert receiver.bytes_sent < 32 * 1024 * 1024


def test_a_timeout_is_explained_with_its_phase_and_its_seconds() -> None:
    assert explain_timeout(Phase.WAITING, 1) == "No answer within one second."
    assert explain_timeout(Phase.CONNECTING, 10) == "No connection within ten seconds."
    assert str(explain_timeout(Phase.WAITING, 0.25)) == "No answer within 0.25 seconds."
    assert explain_timeout(Phase.SIGNING, 10) == SIGNING_TIMED_OUT


async def test_an_attempt_ends_at_its_deadline() -> None:
    async with receiving(answering()) as receiver, a_sender(timeout_seconds=0.25) as sender:
        attempted = await sender.send(a_post(receiver.url))
        await receiver.all_left()
    # On a busy machine it may take that long to connect.
    assert str(attempted.cause) in ("No answer within 0.25 seconds.", "No connection within 0.25 seconds.")


async def test_a_deadline_while_connecting() -> None:
    async with never_accepting() as port, a_sender() as sender:
        attempted = await attempt_until(asyncio.sleep(0), sender, a_post(f"http://127.0.0.1:{port}/"))
    assert str(attempted.cause) == "No connection within 60 seconds."
    assert (attempted.request_headers, attempted.secret_id) == ((), None)
    assert attempted.address == "127.0.0.1"
    assert attempted.timings.connect_ms is not None


async def test_a_deadline_in_the_tls_handshake() -> None:
    has_begun = asyncio.Event()

    async def talk(peer: Peer) -> None:
        await peer.read_some()
        has_begun.set()

    async with receiving(talk) as receiver, a_sender(tls=trusting()) as sender:
        post = a_post(f"https://127.0.0.1:{receiver.port}/")
        attempted = await attempt_until(has_begun.wait(), sender, post)
        await receiver.all_left()
    assert str(attempted.cause) == "The TLS handshake did not end within 60 seconds."
    assert attempted.timings.tls_ms is not None


async def test_a_deadline_while_the_secret_is_read() -> None:
    is_reading = asyncio.Event()

    async def secret() -> Secret:
        is_reading.set()
        await asyncio.sleep(3600)
        raise AssertionError

    async with receiving(answer_all) as receiver, a_sender() as sender:
        attempted = await attempt_until(is_reading.wait(), sender, a_post(receiver.url, secret=secret))
        await receiver.all_left()
    assert (attempted.cause, attempted.request_headers) == (SIGNING_TIMED_OUT, ())


@pytest.mark.parametrize(
    ("sent", "cause", "body"),
    [
        (HEAD + b"X-Drip:", "The headers of the answer did not end within 60 seconds.", b""),
        (HEAD + b"Content-Length: 100000\r\n\r\nxxx", None, b"xxx"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 100000\r\n\r\nxxx", "The receiver answered 500.", b"xxx"),
    ],
    ids=["headers", "the body of a 200", "the body of a 500"],
)
async def test_a_deadline_in_a_reply(
    has_read: asyncio.Event, sent: bytes, cause: str | None, body: bytes
) -> None:
    async with receiving(answering(sent)) as receiver, a_sender() as sender:
        attempted = await attempt_until(has_read.wait(), sender, a_post(receiver.url))
        await receiver.all_left()
    assert (attempted.cause and str(attempted.cause), attempted.response_body) == (cause, body)
    assert attempted.response_clipped == bool(body)
    assert attempted.timings.first_byte_ms is not None


async def test_receivers_that_hang_or_never_read_take_nothing_from_their_neighbours() -> None:
    async def never_read(_: Peer) -> None:
        await asyncio.sleep(3600)

    async with (
        receiving(answering()) as hung,
        receiving(never_read) as deaf,
        receiving(answer_all) as healthy,
        a_sender() as sender,
    ):
        hanging = [a_post(hung.url) for _ in range(50)] + [a_post(deaf.url, body=LARGE)]
        waiting = [asyncio.ensure_future(sender.send(post)) for post in hanging]
        await eventually(lambda: len(hung.requests) == 50 and deaf.connections)
        for _ in range(20):
            assert (await sender.send(a_post(healthy.url))).cause is None
        posts.let_deadlines_pass(sender)
        attempts = await asyncio.gather(*waiting)
    assert {str(attempted.cause) for attempted in attempts} == {"No answer within 60 seconds."}
    assert attempts[0].timings.first_byte_ms is None
    assert len(attempts[0].request_headers) == 8


async def test_attempts_that_are_cut_off_say_so_even_if_one_is_just_ending() -> None:
    async with receiving(answering()) as receiver, a_sender(timeout_seconds=3600) as sender:
        waiting = [asyncio.ensure_future(sender.send(a_post(receiver.url))) for _ in range(2)]
        await eventually(lambda: len(receiver.requests) == 2)
        next(iter(sender._timeouts)).reschedule(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        sender.cut_off()
        async with asyncio.timeout(60):
            assert {attempted.cause for attempted in await asyncio.gather(*waiting)} == {CUT_OFF}


def connections_to(*ports: int) -> int:
    found = psutil.Process().net_connections("inet")
    return sum(bool(one.raddr) and one.raddr.port in ports for one in found)


async def test_an_attempt_that_is_cancelled_in_any_phase_leaves_nothing_behind() -> None:
    async with (
        never_accepting() as deaf,
        receiving(Peer.left) as receiver,
        name_server(two=["127.0.0.1", "127.0.0.2"]) as names,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        names.hanging.add("hung.example")
        before = connections_to(deaf)
        deaf_urls = [f"http://127.0.0.1:{deaf}/", f"http://two.example:{deaf}/"]
        urls = [*deaf_urls, receiver.url, f"https://127.0.0.1:{receiver.port}/", "https://hung.example/"]
        sending = [asyncio.ensure_future(sender.send(a_post(url))) for url in urls]
        await eventually(lambda: receiver.connections == 2 and connections_to(deaf) == before + 2)
        await eventually(lambda: names.questions["hung.example", 1])
        for task in sending:
            task.cancel()
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        await receiver.all_left()
    await eventually(lambda: connections_to(deaf, receiver.port) == 0)
