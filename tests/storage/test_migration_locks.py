"""Migrations while others read and write: nobody waits long for them, and they wait for everybody."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage import schema
from holdfast.storage.database import Database
from holdfast.storage.errors import SchemaError
from tests.support import next_revision
from tests.support.delivery_engine import eventually
from tests.support.inventory import replacement, store
from tests.support.sales import new_unit
from tests.support.sql import as_owner, connected, value

WAITS_FOR_UNIT = "select exists (select from pg_locks where not granted and relation = 'unit'::regclass)"
LOCKS_UNIT = """
    select exists (
        select from pg_locks
        where granted and mode = 'AccessExclusiveLock' and relation = 'unit'::regclass
    )
"""
# Hold `unit` until the other one waits for it, and then wait for the other one.
DEADLOCKED = (
    "alter table unit add column deadlocked text",
    """
    do $$ begin
        while not exists (select from pg_locks where not granted and relation = 'unit'::regclass)
            and exists (select from pg_locks where granted and mode = 'ExclusiveLock'
                and relation = 'booking'::regclass)
        loop
            perform pg_sleep(0.01);
        end loop;
    end $$
    """,
    "lock table booking in row exclusive mode",
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "LOCK_PAUSE_SECONDS", 0.05)


@asynccontextmanager
async def of_database(connection: asyncpg.Connection, **settings: str) -> AsyncIterator[None]:
    """Let every session that begins in the block have these settings."""
    name = await connection.fetchval("select current_database()")
    try:
        for setting, chosen in settings.items():
            await connection.execute(f"alter database {name} set {setting} = {chosen}")
        yield
    finally:
        for setting in settings:
            await connection.execute(f"alter database {name} reset {setting}")


@pytest.fixture
def reasons(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Why a migration was tried again."""
    return lambda: [message for message in caplog.messages if "the migration is tried again" in message]


async def test_a_migration_behind_a_long_reader_keeps_nobody_waiting_and_is_applied_after_it(
    database: Database,
    postgres_url: str,
    reasons: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema, "_LOCK_TIMEOUT", "set local lock_timeout = '200ms'")
    project_id, code = await new_unit(database)
    async with connected(postgres_url) as reader:
        await reader.execute("set application_name = 'a long report'")
        transaction = reader.transaction()
        await transaction.start()
        await reader.execute("select from unit")
        migrating = asyncio.create_task(next_revision.apply(as_owner(postgres_url)))
        price = 0
        while len(reasons()) < 2:
            price += 1
            await store(database, replacement(project_id, code, price))
            assert await value(database, "select price_sar from unit") == price
        assert not migrating.done()
        await transaction.rollback()
        await migrating
        assert await schema.current_revision(reader) == next_revision.REVISION
        await store(database, replacement(project_id, code, price + 1))
    for reason in reasons():
        assert "lock timeout: alter table unit add column" in reason
        assert "the oldest transaction is of a long report, process " in reason


async def test_a_migration_that_is_the_victim_of_a_deadlock_is_tried_again(
    postgres_url: str, reasons: Callable[[], list[str]]
) -> None:
    async with (
        connected(postgres_url) as look,
        connected(postgres_url) as other,
        of_database(look, deadlock_timeout="10"),
    ):
        await other.execute("set deadlock_timeout = '1h'")
        async with other.transaction():
            await other.execute("lock table booking in exclusive mode")
            migrating = asyncio.create_task(next_revision.apply(as_owner(postgres_url), DEADLOCKED))
            await eventually(lambda: look.fetchval(LOCKS_UNIT))
            await other.execute("select from unit")
        await migrating
        assert await schema.current_revision(look) == next_revision.REVISION
    assert "deadlock detected" in reasons()[0]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        # As when the server is restarted while a second process waits for the first.
        ("pg_terminate_backend", pytest.raises(DatabaseUnavailable)),
        ("pg_cancel_backend", pytest.raises(SchemaError, match="canceling statement due to user request")),
    ],
)
async def test_a_migration_waits_for_a_database_that_is_away_but_not_where_somebody_cancels_it(
    postgres_url: str, end: str, expected: AbstractContextManager[object]
) -> None:
    async with connected(as_owner(postgres_url)) as first:
        await first.execute("select pg_advisory_lock($1)", schema.ADVISORY_LOCK)
        migrating = asyncio.create_task(next_revision.apply(as_owner(postgres_url)))
        await eventually(
            lambda: first.fetchval(f"select {end}(pid) from pg_stat_activity where wait_event = 'advisory'")
        )
        with expected:
            await migrating


async def test_who_migrates_second_waits_for_the_first_whatever_timeouts_the_database_has(
    postgres_url: str, reasons: Callable[[], list[str]]
) -> None:
    async with (
        connected(postgres_url) as first,
        connected(postgres_url) as look,
        of_database(look, lock_timeout="50", statement_timeout="50"),
    ):
        await first.execute("select pg_advisory_lock($1)", schema.ADVISORY_LOCK)
        migrating = asyncio.create_task(next_revision.apply(as_owner(postgres_url)))
        waited = (
            "select from pg_stat_activity where wait_event = 'advisory' and now() - query_start > '0.1 s'"
        )
        await eventually(lambda: look.fetch(waited))
        assert not migrating.done()
        await first.execute("select pg_advisory_unlock($1)", schema.ADVISORY_LOCK)
        await migrating
    assert reasons() == []


async def test_the_next_revision_is_applied_once_and_can_be_taken_back(postgres_url: str) -> None:
    async with connected(postgres_url) as look:
        for _ in range(2):
            await next_revision.apply(as_owner(postgres_url))
        assert await schema.current_revision(look) == next_revision.REVISION
        await next_revision.revert(as_owner(postgres_url))
        assert await schema.current_revision(look) == schema.HEAD
        with pytest.raises(asyncpg.UndefinedColumnError):
            await look.execute("select view from unit")
