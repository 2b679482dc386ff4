"""Expired holds and reservations are released whole, once, and without waiting for locks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.domain.booking import Booking, BookingStatus
from holdfast.domain.status import Status
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit, Units
from holdfast.storage import holds
from holdfast.storage.database import ConstraintViolated, Database
from tests.support.sales import done, found, hold, make_lapse, new_units, reserve, sell, sign

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
async def test_unit_booking_event_and_entry_are_written_as_readers_saw_them(
    database: Database, make: Make
) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    booking = await make(database, key)
    await make_lapse(database, booking)
    seen, _ = await Units(database).find("palm-court", "A-1")
    seen_booking = await found(database, booking)
    assert await expire_due_holds(database, 10) == 1
    unit, _ = await Units(database).find("palm-court", "A-1")
    assert unit == seen
    assert (await found(database, booking))._replace(slots=seen_booking.slots) == seen_booking
    (state,) = await rows(database, STATE)
    over = "refund-due" if make is reserve else "lapsed"
    assert (state["status"], state["booking"], state["type"]) == ("available", over, "unit.released")
    assert state["created_at"] == state["updated_at"] == state["ended_at"]
    assert state["booking_reference"] is None
    (entry,) = await rows(database, ENTRIES)
    assert entry["action"] == ("lapse-reservation" if make is reserve else "lapse-hold")
    assert (entry["booking_reference"], entry["at"]) == (booking.reference, state["updated_at"])


@pytest.mark.parametrize("make", [hold, sign, reserve])
async def test_the_clock_writes_the_same_as_a_writer_who_comes_first(database: Database, make: Make) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    made = [await make(database, (project_id, code)) for code in ("A-1", "A-2")]
    await make_lapse(database, *made)
    await done(database, PatchUnit((project_id, "A-1"), {}))
    assert await expire_due_holds(database, 10) == 1
    by_writer, by_clock = await rows(database, STATE)
    assert {**by_writer, "turn": 0} == {**by_clock, "turn": 0}
    first, second = await rows(database, ENTRIES)
    assert first.pop("booking_reference") == made[0].reference
    assert second.pop("booking_reference") == made[1].reference
    assert first == second


async def test_what_is_not_over_is_left_alone(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3", "A-4")
    for make, code in ((hold, "A-1"), (reserve, "A-2"), (sell, "A-3")):
        await make(database, (project_id, code))
    before = await rows(database, STATE)
    assert await expire_due_holds(database, 10) == 0
    assert await rows(database, STATE) == before


async def test_a_unit_that_no_booking_claims_is_released_too(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    booking = await hold(database, key)
    await make_lapse(database, booking)
    async with database.writing() as connection:
        await connection.execute("delete from booking")
    assert await expire_due_holds(database, 10) == 1
    unit, _ = await Units(database).find("palm-court", "A-1")
    assert (unit.status, unit.hold_expires_at) == (Status.AVAILABLE, None)


async def test_the_longest_over_come_first_and_no_more_than_were_asked_for(database: Database) -> None:
    codes = [f"A-{number}" for number in range(4)]
    project_id = await new_units(database, *codes)
    made = [await hold(database, (project_id, code)) for code in codes]
    for booking in reversed(made):
        await make_lapse(database, booking)
    assert await expire_due_holds(database, 3) == 3
    left = [row["status"] for row in await rows(database, STATE)]
    assert left == ["held", "available", "available", "available"]


async def test_what_somebody_has_locked_is_passed_over_and_comes_next(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    made = [await hold(database, (project_id, code)) for code in ("A-1", "A-2")]
    await make_lapse(database, *made)
    async with database.writing() as writer:
        await writer.execute("select from unit where code = 'A-1' for update")
        assert await asyncio.wait_for(expire_due_holds(database, 10), 10) == 1
        assert [row["status"] for row in await rows(database, STATE)] == ["held", "available"]
    assert await expire_due_holds(database, 10) == 1
    assert [row["status"] for row in await rows(database, STATE)] == ["available", "available"]


async def test_many_at_once_release_each_unit_once(database: Database) -> None:
    codes = [f"A-{number:02}" for number in range(40)]
    project_id = await new_units(database, *codes)
    await make_lapse(database, *[await hold(database, (project_id, code)) for code in codes])

    async def release_all() -> int:
        return sum([await expire_due_holds(database, 5) for _ in range(20)])

    assert sum(await asyncio.gather(*(release_all() for _ in range(3)))) == 40
    told = await rows(database, "select unit_id from event where type = 'unit.released'")
    assert len(told) == len({row["unit_id"] for row in told}) == 40
    assert len(await rows(database, ENTRIES)) == 40
    assert {row["booking"] for row in await rows(database, STATE)} == {BookingStatus.LAPSED}


async def test_a_writer_and_the_clock_at_once_release_a_unit_once(database: Database) -> None:
    codes = [f"A-{number:02}" for number in range(20)]
    project_id = await new_units(database, *codes)
    await make_lapse(database, *[await hold(database, (project_id, code)) for code in codes])
    writers = [done(database, PatchUnit((project_id, code), {})) for code in codes]
    await asyncio.gather(*writers, *(expire_due_holds(database, 3) for _ in range(8)))
    await expire_due_holds(database, 100)
    told = await rows(database, "select unit_id from event where type = 'unit.released'")
    assert len(told) == len({row["unit_id"] for row in told}) == 20
    assert {row["status"] for row in await rows(database, STATE)} == {Status.AVAILABLE}


REFUSE = """
    create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'not today' using errcode = 'check_violation'; end
    $$;
    create trigger refuse before insert or update on {table} execute function refuse()
"""


@pytest.mark.parametrize("table", ["booking", "event", "audit_entry"])
async def test_a_release_is_written_whole_or_not_at_all(database: Database, table: str) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    await make_lapse(database, await hold(database, key))
    before = await rows(database, STATE)
    async with database.writing() as connection:
        await connection.execute(REFUSE.format(table=table))
    with pytest.raises(ConstraintViolated):
        await expire_due_holds(database, 10)
    assert await rows(database, STATE) == before
    assert await rows(database, ENTRIES) == []


async def test_the_next_end_is_told_in_seconds(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    assert await database.read(holds.seconds_until_next_end) is None
    await reserve(database, (project_id, "A-1"), seconds=3600)
    until_reservation = await database.read(holds.seconds_until_next_end)
    assert until_reservation is not None
    assert 3000 < until_reservation <= 3600
    booking = await hold(database, (project_id, "A-2"), hold_seconds=600)
    until_hold = await database.read(holds.seconds_until_next_end)
    assert until_hold is not None
    assert 0 < until_hold <= 600
    await make_lapse(database, booking)
    over = await database.read(holds.seconds_until_next_end)
    assert over is not None
    assert over < 0
