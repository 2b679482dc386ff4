"""What staff see of deliveries: the log from now back, the last hours, and failures until they were seen."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.domain import errors
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryFilter, DeliveryStatus
from holdfast.domain.endpoint import FAILING_AFTER, FAILURES_COUNTED, Endpoint, EndpointState
from holdfast.operations.deliveries import END, NO_CURSOR, START, DeliverySearch, DeliverySearchPage
from holdfast.operations.delivery_queue import count_delivery_hours
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine

EVERYTHING = DeliveryFilter(START, END)
UNANSWERED = EVERYTHING._replace(unanswered=True)
OLDER = "update pending_delivery set created_at = created_at - $2::interval where id = $1"


@pytest.fixture
def search(database: Database) -> DeliverySearch:
    return DeliverySearch(database, max_seconds=3600)


@pytest.fixture
async def endpoint(engine: Engine) -> Endpoint:
    return (await engine.subscribe()).endpoint


async def pending(engine: Engine, endpoint: Endpoint, *ages: timedelta) -> list[UUID]:
    """Deliveries that were made so long ago."""
    made = [await engine.ping(endpoint) for _ in ages]
    for delivery_id, age in zip(made, ages, strict=True):
        await engine.execute(OLDER, delivery_id, age)
    return made


def ids(found: DeliverySearchPage) -> list[UUID]:
    return [one.id for one in found.deliveries]


async def test_the_latest_come_first(engine: Engine, search: DeliverySearch, endpoint: Endpoint) -> None:
    ages = [timedelta(minutes=1), timedelta(hours=20), timedelta(hours=80), timedelta(days=50)]
    made = await pending(engine, endpoint, *ages, timedelta(days=900))
    found = await search.page(None, NO_CURSOR, EVERYTHING, 10)
    assert (ids(found), found.searched_back_to, set(found.labels)) == (made, None, {endpoint.id})
    # One more than was asked for; the next page goes on behind the last that was.
    first = await search.page(None, NO_CURSOR, EVERYTHING, 2)
    assert ids(first) == made[:3]
    last = first.deliveries[1]
    assert ids(await search.page(None, (last.created_at, last.id), EVERYTHING, 2)) == made[2:]
    now = await engine.value("select clock_timestamp()")
    for filters, expected in (
        (DeliveryFilter(now - timedelta(hours=50), now - timedelta(hours=10)), [made[1]]),
        (DeliveryFilter(END, START), []),
        (DeliveryFilter(START, START + timedelta(seconds=1)), []),
    ):
        assert ids(await search.page(None, NO_CURSOR, filters, 10)) == expected


async def test_a_search_in_a_hurry_tells_how_far_it_got(engine: Engine, endpoint: Endpoint) -> None:
    near, far = await pending(engine, endpoint, timedelta(minutes=1), timedelta(days=3))
    hasty = DeliverySearch(engine.database, max_seconds=0)
    within_a_week = UNANSWERED._replace(since=await engine.value("select now() - interval '7 days'"))
    found = await hasty.page(None, NO_CURSOR, within_a_week, 10)
    assert ids(found) == [near]
    seen = []
    while found.searched_back_to is not None:
        found = await hasty.page(None, (found.searched_back_to, UUID(int=0)), within_a_week, 10)
        seen += ids(found)
    assert seen == [far]
    # Those of an index are found at once.
    found = await hasty.page(None, NO_CURSOR, within_a_week._replace(events=("ping",)), 10)
    assert (ids(found), found.searched_back_to) == ([near, far], None)


async def test_deliveries_are_filtered(engine: Engine, search: DeliverySearch, endpoint: Endpoint) -> None:
    well, unwell = await engine.ping(endpoint), await engine.ping(endpoint)
    for claimed in await engine.claim():
        await engine.answer([claimed], 204 if claimed.delivery_id == well else 302)
    for filters, expected in [
        (EVERYTHING._replace(events=("ping",)), {well, unwell}),
        (EVERYTHING._replace(events=("unit.sold",)), set()),
        (EVERYTHING._replace(code_class=2), {well}),
        (EVERYTHING._replace(code_class=3), {unwell}),
        (EVERYTHING._replace(code_class=4), set()),
        (EVERYTHING._replace(status=DeliveryStatus.DELIVERED), {well}),
        (EVERYTHING._replace(status=DeliveryStatus.DELIVERED, events=("ping",)), {well}),
    ]:
        assert set(ids(await search.page(None, NO_CURSOR, filters, 10))) == expected


async def test_deliveries_of_a_removed_endpoint_are_found(engine: Engine, search: DeliverySearch) -> None:
    endpoint = (await engine.subscribe(description="Old ERP")).endpoint
    delivery_id = await engine.ping(endpoint)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    found = await search.page(endpoint.id, NO_CURSOR, EVERYTHING, 10)
    assert ids(found) == [delivery_id]
    assert found.labels[endpoint.id] == await search.label(endpoint.id)
    assert (found.labels[endpoint.id].name, found.labels[endpoint.id].is_removed) == ("Old ERP", True)
    assert [one.id for one in await search.labels()] == [endpoint.id]
    with pytest.raises(errors.UnknownEndpoint):
        await search.page(uuid4(), NO_CURSOR, EVERYTHING, 10)
    with pytest.raises(errors.UnknownEndpoint):
        await search.label(uuid4())
    with pytest.raises(errors.EndpointRemoved):
        await engine.resend(delivery_id)
    with pytest.raises(errors.UnknownDelivery):
        await engine.find(uuid4())


async def test_an_endpoint_is_changed_by_who_may_see_it(engine: Engine, endpoint: Endpoint) -> None:
    for endpoint_id, slugs in ((uuid4(), None), (endpoint.id, ("other",))):
        with pytest.raises(errors.UnknownEndpoint):
            await engine.subscribing.ping(endpoint_id, COMMAND, slugs)
    for url in ("ftp://example.com", "http://10.0.0.1/"):
        with pytest.raises(errors.InvalidInput):
            await engine.change(endpoint, url=url)
    assert (await engine.change(endpoint, paused=False)).config == endpoint.config
    assert await engine.value("select count(*) from audit_entry where action = 'change'") == 0


async def test_an_endpoint_has_its_latest_delivery_and_count(engine: Engine, search: DeliverySearch) -> None:
    busy, quiet, unused = [(await engine.subscribe()).endpoint for _ in range(3)]
    (old,) = await pending(engine, quiet, timedelta(days=40))
    await engine.ping(busy)
    await engine.answer(await engine.claim(), 200)
    latest = await engine.ping(busy)
    traffic = await search.load_traffic([busy.id, quiet.id, unused.id])
    shown = {one: (it.latest and it.latest.id, it.pending) for one, it in traffic.items()}
    assert shown[busy.id] == (latest, 1)
    assert shown[quiet.id][0] == old
    assert shown[unused.id] == (None, 0)


# How many deliveries ended in each of the last hours

THIS_HOUR = "select date_trunc('hour', clock_timestamp(), 'UTC')"
# An attempt takes a millisecond here, which may not have passed when it is recorded.
HAVE_PASSED = "select date_trunc('milliseconds', clock_timestamp()) >= max(ended_at) from ended_delivery"
LOG_DAY = """
    create table if not exists ended_delivery_{day:%Y%m%d} partition of ended_delivery
    for values from ('{day:%Y-%m-%d} 00:00Z') to ('{after:%Y-%m-%d} 00:00Z')
"""


async def end(engine: Engine, endpoint: Endpoint, status_code: int, ended_at: datetime | None = None) -> None:
    """A delivery that ended so, at this moment or another."""
    delivery_id = await engine.ping(endpoint)
    for _ in range(engine.schedule.attempts):
        await engine.answer(await engine.claim(), status_code)
        await engine.make_due()
    if ended_at is not None:
        await engine.execute(LOG_DAY.format(day=ended_at, after=ended_at + timedelta(days=1)))
        move = "update ended_delivery set created_at = $2, ended_at = $2 where id = $1"
        await engine.execute(move, delivery_id, ended_at)
    while not await engine.value(HAVE_PASSED):
        pass


async def counted(engine: Engine, settled_after: timedelta = timedelta()) -> list[tuple[Any, ...]]:
    while await count_delivery_hours(engine.database, settled_after):
        pass
    (endpoint,) = await engine.subscribing.page(None, None, 1)
    traffic = (await DeliverySearch(engine.database).load_traffic([endpoint.id]))[endpoint.id]
    return [tuple(hour)[1:] for hour in traffic.hours]


async def test_deliveries_of_the_last_day_are_counted_by_the_hour(engine: Engine, endpoint: Endpoint) -> None:
    now = await engine.value(THIS_HOUR)
    earlier = now - timedelta(hours=5)
    await end(engine, endpoint, 200, earlier + timedelta(minutes=1))
    await end(engine, endpoint, 500, earlier + timedelta(minutes=59))
    await end(engine, endpoint, 200, now)
    await end(engine, endpoint, 200, now - timedelta(hours=24, minutes=1))
    await end(engine, endpoint, 200, now + timedelta(milliseconds=1))
    cancel = "update ended_delivery set status = 'cancelled' where ended_at > $1"
    await engine.execute(cancel, now)
    for _ in range(2):
        assert await counted(engine) == [(earlier, 1, 1), (now, 1, 0)]
    await end(engine, endpoint, 500)
    assert sum(failed for *_, failed in await counted(engine)) == 2


async def test_what_ended_a_moment_ago_is_counted_later(engine: Engine, endpoint: Endpoint) -> None:
    """It may not have been recorded yet."""
    await end(engine, endpoint, 200)
    assert await counted(engine, timedelta(hours=1)) == []
    async with engine.database.writing() as connection:
        await connection.execute("select from installation for no key update")
        assert await count_delivery_hours(engine.database, timedelta()) is False
    assert len(await counted(engine)) == 1


# Staff are told of what failed until they have seen it.

SETTLE = """
    update ended_delivery set created_at = created_at - interval '5 s', ended_at = ended_at - interval '3 s'
"""
EARLIER = """
    update ended_delivery set created_at = created_at - $1::interval, ended_at = ended_at - $1::interval
    where ended_at > now() - interval '10 minutes'
"""
NEW_STAFF = """
    insert into staff (id, email, email_key, name, role, failures_seen_at)
    values ($1, 'a@example.com', 'a@example.com', 'A', 'viewer', '2020-01-01Z')
"""


async def fail(engine: Engine, endpoint: Endpoint, times: int = 1) -> None:
    """Deliveries that have failed a few seconds ago."""
    for _ in range(times):
        await engine.ping(endpoint)
    for _ in range(engine.schedule.attempts):
        while claimed := await engine.claim():
            await engine.answer(claimed, 500)
        await engine.make_due()
    await engine.execute(SETTLE)


async def be_failing(engine: Engine, endpoint: Endpoint, began: timedelta = timedelta(minutes=5)) -> None:
    await engine.execute(
        "update endpoint set failing_since = now() - $2::interval, failing_cause = 'No.' where id = $1",
        endpoint.id,
        FAILING_AFTER + began,
    )


async def failing(search: DeliverySearch, since: datetime = START) -> list[UUID]:
    return [one.id for one in (await search.load_unseen_failures(since)).failing]


async def test_new_failures_are_counted(search: DeliverySearch, engine: Engine, endpoint: Endpoint) -> None:
    await engine.ping(endpoint)
    await engine.answer(await engine.claim(), 200)
    await engine.execute(SETTLE)
    assert not (await search.load_unseen_failures(START)).is_any
    await fail(engine, endpoint, 3)
    news = await search.load_unseen_failures(START)
    assert (news.failed, news.failing) == (3, [])
    assert (await search.load_unseen_failures(news.up_to)).failed == 0
    # What is sent anew is no news any more.
    await engine.resend((await engine.log(EVERYTHING._replace(status=DeliveryStatus.FAILED)))[0].id)
    assert (await search.load_unseen_failures(START)).failed == 2


async def test_recent_failures_wait(search: DeliverySearch, engine: Engine, endpoint: Endpoint) -> None:
    """It could have been recorded after the look, and then nobody would ever be told."""
    await fail(engine, endpoint)
    await engine.execute("update ended_delivery set ended_at = now() + interval '1 hour'")
    news = await search.load_unseen_failures(START)
    ended_at = await engine.value("select ended_at from ended_delivery")
    assert news.failed == 0
    assert news.up_to < ended_at


async def test_what_is_recorded_long_after_its_end_is_told_to_those_who_saw_older_failures(
    search: DeliverySearch, engine: Engine, endpoint: Endpoint
) -> None:
    await fail(engine, endpoint)
    await engine.execute(EARLIER, timedelta(minutes=20))
    shown = await search.load_unseen_failures(START)
    await fail(engine, endpoint)
    await engine.execute(EARLIER, timedelta(minutes=10))
    assert (await search.load_unseen_failures(shown.up_to)).failed == 1


async def test_the_count_is_capped(search: DeliverySearch, engine: Engine, endpoint: Endpoint) -> None:
    await fail(engine, endpoint, FAILURES_COUNTED + 2)
    news = await search.load_unseen_failures(START)
    assert (news.failed, news.is_more) == (FAILURES_COUNTED, True)
    # Those that were not counted are seen too.
    assert (await search.load_unseen_failures(news.up_to)).failed == 0


async def test_an_endpoint_that_fails_for_a_day_is_announced_with_its_name_until_it_was_seen(
    search: DeliverySearch, engine: Engine, endpoint: Endpoint
) -> None:
    named = (await engine.subscribe(description="ERP")).endpoint
    unnamed = (await engine.subscribe("http://127.0.0.1:9/other")).endpoint
    await be_failing(engine, named, timedelta(minutes=1))
    await be_failing(engine, unnamed)
    await be_failing(engine, endpoint, timedelta(hours=-1))
    unseen = await search.load_unseen_failures(START)
    assert [(one.id, one.name) for one in unseen.failing] == [(named.id, "ERP"), (unnamed.id, "127.0.0.1:9")]
    assert (await engine.subscribing.find(named.id)).state is EndpointState.FAILING
    assert (await engine.subscribing.find(endpoint.id)).state is EndpointState.ACTIVE
    assert await failing(search, unseen.up_to - timedelta(seconds=1)) == [named.id]
    assert await failing(search, unseen.up_to) == []


@pytest.mark.parametrize("ends", ["recovered", "paused", "removed"])
async def test_a_failing_endpoint_is_announced_no_longer_once_it_is(
    search: DeliverySearch, engine: Engine, endpoint: Endpoint, ends: str
) -> None:
    await be_failing(engine, endpoint)
    assert await failing(search) == [endpoint.id]
    if ends == "recovered":
        await engine.ping(endpoint)
        await engine.answer(await engine.claim(), 200)
    elif ends == "paused":
        await engine.change(endpoint, paused=True)
    else:
        await engine.subscribing.remove(endpoint.id, COMMAND)
    assert await failing(search) == []


async def test_a_gone_endpoint_is_failing(search: DeliverySearch, engine: Engine, endpoint: Endpoint) -> None:
    await engine.ping(endpoint)
    await engine.answer(await engine.claim(), 410)
    await engine.execute("update endpoint set gone_at = gone_at - interval '2 s'")
    assert await failing(search) == [endpoint.id]


async def test_what_is_to_come_cannot_be_seen(search: DeliverySearch, engine: Engine) -> None:
    staff_id = uuid4()
    await engine.execute(NEW_STAFF, staff_id)
    seen_at = "select failures_seen_at from staff"
    now = await engine.value("select date_trunc('milliseconds', clock_timestamp())")
    for moment in (now, now - timedelta(days=1)):
        await search.mark_failures_seen(staff_id, moment)
        assert await engine.value(seen_at) == now
    await search.mark_failures_seen(staff_id, now + timedelta(days=1))
    # The column is rounded to milliseconds.
    seen_by_now = f"{seen_at} where failures_seen_at <= clock_timestamp() + interval '1 ms'"
    assert await engine.value(seen_by_now) >= now
