"""Lists of bookings: of all, of projects, of units; the latest first, page by page."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import cast

import asyncpg
import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Booking, BookingStatus, as_seen
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.holds import expire_due_holds
from holdfast.storage import bookings
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Connection, Database
from tests.support.booking_commands import mark_refunded
from tests.support.inventory import new_project, replacement, store
from tests.support.sales import (
    cancellation,
    done,
    hold,
    make_lapse,
    new_draft,
    new_opening,
    new_units,
    refund_due,
    reserve,
    sell,
    sign,
    stored,
)


def end_of(listed: Sequence[FoundBooking]) -> tuple[datetime, int] | None:
    """Where the pages so far end."""
    return (listed[-1].booking.created_at, listed[-1].booking.number) if listed else None


async def in_every_status(database: Database) -> list[Booking]:
    codes = [f"A-{number}" for number in range(11)]
    project_id = await new_units(database, *codes)
    lapsed, cancelled, due, refunded, *claims = [(project_id, code) for code in codes]
    made = [await hold(database, lapsed)]
    await make_lapse(database, *made)
    assert await expire_due_holds(database, 10) == 1
    made += [(await done(database, cancellation(cancelled, await hold(database, cancelled)))).booking]
    made += [await refund_due(database, due), await refund_due(database, refunded)]
    await done(database, mark_refunded(refunded, COMMAND, made[-1].number))
    made += [await sell(database, claims[0])]
    for to_lapse in (False, True):
        own = claims[1 + 3 * to_lapse :]
        some = [await hold(database, own[0]), await sign(database, own[1]), await reserve(database, own[2])]
        if to_lapse:
            await make_lapse(database, *some)
        made += some
    return [await stored(database, one) for one in made]


async def test_lists_by_status_and_the_domain_agree_on_what_a_booking_is_now(database: Database) -> None:
    made = await in_every_status(database)
    assert {one.status for one in made} == set(BookingStatus)
    async with database.reading() as connection:
        everything = await bookings.booking_page(connection, None, None, None, None, 100)
        assert [one.booking.number for one in everything] == sorted(
            (one.number for one in made), reverse=True
        )
        seen = {one.number: as_seen(one, everything[0].now) for one in made}
        assert {one.booking.number: one.booking for one in everything} == seen
        assert sum(one.status is not seen[one.number].status for one in made) == 3
        for status in BookingStatus:
            page = await bookings.booking_page(connection, None, None, None, status, 100)
            expected = {number: one for number, one in seen.items() if one.status is status}
            assert {one.booking.number: one.booking for one in page} == expected
        for number, one in seen.items():
            found = await bookings.find(connection, number)
            assert found is not None
            assert found.booking == one


async def test_pages_by_status_merge_lapsed_bookings_in_the_order_of_time(database: Database) -> None:
    codes = [f"A-{number}" for number in range(6)]
    project_id = await new_units(database, *codes)
    made = [await hold(database, (project_id, code)) for code in codes]
    await make_lapse(database, made[0], made[3])
    assert await expire_due_holds(database, 1) == 1
    await make_lapse(database, made[5])
    listed: list[FoundBooking] = []
    async with database.reading() as connection:
        while page := await bookings.booking_page(
            connection, end_of(listed), None, None, BookingStatus.LAPSED, 1
        ):
            listed += page
    assert [one.booking.number for one in listed] == [made[at].number for at in (5, 3, 0)]


async def test_the_latest_is_the_first_whatever_its_number(database: Database) -> None:
    """Each process draws its numbers in blocks."""
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    drafts = [await new_draft(database) for _ in range(3)]
    for code, draft in zip(("A-1", "A-2", "A-3"), reversed(drafts), strict=True):
        opening = (await new_opening(database))._replace(draft=draft)
        await done(database, HoldUnit((project_id, code), COMMAND, opening))
        async with database.reading() as connection:
            await connection.execute("select pg_sleep(0.002)")
    for slugs, unit_code, status in ((None, None, None), (PALM, None, None), (None, None, OPEN)):
        listed: list[FoundBooking] = []
        async with database.reading() as connection:
            while page := await bookings.booking_page(
                connection, end_of(listed), slugs, unit_code, status, 1
            ):
                listed += page
        assert [one.unit_code for one in listed] == ["A-3", "A-2", "A-1"]


async def two_projects(database: Database) -> dict[str, int]:
    """The numbers of bookings of two projects that share a code, by names; P/A-1 has three."""
    first = await new_units(database, "A-1", "A-2")
    second = await new_project(database, "other")
    await store(database, *(replacement(second, code) for code in ("A-1", "B-1")))
    keys = {
        "P/A-1": (first, "A-1"),
        "O/A-1": (second, "A-1"),
        "P/A-2": (first, "A-2"),
        "O/B-1": (second, "B-1"),
    }
    made = {}
    for ended in ("ended twice", "ended once"):
        for name in ("P/A-1", "O/A-1") if ended == "ended once" else ("P/A-1",):
            booking = await hold(database, keys[name])
            await done(database, cancellation(keys[name], booking))
            made[f"{name} {ended}"] = booking.number
    for name, key in keys.items():
        made[name] = (await hold(database, key)).number
    return made


PALM, OTHER, BOTH = ["palm-court"], ["other"], ["palm-court", "other"]
OF_P = ["P/A-2", "P/A-1", "P/A-1 ended once", "P/A-1 ended twice"]
OF_O = ["O/B-1", "O/A-1", "O/A-1 ended once"]
OF_A_1 = ["O/A-1", "P/A-1", "O/A-1 ended once", "P/A-1 ended once", "P/A-1 ended twice"]
OPEN, CANCELLED, SOLD = BookingStatus.OPEN, BookingStatus.CANCELLED, BookingStatus.SOLD


@pytest.mark.parametrize(
    ("slugs", "code", "status", "expected"),
    [
        (None, None, None, [*OF_P, *OF_O]),
        (PALM, None, None, OF_P),
        (OTHER, None, None, OF_O),
        (BOTH, None, None, [*OF_P, *OF_O]),
        ([*PALM, "elsewhere"], None, None, OF_P),
        ([], None, None, []),
        (["elsewhere"], None, None, []),
        (None, "A-1", None, OF_A_1),
        (BOTH, "A-1", None, OF_A_1),
        (PALM, "A-1", None, OF_P[1:]),
        (OTHER, "A-2", None, []),
        ([], "A-1", None, []),
        (None, "nowhere", None, []),
        (None, None, OPEN, ["P/A-2", "P/A-1", "O/B-1", "O/A-1"]),
        (None, None, CANCELLED, ["P/A-1 ended once", "P/A-1 ended twice", "O/A-1 ended once"]),
        (PALM, None, OPEN, OF_P[:2]),
        (BOTH, None, CANCELLED, ["P/A-1 ended once", "P/A-1 ended twice", "O/A-1 ended once"]),
        (None, "A-1", CANCELLED, OF_A_1[2:]),
        (PALM, "A-1", CANCELLED, OF_P[2:]),
        (PALM, "A-1", OPEN, ["P/A-1"]),
        (PALM, "A-1", SOLD, []),
    ],
)
async def test_a_list_is_of_what_is_asked_for_whatever_the_size_of_its_pages(
    database: Database,
    slugs: Sequence[str] | None,
    code: str | None,
    status: BookingStatus | None,
    expected: list[str],
) -> None:
    made = await two_projects(database)
    numbers = sorted((made[name] for name in expected), reverse=True)
    async with database.reading() as connection:
        for size in (1, 2, 100):
            listed: list[FoundBooking] = []
            while page := await bookings.booking_page(connection, end_of(listed), slugs, code, status, size):
                assert len(page) <= size
                listed += page
            assert [one.booking.number for one in listed] == numbers


async def test_a_listed_booking_comes_with_what_names_its_unit(database: Database) -> None:
    made = await two_projects(database)
    names = {number: name.split()[0] for name, number in made.items()}
    async with database.reading() as connection:
        page = await bookings.booking_page(connection, None, None, None, None, 100)
    initial = {"palm-court": "P", "other": "O"}
    assert {one.booking.number: f"{initial[one.project_slug]}/{one.unit_code}" for one in page} == names


class Explaining:
    """A connection that keeps how each statement was carried out."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.plans: list[str] = []

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        lines = await self._connection.fetch(f"explain (analyze) {statement}", *arguments)
        self.plans.append("\n".join(line[0] for line in lines))
        return await self._connection.fetch(statement, *arguments)


def reads_in_vain(plan: str) -> bool:
    """It goes through bookings that it does not list by the thousand; by the index of a status, say, they
    are some hundred here."""
    return sum(map(int, re.findall(r"Rows Removed by Filter: (\d+)", plan))) > 1000


FILL = """
    insert into booking
    select (jsonb_populate_record(booking, jsonb_build_object(
        'number', booking.number + 1000 * place,
        'status', case when place % 10 = 0 then 'cancelled' else 'lapsed' end,
        'ended_at', booking.created_at
    ))).*
    from booking, generate_series(1, $2) as place where booking.number = $1
"""


async def fill(database: Database) -> None:
    """Most holds lapse; one project has nearly all of them, the other a handful."""
    made = await two_projects(database)
    async with database.writing() as connection:
        for name, copies in (("P/A-1", 3000), ("P/A-2", 3000), ("O/B-1", 20)):
            await connection.execute(FILL, made[name], copies)
        for table in ("booking", "unit", "project"):
            await connection.execute(f"analyze {table}")


SCOPES = [(None, None), (PALM, None), (OTHER, None), (BOTH, None), (None, "A-1"), (OTHER, "B-1")]


async def test_no_list_reads_bookings_that_it_is_not_about(database: Database) -> None:
    await fill(database)
    async with database.reading() as connection:
        explaining = Explaining(connection)
        for slugs, code in SCOPES:
            for status in (None, *BookingStatus):
                await bookings.booking_page(cast(Connection, explaining), None, slugs, code, status, 101)
    about_bookings = [plan for plan in explaining.plans if " on booking" in plan]
    assert len(about_bookings) == len(SCOPES) * (1 + len(BookingStatus))
    assert [plan for plan in about_bookings if "Seq Scan on booking" in plan or reads_in_vain(plan)] == []


async def test_refunds_due_are_counted_as_they_are_listed(database: Database) -> None:
    await in_every_status(database)
    async with database.reading() as connection:
        listed = await bookings.booking_page(connection, None, None, None, BookingStatus.REFUND_DUE, 100)
        assert await bookings.refunds_due(connection, 100) == len(listed) == 2
        assert await bookings.refunds_due(connection, 1) == 1
