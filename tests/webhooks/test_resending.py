"""Resending: the same id, the same bytes, a new series of attempts; one by one, or all that failed."""

import asyncio
from datetime import datetime
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryStatus, FailedDeliveryFilter, Schedule
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import EndpointRemoved, UnknownDelivery, UnknownEndpoint
from holdfast.operations import deliveries as deliveries_operation
from holdfast.storage.database import Database
from tests.support.delivery_engine import ALWAYS, Engine, an_engine, eventually, switch
from tests.support.receivers import answer_all, receiving
from tests.support.sales import new_units

ALL = FailedDeliveryFilter(ALWAYS.since)
FAILED_DELIVERIES = """
    insert into ended_delivery (
        id, endpoint_id, event, unit_id, unit_version, unit_code, created_at, body, tried, attempts,
        status, ended_at
    )
    select gen_random_uuid(), $1, 'unit.held', gen_random_uuid(), 2, 'A-' || number, now(), '{}', 8, 8,
        'failed', now()
    from generate_series(1, $2) as number
"""


async def fail(engine: Engine, delivery_id: UUID) -> None:
    while (await engine.find(delivery_id)).status is DeliveryStatus.PENDING:
        await engine.make_due()
        await engine.answer(await engine.claim(), 500)


async def test_a_delivered_one_is_sent_again_with_the_same_id_and_bytes(engine: Engine) -> None:
    async with receiving(answer_all) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        delivery_id = await engine.ping(endpoint)
        await engine.send_all()
        resent = await engine.resend(delivery_id)
        assert (resent.id, resent.status, resent.attempts) == (delivery_id, DeliveryStatus.PENDING, 1)
        await engine.send_all()
        first, second = receiver.requests
    assert first.body == second.body
    assert first.header("X-Service-Delivery") == second.header("X-Service-Delivery") == str(delivery_id)
    found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts) == (DeliveryStatus.DELIVERED, 2)
    assert [(one.number, one.trigger) for one in attempts] == [(1, "first"), (2, "resend")]


async def test_a_failed_one_has_a_new_series_of_as_many_attempts(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    await fail(engine, delivery_id)
    await engine.resend(delivery_id)
    await fail(engine, delivery_id)
    found, attempts = await engine.deliveries.find(delivery_id)
    assert found.status is DeliveryStatus.FAILED
    assert [one.trigger for one in attempts] == ["first", "retry", "retry", "resend", "retry", "retry"]
    assert [one.number for one in attempts] == [1, 2, 3, 4, 5, 6]


async def test_a_pending_one_is_sent_now_and_has_all_its_attempts_again(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    await engine.answer(await engine.claim(), 500)
    await engine.execute("update pending_delivery set due_at = now() + interval '1 hour'")
    await engine.resend(delivery_id)
    await engine.make_due()
    (claimed,) = await engine.claim()
    assert (claimed.progress.series, claimed.progress.tried, claimed.progress.attempts) == (2, 0, 1)


@pytest.mark.parametrize("status_code", [200, 500])
async def test_one_that_is_on_its_way_is_sent_again_whatever_comes_of_that(
    engine: Engine, status_code: int
) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    (claimed,) = await engine.claim()
    await engine.resend(delivery_id)
    await engine.make_due()
    assert await engine.claim() == []
    assert await engine.answer([claimed], status_code) == {delivery_id}
    (again,) = await engine.claim()
    assert (again.progress.series, again.progress.tried, again.progress.attempts) == (2, 0, 1)
    await engine.answer([again])
    found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts) == (DeliveryStatus.DELIVERED, 2)
    assert [one.trigger for one in attempts] == ["first", "resend"]


async def test_one_that_is_given_back_after_it_was_sent_anew_is_sent_once(engine: Engine) -> None:
    """It never went out, so there is nothing that the resend would have to follow."""
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    (claimed,) = await engine.claim()
    await engine.resend(delivery_id)
    await engine.dispatching.give_back([claimed])
    await engine.make_due()
    await engine.answer(await engine.claim())
    assert (await engine.find(delivery_id)).status is DeliveryStatus.DELIVERED


async def test_the_last_attempt_of_a_series_that_was_sent_anew_meanwhile_does_not_end_it(
    database: Database,
) -> None:
    async with an_engine(database, schedule=Schedule(0.01, 1)) as engine:
        delivery_id = await engine.ping((await engine.subscribe()).endpoint)
        (claimed,) = await engine.claim()
        await engine.resend(delivery_id)
        await engine.answer([claimed], 500)
        assert (await engine.find(delivery_id)).status is DeliveryStatus.PENDING


async def test_a_cancelled_one_is_sent_though_its_event_is_no_longer_chosen(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    await engine.change(endpoint, events=("unit.sold",))
    (cancelled,) = await engine.log()
    assert cancelled.status is DeliveryStatus.CANCELLED
    await engine.resend(cancelled.id)
    await engine.make_due()
    (claimed,) = await engine.claim()
    await engine.answer([claimed], 500)
    await engine.change(endpoint, events=("unit.held",))
    assert (await engine.find(cancelled.id)).status is DeliveryStatus.PENDING
    await engine.make_due()
    await engine.answer(await engine.claim())
    found = await engine.find(cancelled.id)
    assert (found.status, found.reason) == (DeliveryStatus.DELIVERED, None)


@pytest.mark.parametrize("status_code", [200, 500])
async def test_of_a_removed_endpoint_nothing_is_sent_again(engine: Engine, status_code: int) -> None:
    endpoint = (await engine.subscribe()).endpoint
    delivery_id = await engine.ping(endpoint)
    await engine.answer(await engine.claim(), status_code)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    before = await engine.find(delivery_id)
    with pytest.raises(EndpointRemoved):
        await engine.resend(delivery_id)
    assert await engine.find(delivery_id) == before


async def test_a_delivery_that_is_not_there_cannot_be_sent(engine: Engine) -> None:
    with pytest.raises(UnknownDelivery):
        await engine.resend(UUID(int=1))


async def test_a_caller_who_is_limited_to_projects_cannot_send_what_is_for_all(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    with pytest.raises(UnknownDelivery):
        await engine.deliveries.resend(delivery_id, COMMAND, ("palm-court",))


async def test_two_people_who_resend_at_once_both_succeed(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    await engine.answer(await engine.claim())
    await asyncio.gather(*(engine.resend(delivery_id) for _ in range(4)))
    assert await engine.value("select count(*) from pending_delivery") == 1
    assert await engine.value("select count(*) from ended_delivery") == 0


async def test_a_resend_at_the_moment_of_the_end_is_never_lost(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    for _ in range(20):
        delivery_id = await engine.ping(endpoint)
        (claimed,) = await engine.claim()
        await asyncio.gather(engine.answer([claimed]), engine.resend(delivery_id))
        assert (await engine.find(delivery_id)).status is DeliveryStatus.PENDING
        await engine.make_due()
        await engine.answer(await engine.claim())


async def test_who_sends_it_anew_stands_in_the_history_of_the_endpoint(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    delivery_id = await engine.ping(endpoint)
    await engine.answer(await engine.claim())
    await engine.resend(delivery_id)
    actions = await engine.rows(
        "select action from audit_entry where subject_id = $1 order by id", endpoint.id
    )
    assert [action for (action,) in actions] == ["create", "ping", "resend"]


async def with_failed(engine: Engine, count: int) -> Endpoint:
    endpoint = (await engine.subscribe()).endpoint
    await engine.execute(FAILED_DELIVERIES, endpoint.id, count)
    return endpoint


async def test_recovering_sends_as_many_as_its_dry_run_counts_and_has_no_cap(engine: Engine) -> None:
    endpoint = await with_failed(engine, 2500)
    other = await with_failed(engine, 3)
    assert await engine.deliveries.count_failed(endpoint.id, ALL) == 2500
    assert await engine.value("select count(*) from pending_delivery") == 0
    assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 2500
    assert await engine.rows("select count(*), min(series), max(tried) from pending_delivery") == [
        (2500, 2, 0)
    ]
    assert await engine.deliveries.count_failed(endpoint.id, ALL) == 0
    assert await engine.deliveries.count_failed(other.id, ALL) == 3


async def test_recovering_takes_what_is_meant_and_nothing_else(engine: Engine) -> None:
    endpoint = await with_failed(engine, 4)
    await engine.execute("update ended_delivery set event = 'unit.sold' where unit_code = 'A-1'")
    await engine.execute("update ended_delivery set status = 'delivered' where unit_code = 'A-2'")
    now: datetime = await engine.value("select clock_timestamp()")
    for selection, count in (
        (ALL._replace(events=("unit.sold",)), 1),
        (ALL._replace(unit_code="A-3"), 1),
        (ALL._replace(unit_code="A-2"), 0),
        (ALL._replace(since=now), 0),
        (ALL._replace(until=ALL.since), 0),
        (ALL, 1),
    ):
        assert await engine.deliveries.count_failed(endpoint.id, selection) >= count
        assert await engine.deliveries.recover(endpoint.id, selection, COMMAND) == count


async def resent_by_entries(engine: Engine, endpoint: Endpoint) -> list[int]:
    """What the history of the endpoint says of its recoveries, the oldest first."""
    found = await engine.rows(
        """
        select (after ->> 'resent')::int from audit_entry
        where subject_id = $1 and action = 'recover' order by id
        """,
        endpoint.id,
    )
    return [count for (count,) in found]


async def test_every_lot_of_a_recovery_stands_in_the_history_of_the_endpoint(engine: Engine) -> None:
    endpoint = await with_failed(engine, 2500)
    await engine.deliveries.recover(endpoint.id, ALL, COMMAND)
    assert await resent_by_entries(engine, endpoint) == [1000, 1000, 500]


async def test_a_recovery_of_nothing_stands_there_once(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 0
    assert await resent_by_entries(engine, endpoint) == [0]


async def test_what_an_interrupted_recovery_has_sent_is_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries_operation, "RESENT_AT_ONCE", 1)
    endpoint = await with_failed(engine, 2000)
    recovery = asyncio.create_task(engine.deliveries.recover(endpoint.id, ALL, COMMAND))
    await eventually(lambda: resent_by_entries(engine, endpoint))
    recovery.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recovery
    sent = await engine.value("select count(*) from pending_delivery")
    assert 0 < sent < 2000
    assert sum(await resent_by_entries(engine, endpoint)) == sent


async def test_recovering_a_removed_or_unknown_endpoint_is_refused(engine: Engine) -> None:
    endpoint = await with_failed(engine, 1)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    for endpoint_id in (endpoint.id, UUID(int=3)):
        with pytest.raises(UnknownEndpoint):
            await engine.deliveries.recover(endpoint_id, ALL, COMMAND)


async def test_what_fails_again_meanwhile_is_not_sent_anew_by_the_same_recovery(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would go on for ever where everything fails at its first attempt."""
    monkeypatch.setattr(deliveries_operation, "RESENT_AT_ONCE", 1)
    async with an_engine(database, schedule=Schedule(0.01, 1)) as engine:
        endpoint = await with_failed(engine, 50)
        async with engine.running(postgres_url), asyncio.timeout(5):
            assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 50
