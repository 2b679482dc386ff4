"""Records: what came of an attempt, or that it was lost with its worker, and how well the endpoint is."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain import delivery
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import OUTCOME_UNKNOWN, ClaimedDelivery, DeliveryStatus, Schedule
from holdfast.domain.endpoint import Endpoint, EndpointState
from holdfast.domain.errors import Message
from holdfast.operations import delivery_queue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, made, replying
from tests.support.receivers import answer_all, receiving

A_DAY_AGO = "update endpoint set failing_since = failing_since - interval '1 day'"
RECOVERED_ELSEWHERE = "update endpoint set failing_since = null, failing_cause = null"
STATE = (
    "select to_jsonb(pending_delivery) - 'body' from pending_delivery order by id",
    "select delivery_id, number, cause from attempt order by delivery_id, number",
    "select id, failing_since, failing_cause, gone_at from endpoint order by id",
)
ACTIVE, FAILING = EndpointState.ACTIVE, EndpointState.FAILING
ODD_VALUES = ('quote " backslash \\ é', "a\x00b", "a\\u0000b", "\x80\xff")


async def test_an_attempt_is_logged_in_full(engine: Engine) -> None:
    _, claimed = await engine.claim_one()
    timings = delivery.Timings(1.5, 2.5, None, 4.5)
    told: dict[str, Any] = {
        "request_headers": [("Content-Type", "application/json")],
        "response_headers": [*zip(("X-Odd", "X-Odd", "X-Text", "X-High"), ODD_VALUES, strict=True)],
        "response_body": b"\x00\xff<html>",
        "response_clipped": True,
    }
    record = made(claimed)
    result = record.result._replace(timings=timings, **told)
    await engine.dispatching.record([record._replace(result=result)])
    (attempt,) = await engine.attempts(claimed.delivery_id)
    assert (attempt.url, attempt.secret_id) == (claimed.url, claimed.secret.id)
    assert (attempt.dns_ms, attempt.connect_ms, attempt.tls_ms, attempt.first_byte_ms) == timings
    assert {name: getattr(attempt, name) for name in told} == told


async def test_a_response_that_cannot_be_stored_fails_neither_its_attempt_nor_others(engine: Engine) -> None:
    await engine.endpoint()
    await engine.queue_events("A-1", "A-2", "A-3")
    await engine.execute("alter table attempt add constraint no check (length(response_body) <> 3)")
    await engine.execute("alter table attempt add constraint never check (address <> 'never')")
    one, other, never = map(made, await engine.claim())
    one = one._replace(result=one.result._replace(response_body=b"bad", response_headers=(("A", "b"),)))
    never = never._replace(result=never.result._replace(address="never"))
    recorded = await engine.dispatching.record([one, other, never])
    assert recorded == {one.claim.delivery_id, other.claim.delivery_id}
    (attempt,) = await engine.attempts(one.claim.delivery_id)
    assert (attempt.response_body, attempt.response_headers, attempt.response_clipped) == (b"", [], True)
    assert (await engine.find(never.claim.delivery_id)).status is DeliveryStatus.PENDING


async def test_what_is_given_back_may_be_claimed_again_and_is_no_attempt(engine: Engine) -> None:
    _, claimed = await engine.claim_one()
    await engine.dispatching.give_back([claimed])
    (again,) = await engine.claim()
    assert again.progress == claimed.progress
    assert await engine.attempts(claimed.delivery_id) == []
    assert await engine.answer([again._replace(delivery_id=UUID(int=7))]) == set()


@pytest.mark.parametrize("is_removed", [False, True])
async def test_what_was_queued_by_a_clock_far_ahead_ends_today(engine: Engine, is_removed: bool) -> None:
    """The log has no partition yet for the day on which it seems to have begun."""
    _, claimed = await engine.claim_one()
    await engine.execute("update pending_delivery set created_at = now() + interval '10 days'")
    if is_removed:
        await engine.dispatching.give_back([claimed])
        await engine.subscribing.remove(claimed.endpoint_id, COMMAND)
    else:
        await engine.answer([claimed])
    status = "cancelled" if is_removed else "delivered"
    assert await engine.rows("select status from ended_delivery") == [(status,)]


async def test_an_internal_error_is_logged_and_no_failure_of_the_endpoint(engine: Engine) -> None:
    """The name of this event, which only a fault could have stored, fits into no header."""
    async with receiving(answer_all) as receiver:
        endpoint = await engine.endpoint(receiver.url)
        delivery_id = await engine.ping(endpoint)
        await engine.execute("update pending_delivery set event = 'unit.☃', series = 2")
        await engine.send_all()
        assert receiver.requests == []
    assert [attempt.cause for attempt in await engine.attempts(delivery_id)] == [delivery.INTERNAL_ERROR]
    assert (await engine.find(delivery_id)).status is DeliveryStatus.PENDING
    assert (await engine.load(endpoint)).failure is None


@pytest.fixture
async def late(engine: Engine) -> ClaimedDelivery:
    """A claim whose lease has expired; another worker has claimed the delivery again."""
    _, claimed = await engine.claim_one()
    await engine.let_leases_run_out()
    assert await engine.dispatching.rescue() == 1
    await engine.make_due()
    (again,) = await engine.claim()
    assert again.delivery_id == claimed.delivery_id
    assert again.token != claimed.token
    return claimed


@pytest.mark.parametrize("status_code", [200, 410])
async def test_a_late_record_changes_nothing(engine: Engine, late: ClaimedDelivery, status_code: int) -> None:
    if status_code == 200:
        await engine.execute(
            "update endpoint set failing_since = now(), failing_cause = 'x', gone_at = now()"
        )
    before = [await engine.rows(statement) for statement in STATE]
    assert await engine.answer([late], status_code) == set()
    await engine.dispatching.give_back([late])
    assert [await engine.rows(statement) for statement in STATE] == before
    assert await engine.value("select count(*) from in_flight") == 1
    await engine.execute("delete from in_flight")
    assert await engine.answer(await engine.claim(), 200)
    ended = await engine.find(late.delivery_id)
    assert await engine.answer([late], 500) == set()
    assert await engine.find(late.delivery_id) == ended
    assert len(await engine.attempts(late.delivery_id)) == 2


async def test_a_late_record_does_not_fail_its_batch(engine: Engine, late: ClaimedDelivery) -> None:
    other = await engine.ping(await engine.endpoint())
    claimed = await engine.claim()
    assert await engine.answer([late, *claimed]) == {other}
    assert (await engine.find(other)).status is DeliveryStatus.DELIVERED
    assert (await engine.find(late.delivery_id)).status is DeliveryStatus.PENDING


async def test_a_lost_attempt_is_logged_and_the_delivery_is_due_at_once(engine: Engine) -> None:
    _, claimed = await engine.claim_one()
    assert await engine.dispatching.rescue() == 0
    await engine.let_leases_run_out()
    assert await engine.dispatching.rescue() == 1
    assert await engine.dispatching.rescue() == 0
    (attempt,) = await engine.attempts(claimed.delivery_id)
    assert (attempt.number, attempt.trigger, attempt.cause) == (1, delivery.Trigger.FIRST, OUTCOME_UNKNOWN)
    assert (attempt.status_code, attempt.secret_id, attempt.request_headers) == (None, None, [])
    assert abs(attempt.started_at - claimed.claimed_at) <= timedelta(milliseconds=1)
    assert (await engine.subscribing.find(claimed.endpoint_id)).failure is None
    # Times are stored to the millisecond, and may be half of one ahead.
    assert await engine.value("select due_at <= clock_timestamp() + interval '1 ms' from pending_delivery")
    await engine.make_due()
    (again,) = await engine.claim()
    assert (again.delivery_id, again.body) == (claimed.delivery_id, claimed.body)
    assert again.progress.trigger is delivery.Trigger.RETRY


async def test_lost_and_failed_attempts_count_together(database: Database) -> None:
    async with an_engine(database, schedule=Schedule(0.001, 4)) as engine:
        _, claimed = await engine.claim_one()
        await engine.answer([claimed], 500)
        for _ in range(3):
            await engine.make_due()
            assert len(await engine.claim()) == 1
            await engine.let_leases_run_out()
            await engine.dispatching.rescue()
        assert await engine.claim() == []
        found, attempts = await engine.deliveries.find(claimed.delivery_id)
    assert (found.status, found.attempts) == (DeliveryStatus.FAILED, 4)
    assert (found.last_status_code, found.last_cause) == (None, OUTCOME_UNKNOWN)
    assert [attempt.number for attempt in attempts] == [1, 2, 3, 4]
    assert [attempt.trigger for attempt in attempts] == ["first", "retry", "retry", "retry"]


async def ping_and_answer(engine: Engine, endpoint: Endpoint, status_code: int | None) -> Endpoint:
    await engine.ping(endpoint)
    assert await engine.answer(await engine.claim(), status_code)
    return await engine.load(endpoint)


async def test_after_a_day_of_failures_it_is_failing_and_one_success_ends_that(engine: Engine) -> None:
    endpoint, other = await engine.endpoint(), await engine.endpoint()
    since = set()
    for code in (500, 503):
        found = await ping_and_answer(engine, endpoint, code)
        assert found.state is ACTIVE
        assert found.failure is not None
        assert found.failure.cause == Message("The receiver answered %(code)s.", {"code": code})
        since.add(found.failure.since)
    assert len(since) == 1
    await engine.execute(A_DAY_AGO)
    assert (await engine.load(endpoint)).state is FAILING
    assert (await engine.load(other)).state is ACTIVE
    recovered = await ping_and_answer(engine, endpoint, 204)
    assert (recovered.failure, recovered.state) == (None, ACTIVE)


async def test_410_makes_it_failing_until_something_arrives_and_it_is_still_tried(engine: Engine) -> None:
    codes = iter([410, 503, 200])
    async with receiving(replying(lambda _: next(codes))) as receiver:
        endpoint = await engine.endpoint(receiver.url)
        delivery_id = await engine.ping(endpoint)
        for state in (FAILING, FAILING, ACTIVE):
            await engine.make_due()
            await engine.send_all()
            assert (await engine.load(endpoint)).state is state
    assert (await engine.find(delivery_id)).status is DeliveryStatus.DELIVERED


async def test_a_paused_endpoint_is_paused_and_another_url_is_a_new_beginning(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    assert (await ping_and_answer(engine, endpoint, 410)).state is FAILING
    assert (await engine.change(endpoint, paused=True)).state is EndpointState.PAUSED
    await engine.change(endpoint, paused=False, description="the same receiver")
    assert (await engine.load(endpoint)).state is FAILING
    await engine.change(endpoint, url="http://127.0.0.1:10/other")
    assert (await engine.load(endpoint)).failure is None


@pytest.mark.parametrize("last", [200, 500])
async def test_a_success_counts_wherever_it_stands_in_a_batch(engine: Engine, last: int) -> None:
    endpoint, gone = await engine.endpoint(), await engine.endpoint()
    await ping_and_answer(engine, endpoint, 500)
    await engine.execute(A_DAY_AGO)
    for one in (endpoint, endpoint, gone):
        await engine.ping(one)
    claimed = sorted(await engine.claim(), key=lambda one: one.endpoint_id == gone.id)
    codes = zip(claimed, (700 - last, last, 410), strict=True)
    await engine.dispatching.record([made(one, status_code=code) for one, code in codes])
    assert (await engine.load(endpoint)).state is ACTIVE
    assert (await engine.load(gone)).state is FAILING


async def test_a_failure_is_saved_once_in_a_while(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "HEALTH_REPEAT_SECONDS", 3600.0)
    endpoint = await engine.endpoint()
    await ping_and_answer(engine, endpoint, 500)
    await engine.execute(RECOVERED_ELSEWHERE)
    assert (await ping_and_answer(engine, endpoint, 500)).failure is None
    assert (await ping_and_answer(engine, endpoint, 503)).failure is not None
    await engine.execute(RECOVERED_ELSEWHERE)
    monkeypatch.setattr(delivery_queue, "HEALTH_REPEAT_SECONDS", 0.0)
    assert (await ping_and_answer(engine, endpoint, 503)).failure is not None
