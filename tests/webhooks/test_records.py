"""Records: what came of attempts is written down, by many workers at once."""

import asyncio
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import INTERNAL_ERROR, ClaimedDelivery, Timings
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, made, switch
from tests.support.receivers import answer_all, receiving
from tests.support.sales import new_units

ENDPOINTS = 60


async def one_claimed(engine: Engine) -> ClaimedDelivery:
    project_id = await new_units(engine.database, "A-1")
    await switch(engine.database, project_id, "A-1")
    (claimed,) = await engine.claim()
    return claimed


async def one_of_twenty(engine: Engine) -> list[ClaimedDelivery]:
    project_id = await new_units(engine.database, "A-1")
    await switch(engine.database, project_id, "A-1")
    claimed = await engine.claim()
    assert len(claimed) == 20
    return claimed


async def test_workers_that_record_for_the_same_endpoints_never_deadlock(
    engine: Engine, postgres_url: str
) -> None:
    """Many endpoints fail at the same moment, and two workers write that down, each in its own order."""
    for _ in range(ENDPOINTS):
        await engine.subscribe()
    project_id = await new_units(engine.database, "A-1", "A-2")
    for code in ("A-1", "A-2"):
        await switch(engine.database, project_id, code)
    claimed = sorted(await engine.claim(), key=lambda one: one.endpoint_id)
    async with Database(postgres_url) as other_database:
        other = DeliveryQueue(other_database, engine.schedule, 35)
        for status_code in (500, 503) * 10:
            halves = claimed[::2], claimed[1::2][::-1]
            await asyncio.gather(
                engine.dispatching.record([made(one, status_code=status_code) for one in halves[0]]),
                other.record([made(one, status_code=status_code) for one in halves[1]]),
            )
            await claim_anew(engine, claimed)
    assert await engine.value("select count(*) from attempt") == 20 * 2 * ENDPOINTS


async def claim_anew(engine: Engine, claimed: list[ClaimedDelivery]) -> None:
    """As they were before, whatever came of them, and a claim again."""
    await engine.execute(
        """
        insert into pending_delivery (id, endpoint_id, event, created_at, body, due_at)
        select id, endpoint_id, event, created_at, body, now() from ended_delivery
        """
    )
    await engine.execute("delete from ended_delivery")
    await engine.execute("update pending_delivery set tried = 0")
    await engine.execute(
        """
        insert into in_flight (delivery_id, endpoint_id, token, claimed_at, lease_until)
        select pending_delivery.id, endpoint_id, token, now(), now() + interval '1 hour'
        from pending_delivery join unnest($1::uuid[], $2::bigint[]) as of (id, token) using (id)
        """,
        [one.delivery_id for one in claimed],
        [one.token for one in claimed],
    )


async def test_recording_and_resending_at_once_never_deadlock(engine: Engine) -> None:
    """One locks the endpoint before the delivery, the other perhaps after it."""
    for _ in range(20):
        await engine.subscribe()
    claimed = await one_of_twenty(engine)
    results = [made(one, status_code=500) for one in claimed]
    resends = [engine.resend(one.delivery_id) for one in claimed]
    await asyncio.gather(engine.dispatching.record(results), *resends)
    in_new_series = "select count(*) from pending_delivery where series = 2 and attempts = 1"
    assert await engine.value(in_new_series) == 20


async def test_the_log_tells_an_attempt_in_full(engine: Engine) -> None:
    issued = await engine.subscribe()
    claimed = await one_claimed(engine)
    record = made(claimed)
    result = record.result._replace(
        timings=Timings(1.5, 2.5, None, 4.5),
        request_headers=(("Content-Type", "application/json"),),
        response_headers=(("X-Odd", 'quote " backslash \\ é'), ("X-Odd", "twice")),
        response_body=b"\x00\xff<html>",
        response_clipped=True,
    )
    await engine.dispatching.record([record._replace(result=result)])
    (attempt,) = await engine.attempts(claimed.delivery_id)
    assert attempt.url == issued.endpoint.config.url
    assert attempt.secret_id == issued.endpoint.secret_id
    assert (attempt.dns_ms, attempt.connect_ms, attempt.tls_ms, attempt.first_byte_ms) == (
        1.5,
        2.5,
        None,
        4.5,
    )
    assert attempt.request_headers == [("Content-Type", "application/json")]
    assert attempt.response_headers == [("X-Odd", 'quote " backslash \\ é'), ("X-Odd", "twice")]
    assert (attempt.response_body, attempt.response_clipped) == (b"\x00\xff<html>", True)


async def test_headers_with_nul_and_with_what_looks_like_one_do_not_stop_the_record(engine: Engine) -> None:
    await engine.subscribe()
    claimed = await one_claimed(engine)
    odd = (("X-Nul", "a\x00b"), ("X-Text", "a\\u0000b"), ("X-High", "\x80\xff"))
    record = made(claimed)
    odd_result = record.result._replace(response_headers=odd)
    await engine.dispatching.record([record._replace(result=odd_result)])
    (attempt,) = await engine.attempts(claimed.delivery_id)
    assert attempt.response_headers == [("X-Nul", "a\x00b"), ("X-Text", "a\\u0000b"), ("X-High", "\x80\xff")]


async def test_what_is_given_back_may_be_claimed_again_and_is_no_attempt(engine: Engine) -> None:
    await engine.subscribe()
    claimed = await one_claimed(engine)
    await engine.dispatching.give_back([claimed])
    (again,) = await engine.claim()
    assert again.progress == claimed.progress
    assert await engine.attempts(claimed.delivery_id) == []


async def test_an_unknown_delivery_is_not_recorded(engine: Engine) -> None:
    await engine.subscribe()
    claimed = await one_claimed(engine)
    stranger = claimed._replace(delivery_id=UUID(int=7))
    assert await engine.answer([stranger]) == set()


@pytest.mark.parametrize("is_removed", [False, True])
async def test_what_was_made_when_the_clock_was_far_ahead_ends_all_the_same(
    engine: Engine, is_removed: bool
) -> None:
    """The log has no place yet for the day on which it seems to have begun."""
    endpoint = (await engine.subscribe()).endpoint
    claimed = await one_claimed(engine)
    await engine.execute("update pending_delivery set created_at = now() + interval '10 days'")
    if is_removed:
        await engine.dispatching.give_back([claimed])
        await engine.subscribing.remove(endpoint.id, COMMAND)
    else:
        await engine.answer([claimed])
    status = "cancelled" if is_removed else "delivered"
    assert await engine.rows("select status from ended_delivery") == [(status,)]


async def test_a_fault_of_our_own_is_an_attempt_that_tells_so_and_no_trouble_of_the_endpoint(
    engine: Engine,
) -> None:
    """The name of an event, which nothing but a fault could have stored, fits into no header."""
    async with receiving(answer_all) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        delivery_id = await engine.ping(endpoint)
        await engine.execute("update pending_delivery set event = 'unit.☃', series = 2")
        await engine.send_all()
        assert receiver.requests == []
    assert [attempt.cause for attempt in await engine.attempts(delivery_id)] == [INTERNAL_ERROR]
    assert (await engine.find(delivery_id)).status == "pending"
    assert (await engine.subscribing.find(endpoint.id)).failure is None
