"""Resending: the same id, the same bytes, a new series of attempts; one by one, or all that failed."""

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryStatus, FailedDeliveryFilter, Progress, Schedule
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import EndpointRemoved, Message, UnknownDelivery, UnknownEndpoint
from holdfast.operations import deliveries
from holdfast.storage.database import Database
from tests.support.delivery_engine import ALWAYS, Engine, an_engine
from tests.support.receivers import answer_all, receiving

PENDING, DELIVERED, FAILED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
AUDITED = """
    select (after ->> 'resent')::int from audit_entry
    where subject_id = $1 and action = 'recover' order by id
"""
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


async def test_a_delivered_one_is_sent_again_with_the_same_id_and_bytes(engine: Engine) -> None:
    async with receiving(answer_all) as receiver:
        delivery_id = await engine.ping(await engine.endpoint(receiver.url))
        await engine.send_all()
        resent = await engine.resend(delivery_id)
        assert (resent.id, resent.status, resent.attempts) == (delivery_id, PENDING, 1)
        await engine.send_all()
        first, second = receiver.requests
    assert first.body == second.body
    assert first.header("X-Service-Delivery") == second.header("X-Service-Delivery") == str(delivery_id)
    found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts) == (DELIVERED, 2)
    assert [(one.number, one.trigger) for one in attempts] == [(1, "first"), (2, "resend")]
    actions = await engine.value("select string_agg(action, ' ' order by id) from audit_entry")
    assert actions == "create ping resend"


async def test_a_failed_one_has_a_new_series_of_as_many_attempts(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    for _ in range(2):
        for _ in range(engine.schedule.attempts):
            await engine.make_due()
            await engine.answer(await engine.claim(), 500)
        found, attempts = await engine.deliveries.find(delivery_id)
        assert found.status is FAILED
        await engine.resend(delivery_id)
    assert [one.trigger for one in attempts] == ["first", "retry", "retry", "resend", "retry", "retry"]
    assert [one.number for one in attempts] == [1, 2, 3, 4, 5, 6]
    assert (found.attempts, found.next_attempt_at) == (6, None)
    cause = Message("The receiver answered %(code)s.", {"code": 500})
    assert {found.last_cause, *(one.cause for one in attempts)} == {cause}


async def test_a_pending_one_is_sent_now_and_has_all_its_attempts_again(engine: Engine) -> None:
    _, claimed = await engine.claim_one()
    await engine.answer([claimed], 500)
    assert await engine.claim() == []
    await engine.resend(claimed.delivery_id)
    assert [one.progress for one in await engine.claim()] == [Progress(series=2, tried=0, attempts=1)]


@pytest.mark.parametrize("status_code", [200, 500])
async def test_one_in_flight_is_sent_again_whatever_comes_of_it(database: Database, status_code: int) -> None:
    async with an_engine(database, schedule=Schedule(600, 1)) as engine:
        delivery_id = await engine.ping(await engine.endpoint())
        (claimed,) = await engine.claim()
        await engine.resend(delivery_id)
        await engine.make_due()
        assert await engine.claim() == []
        assert await engine.answer([claimed], status_code) == {delivery_id}
        (again,) = await engine.claim()
        assert again.progress == Progress(series=2, tried=0, attempts=1)
        await engine.answer([again])
        found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts) == (DELIVERED, 2)
    assert [one.trigger for one in attempts] == ["first", "resend"]


@pytest.mark.parametrize("status_code", [200, 500])
async def test_of_a_removed_endpoint_nothing_is_resent(engine: Engine, status_code: int) -> None:
    endpoint = await engine.endpoint()
    delivery_id = await engine.ping(endpoint)
    await engine.answer(await engine.claim(), status_code)
    await engine.remove(endpoint)
    before = await engine.find(delivery_id)
    with pytest.raises(EndpointRemoved):
        await engine.resend(delivery_id)
    assert await engine.find(delivery_id) == before
    for endpoint_id in (endpoint.id, UUID(int=3)):
        with pytest.raises(UnknownEndpoint):
            await engine.deliveries.recover(endpoint_id, ALL, COMMAND)


async def test_an_unknown_delivery_cannot_be_resent(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    with pytest.raises(UnknownDelivery):
        await engine.resend(UUID(int=1))
    # Nor one of an endpoint for all projects, by a caller who is limited to some.
    with pytest.raises(UnknownDelivery):
        await engine.deliveries.resend(delivery_id, COMMAND, ("palm-court",))


async def endpoint_with_failed(engine: Engine, count: int) -> Endpoint:
    endpoint = await engine.endpoint()
    await engine.execute(FAILED_DELIVERIES, endpoint.id, count)
    return endpoint


async def audited(engine: Engine, endpoint: Endpoint) -> list[int]:
    """How many were resent by each step of a recovery, as the audit log has it."""
    return [count for (count,) in await engine.rows(AUDITED, endpoint.id)]


async def test_a_recovery_resends_all_that_failed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 10)
    endpoint, other = await endpoint_with_failed(engine, 25), await endpoint_with_failed(engine, 3)
    assert await engine.deliveries.count_failed(endpoint.id, ALL) == 25
    assert await engine.value("select count(*) from pending_delivery") == 0
    assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 25
    assert await engine.rows("select count(*), min(series), max(tried) from pending_delivery") == [(25, 2, 0)]
    assert await engine.deliveries.count_failed(endpoint.id, ALL) == 0
    assert await engine.deliveries.count_failed(other.id, ALL) == 3
    assert await audited(engine, endpoint) == [10, 10, 5]
    assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 0
    assert await audited(engine, endpoint) == [10, 10, 5, 0]


async def test_a_recovery_resends_what_is_selected_and_nothing_else(engine: Engine) -> None:
    endpoint = await endpoint_with_failed(engine, 4)
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
        assert await engine.deliveries.count_failed(endpoint.id, selection) == count
        assert await engine.deliveries.recover(endpoint.id, selection, COMMAND) == count


async def test_an_interrupted_recovery_is_audited(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 1)
    endpoint = await endpoint_with_failed(engine, 5)
    recover_some = engine.deliveries.recover_some

    async def recover_two(*arguments: Any) -> int:
        if len(await audited(engine, endpoint)) == 2:
            raise asyncio.CancelledError
        return await recover_some(*arguments)

    monkeypatch.setattr(engine.deliveries, "recover_some", recover_two)
    with pytest.raises(asyncio.CancelledError):
        await engine.deliveries.recover(endpoint.id, ALL, COMMAND)
    assert await engine.value("select count(*) from pending_delivery") == 2
    assert await audited(engine, endpoint) == [1, 1]


async def test_what_fails_again_meanwhile_is_not_resent_by_the_same_recovery(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would never end where everything fails at its first attempt."""
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 1)
    async with an_engine(database, schedule=Schedule(0.01, 1)) as engine:
        endpoint = await endpoint_with_failed(engine, 20)
        async with engine.running(postgres_url), asyncio.timeout(120):
            assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 20
