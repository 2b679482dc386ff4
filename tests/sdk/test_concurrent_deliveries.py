"""One delivery that arrives while it is being handled, and senders that do not wait for the answer."""

import asyncio
import functools
import threading
from pathlib import Path

import pytest

from holdfast_webhooks import Event, Receiver, SeenInMemory, SeenInSqlite, WsgiReceiver
from sdk.make_vectors import SECRET
from tests.sdk.deliveries import delivery, post, post_to_wsgi

WAIT_SECONDS = 120


class SlowHandler:
    """Says when it has begun, and ends when it is told to."""

    def __init__(self) -> None:
        self.runs = 0
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.fails = False

    async def __call__(self, event: Event) -> None:
        self.runs += 1
        self.begun.set()
        await asyncio.wait_for(self.may_end.wait(), WAIT_SECONDS)
        if self.fails:
            raise RuntimeError("not this time")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_delivery_that_comes_again_while_it_is_handled_is_refused_until_then(fails: bool) -> None:
    handler, sent = SlowHandler(), delivery()
    receiver, handler.fails = Receiver(SECRET, handler), fails
    first = asyncio.create_task(post(receiver, sent))
    await handler.begun.wait()
    assert await post(receiver, sent) == 409
    handler.may_end.set()
    assert await first == (500 if fails else 204)
    handler.fails = False
    assert await post(receiver, sent) == 204
    assert handler.runs == (2 if fails else 1)


async def test_another_delivery_does_not_wait_for_a_slow_one() -> None:
    handler, slow = SlowHandler(), delivery()

    async def slow_for_one(event: Event) -> None:
        if str(event.id) == slow.headers["X-Service-Delivery"]:
            await handler(event)

    receiver = Receiver(SECRET, slow_for_one)
    first = asyncio.create_task(post(receiver, slow))
    await handler.begun.wait()
    assert await post(receiver, delivery()) == 204
    handler.may_end.set()
    assert await first == 204


async def test_a_handler_is_not_cut_off_when_the_sender_hangs_up() -> None:
    handler, sent, seen = SlowHandler(), delivery(), SignallingSeen()
    receiver = Receiver(SECRET, handler, seen=seen)
    first = asyncio.create_task(post(receiver, sent))
    await handler.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    handler.may_end.set()
    assert await asyncio.to_thread(seen.remembered.wait, WAIT_SECONDS)
    assert await post(receiver, sent) == 204
    assert handler.runs == 1


class SignallingSeen(SeenInMemory):
    def __init__(self) -> None:
        super().__init__()
        self.remembered = threading.Event()

    def remember(self, delivery_id: str, token: str) -> None:
        super().remember(delivery_id, token)
        self.remembered.set()


def test_a_handler_cut_off_at_the_end_of_the_loop_leaves_its_delivery_to_the_retry(tmp_path: Path) -> None:
    seen, sent = SeenInSqlite(tmp_path / "seen.db"), delivery()

    async def stop_in_the_middle() -> None:
        handler = SlowHandler()
        task = asyncio.create_task(post(Receiver(SECRET, handler, seen=seen), sent))
        await handler.begun.wait()
        task.cancel()

    asyncio.run(stop_in_the_middle())
    assert asyncio.run(post(Receiver(SECRET, lambda event: None, seen=seen), sent)) == 204


async def test_a_plain_handler_does_not_stop_the_loop() -> None:
    """It ends only after the loop has run something else: on the loop's own thread it never would."""
    begun, loop_ran = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def on_event(_: Event) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert loop_ran.wait(WAIT_SECONDS)

    sending = asyncio.create_task(post(Receiver(SECRET, on_event), delivery()))
    await begun.wait()
    loop_ran.set()
    assert await sending == 204


async def append_to(events: list[Event], event: Event) -> None:
    await asyncio.sleep(0)
    events.append(event)


async def test_whatever_is_to_be_awaited_is_awaited() -> None:
    events: list[Event] = []
    for on_event in (functools.partial(append_to, events), lambda event: append_to(events, event)):
        assert await post(Receiver(SECRET, on_event), delivery()) == 204
    assert len(events) == 2


def test_wsgi_takes_no_async_handler_and_acknowledges_nothing_that_was_never_awaited() -> None:
    events: list[Event] = []
    with pytest.raises(TypeError, match="Receiver"):
        WsgiReceiver(SECRET, functools.partial(append_to, events))
    receiver = WsgiReceiver(SECRET, lambda event: append_to(events, event))
    assert post_to_wsgi(receiver, delivery()) == 500
    assert events == []
