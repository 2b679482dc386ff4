"""A commit that is not answered, and the look for what it was to store."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage import units
from holdfast.storage.database import (
    CommitUnknown,
    Connection,
    ConstraintViolated,
    Database,
    TransactionConflict,
)
from holdfast.storage.units import UnitWrite
from tests.support.inventory import replacement, store
from tests.support.sales import hold, new_units

GATE = 4711
# At its commit a transaction waits until the gate is opened.
SLOW_COMMIT = f"""
    create table kept (number integer);
    create function wait_at_commit() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock({GATE}); return null; end
    $$;
    create constraint trigger wait_at_commit after insert on kept
        deferrable initially deferred for each row execute function wait_at_commit()
"""
WHO_WAITS = "select pid from pg_locks where locktype = 'advisory' and objid = $1 and not granted"


@pytest.fixture
async def gate(database: Database, postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Holds up every commit of a row in ``kept``."""
    async with database.writing() as connection:
        await connection.execute(SLOW_COMMIT)
    keeper = await asyncpg.connect(postgres_url)
    await keeper.execute("select pg_advisory_lock($1)", GATE)
    yield keeper
    await keeper.close()


async def waiting_in_commit(gate: asyncpg.Connection) -> int:
    """The process of the transaction that waits there."""
    while (pid := await gate.fetchval(WHO_WAITS, GATE)) is None:
        await gate.execute("select pg_sleep(0.01)")
    return int(pid)


async def keep(database: Database, used: list[Connection] | None = None) -> None:
    async with database.writing() as connection:
        if used is not None:
            used.append(connection)
        await connection.execute("insert into kept values (1)")


async def gone(gate: asyncpg.Connection, pid: int) -> None:
    while await gate.fetchval("select exists(select from pg_stat_activity where pid = $1)", pid):
        await gate.execute("select pg_sleep(0.01)")


async def test_a_line_that_is_cut_during_the_commit_leaves_it_unknown(
    database: Database, gate: asyncpg.Connection
) -> None:
    used: list[Connection] = []
    keeping = asyncio.create_task(keep(database, used))
    pid = await waiting_in_commit(gate)
    used[0]._transport.abort()  # type: ignore[attr-defined]
    with pytest.raises(CommitUnknown):
        await keeping
    await gate.execute("select pg_advisory_unlock($1)", GATE)
    await gone(gate, pid)
    # The server has gone on without us.
    assert await gate.fetchval("select count(*) from kept") == 1


async def test_a_process_that_is_ended_during_the_commit_leaves_it_unknown(
    database: Database, gate: asyncpg.Connection
) -> None:
    # More often than there are connections: each that was lost is replaced.
    for _ in range(5):
        keeping = asyncio.create_task(keep(database))
        await gate.execute("select pg_terminate_backend($1)", await waiting_in_commit(gate))
        with pytest.raises(CommitUnknown):
            await keeping
    await gate.execute("select pg_advisory_unlock($1)", GATE)
    await keep(database)
    assert await gate.fetchval("select count(*) from kept") == 1


async def fail_at_commit(database: Database, state: str) -> None:
    async with database.writing() as connection:
        await connection.execute(SLOW_COMMIT)
        body = f"begin raise exception 'no' using errcode = '{state}'; end"
        await connection.execute(
            f"create or replace function wait_at_commit() returns trigger language plpgsql as $${body}$$"
        )


@pytest.mark.parametrize(
    ("state", "meaning"),
    [
        ("check_violation", ConstraintViolated),
        ("serialization_failure", TransactionConflict),
        ("53100", DatabaseUnavailable),
    ],
)
async def test_a_commit_that_was_refused_is_known_not_to_be_stored(
    database: Database, state: str, meaning: type[Exception]
) -> None:
    await fail_at_commit(database, state)
    with pytest.raises(meaning) as refused:
        await keep(database)
    assert not isinstance(refused.value, CommitUnknown)


async def changes_made(database: Database) -> list[UnitWrite]:
    """Of a hold, and of a unit that was created."""
    project_id = await new_units(database, "A-1")
    booking = await hold(database, (project_id, "A-1"))
    (created,) = await store(database, replacement(project_id, "A-2"))
    async with database.reading() as connection:
        keys = [(project_id, "A-1")]
        _, (snapshot,) = await units.load_for_update(connection, database.project_cache, keys, locked=False)
    assert snapshot.unit is not None
    return [UnitWrite(snapshot.unit, None, 1, new_bookings=(booking,)), UnitWrite(created.unit, None)]


PLAIN_ROLE = """
    do $$ begin
        create role plain_holdfast; exception when duplicate_object then null;
    end $$;
    grant select, insert, update on all tables in schema public to plain_holdfast;
"""


async def test_a_role_without_privileges_finds_what_was_stored(database: Database) -> None:
    changes = await changes_made(database)
    async with database.writing() as connection:
        await connection.execute(PLAIN_ROLE)
    async with database.writing() as connection:
        await connection.execute("set local role plain_holdfast")
        found = await units.find_stored(connection, changes)
        assert not await connection.fetchval("select current_setting('is_superuser')::boolean")
    assert set(found) == {change.unit.id for change in changes}
    assert all(found.values())


async def test_what_was_found_is_vouched_for_by_a_commit(database: Database) -> None:
    """One that has nothing to write would not wait for a standby that what it saw still waits for."""
    changes = await changes_made(database)
    async with database.writing() as connection:
        assert await connection.fetchval("select pg_current_xact_id_if_assigned()") is None
        await units.find_stored(connection, changes)
        assert await connection.fetchval("select pg_current_xact_id_if_assigned()") is not None


async def test_what_stands_there_otherwise_was_not_stored(database: Database) -> None:
    held, created = await changes_made(database)
    (booking,) = held.new_bookings
    for other in (
        held._replace(unit=held.unit._replace(version=held.unit.version + 1)),
        held._replace(new_bookings=(booking._replace(token_hash=b"another"),)),
        held._replace(new_bookings=(), changed_bookings=(booking._replace(number=booking.number + 1),)),
        created._replace(unit=created.unit._replace(id=uuid4())),
    ):
        async with database.writing() as connection:
            assert await units.find_stored(connection, [other]) == {}


@pytest.mark.parametrize("state", ["57P01", "57P02", "57P03", "08006"])
async def test_a_server_on_its_way_down_does_not_say_what_it_has_stored(
    database: Database, state: str
) -> None:
    await fail_at_commit(database, state)
    with pytest.raises(CommitUnknown):
        await keep(database)
