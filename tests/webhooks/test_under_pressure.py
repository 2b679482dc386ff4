"""When there is more to send than room, when somebody locks, when a backlog is long."""

import asyncio
from collections import Counter

from holdfast.domain.audit import COMMAND
from holdfast.storage.database import DISPATCHER_SETTINGS, Database
from tests.support.delivery_engine import Engine, an_engine, made, switch
from tests.support.sales import new_units

LANES = 12
ROOM = 3
LONG = 2500


async def test_every_endpoint_gets_its_share_when_there_is_less_room_than_endpoints(
    engine: Engine, database: Database
) -> None:
    for _ in range(LANES):
        await engine.subscribe()
    codes = [f"A-{number}" for number in range(20)]
    project_id = await new_units(database, *codes)
    for code in codes:
        await switch(database, project_id, code)
    served: Counter[object] = Counter()
    for _ in range(40):
        claimed = await engine.dispatching.claim(ROOM)
        assert len(claimed) == ROOM
        served.update(one.endpoint_id for one in claimed)
        await engine.dispatching.record([made(one) for one in claimed])
    assert len(served) == LANES


async def test_somebody_who_locks_an_endpoint_does_not_keep_the_others_waiting(postgres_url: str) -> None:
    async with (
        Database(postgres_url) as theirs,
        Database(postgres_url, settings=DISPATCHER_SETTINGS) as own,
        an_engine(own) as engine,
    ):
        locked, other = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
        await engine.ping(locked)
        (claimed,) = await engine.claim()
        async with theirs.writing() as connection:
            await connection.execute("select from endpoint where id = $1 for update", locked.id)
            async with asyncio.timeout(5):
                assert await engine.dispatching.record([made(claimed, status_code=500)])
                await engine.ping(other)
                (next_one,) = await engine.claim()
        assert next_one.endpoint_id == other.id
        await engine.dispatching.record([made(next_one)])
        trouble = (await engine.subscribing.find(locked.id)).failure
        assert trouble is not None, "what could not be noted at first was forgotten"


async def test_a_long_backlog_is_cancelled_to_its_end_with_its_endpoint(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await fill(engine, LONG)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    assert await engine.value("select count(*) from pending_delivery") == 0
    assert await engine.value("select count(*) from ended_delivery where status = 'cancelled'") == LONG


async def test_an_endpoint_is_removed_even_if_its_backlog_can_only_be_cancelled_later(
    postgres_url: str,
) -> None:
    async with (
        Database(postgres_url) as theirs,
        Database(postgres_url, settings=DISPATCHER_SETTINGS) as own,
        an_engine(own) as engine,
    ):
        endpoint = (await engine.subscribe()).endpoint
        await engine.ping(endpoint)
        async with theirs.writing() as connection:
            await connection.execute("select from pending_delivery for update")
            await engine.subscribing.remove(endpoint.id, COMMAND)
            assert [one.status for one in await engine.log()] == ["pending"]
        await engine.tidying.run()
        assert [one.status for one in await engine.log()] == ["cancelled"]


async def test_a_resend_on_an_ordered_endpoint_lets_no_later_event_overtake(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe(ordered=True)
    project_id = await new_units(database, "A-1")
    await switch(database, project_id, "A-1", 2)
    (first,) = await engine.claim()
    await engine.answer([first], 500)
    assert await engine.claim() == []
    await engine.resend(first.delivery_id)
    (again,) = await engine.claim()
    assert again.delivery_id == first.delivery_id
    await engine.answer([again], 500)
    await engine.tidying.run()
    assert await engine.claim() == []


async def test_statements_are_planned_anew_once_the_queue_has_grown_manifold(postgres_url: str) -> None:
    async with (
        Database(postgres_url, writers=1, readers=1, settings=DISPATCHER_SETTINGS) as own,
        an_engine(own) as engine,
    ):
        first = await writing_backend(own)
        await engine.subscribe()
        for _ in range(2):
            await engine.tidying.run()
        assert await writing_backend(own) == first
        await fill(engine, LONG)
        await engine.tidying.run()
        second = await writing_backend(own)
        assert second != first
        await engine.tidying.run()
        assert await writing_backend(own) == second


async def writing_backend(own: Database) -> int:
    """Plans are kept for as long as the connection is, so another connection has none."""
    async with own.writing_autocommit() as connection:
        return int(connection.get_server_pid())


async def fill(engine: Engine, count: int) -> None:
    """One event, as so many deliveries of as many units."""
    project_id = await new_units(engine.database, "A-1")
    await switch(engine.database, project_id, "A-1")
    await engine.execute(
        """
        insert into pending_delivery
            (id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, due_at, body)
        select gen_random_uuid(), endpoint_id, event, project_id, gen_random_uuid(), 1, unit_code,
            created_at, due_at, body
        from pending_delivery cross join generate_series(2, $1)
        """,
        count,
    )
