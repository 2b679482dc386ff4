"""Retries: the gap doubles, the same id and bytes go out each time, and after the last one it has failed."""

import asyncio
import hashlib
import hmac
from datetime import timedelta
from itertools import pairwise

import pytest

from holdfast.domain.delivery import SEALING_KEY_MISSING, DeliveryStatus, Schedule
from holdfast.domain.errors import Message
from holdfast.storage.database import Database
from holdfast.storage.secrets import new_encryption_key
from holdfast.webhooks import dispatcher as dispatcher_module
from tests.support.delivery_engine import Engine, an_engine, eventually, replying, switch
from tests.support.receivers import Received, receiving, unused_port
from tests.support.sales import new_units

GAPS = "select extract(epoch from due_at - clock_timestamp()) from pending_delivery"


def is_signed(request: Received, secret: str) -> bool:
    timestamp = request.header("X-Service-Timestamp")
    signed = timestamp.encode() + b"." + request.body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return request.header("X-Service-Signature") == f"sha256={digest}"


async def test_a_retry_has_the_same_id_and_bytes_and_a_signature_of_its_own(engine: Engine) -> None:
    codes = iter([500, 503, 200])
    async with receiving(replying(lambda _: next(codes))) as receiver:
        issued = await engine.subscribe(receiver.url)
        await engine.ping(issued.endpoint)
        for _ in range(3):
            await engine.make_due()
            await engine.send_all()
        requests = receiver.requests
    assert len(requests) == 3
    assert len({request.body for request in requests}) == 1
    assert len({request.header("X-Service-Delivery") for request in requests}) == 1
    assert all(is_signed(request, issued.text) for request in requests)


async def test_the_gap_doubles_from_the_first_and_the_last_attempt_is_the_end(database: Database) -> None:
    async with an_engine(database, schedule=Schedule(30, 8)) as engine:
        delivery_id = await engine.ping((await engine.subscribe()).endpoint)
        gaps = []
        for _ in range(7):
            await engine.answer(await engine.claim(), 500)
            gaps.append(float(await engine.value(GAPS)))
            await engine.make_due()
        assert gaps == pytest.approx([30, 60, 120, 240, 480, 960, 1920], abs=5)
        await engine.answer(await engine.claim(), 500)
        found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts, found.next_attempt_at) == (DeliveryStatus.FAILED, 8, None)
    assert str(found.last_cause) == "The receiver answered 500."
    kept = Message("The receiver answered %(code)s.", {"code": 500})
    assert {found.last_cause, *(one.cause for one in attempts)} == {kept}
    assert [one.trigger for one in attempts] == ["first"] + ["retry"] * 7


async def test_no_gap_is_shorter_than_the_schedule_on_a_running_worker(database: Database) -> None:
    async with (
        an_engine(database, schedule=Schedule(0.1, 4)) as engine,
        receiving(replying(lambda _: 500)) as receiver,
    ):
        delivery_id = await engine.ping((await engine.subscribe(receiver.url)).endpoint)

        async def has_failed() -> bool:
            return (await engine.find(delivery_id)).status is DeliveryStatus.FAILED

        async with engine.running():
            await eventually(has_failed, 10)
        attempts = await engine.attempts(delivery_id)
    gaps = [after.started_at - before.ended_at for before, after in pairwise(attempts)]
    for gap, least in zip(gaps, (0.1, 0.2, 0.4), strict=True):
        assert gap >= timedelta(seconds=least) - timedelta(milliseconds=2)
        assert gap < timedelta(seconds=least + 0.5)


async def test_a_refused_connection_is_a_failed_attempt_with_its_cause(engine: Engine) -> None:
    endpoint = (await engine.subscribe(f"http://127.0.0.1:{unused_port()}/")).endpoint
    delivery_id = await engine.ping(endpoint)
    await engine.send_all()
    (attempt,) = await engine.attempts(delivery_id)
    assert (attempt.cause, attempt.status_code) == ("The connection was refused.", None)
    assert (attempt.request_headers, attempt.secret_id) == ([], None)
    assert (await engine.find(delivery_id)).status is DeliveryStatus.PENDING


async def test_the_log_shows_what_was_sent_and_what_came_back(engine: Engine) -> None:
    async with receiving(replying(lambda _: 422)) as receiver:
        issued = await engine.subscribe(receiver.url)
        delivery_id = await engine.ping(issued.endpoint)
        await engine.send_all()
        (request,) = receiver.requests
    found, (attempt,) = await engine.deliveries.find(delivery_id)
    assert found.body.encode() == request.body
    assert tuple(attempt.request_headers) == request.headers
    assert (attempt.status_code, attempt.secret_id) == (422, issued.endpoint.secret_id)
    assert attempt.response_headers == [("Content-Length", "0")]
    assert attempt.address == "127.0.0.1"
    assert attempt.duration_ms > 0


async def test_a_secret_that_cannot_be_read_fails_the_attempt_with_a_cause_and_sends_nothing(
    engine: Engine, database: Database
) -> None:
    async with receiving(replying(lambda _: 200)) as receiver:
        delivery_id = await engine.ping((await engine.subscribe(receiver.url)).endpoint)
        async with an_engine(database, keys=[new_encryption_key()]) as stranger:
            await stranger.send_all()
        assert receiver.connections == 0
        (attempt,) = await engine.attempts(delivery_id)
        assert attempt.cause == SEALING_KEY_MISSING
        await engine.make_due()
        await engine.send_all()
        assert (await engine.find(delivery_id)).status is DeliveryStatus.DELIVERED


async def test_a_receiver_that_hangs_does_not_delay_the_others(database: Database) -> None:
    never = asyncio.Event()

    async def hang(_: Received) -> int:
        await never.wait()
        return 200

    async with (
        an_engine(database, timeout_seconds=5) as engine,
        receiving(replying(hang)) as hung,
        receiving(replying(lambda _: 200)) as healthy,
    ):
        await engine.subscribe(hung.url, max_in_flight=4)
        await engine.subscribe(healthy.url)
        project_id = await new_units(database, *(f"A-{number}" for number in range(20)))
        async with engine.running():
            for number in range(20):
                await switch(database, project_id, f"A-{number}")
            engine.dispatcher.wake()
            await eventually(lambda: len(healthy.requests) == 20, 3)
            assert len(hung.requests) == 4
            never.set()
            await eventually(lambda: len(hung.requests) == 20, 3)


async def test_endpoints_that_hang_leave_room_in_a_worker_for_the_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scaled: with caps of 256, two of them would have all of its 512."""
    monkeypatch.setattr(dispatcher_module, "AT_ONCE", 8)
    never = asyncio.Event()

    async def hang(_: Received) -> int:
        await never.wait()
        return 200

    async with (
        an_engine(database, timeout_seconds=10) as engine,
        receiving(replying(hang)) as hung,
        receiving(replying(lambda _: 200)) as healthy,
    ):
        for _ in range(2):
            await engine.subscribe(hung.url, max_in_flight=4)
        codes = [f"A-{number}" for number in range(8)]
        project_id = await new_units(database, *codes)
        for code in codes:
            await switch(database, project_id, code)
        async with engine.running():
            await eventually(lambda: len(hung.requests) >= 6)
            await engine.ping((await engine.subscribe(healthy.url)).endpoint)
            try:
                await eventually(lambda: len(healthy.requests) == 1, 2)
            finally:
                never.set()
