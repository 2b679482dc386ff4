"""The one write path: batches that nobody notices."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import cast
from uuid import UUID

import asyncpg
import pytest

from holdfast.domain.decision import Precondition
from holdfast.domain.errors import InvalidInput, PreconditionFailed, UnknownUnit
from holdfast.domain.status import Status
from holdfast.operations.units import PatchUnit, Units
from holdfast.operations.write_path import LARGEST_BATCH, WritePath, WriteResult, write
from holdfast.storage.database import Connection, Database
from tests.operations.query_counts import CountingDatabase
from tests.support.inventory import claim, new_project, replacement, store


def submitted(path: WritePath, project_id: UUID, codes: Iterable[str]) -> list[asyncio.Task[WriteResult]]:
    return [asyncio.create_task(path.submit(replacement(project_id, code))) for code in codes]


async def test_commands_that_arrive_meanwhile_share_the_next_transaction(database: Database) -> None:
    project_id = await new_project(database)
    counting = CountingDatabase(database)
    counting.gate = asyncio.Event()
    path = WritePath(counting)
    waiting = submitted(path, project_id, ["first"])
    await counting.begun.acquire()
    waiting += submitted(path, project_id, (f"A-{number}" for number in range(99)))
    await asyncio.sleep(0)
    assert counting.transactions == 1
    counting.gate.set()
    written = await asyncio.gather(*waiting)
    assert all(one.created for one in written)
    assert counting.transactions == 2


async def test_those_who_were_just_answered_are_in_the_next_transaction_too(database: Database) -> None:
    project_id = await new_project(database)
    counting = CountingDatabase(database)
    path = WritePath(counting)

    async def write_two_in_a_row(code: str) -> None:
        for number in (1, 2):
            await path.submit(replacement(project_id, f"{code}-{number}"))

    counting.gate = asyncio.Event()
    first = asyncio.create_task(write_two_in_a_row("A"))
    await counting.begun.acquire()
    second = asyncio.create_task(write_two_in_a_row("B"))
    await asyncio.sleep(0)
    counting.gate.set()
    await asyncio.gather(first, second)
    # A-1, then A-2 with B-1, then B-2.
    assert counting.transactions == 3


async def test_a_second_batch_sets_out_when_it_is_full(database: Database) -> None:
    project_id = await new_project(database)
    counting = CountingDatabase(database)
    counting.gate = asyncio.Event()
    path = WritePath(counting)
    waiting = submitted(path, project_id, ["first"])
    await counting.begun.acquire()
    waiting += submitted(path, project_id, (f"A-{number}" for number in range(LARGEST_BATCH - 1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert counting.transactions == 1
    waiting += submitted(path, project_id, ["last"])
    await counting.begun.acquire()
    assert counting.transactions == 2
    waiting += submitted(path, project_id, ["late"])
    counting.gate.set()
    assert [one.created for one in await asyncio.gather(*waiting)] == [True] * (LARGEST_BATCH + 2)
    assert counting.transactions == 3


async def test_a_runner_that_is_cancelled_takes_its_commands_along_and_leaves_the_path_open(
    database: Database,
) -> None:
    project_id = await new_project(database)
    counting = CountingDatabase(database)
    counting.gate = asyncio.Event()
    path = WritePath(counting)
    for _ in range(3):
        waiting = asyncio.create_task(path.submit(replacement(project_id, "A-1")))
        await counting.begun.acquire()
        (runner,) = path._running
        runner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    counting.gate.set()
    assert (await path.submit(replacement(project_id, "A-1"))).created
    await path.close()


async def test_two_writes_to_one_unit_in_a_batch_are_decided_one_after_the_other(database: Database) -> None:
    project_id = await new_project(database)
    created, changed, repeated, off, patched = await write(
        database,
        [
            replacement(project_id, "A-1", 1),
            replacement(project_id, "A-1", 2),
            replacement(project_id, "A-1", 2),
            replacement(project_id, "A-1", 2, Status.UNAVAILABLE),
            PatchUnit((project_id, "A-1"), {"bedrooms": 3}),
        ],
    )
    outcomes = [created, changed, repeated, off, patched]
    assert [one.unit.version for one in outcomes if isinstance(one, WriteResult)] == [1, 2, 2, 3, 4]
    unit, _ = await Units(database).find("palm-court", "A-1")
    assert {one.unit.ref for one in outcomes if isinstance(one, WriteResult)} == {unit.ref}
    assert isinstance(patched, WriteResult)
    assert unit == patched.unit
    assert (unit.fields.price_sar, unit.fields.bedrooms, unit.status) == (Decimal(2), 3, Status.UNAVAILABLE)


async def test_one_bad_row_never_fails_its_neighbours(database: Database) -> None:
    project_id = await new_project(database)
    bad = replacement(project_id, "bad")
    bad = bad._replace(fields=bad.fields._replace(price_sar=Decimal("0.001")))
    good, refused, fine = await write(
        database, [replacement(project_id, "A-1"), bad, replacement(project_id, "A-2")]
    )
    assert isinstance(good, WriteResult)
    assert isinstance(fine, WriteResult)
    assert isinstance(refused, InvalidInput)


async def test_a_refused_command_changes_nothing_for_the_others(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1", 1))
    stale = Precondition(match=frozenset({"99-1"}))
    conditional = replacement(project_id, "A-1", 5)._replace(precondition=stale)
    refused, changed = await write(database, [conditional, replacement(project_id, "A-1", 6)])
    assert isinstance(refused, PreconditionFailed)
    assert isinstance(changed, WriteResult)
    assert changed.unit.version == 2


async def test_a_refusal_leaves_nothing_for_the_garbage_collector(database: Database) -> None:
    project_id = await new_project(database)
    path = WritePath(database)
    gc.disable()
    try:
        try:
            await path.submit(PatchUnit((project_id, "A-1"), {"bedrooms": 3}))
        except UnknownUnit as refusal:
            refused = weakref.ref(refusal)
        await path.close()
        assert refused() is None
    finally:
        gc.enable()


async def test_a_caller_that_gives_up_changes_nothing_about_the_outcome(database: Database) -> None:
    project_id = await new_project(database)
    inventory = Units(database)
    caller = asyncio.create_task(inventory.write(replacement(project_id, "A-1")))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await inventory.close()
    unit, _ = await inventory.find("palm-court", "A-1")
    assert unit.version == 1


async def test_many_processes_creating_the_same_units_at_once_create_each_once(database: Database) -> None:
    project_id = await new_project(database)
    batches = [
        [replacement(project_id, f"A-{number}", writer) for number in range(40)] for writer in range(1, 7)
    ]
    outcomes = await asyncio.gather(*(write(database, batch) for batch in batches))
    written = [one for batch in outcomes for one in batch if isinstance(one, WriteResult)]
    assert len(written) == 240
    assert sum(one.created for one in written) == 40
    for number in range(40):
        versions = [one.unit.version for one in written if one.unit.code == f"A-{number}"]
        assert sorted(versions) == [1, 2, 3, 4, 5, 6]


async def test_a_writer_that_meets_a_lapsed_hold_writes_its_release_first(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    await claim(database, "A-1", Status.HELD, -5)
    seen, _ = await Units(database).find("palm-court", "A-1")
    (written,) = await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    async with database.reading() as connection:
        rows = await connection.fetch(
            "select type, unit_version, created_at from event order by unit_version"
        )
    assert [row["type"] for row in rows] == ["unit.released", "unit.unavailable"]
    assert (rows[0]["unit_version"], rows[0]["created_at"]) == (seen.version, seen.updated_at)
    assert rows[1]["unit_version"] == written.unit.version == seen.version + 1
    assert rows[1]["created_at"] > rows[0]["created_at"]


async def test_a_refused_write_still_leaves_the_release_of_a_lapsed_hold(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    await claim(database, "A-1", Status.HELD, -5)
    seen, _ = await Units(database).find("palm-court", "A-1")
    stale = Precondition(match=frozenset({"99-1"}))
    await write(database, [replacement(project_id, "A-1")._replace(precondition=stale)])
    async with database.reading() as connection:
        row = await connection.fetchrow("select status, version, updated_at from unit")
    assert row is not None
    assert tuple(row) == ("available", seen.version, seen.updated_at)


async def test_what_one_statement_stored_is_known_when_the_next_one_fails(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1", 1))
    absent = Precondition(none_match=frozenset("*"))
    bad = replacement(project_id, "A-1")
    bad = bad._replace(fields=bad.fields._replace(bedrooms=1000))
    created, refused = await write(
        database, [replacement(project_id, "A-2")._replace(precondition=absent), bad]
    )
    assert isinstance(created, WriteResult)
    assert created.created
    assert isinstance(refused, InvalidInput)


async def test_a_unit_changed_by_another_writer_meanwhile_is_decided_again(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1", 1), replacement(project_id, "A-2", 1))

    class Overtaken(CountingDatabase):
        """Another writer changes a unit after every look at it without a lock."""

        @asynccontextmanager
        async def writing_autocommit(self) -> AsyncIterator[Connection]:
            async with self._database.writing_autocommit() as connection:
                yield cast(Connection, OvertakenConnection(connection))

    class OvertakenConnection:
        def __init__(self, connection: Connection) -> None:
            self._connection = connection

        async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
            rows = await self._connection.fetch(statement, *arguments)
            if "clock_timestamp()" in statement:
                await store(database, replacement(project_id, "A-1", 50))
            return rows

    patched, other = await write(
        Overtaken(database),
        [PatchUnit((project_id, "A-1"), {"bedrooms": 3}), replacement(project_id, "A-2", 9)],
    )
    assert isinstance(patched, WriteResult)
    assert isinstance(other, WriteResult)
    assert (patched.unit.fields.price_sar, patched.unit.fields.bedrooms) == (Decimal(50), 3)
    assert (patched.unit.version, other.unit.version) == (3, 2)


async def test_a_project_that_was_renamed_is_known_by_its_new_name_at_once(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1", 1))
    async with database.writing() as connection:
        await connection.execute(
            "update project set name = 'Renamed', version = version + 1, turn = turn + 1 where id = $1",
            project_id,
        )
    (written,) = await write(database, [replacement(project_id, "A-1", 2)])
    assert isinstance(written, WriteResult)
    assert (written.project.name, written.project.version) == ("Renamed", 2)


async def test_a_dry_run_decides_everything_and_stores_nothing(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1", 1))
    outcomes = await write(
        database, [replacement(project_id, "A-1", 2), replacement(project_id, "A-2")], store=False
    )
    assert [one.created for one in outcomes if isinstance(one, WriteResult)] == [False, True]
    async with database.reading() as connection:
        assert await connection.fetchval("select array_agg(version) from unit") == [1]


async def test_a_flood_is_cut_into_batches_of_bounded_size(database: Database) -> None:
    project_id = await new_project(database)
    counting = CountingDatabase(database)
    path = WritePath(counting)
    commands = [replacement(project_id, f"A-{number}") for number in range(2 * LARGEST_BATCH)]
    await asyncio.gather(*(path.submit(command) for command in commands))
    assert counting.transactions == 2
