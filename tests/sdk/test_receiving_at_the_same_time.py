"""One delivery that arrives while it is being handled, and senders that do not wait for the answer."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from holdfast_webhooks import Event, Receiver, SeenInMemory, SeenInSqlite, WsgiReceiver
from sdk.make_vectors import SECRET
from tests.sdk.deliveries import Delivery, delivery

URL = "http://receiver.invalid/"
WAIT_SECONDS = 30
Post = Callable[[Delivery], Coroutine[None, None, int]]


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


@asynccontextmanager
async def posting_to(receiver: Receiver) -> AsyncIterator[Post]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver)) as client:

        async def post(sent: Delivery) -> int:
            return (await client.post(URL, headers=sent.headers, content=sent.body)).status_code

        yield post


async def test_a_delivery_that_comes_again_while_it_is_handled_is_409_and_later_204() -> None:
    handler, sent = SlowHandler(), delivery()
    async with posting_to(Receiver(SECRET, handler)) as post:
        first = asyncio.create_task(post(sent))
        await handler.begun.wait()
        assert await post(sent) == 409
        handler.may_end.set()
        assert await first == 204
        assert await post(sent) == 204
    assert handler.runs == 1


async def test_if_the_first_run_fails_nothing_was_acknowledged_and_the_retry_is_handled() -> None:
    handler, sent = SlowHandler(), delivery()
    async with posting_to(Receiver(SECRET, handler)) as post:
        handler.fails = True
        first = asyncio.create_task(post(sent))
        await handler.begun.wait()
        assert await post(sent) == 409
        handler.may_end.set()
        assert await first == 500
        handler.fails = False
        assert await post(sent) == 204
    assert handler.runs == 2


async def test_another_delivery_does_not_wait_for_a_slow_one() -> None:
    handler, slow = SlowHandler(), delivery()

    async def slow_for_one(event: Event) -> None:
        if str(event.id) == slow.headers["X-Service-Delivery"]:
            await handler(event)

    async with posting_to(Receiver(SECRET, slow_for_one)) as post:
        first = asyncio.create_task(post(slow))
        await handler.begun.wait()
        assert await post(delivery()) == 204
        handler.may_end.set()
        assert await first == 204


async def test_a_handler_is_not_cut_off_when_the_sender_hangs_up() -> None:
    handler, sent, seen = SlowHandler(), delivery(), SignallingSeen()
    async with posting_to(Receiver(SECRET, handler, seen=seen)) as post:
        first = asyncio.create_task(post(sent))
        await handler.begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        handler.may_end.set()
        assert await asyncio.to_thread(seen.remembered.wait, WAIT_SECONDS)
        assert await post(sent) == 204
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
        async with posting_to(Receiver(SECRET, handler, seen=seen)) as post:
            task = asyncio.create_task(post(sent))
            await handler.begun.wait()
            task.cancel()

    async def post_again() -> int:
        async with posting_to(Receiver(SECRET, lambda event: None, seen=seen)) as post:
            return await post(sent)

    asyncio.run(stop_in_the_middle())
    assert asyncio.run(post_again()) == 204


async def test_a_plain_handler_does_not_stop_the_loop() -> None:
    """It ends only after the loop has run something else: on the loop's own thread it never would."""
    loop_ran = threading.Event()
    async with posting_to(Receiver(SECRET, lambda event: loop_ran.wait(WAIT_SECONDS))) as post:
        sending = asyncio.create_task(post(delivery()))
        asyncio.get_running_loop().call_later(0.01, loop_ran.set)
        assert await asyncio.wait_for(sending, WAIT_SECONDS / 2) == 204


async def received_by(make_handler: Callable[[list[Event]], Callable[[Event], object]]) -> int:
    events: list[Event] = []
    async with posting_to(Receiver(SECRET, make_handler(events))) as post:
        assert await post(delivery()) == 204
    return len(events)


async def append_to(events: list[Event], event: Event) -> None:
    await asyncio.sleep(0)
    events.append(event)


async def test_whatever_is_to_be_awaited_is_awaited() -> None:
    assert await received_by(lambda events: functools.partial(append_to, events)) == 1
    assert await received_by(lambda events: lambda event: append_to(events, event)) == 1


def test_wsgi_takes_no_async_handler() -> None:
    async def on_event(event: Event) -> None: ...

    with pytest.raises(TypeError, match="Receiver"):
        WsgiReceiver(SECRET, on_event)


def post_to_wsgi(receiver: WsgiReceiver, sent: Delivery) -> int:
    with httpx.Client(transport=httpx.WSGITransport(receiver)) as client:
        return client.post(URL, headers=sent.headers, content=sent.body).status_code


def test_wsgi_acknowledges_nothing_that_was_never_awaited() -> None:
    events: list[Event] = []
    receiver = WsgiReceiver(SECRET, lambda event: append_to(events, event))
    assert post_to_wsgi(receiver, delivery()) == 500
    assert events == []


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_of_many_threads_with_one_delivery_one_alone_runs_the_handler(store: str, tmp_path: Path) -> None:
    seen = SeenInMemory() if store == "memory" else SeenInSqlite(tmp_path / "seen.db")
    others_answered, sent = threading.Event(), delivery()
    runs: list[Event] = []

    def on_event(event: Event) -> None:
        runs.append(event)
        others_answered.wait(WAIT_SECONDS)

    receiver = WsgiReceiver(SECRET, on_event, seen=seen)
    with ThreadPoolExecutor(8) as pool:
        posted = as_completed([pool.submit(post_to_wsgi, receiver, sent) for _ in range(8)], WAIT_SECONDS)
        assert [next(posted).result() for _ in range(7)] == [409] * 7
        others_answered.set()
        assert next(posted).result() == 204
    assert post_to_wsgi(receiver, sent) == 204
    assert len(runs) == 1
