"""Expired holds and reservations are released whole, once, and without waiting for locks."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from holdfast.domain.booking import Booking, BookingStatus
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.status import Status
from holdfast.operations import holds
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit, Units
from holdfast.storage.database import Database
from tests.operations.scene import new_keys
from tests.support.inventory import SLUG
from tests.support.sales import done, found, hold, make_lapse, new_unit, reserve, sell, sign
from tests.support.sql import REFUSE, execute

Make = Callable[..., Awaitable[Booking]]
STATE = """
    select unit.status, unit.version, unit.turn, unit.updated_at, booking.status as booking, booking.ended_at,
        booking.address_slot, event.type, event.previous_status, event.created_at, event.booking_reference
    from unit join booking on booking.unit_id = unit.id
    left join event on event.unit_id = unit.id and event.unit_version = unit.version
    order by unit.code
"""
ENTRIES = """
    select actor_kind, actor_id, request_id, action, booking_reference, before::text, after::text, at
    from audit_entry join unit on unit.id = subject_id where actor_kind = 'clock' order by unit.code
"""


async def rows(database: Database, statement: str) -> list[dict[str, Any]]:
    async with database.reading() as connection:
        return [dict(row) for row in await connection.fetch(statement)]


@pytest.mark.parametrize("make", [hold, sign, reserve])
async def test_the_clock_writes_what_readers_saw_and_writers_write(database: Database, make: Make) -> None:
    keys = await new_keys(database, "A-1", "A-2")
    made = [await make(database, key) for key in keys]
    await make_lapse(database, *made)
    seen, _ = await Units(database).find(SLUG, "A-2")
    seen_booking = await found(database, made[1])
    await done(database, PatchUnit(keys[0], {}))
    assert await expire_due_holds(database, 10) == 1
    assert (await Units(database).find(SLUG, "A-2"))[0] == seen
    assert (await found(database, made[1]))._replace(slots=seen_booking.slots) == seen_booking
    by_writer, state = await rows(database, STATE)
    over = "refund-due" if make is reserve else "lapsed"
    assert (state["status"], state["booking"], state["type"]) == ("available", over, "unit.released")
    assert state["created_at"] == state["updated_at"] == state["ended_at"]
    assert state["booking_reference"] is None
    assert {**by_writer, "turn": 0} == {**state, "turn": 0}
    first, second = await rows(database, ENTRIES)
    assert second["action"] == ("lapse-reservation" if make is reserve else "lapse-hold")
    assert second["at"] == state["updated_at"]
    assert [one.pop("booking_reference") for one in (first, second)] == [one.reference for one in made]
    assert first == second


async def test_only_what_is_over_is_released_with_or_without_a_booking(database: Database) -> None:
    first, second, third, _ = await new_keys(database, "A-1", "A-2", "A-3", "A-4")
    held = await hold(database, first)
    await reserve(database, second)
    await sell(database, third)
    before = await rows(database, STATE)
    assert await expire_due_holds(database, 10) == 0
    assert await rows(database, STATE) == before
    await make_lapse(database, held)
    await execute(database, "delete from booking")
    assert await expire_due_holds(database, 10) == 1
    unit, _ = await Units(database).find(SLUG, "A-1")
    assert (unit.status, unit.hold_expires_at) == (Status.AVAILABLE, None)


async def test_the_longest_over_come_first_and_what_is_locked_comes_later(database: Database) -> None:
    keys = await new_keys(database, *(f"A-{number}" for number in range(4)))
    for booking in reversed([await hold(database, key) for key in keys]):
        await make_lapse(database, booking)
    async with database.writing() as writer:
        await writer.execute("select from unit where code = 'A-2' for update")
        assert await asyncio.wait_for(expire_due_holds(database, 2), 60) == 2
        left = [row["status"] for row in await rows(database, STATE)]
        assert left == ["held", "available", "held", "available"]
    assert await expire_due_holds(database, 10) == 2
    assert {row["status"] for row in await rows(database, STATE)} == {"available"}


async def test_many_at_once_and_writers_beside_them_release_each_unit_once(database: Database) -> None:
    keys = await new_keys(database, *(f"A-{number:02}" for number in range(20)))
    await make_lapse(database, *[await hold(database, key) for key in keys])
    writers = [done(database, PatchUnit(key, {})) for key in keys[:10]]
    await asyncio.gather(*writers, *(expire_due_holds(database, 3) for _ in range(8)))
    await expire_due_holds(database, 100)
    told = await rows(database, "select unit_id from event where type = 'unit.released'")
    assert len(told) == len({row["unit_id"] for row in told}) == 20
    assert len(await rows(database, ENTRIES)) == 20
    assert {row["booking"] for row in await rows(database, STATE)} == {BookingStatus.LAPSED}


@pytest.mark.parametrize("table", ["booking", "event", "audit_entry"])
async def test_a_release_is_written_whole_or_not_at_all(database: Database, table: str) -> None:
    key = await new_unit(database)
    await make_lapse(database, await hold(database, key))
    before = await rows(database, STATE)
    await execute(database, REFUSE.format(table=table, state="check_violation", condition="true"))
    assert await expire_due_holds(database, 10) == 1
    assert await rows(database, STATE) == before
    assert await rows(database, ENTRIES) == []


async def test_units_that_cannot_be_released_do_not_stop_the_others(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether a constraint or a trigger refuses them; each is logged once, and left out until its time."""
    keys = await new_keys(database, *(f"A-{number:02}" for number in range(20)))
    await make_lapse(database, *[await hold(database, key) for key in keys])
    condition = "new.code in ('A-03', 'A-04', 'A-17') and new.status = 'available'"
    await execute(database, REFUSE.format(table="unit", state="raise_exception", condition=condition))
    failed: dict[UUID, float] = {}
    assert await expire_due_holds(database, 100, failed) == 20
    assert await expire_due_holds(database, 100, failed) == 0
    held = await rows(database, "select id, code from unit where status = 'held' order by code")
    assert [row["code"] for row in held] == ["A-03", "A-04", "A-17"]
    assert {row["id"] for row in held} == failed.keys()
    assert sorted(vars(one)["fields"]["unitCode"] for one in caplog.records) == ["A-03", "A-04", "A-17"]
    await execute(database, "drop trigger refuse on unit")
    assert await expire_due_holds(database, 100, {}) == 3


async def test_if_very_many_units_fail_they_are_not_tried_one_by_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "MOST_FAILED", 2)
    keys = await new_keys(database, *(f"A-{number}" for number in range(8)))
    await make_lapse(database, *[await hold(database, key) for key in keys])
    await execute(database, REFUSE.format(table="unit", state="raise_exception", condition="true"))
    failed: dict[UUID, float] = {}
    for _ in range(2):
        with pytest.raises(asyncpg.RaiseError):
            await expire_due_holds(database, 10, failed)
        assert len(failed) == 2


@pytest.mark.parametrize("state", ["cannot_connect_now", "deadlock_detected"])
async def test_a_failure_of_the_database_is_no_fault_of_a_unit(database: Database, state: str) -> None:
    keys = await new_keys(database, "A-1", "A-2")
    await make_lapse(database, *[await hold(database, key) for key in keys])
    await execute(
        database,
        "create sequence tries",
        REFUSE.format(table="unit", state=state, condition="nextval('tries') > 0"),
    )
    failed: dict[UUID, float] = {}
    with suppress(DatabaseUnavailable):
        assert await expire_due_holds(database, 10, failed) == 0
    assert (failed, await rows(database, "select last_value from tries")) == ({}, [{"last_value": 1}])
