"""The connection is lost during a commit: the outcome that is reported is the one that is stored."""

from uuid import uuid4

import pytest

from holdfast.domain.booking import Holder
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.status import Status
from holdfast.operations.units import Units
from holdfast.operations.write_path import Command, WriteResult, write
from holdfast.storage.database import Database
from tests.operations.commands import all_done, opening, rows
from tests.operations.interference import LosingDatabase
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import found, hold, new_units, signature


@pytest.mark.parametrize("at_once", [True, False], ids=["in its statement", "in its commit"])
async def test_the_winner_of_a_hold_whose_answer_was_lost_is_told_so(
    database: Database, at_once: bool
) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    held = await opening(database, key, Holder(uuid4(), uuid4()))
    (outcome,) = await write(LosingDatabase(database, at_once=at_once), [held])
    assert isinstance(outcome, WriteResult), outcome
    assert outcome.booking.number == held.request.draft.number
    assert await found(database, outcome.booking) == outcome.booking


async def test_a_hold_that_never_arrived_is_not_acknowledged(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    held = await opening(database, key)
    (outcome,) = await write(LosingDatabase(database, at_once=True, done=False), [held])
    assert isinstance(outcome, DatabaseUnavailable)
    (written,) = await all_done(database, [held])
    assert (written.booking.number, written.unit.status) == (held.request.draft.number, Status.HELD)


async def test_a_lost_signature_is_looked_for_in_the_booking_for_the_unit_is_the_same(
    database: Database,
) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    booking = await hold(database, key)
    (never,) = await write(LosingDatabase(database, at_once=True, done=False), [signature(key, booking)])
    assert isinstance(never, DatabaseUnavailable), never
    (signed,) = await write(LosingDatabase(database, at_once=True), [signature(key, booking)])
    assert isinstance(signed, WriteResult), signed
    assert await found(database, booking) == signed.booking


async def test_a_hold_whose_commit_was_lost_and_undone_is_not_acknowledged(database: Database) -> None:
    """Its transaction had answered that it was stored; that was before the commit."""
    key = (await new_units(database, "A-1"), "A-1")
    held = await opening(database, key)
    (outcome,) = await write(LosingDatabase(database, at_once=False, done=False), [held])
    assert isinstance(outcome, DatabaseUnavailable), outcome
    assert await rows(database, "select count(*) from booking") == [(0,)]
    (written,) = await all_done(database, [held])
    assert written.booking.number == held.request.draft.number


@pytest.mark.parametrize("done", [True, False])
async def test_a_whole_batch_whose_commit_was_lost_is_told_as_it_is_stored(
    database: Database, done: bool
) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    keys = [(project_id, code) for code in ("A-1", "A-2")]
    signed = signature(keys[1], await hold(database, keys[1]))
    commands: list[Command] = [await opening(database, keys[0]), signed, replacement(project_id, "A-3")]
    outcomes = await write(LosingDatabase(database, at_once=False, done=done), commands)
    assert all(isinstance(outcome, WriteResult if done else DatabaseUnavailable) for outcome in outcomes), (
        outcomes
    )
    stored = await rows(database, "select status from booking order by number")
    assert sorted(stored) == ([("open",), ("signed",)] if done else [("open",)])
    assert await rows(database, "select count(*) from unit") == [(3 if done else 2,)]


@pytest.mark.parametrize("at_once", [True, False], ids=["in its statement", "in its commit"])
async def test_a_created_unit_whose_answer_was_lost_is_told_with_its_ref(
    database: Database, at_once: bool
) -> None:
    project_id = await new_project(database)
    losing = LosingDatabase(database, at_once=at_once)
    (written,) = await write(losing, [replacement(project_id, "A-1")])
    assert isinstance(written, WriteResult), written
    assert written.created
    unit, _ = await Units(database).find(SLUG, "A-1")
    assert written.unit == unit


async def test_nobody_is_told_that_a_change_is_stored_when_the_look_for_it_fails(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    for code, at_once in (("A-1", True), ("A-2", False)):
        losing = LosingDatabase(database, at_once=at_once, then_away=True)
        (outcome,) = await write(losing, [await opening(database, (project_id, code))])
        assert isinstance(outcome, DatabaseUnavailable), outcome


async def test_what_is_known_to_be_stored_is_told_so_when_the_look_for_the_rest_fails(
    database: Database,
) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1", 1))
    losing = LosingDatabase(database, at_once=True, at_statement="update unit set", then_away=True)
    commands = [replacement(project_id, "A-1", 2), replacement(project_id, "A-2", 2)]
    changed, created = await write(losing, commands)
    assert isinstance(created, WriteResult), created
    assert (created.created, created.unit.ref != "") == (True, True)
    assert isinstance(changed, DatabaseUnavailable), changed


async def test_a_unit_that_never_arrived_is_not_acknowledged(database: Database) -> None:
    project_id = await new_project(database)
    losing = LosingDatabase(database, at_once=True, done=False)
    (outcome,) = await write(losing, [replacement(project_id, "A-1")])
    assert isinstance(outcome, DatabaseUnavailable)
    assert await rows(database, "select count(*) from unit") == [(0,)]
