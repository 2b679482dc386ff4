"""An endpoint that takes nothing for a day is failing; one success says that it is not."""

import pytest

from holdfast.domain.endpoint import Endpoint, EndpointState
from holdfast.domain.errors import Message
from holdfast.operations import delivery_queue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, made, replying, switch
from tests.support.receivers import answer_all, receiving
from tests.support.sales import new_units

A_DAY_AGO = "update endpoint set failing_since = failing_since - interval '1 day'"
RECOVERED_ELSEWHERE = "update endpoint set failing_since = null, failing_cause = null"


async def state(engine: Engine, endpoint: Endpoint) -> EndpointState:
    return (await engine.subscribing.find(endpoint.id)).state


async def ping_and_answer(engine: Engine, endpoint: Endpoint, status_code: int | None) -> None:
    await engine.ping(endpoint)
    assert await engine.answer(await engine.claim(), status_code)


async def test_the_first_failure_is_remembered_with_its_time_and_the_last_with_its_cause(
    engine: Engine,
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 500)
    first = (await engine.subscribing.find(endpoint.id)).failure
    await ping_and_answer(engine, endpoint, 503)
    second = (await engine.subscribing.find(endpoint.id)).failure
    assert first is not None
    assert second is not None
    assert second.since == first.since
    assert first.cause == Message("The receiver answered %(code)s.", {"code": 500})
    assert second.cause == Message("The receiver answered %(code)s.", {"code": 503})
    assert await state(engine, endpoint) is EndpointState.ACTIVE


async def test_after_a_day_of_failures_it_is_failing_and_one_success_ends_that(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 500)
    await engine.execute(A_DAY_AGO)
    assert await state(engine, endpoint) is EndpointState.FAILING
    await ping_and_answer(engine, endpoint, 204)
    assert (await engine.subscribing.find(endpoint.id)).failure is None
    assert await state(engine, endpoint) is EndpointState.ACTIVE


async def test_410_makes_it_failing_at_once_and_it_is_still_tried(engine: Engine) -> None:
    async with receiving(replying(lambda _: 410)) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        delivery_id = await engine.ping(endpoint)
        await engine.send_all()
        assert await state(engine, endpoint) is EndpointState.FAILING
        assert (await engine.find(delivery_id)).status == "pending"
        await engine.make_due()
        await engine.send_all()
        assert len(receiver.requests) == 2


async def test_who_said_410_stays_failing_until_something_arrives(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 410)
    await ping_and_answer(engine, endpoint, 503)
    assert await state(engine, endpoint) is EndpointState.FAILING
    await ping_and_answer(engine, endpoint, 200)
    assert await state(engine, endpoint) is EndpointState.ACTIVE


async def test_another_url_is_a_new_beginning(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 410)
    await engine.change(endpoint, description="the same receiver")
    assert await state(engine, endpoint) is EndpointState.FAILING
    await engine.change(endpoint, url="http://127.0.0.1:10/other")
    assert (await engine.subscribing.find(endpoint.id)).failure is None


async def test_it_is_never_switched_off(engine: Engine) -> None:
    async with receiving(answer_all) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        await ping_and_answer(engine, endpoint, 410)
        await engine.execute(A_DAY_AGO)
        delivery_id = await engine.ping(endpoint)
        await engine.send_all()
        assert (await engine.find(delivery_id)).status == "delivered"


@pytest.mark.parametrize("last", [200, 500])
async def test_a_success_counts_wherever_it_stands_in_a_batch(
    engine: Engine, database: Database, last: int
) -> None:
    """Failing is who fails everything. Half of it, recorded together, is not everything."""
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 500)
    await engine.execute(A_DAY_AGO)
    project_id = await new_units(database, "A-1", "A-2")
    for code in ("A-1", "A-2"):
        await switch(database, project_id, code)
    one, other = await engine.claim()
    await engine.dispatching.record([made(one, status_code=700 - last), made(other, status_code=last)])
    assert await state(engine, endpoint) is EndpointState.ACTIVE


async def test_the_trouble_of_one_is_not_that_of_another(engine: Engine) -> None:
    well, ill = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
    await engine.ping(well)
    await engine.ping(ill)
    claimed = await engine.claim()
    codes = {well.id: 200, ill.id: 410}
    await engine.dispatching.record([made(one, status_code=codes[one.endpoint_id]) for one in claimed])
    assert await state(engine, well) is EndpointState.ACTIVE
    assert await state(engine, ill) is EndpointState.FAILING


async def test_a_paused_endpoint_is_paused_first_of_all(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 410)
    await engine.change(endpoint, paused=True)
    assert await state(engine, endpoint) is EndpointState.PAUSED


async def test_the_same_failure_is_not_written_down_each_time(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 500)
    await engine.execute(RECOVERED_ELSEWHERE)
    await ping_and_answer(engine, endpoint, 500)
    assert (await engine.subscribing.find(endpoint.id)).failure is None
    await ping_and_answer(engine, endpoint, 503)
    assert (await engine.subscribing.find(endpoint.id)).failure is not None


async def test_a_failure_that_goes_on_is_written_down_again_after_a_while(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await ping_and_answer(engine, endpoint, 500)
    await engine.execute(RECOVERED_ELSEWHERE)
    monkeypatch.setattr(delivery_queue, "HEALTH_REPEAT_SECONDS", 0.0)
    await ping_and_answer(engine, endpoint, 500)
    assert (await engine.subscribing.find(endpoint.id)).failure is not None
