"""Receivers note what they got and answered, and servers find them by our own name server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.webhooks.resolver import NameUnresolved, Resolver
from tests.chaos import receiver_faults
from tests.chaos import receivers as behaviours
from tests.chaos.faults import Injection, Kind
from tests.chaos.history import History, read
from tests.chaos.receivers import Behaviour, Receivers
from tests.support.delivery_engine import eventually

# Only root has port 53 and mounts.
pytestmark = pytest.mark.usefixtures("able_machine")

RESOLVE = """
import asyncio, sys
from holdfast.webhooks.resolver import NameUnresolved, Resolver

async def main():
    resolver = Resolver()
    try:
        print(*await resolver.resolve(sys.argv[1]))
    except NameUnresolved as error:
        print(error)
    await resolver.close()

asyncio.run(main())
"""


@pytest.fixture
async def receivers(tmp_path: Path) -> AsyncIterator[Receivers]:
    with History(tmp_path / "history.jsonl") as history:
        async with Receivers(tmp_path, Random(1)).running(history) as receivers:
            yield receivers


async def post(receivers: Receivers, name: str, path: str = "/hook") -> bytes:
    """Send one event and return what came until the connection ended; the receiver is given up after that."""
    reader, writer = await asyncio.open_connection("127.0.0.1", receivers.receivers[name].port)
    body = json.dumps({"id": "1"}).encode()
    head = f"POST {path} HTTP/1.1\r\nX-Service-Delivery: d1\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    try:
        async with asyncio.timeout(0.5):
            return await reader.read(1 << 16)
    except (ConnectionResetError, TimeoutError):
        return b""
    finally:
        writer.transport.abort()


async def noted(tmp_path: Path, receivers: Receivers) -> list[tuple[str, int | None]]:
    await receivers.close()  # Ends what still hangs, and notes it.
    history = receivers._history
    assert history is not None
    history.close()
    return [(record["receiver"], record["status"]) for record in read(tmp_path / "history.jsonl")]


@pytest.mark.parametrize(
    ("behaviour", "status", "answer"),
    [
        (behaviours.answer_with(410), 410, b"HTTP/1.1 410 "),
        (behaviours.hang, None, b""),
        (behaviours.drip, None, b"H"),
        (behaviours.reset, None, b""),
        (behaviours.close, None, b""),
        (behaviours.send_garbage, None, b"\x16\x03\x01"),
        (behaviours.answer_without_end, 200, b"HTTP/1.1 200 "),
    ],
    ids=["410", "hang", "drip", "reset", "close", "garbage", "endless"],
)
async def test_a_receiver_behaves_as_it_is_told_and_notes_what_it_answered(
    behaviour: Behaviour, status: int | None, answer: bytes, receivers: Receivers, tmp_path: Path
) -> None:
    with receivers.behaving(behaviour, ["flaky"]) as met:
        assert (await post(receivers, "flaky")).startswith(answer)
    assert met == {"flaky": 1}
    assert await noted(tmp_path, receivers) == [("flaky", status)]


async def test_a_redirect_that_was_followed_is_noted(receivers: Receivers, tmp_path: Path) -> None:
    with receivers.behaving(receivers.redirect(), ["flaky"]):
        answer = await post(receivers, "flaky")
    assert (
        f"Location: http://ordered.receivers.test:{receivers.receivers['ordered'].port}/".encode() in answer
    )
    await post(receivers, "ordered", behaviours.ELSEWHERE)
    assert await noted(tmp_path, receivers) == [("flaky", 302), ("elsewhere", 200)]


async def test_about_a_third_fails_at_the_flaky_receiver_and_none_at_the_ordered_one(
    receivers: Receivers, tmp_path: Path
) -> None:
    for name in ("ordered", "flaky"):
        await asyncio.gather(*(post(receivers, name) for _ in range(60)))
    found = await noted(tmp_path, receivers)
    assert found[:60] == [("ordered", 200)] * 60
    assert 10 < found.count(("flaky", 500)) < 30


async def test_receivers_that_were_down_come_back_at_the_same_ports(receivers: Receivers) -> None:
    await receivers.close()
    with pytest.raises(ConnectionRefusedError):
        await post(receivers, "ordered")
    await receivers.open()
    assert (await post(receivers, "ordered")).startswith(b"HTTP/1.1 200 ")


async def resolve(receivers: Receivers, host: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *receivers.serve_prefix, sys.executable, "-c", RESOLVE, host, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode().strip()


async def test_a_server_asks_our_name_server(receivers: Receivers) -> None:
    host = receivers.hosts[0]
    assert await resolve(receivers, host) == "127.0.0.1"
    receivers.name_server.failing.add(host)
    assert await resolve(receivers, host) == "The host name could not be resolved."
    receivers.name_server.failing.clear()
    receivers.name_server.hanging.add(host)
    asked = receivers.questions()
    answer = asyncio.create_task(resolve(receivers, host))
    await eventually(lambda: receivers.questions() > asked)
    assert not answer.done()
    receivers.name_server.go_on()
    assert await answer == "127.0.0.1"


FAULTS = [
    pytest.param(kind, id=kind.name, marks=[pytest.mark.slow] * (number > 0))
    for number, kind in enumerate(receiver_faults.KINDS)
]


async def inject(kind: Kind, receivers: Receivers) -> Injection:
    injection = Injection(kind, 1, 0.0, 0.3, Random(1))
    scene: Any = SimpleNamespace(receivers=receivers)
    await kind.run(scene, injection)
    return injection


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_of_the_receivers_is_seen_and_healed(kind: Kind, receivers: Receivers) -> None:
    resolver = Resolver([receivers.name_server.place])

    async def keep_posting() -> None:
        while True:
            for name, receiver in receivers.receivers.items():
                with suppress(NameUnresolved, OSError, TimeoutError):
                    async with asyncio.timeout(0.2):
                        await resolver.resolve(receiver.host)
                        await post(receivers, name)

    posting = asyncio.create_task(keep_posting())
    injection = await inject(kind, receivers)
    posting.cancel()
    await asyncio.gather(posting, return_exceptions=True)
    await resolver.close()
    assert injection.effect
    assert (await post(receivers, "ordered")).startswith(b"HTTP/1.1 200 ")
    assert await resolve(receivers, receivers.hosts[0]) == "127.0.0.1"


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_that_nobody_meets_does_not_count(
    kind: Kind, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver_faults, "_EFFECT_SECONDS", 0.3)
    assert not (await inject(kind, receivers)).effect
