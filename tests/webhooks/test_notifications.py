"""Hints wake a worker at once; without them it looks by itself, and a lost connection is made anew."""

import asyncio
import time

import asyncpg
import pytest

from holdfast.domain.delivery import Schedule
from holdfast.operations.holds import expire_due_holds
from holdfast.storage import notifications
from holdfast.storage.database import Database
from holdfast.storage.notifications import CHANNEL, Notifier
from holdfast.webhooks import dispatcher as dispatcher_module
from tests.support.delivery_engine import Engine, an_engine, eventually, replying, switch
from tests.support.receivers import receiving
from tests.support.sales import hold, make_lapse, new_units

LISTENERS = """
    select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen%'
"""
NEVER = 3600.0


@pytest.fixture
def without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher_module, "POLL_SECONDS", NEVER)


async def listening(engine: Engine) -> bool:
    return bool(await engine.rows(LISTENERS))


@pytest.mark.usefixtures("without_polling")
async def test_a_change_is_on_the_wire_at_once_though_nobody_polls(
    engine: Engine, database: Database, postgres_url: str
) -> None:
    async with receiving(replying(lambda _: 200)) as receiver:
        await engine.subscribe(receiver.url)
        project_id = await new_units(database, "A-1")
        async with engine.running(postgres_url):
            await eventually(lambda: listening(engine))
            await asyncio.sleep(0.1)  # It has looked and found nothing; only a hint can wake it.
            started_at = time.perf_counter()
            await switch(database, project_id, "A-1")
            await eventually(lambda: len(receiver.requests) == 1, 1)
            assert time.perf_counter() - started_at < 0.5


@pytest.mark.usefixtures("without_polling")
async def test_whatever_makes_something_due_gives_a_hint(
    engine: Engine, database: Database, postgres_url: str
) -> None:
    async with receiving(replying(lambda _: 200)) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        project_id = await new_units(database, "A-1")
        async with engine.running(postgres_url):
            await eventually(lambda: listening(engine))
            delivery_id = await engine.ping(endpoint)
            await eventually(lambda: len(receiver.requests) == 1, 1)
            await eventually(lambda: has_ended(engine), 1)
            await engine.resend(delivery_id)
            await eventually(lambda: len(receiver.requests) == 2, 1)
            await engine.change(endpoint, paused=True)
            booking = await hold(database, (project_id, "A-1"))
            await asyncio.sleep(0.05)
            assert len(receiver.requests) == 2
            await engine.change(endpoint, paused=False)
            await eventually(lambda: len(receiver.requests) == 3, 1)
            await make_lapse(database, booking)
            assert await expire_due_holds(database, 10) == 1
            await eventually(lambda: len(receiver.requests) == 4, 1)


async def has_ended(engine: Engine) -> bool:
    return not await engine.value("select count(*) from pending_delivery")


async def test_a_lost_hint_costs_no_more_than_the_time_of_a_poll(engine: Engine, database: Database) -> None:
    async with receiving(replying(lambda _: 200)) as receiver:
        await engine.subscribe(receiver.url)
        project_id = await new_units(database, "A-1")
        async with engine.running():
            await asyncio.sleep(0.05)
            await switch(database, project_id, "A-1")
            await eventually(lambda: len(receiver.requests) == 1, dispatcher_module.POLL_SECONDS + 0.5)


@pytest.mark.usefixtures("without_polling")
async def test_a_retry_goes_out_at_its_time_and_not_at_the_next_poll(database: Database) -> None:
    codes = iter([500, 200])
    async with (
        receiving(replying(lambda _: next(codes))) as receiver,
        an_engine(database, schedule=Schedule(0.02, 3)) as engine,
    ):
        await engine.ping((await engine.subscribe(receiver.url)).endpoint)
        async with engine.running():
            await eventually(lambda: len(receiver.requests) == 2, 2)


async def test_a_killed_listener_is_replaced_and_nothing_is_missed_meanwhile(
    engine: Engine, database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(notifications, "PAUSE_AFTER_FAILURE_SECONDS", 0.1)
    async with receiving(replying(lambda _: 200)) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        async with engine.running(postgres_url):
            for turn in range(1, 4):
                await eventually(lambda: listener(engine))
                await engine.execute("select pg_terminate_backend($1)", await listener(engine))
                await engine.ping(endpoint)
                await eventually(lambda: len(receiver.requests) == turn, 2)  # noqa: B023
            await eventually(lambda: listener(engine))


async def listener(engine: Engine) -> int | None:
    rows = await engine.rows(
        """
        select pid from pg_stat_activity where datname = current_database()
            and application_name = 'holdfast background' and state = 'idle'
        """
    )
    return rows[0][0] if rows else None


@pytest.mark.usefixtures("without_polling")
async def test_what_came_while_nobody_listened_is_found_when_somebody_does_again(
    engine: Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "ALIVE_SECONDS", 0.1)
    async with receiving(replying(lambda _: 200)) as receiver:
        endpoint = (await engine.subscribe(receiver.url)).endpoint
        async with engine.running(postgres_url):
            await eventually(lambda: listener(engine))
            await engine.execute("select pg_terminate_backend($1)", await listener(engine))
            await engine.ping(endpoint)
            await eventually(lambda: len(receiver.requests) == 1, 5)


async def test_many_changes_have_few_hints(database: Database, postgres_url: str) -> None:
    heard: list[object] = []
    connection = await asyncpg.connect(postgres_url)
    await connection.add_listener(CHANNEL, lambda *_: heard.append(1))
    for _ in range(100):
        database.notify_workers()
        await asyncio.sleep(0)
    await eventually(lambda: heard)
    await asyncio.sleep(0.1)
    await connection.close()
    assert 1 <= len(heard) <= 10


async def test_a_hint_that_cannot_be_given_hurts_nobody_and_the_next_one_is_given() -> None:
    sent: list[int] = []

    async def send() -> None:
        sent.append(1)
        if len(sent) == 1:
            raise ConnectionResetError

    notifier = Notifier(send)
    notifier.notify()
    await notifier.close()
    notifier.notify()
    await notifier.close()
    assert len(sent) == 2


async def test_a_hint_that_comes_while_one_is_on_its_way_is_not_lost() -> None:
    sent: list[int] = []
    on_its_way = asyncio.Event()

    async def send() -> None:
        sent.append(1)
        if len(sent) == 1:
            on_its_way.set()
            await asyncio.sleep(0.01)

    notifier = Notifier(send)
    notifier.notify()
    await on_its_way.wait()
    notifier.notify()
    await notifier.close()
    assert len(sent) == 2
