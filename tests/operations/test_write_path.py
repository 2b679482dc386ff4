"""The one write path: batches that nobody notices, writers that meet, and connections that are lost."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from holdfast.domain import errors
from holdfast.domain.booking import Holder
from holdfast.domain.decision import Precondition
from holdfast.domain.holds import HoldLimits
from holdfast.domain.status import Status
from holdfast.operations import write_path
from holdfast.operations.units import PatchUnit, Units
from holdfast.operations.write_path import Command, WritePath, WriteResult, write
from holdfast.storage.database import Database, TransactionConflict
from tests.operations.interference import CountingDatabase, InterferingDatabase, LosingDatabase
from tests.operations.scene import kinds, new_keys, opening, until_somebody_waits
from tests.support.inventory import SLUG, claim, new_project, replacement, store
from tests.support.sales import found, hold, new_unit, signature
from tests.support.sql import execute, rows, value

STALE = Precondition(match=frozenset({"99-1"}))
LARGEST = 12


@pytest.fixture
def counting(database: Database, monkeypatch: pytest.MonkeyPatch) -> CountingDatabase:
    """Batches of up to twelve, each held up until the gate is opened."""
    monkeypatch.setattr(write_path, "LARGEST_BATCH", LARGEST)
    counting = CountingDatabase(database)
    counting.gate.clear()
    return counting


def submitted(path: WritePath, project_id: UUID, codes: Iterable[str]) -> list[asyncio.Task[WriteResult]]:
    return [asyncio.create_task(path.submit(replacement(project_id, code))) for code in codes]


async def conflict() -> None:
    raise TransactionConflict("another came first")


async def test_commands_share_the_next_transaction(counting: CountingDatabase, project_id: UUID) -> None:
    path = WritePath(counting)
    waiting = submitted(path, project_id, ["first"])
    await counting.begun.acquire()
    waiting += submitted(path, project_id, (f"A-{number}" for number in range(LARGEST - 1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert counting.transactions == 1
    waiting += submitted(path, project_id, ["last"])
    await counting.begun.acquire()
    assert counting.transactions == 2
    waiting += submitted(path, project_id, ["late"])
    counting.gate.set()
    assert [one.created for one in await asyncio.gather(*waiting)] == [True] * (LARGEST + 2)
    assert counting.transactions == 3
    flood = submitted(path, project_id, (f"B-{number}" for number in range(2 * LARGEST)))
    await asyncio.gather(*flood)
    assert counting.transactions == 5


async def test_who_was_just_answered_shares_it_too(counting: CountingDatabase, project_id: UUID) -> None:
    path = WritePath(counting)

    async def write_two_in_a_row(code: str) -> None:
        for number in (1, 2):
            await path.submit(replacement(project_id, f"{code}-{number}"))

    first = asyncio.create_task(write_two_in_a_row("A"))
    await counting.begun.acquire()
    second = asyncio.create_task(write_two_in_a_row("B"))
    await asyncio.sleep(0)
    counting.gate.set()
    await asyncio.gather(first, second)
    # A-1, then A-2 with B-1, then B-2.
    assert counting.transactions == 3


async def test_a_cancelled_runner_leaves_the_path_open(counting: CountingDatabase, project_id: UUID) -> None:
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


async def test_a_caller_that_gives_up_does_not_stop_the_write(database: Database, project_id: UUID) -> None:
    inventory = Units(database)
    caller = asyncio.create_task(inventory.write(replacement(project_id, "A-1")))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await inventory.close()
    assert (await inventory.find(SLUG, "A-1"))[0].version == 1


@asynccontextmanager
async def blocked(database: Database, path: WritePath, project_id: UUID) -> AsyncIterator[None]:
    """A command has begun, and nothing is stored meanwhile."""
    async with database.writing() as other:
        await other.execute("lock table unit in exclusive mode")
        (begun,) = submitted(path, project_id, ["begun"])
        await until_somebody_waits(database)
        yield
    assert (await begun).created


async def test_two_thousand_wait_and_what_is_refused_is_never_stored(
    database: Database, project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_path, "LONGEST_WAIT_SECONDS", 3600.0)
    path = WritePath(database)
    async with blocked(database, path, project_id):
        flood = submitted(path, project_id, (f"A-{number}" for number in range(2100)))
        refused, _ = await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        assert {type(one.exception()) for one in refused} == {errors.Overloaded}
    outcomes = await asyncio.gather(*flood, return_exceptions=True)
    acknowledged = {one.unit.code for one in outcomes if isinstance(one, WriteResult)}
    assert (len(acknowledged), len(refused)) == (2000, 100)
    assert {code for (code,) in await rows(database, "select code from unit")} == acknowledged | {"begun"}


async def test_what_waits_too_long_is_refused_while_another_still_hangs(
    database: Database, project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_path, "LONGEST_WAIT_SECONDS", 0.05)
    path = WritePath(database)
    async with blocked(database, path, project_id):
        for _ in range(2):
            stale = submitted(path, project_id, ["A-1", "A-2"])
            outcomes = await asyncio.gather(*stale, return_exceptions=True)
            assert [type(one) for one in outcomes] == [errors.Overloaded] * 2
    assert await rows(database, "select code from unit") == [("begun",)]


@pytest.mark.parametrize(("after", "asked", "stored"), [(3600.0, [], 3), (0.0, ["gone", "there"], 2)])
async def test_a_command_that_waited_is_dropped_if_its_caller_has_left(
    database: Database,
    project_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
    after: float,
    asked: list[str],
    stored: int,
) -> None:
    """It is asked about once, when its batch begins and with all others, and not if it has waited for a
    moment only."""
    monkeypatch.setattr(write_path, "CALLER_CHECKED_AFTER_SECONDS", after)
    path, found, all_asked = WritePath(database), [], asyncio.Event()

    async def submit(code: str) -> WriteResult:
        async def has_left() -> bool:
            found.append(code)
            if len(found) == 2:
                all_asked.set()
            await asyncio.wait_for(all_asked.wait(), 60)
            return code == "gone"

        write_path.has_caller_left.set(has_left)
        return await path.submit(replacement(project_id, code))

    async with blocked(database, path, project_id):
        waiting = [asyncio.create_task(submit(code)) for code in ("gone", "there")]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting, return_exceptions=True)
    assert found == asked
    assert await value(database, "select count(*) from unit") == stored


async def test_bulk_commands_do_not_wait_behind_others(
    database: Database, project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_path, "MAX_WAITING", 0)
    units = Units(database)
    with pytest.raises(errors.Overloaded):
        await units.write(replacement(project_id, "A-1"))
    (outcome,) = await units.write_many([replacement(project_id, "A-1")], store=True)
    assert isinstance(outcome, WriteResult)


async def test_an_unexpected_failure_reaches_every_caller(database: Database, project_id: UUID) -> None:
    async def fail() -> None:
        raise LookupError("a bug")

    path = WritePath(InterferingDatabase(database, fail))
    outcomes = await asyncio.gather(*submitted(path, project_id, ("A-1", "A-2")), return_exceptions=True)
    assert kinds(outcomes) == [LookupError, LookupError]  # type: ignore[arg-type]
    assert (await path.submit(replacement(project_id, "A-1"))).created


async def test_writes_to_one_unit_are_decided_one_by_one(database: Database, project_id: UUID) -> None:
    refused, *outcomes = await write(
        database,
        [
            replacement(project_id, "A-1", 5)._replace(precondition=STALE),
            replacement(project_id, "A-1", 1),
            replacement(project_id, "A-1", 2),
            replacement(project_id, "A-1", 2),
            replacement(project_id, "A-1", 2, Status.UNAVAILABLE),
            PatchUnit((project_id, "A-1"), {"bedrooms": 3}),
        ],
    )
    assert isinstance(refused, errors.PreconditionFailed)
    written = [one for one in outcomes if isinstance(one, WriteResult)]
    assert [one.unit.version for one in written] == [1, 2, 2, 3, 4]
    unit, _ = await Units(database).find(SLUG, "A-1")
    assert {one.unit.ref for one in written} == {unit.ref}
    assert unit == written[-1].unit
    assert (unit.fields.price_sar, unit.fields.bedrooms, unit.status) == (Decimal(2), 3, Status.UNAVAILABLE)


async def test_one_bad_row_never_fails_its_neighbours(database: Database, project_id: UUID) -> None:
    bad = replacement(project_id, "bad")
    bad = bad._replace(fields=bad.fields._replace(price_sar=Decimal("0.001")))
    outcomes = await write(database, [replacement(project_id, "A-1"), bad, replacement(project_id, "A-2")])
    assert kinds(outcomes) == [WriteResult, errors.InvalidInput, WriteResult]
    # What was stored before the failure is known, though it must not be there yet.
    new = replacement(project_id, "A-3")._replace(precondition=Precondition(none_match=frozenset("*")))
    bad = replacement(project_id, "A-1")
    bad = bad._replace(fields=bad.fields._replace(bedrooms=1000))
    assert kinds(await write(database, [new, bad])) == [WriteResult, errors.InvalidInput]


async def test_many_processes_at_once_create_a_unit_once(database: Database, project_id: UUID) -> None:
    batches = [
        [replacement(project_id, f"A-{number}", writer) for number in range(10)] for writer in range(1, 7)
    ]
    outcomes = await asyncio.gather(*(store(database, *batch) for batch in batches))
    written = [one for batch in outcomes for one in batch]
    assert sum(one.created for one in written) == 10
    for number in range(10):
        versions = [one.unit.version for one in written if one.unit.code == f"A-{number}"]
        assert sorted(versions) == [1, 2, 3, 4, 5, 6]


async def test_a_writer_releases_a_lapsed_hold_first(database: Database, project_id: UUID) -> None:
    await store(database, replacement(project_id, "A-1"))
    await claim(database, "A-1", Status.HELD, -5)
    seen, _ = await Units(database).find(SLUG, "A-1")
    await write(database, [replacement(project_id, "A-1")._replace(precondition=STALE)])
    released = await rows(database, "select status, version, updated_at from unit")
    assert released == [("available", seen.version, seen.updated_at)]
    await claim(database, "A-1", Status.HELD, -5)
    (written,) = await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    *_, (_, first, release), (kind, second, change) = await rows(
        database, "select type, unit_version, created_at from event order by unit_version"
    )
    assert (kind, second) == ("unit.unavailable", written.unit.version)
    assert (second - first, change > release) == (1, True)


async def test_a_unit_changed_meanwhile_is_decided_again(database: Database, project_id: UUID) -> None:
    await store(database, replacement(project_id, "A-1", 1), replacement(project_id, "A-2", 1))
    another, bedrooms = replacement(project_id, "A-1", 50), PatchUnit((project_id, "A-1"), {"bedrooms": 3})
    overtaken = InterferingDatabase(database, lambda: store(database, another))
    patched, other = await store(overtaken, bedrooms, replacement(project_id, "A-2", 9))
    assert (patched.unit.fields.price_sar, patched.unit.fields.bedrooms) == (Decimal(50), 3)
    assert (patched.unit.version, other.unit.version) == (3, 2)


async def test_a_unit_created_after_a_look_that_found_none_to_lock_is_replaced(
    database: Database, project_id: UUID
) -> None:
    another = replacement(project_id, "A-1", 50)
    overtaken = InterferingDatabase(database, conflict, lambda: store(database, another))
    (written,) = await store(overtaken, replacement(project_id, "A-1", 9))
    assert (written.created, written.unit.version, written.unit.fields.price_sar) == (False, 2, Decimal(9))


async def test_a_renamed_project_is_known_at_once(database: Database, project_id: UUID) -> None:
    await store(database, replacement(project_id, "A-1", 1))
    await execute(database, "update project set name = 'Renamed', version = version + 1, turn = turn + 1")
    (written,) = await store(database, replacement(project_id, "A-1", 2))
    assert (written.project.name, written.project.version) == ("Renamed", 2)


async def test_a_project_that_is_gone_is_forgotten(database: Database, project_id: UUID) -> None:
    for use in ("write", "find", "write_many"):
        inventory, unit = Units(database), replacement(project_id, "A-1")
        assert await inventory.project_id(SLUG) == project_id
        with pytest.raises(errors.UnknownUnit):
            await inventory.find(SLUG, "A-1")
        await execute(database, "delete from project")
        if use == "write_many":
            assert kinds(await inventory.write_many([unit], store=True)) != [WriteResult]
        else:
            with pytest.raises(errors.DatabaseUnavailable):
                await (inventory.write(unit) if use == "write" else inventory.find(SLUG, "A-1"))
        with pytest.raises(errors.UnknownProject):
            await inventory.project_id(SLUG)
        project_id = await new_project(database)


async def test_a_dry_run_decides_everything_and_stores_nothing(
    database: Database, project_id: UUID, caplog: pytest.LogCaptureFixture
) -> None:
    await store(database, replacement(project_id, "A-1", 1))
    commands = [replacement(project_id, "A-1", 2), replacement(project_id, "A-2")]
    outcomes = await write(database, commands, store=False)
    assert [one.created for one in outcomes if isinstance(one, WriteResult)] == [False, True]
    assert await value(database, "select array_agg(version) from unit") == [1]
    outcomes = await write(InterferingDatabase(database, conflict), commands, store=False)
    assert kinds(outcomes) == [errors.DatabaseUnavailable, errors.DatabaseUnavailable]
    assert caplog.messages == ["the database rejected a dry run"]


# The connection is lost: the outcome that is reported is the one that is stored.


@pytest.mark.parametrize("at_once", [True, False], ids=["in its statement", "in its commit"])
async def test_what_was_stored_without_an_answer_is_told(database: Database, at_once: bool) -> None:
    key = await new_unit(database)
    held = await opening(database, key, Holder(uuid4(), uuid4()))
    (outcome,) = await store(LosingDatabase(database, at_once=at_once), held)
    assert outcome.booking.number == held.request.draft.number
    assert await found(database, outcome.booking) == outcome.booking
    (signed,) = await store(LosingDatabase(database, at_once=at_once), signature(key, outcome.booking))
    assert await found(database, outcome.booking) == signed.booking
    losing = LosingDatabase(database, at_once=at_once)
    (created,) = await store(losing, replacement(key[0], "A-2"))
    assert created.created
    assert created.unit == (await Units(database).find(SLUG, "A-2"))[0]


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_hold_counted_by_network_whose_commit_has_no_answer_is_looked_for(
    database: Database, is_stored: bool
) -> None:
    key = await new_unit(database)
    limits = HoldLimits(3, 0, 0, 20)
    held = await opening(database, key, Holder(project_network_id=uuid4()), limits)
    losing = LosingDatabase(database, at_once=False, done=is_stored, at="nothing but the commit")
    (outcome,) = await write(losing, [held])
    assert isinstance(outcome, WriteResult if is_stored else errors.DatabaseUnavailable)
    expected = [(held.request.draft.number,)] if is_stored else []
    assert await rows(database, "select number from booking") == expected


@pytest.mark.parametrize("at_once", [True, False], ids=["in its statement", "in its commit"])
async def test_what_never_arrived_is_not_acknowledged(database: Database, at_once: bool) -> None:
    """The transaction may have answered that it was stored; that was before the commit."""
    key = await new_unit(database)
    held = await opening(database, key)
    for command in (held, replacement(key[0], "A-2")):
        (outcome,) = await write(LosingDatabase(database, at_once=at_once, done=False), [command])
        assert isinstance(outcome, errors.DatabaseUnavailable), outcome
    assert await rows(database, "select code, status from unit") == [("A-1", "available")]
    assert await rows(database, "select number from booking") == []
    (written,) = await store(database, held)
    assert (written.booking.number, written.unit.status) == (held.request.draft.number, Status.HELD)
    losing = LosingDatabase(database, at_once=at_once, done=False)
    (unsigned,) = await write(losing, [signature(key, written.booking)])
    assert isinstance(unsigned, errors.DatabaseUnavailable), unsigned


@pytest.mark.parametrize("done", [True, False])
async def test_a_batch_whose_commit_was_lost_is_told(database: Database, done: bool) -> None:
    keys = await new_keys(database, "A-1", "A-2")
    signed = signature(keys[1], await hold(database, keys[1]))
    commands: list[Command] = [await opening(database, keys[0]), signed, replacement(keys[0][0], "A-3")]
    outcomes = await write(LosingDatabase(database, at_once=False, done=done), commands)
    expected = WriteResult if done else errors.DatabaseUnavailable
    assert all(isinstance(outcome, expected) for outcome in outcomes), outcomes
    stored = await rows(database, "select status from booking order by status")
    assert stored == ([("open",), ("signed",)] if done else [("open",)])
    assert await value(database, "select count(*) from unit") == (3 if done else 2)


async def test_nobody_is_told_that_a_change_is_stored_when_the_look_for_it_fails(database: Database) -> None:
    for key, at_once in zip(await new_keys(database, "A-1", "A-2"), (True, False), strict=True):
        losing = LosingDatabase(database, at_once=at_once, away=True)
        (outcome,) = await write(losing, [await opening(database, key)])
        assert isinstance(outcome, errors.DatabaseUnavailable), outcome


async def test_what_is_known_to_be_stored_is_told(database: Database, project_id: UUID) -> None:
    await store(database, replacement(project_id, "A-1", 1))
    losing = LosingDatabase(database, at_once=True, at="update unit set", away=True)
    commands = [replacement(project_id, "A-1", 2), replacement(project_id, "A-2", 2)]
    changed, created = await write(losing, commands)
    assert isinstance(created, WriteResult), created
    assert (created.created, created.unit.ref != "") == (True, True)
    assert isinstance(changed, errors.DatabaseUnavailable), changed
