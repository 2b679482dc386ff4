"""One deadline for the whole attempt, many attempts at once, and attempts that are called off."""

import asyncio
import gc
import socket
from pathlib import Path

import pytest

from holdfast.webhooks.attempt import Secret
from tests.support.name_server import name_server
from tests.support.receiver_certificates import certified_for, trusting
from tests.support.receiver_posts import a_post, a_sender, in_time
from tests.support.receivers import Peer, answer_all, answering, never_accepting, receiving


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


def open_sockets() -> int:
    gc.collect()
    links = [_link(entry) for entry in Path("/proc/self/fd").iterdir()]
    return sum(link.startswith("socket:") for link in links)


def _link(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


async def test_slow_names_slow_handshakes_and_slow_headers_add_up_to_one_deadline() -> None:
    """Each takes 0.4 s, which none of them alone would be blamed for."""
    certificate = certified_for("slow.example")

    async def talk(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n")
        await asyncio.sleep(0.4)
        await peer.send(b"Content-Length: 0\r\n\r\n")

    async def relay(peer: Peer) -> None:
        await asyncio.sleep(0.4)
        await peer.pass_on(receiver.port)

    async with (
        receiving(talk, tls=certificate) as receiver,
        receiving(relay) as slow,
        name_server(slow=["127.0.0.1"]) as names,
        a_sender(name_servers=[names.place], tls=trusting()) as sender,
    ):
        names.delay_seconds = 0.4
        attempted = await in_time(sender, a_post(f"https://slow.example:{slow.port}/"))
    assert attempted.cause == "The headers of the answer did not end within one second."
    assert attempted.duration_ms == pytest.approx(1000, abs=300)
    assert attempted.timings.dns_ms == pytest.approx(400, abs=200)
    assert attempted.timings.tls_ms == pytest.approx(400, abs=200)


async def test_a_slow_secret_is_part_of_the_deadline() -> None:
    async def secret() -> Secret:
        await asyncio.sleep(3600)
        raise AssertionError

    async with receiving(answer_all) as receiver, a_sender() as sender:
        attempted = await in_time(sender, a_post(receiver.url, secret=secret))
        await receiver.all_left()
    assert attempted.cause == "The signing secret could not be read in time."
    assert attempted.request_headers == ()


async def test_another_deadline_is_told_with_its_figure() -> None:
    async with receiving(answering()) as receiver, a_sender(timeout_seconds=0.25) as sender:
        attempted = await in_time(sender, a_post(receiver.url), 0.25)
    assert str(attempted.cause) == "No answer within 0.25 seconds."


async def test_two_hundred_attempts_at_once_all_succeed_and_leave_nothing_behind() -> None:
    before = open_sockets()
    async with receiving(answer_all) as receiver, a_sender(timeout_seconds=10) as sender:
        for _ in range(3):
            attempts = await asyncio.gather(*(sender.send(a_post(receiver.url)) for _ in range(200)))
            assert {attempted.cause for attempted in attempts} == {None}
        assert len(receiver.requests) == 600
        assert len({request.header("X-Service-Delivery") for request in receiver.requests}) == 600
    assert open_sockets() <= before


async def test_an_attempt_that_is_called_off_leaves_nothing_behind() -> None:
    async def silent(peer: Peer) -> None:
        await peer.left()

    before = open_sockets()
    async with (
        never_accepting() as deaf,
        receiving(silent) as receiver,
        name_server(two=["127.0.0.1", "127.0.0.2"]) as names,
        a_sender(timeout_seconds=60, name_servers=[names.place], tls=trusting()) as sender,
    ):
        names.hanging.add("hung.example")
        urls = (
            f"http://127.0.0.1:{deaf}/",
            f"http://two.example:{deaf}/",
            receiver.url,
            f"https://127.0.0.1:{receiver.port}/",
            "https://hung.example/",
        )
        sending = [asyncio.ensure_future(sender.send(a_post(url))) for url in urls for _ in range(3)]
        done, _ = await asyncio.wait(sending, timeout=0.4)
        assert not done
        for task in sending:
            task.cancel()
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        await receiver.all_left()
    await asyncio.sleep(0.05)
    assert open_sockets() <= before
    assert asyncio.all_tasks() <= {asyncio.current_task()} | {
        task for task in asyncio.all_tasks() if "anyio" in repr(task)
    }


async def test_being_called_off_at_the_deadline_is_not_mistaken_for_the_deadline() -> None:
    async with receiving(answering()) as receiver, a_sender(timeout_seconds=0.2) as sender:
        sending = asyncio.ensure_future(sender.send(a_post(receiver.url)))
        asyncio.get_running_loop().call_later(0.1, sending.cancel)
        with pytest.raises(asyncio.CancelledError):
            await sending


async def test_a_deaf_address_is_overtaken_by_one_that_answers() -> None:
    async with never_accepting() as port:
        with socket.create_server(("127.0.0.2", port)) as listener:
            listener.setblocking(False)
            async with (
                name_server(half=["127.0.0.1", "127.0.0.2"]) as names,
                a_sender(name_servers=[names.place]) as sender,
            ):
                sending = asyncio.ensure_future(in_time(sender, a_post(f"http://half.example:{port}/")))
                accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
                with accepted:
                    await asyncio.get_running_loop().sock_recv(accepted, 65_536)
                    await asyncio.get_running_loop().sock_sendall(accepted, b"HTTP/1.1 204 OK\r\n\r\n")
                    attempted = await sending
    assert (attempted.cause, attempted.address) == (None, "127.0.0.2")
    assert attempted.timings.connect_ms is not None
    assert attempted.timings.connect_ms < 600
