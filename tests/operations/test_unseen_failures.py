"""Staff are told of what failed until they have seen it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import FAILING_AFTER, FAILURES_COUNTED, EndpointState
from holdfast.operations.deliveries import DeliverySearch
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SETTLE = """
    update ended_delivery set created_at = created_at - interval '5 s', ended_at = ended_at - interval '3 s'
"""
MUCH_EARLIER = """
    update ended_delivery set created_at = created_at - $1::interval, ended_at = ended_at - $1::interval
    where ended_at > now() - interval '1 minute'
"""
NEW_STAFF = """
    insert into staff (id, email, email_key, name, role, failures_seen_at)
    values ($1, 'a@example.com', 'a@example.com', 'A', 'viewer', '2020-01-01Z')
"""


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database) as running:
        yield running


@pytest.fixture
def search(database: Database) -> DeliverySearch:
    return DeliverySearch(database)


async def fail(engine: Engine, endpoint_id: UUID, times: int = 1) -> None:
    """Deliveries that have failed a few seconds ago."""
    for _ in range(times):
        await engine.subscribing.ping(endpoint_id, COMMAND)
    for _ in range(engine.schedule.attempts):
        while claimed := await engine.claim():
            await engine.answer(claimed, 500)
        await engine.make_due()
    await engine.execute(SETTLE)


async def be_failing(engine: Engine, endpoint_id: UUID, began: timedelta = timedelta(minutes=5)) -> None:
    await engine.execute(
        "update endpoint set failing_since = now() - $2::interval, failing_cause = 'No.' where id = $1",
        endpoint_id,
        FAILING_AFTER + began,
    )


async def test_nothing_is_announced_where_nothing_failed(search: DeliverySearch, engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await engine.ping(endpoint)
    await engine.answer(await engine.claim(), 200)
    await engine.execute(SETTLE)
    assert not (await search.load_unseen_failures(LONG_AGO)).is_any


async def test_failed_deliveries_are_counted_since_somebody_last_looked(
    search: DeliverySearch, engine: Engine
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await fail(engine, endpoint.id, 3)
    news = await search.load_unseen_failures(LONG_AGO)
    assert (news.failed, news.failing) == (3, [])
    assert (await search.load_unseen_failures(news.up_to)).failed == 0


async def test_what_failed_this_very_moment_is_left_to_the_next_look(
    search: DeliverySearch, engine: Engine
) -> None:
    """It could have been recorded after the look, and then nobody would ever be told."""
    endpoint = (await engine.subscribe()).endpoint
    await engine.ping(endpoint)
    for _ in range(engine.schedule.attempts):
        await engine.answer(await engine.claim(), 500)
        await engine.make_due()
    await engine.execute("update ended_delivery set ended_at = now()")
    news = await search.load_unseen_failures(LONG_AGO)
    ended_at = await engine.value("select ended_at from ended_delivery")
    assert news.failed == 0
    assert news.up_to < ended_at


async def test_what_is_recorded_long_after_its_end_is_told_to_those_who_saw_older_failures(
    search: DeliverySearch, engine: Engine
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await fail(engine, endpoint.id)
    await engine.execute(MUCH_EARLIER, timedelta(minutes=2))
    shown = await search.load_unseen_failures(LONG_AGO)
    await fail(engine, endpoint.id)
    await engine.execute(MUCH_EARLIER, timedelta(minutes=1))
    assert (await search.load_unseen_failures(shown.up_to)).failed == 1


async def test_so_many_failures_are_only_counted_so_far(search: DeliverySearch, engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await fail(engine, endpoint.id, FAILURES_COUNTED + 20)
    news = await search.load_unseen_failures(LONG_AGO)
    assert news.failed == FAILURES_COUNTED
    assert news.is_more
    assert (await search.load_unseen_failures(news.up_to)).failed == 0, (
        "those that were not counted are seen too"
    )


async def test_a_delivery_that_is_sent_anew_is_no_news_any_more(
    search: DeliverySearch, engine: Engine
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await fail(engine, endpoint.id)
    (failed,) = await engine.log()
    await engine.resend(failed.id)
    assert (await search.load_unseen_failures(LONG_AGO)).failed == 0


async def test_a_failing_endpoint_is_announced_with_its_name(search: DeliverySearch, engine: Engine) -> None:
    named = (await engine.subscribe(description="Portal ERP")).endpoint
    unnamed = (await engine.subscribe("http://127.0.0.1:9/other")).endpoint
    healthy = (await engine.subscribe()).endpoint
    await be_failing(engine, named.id, timedelta(minutes=1))
    await be_failing(engine, unnamed.id)
    failing = (await search.load_unseen_failures(LONG_AGO)).failing
    assert [(one.id, one.name) for one in failing] == [
        (named.id, "Portal ERP"),
        (unnamed.id, "127.0.0.1:9"),
    ]
    assert (await engine.subscribing.find(named.id)).state is EndpointState.FAILING
    assert (await engine.subscribing.find(healthy.id)).state is EndpointState.ACTIVE


async def test_an_endpoint_in_trouble_for_less_than_a_day_is_not_failing(
    search: DeliverySearch, engine: Engine
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await be_failing(engine, endpoint.id, timedelta(hours=-1))
    assert (await search.load_unseen_failures(LONG_AGO)).failing == []
    assert (await engine.subscribing.find(endpoint.id)).state is EndpointState.ACTIVE


async def test_an_endpoint_that_is_gone_is_failing_at_once(search: DeliverySearch, engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await engine.ping(endpoint)
    await engine.answer(await engine.claim(), 410)
    await engine.execute("update endpoint set gone_at = gone_at - interval '2 s'")
    assert [one.id for one in (await search.load_unseen_failures(LONG_AGO)).failing] == [endpoint.id]


async def test_a_failing_endpoint_is_announced_until_it_was_seen_failing(
    search: DeliverySearch, engine: Engine
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await be_failing(engine, endpoint.id)
    unseen = await search.load_unseen_failures(LONG_AGO)
    just_before = unseen.up_to - timedelta(seconds=1)
    assert [label.id for label in unseen.failing] == [endpoint.id]
    assert (await search.load_unseen_failures(just_before)).failing == unseen.failing
    assert (
        await search.load_unseen_failures((await search.load_unseen_failures(just_before)).up_to)
    ).failing == []


@pytest.mark.parametrize("ends", ["recovered", "paused", "removed"])
async def test_a_failing_endpoint_is_announced_no_longer_once_it_is(
    search: DeliverySearch, engine: Engine, ends: str
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await be_failing(engine, endpoint.id)
    if ends == "recovered":
        await engine.ping(endpoint)
        await engine.answer(await engine.claim(), 200)
    elif ends == "paused":
        await engine.change(endpoint, paused=True)
    else:
        await engine.subscribing.remove(endpoint.id, COMMAND)
    assert (await search.load_unseen_failures(LONG_AGO)).failing == []


async def test_what_is_seen_stays_seen_and_what_is_to_come_cannot_be(
    search: DeliverySearch, engine: Engine
) -> None:
    staff_id = uuid4()
    await engine.execute(NEW_STAFF, staff_id)
    seen_at = "select failures_seen_at from staff"
    now = await engine.value("select date_trunc('milliseconds', clock_timestamp())")
    await search.mark_failures_seen(staff_id, now)
    assert await engine.value(seen_at) == now
    await search.mark_failures_seen(staff_id, now - timedelta(days=1))
    assert await engine.value(seen_at) == now
    await search.mark_failures_seen(staff_id, now + timedelta(days=1))
    assert await engine.value(seen_at + " where failures_seen_at <= clock_timestamp()") >= now
