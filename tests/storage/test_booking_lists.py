"""Lists of bookings: of all, of projects, of units; the latest first, page by page."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import cast

import asyncpg

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Booking, BookingStatus, as_seen
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.holds import expire_due_holds
from holdfast.storage import bookings
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Connection, Database
from tests.support import sales
from tests.support.inventory import new_project, replacement, store
from tests.support.sql import rows


async def listed(
    database: Database, slugs: Sequence[str] | None = None, code: str | None = None,
    status: BookingStatus | None = None, size: int = 1,
) -> list[FoundBooking]:  # fmt: skip
    """All pages of a list, one after the other."""
    found: list[FoundBooking] = []
    end: tuple[datetime, int] | None = None
    while page := await database.read(bookings.booking_page, end, slugs, code, status, size):
        assert len(page) <= size
        found += page
        end = (page[-1].booking.created_at, page[-1].booking.number)
    return found


async def in_every_status(database: Database) -> list[Booking]:
    codes = [f"A-{number}" for number in range(11)]
    project_id = await sales.new_units(database, *codes)
    lapsed, cancelled, due, refunded, *claims = [(project_id, code) for code in codes]
    made = [await sales.hold(database, key) for key in (lapsed, cancelled)]
    await sales.make_lapse(database, made[0])
    assert await expire_due_holds(database, 10) == 1
    await sales.done(database, sales.cancellation(cancelled, made[1]))
    made += [await sales.refund_due(database, key) for key in (due, refunded)]
    await sales.done(database, sales.refund(refunded, made[-1]))
    made.append(await sales.sell(database, claims[0]))
    steps = (sales.hold, sales.sign, sales.reserve) * 2
    made += [await make(database, key) for make, key in zip(steps, claims[1:], strict=True)]
    await sales.make_lapse(database, *made[-3:])
    return [await sales.stored(database, one) for one in made]


async def test_lists_by_status_and_the_domain_agree_on_what_a_booking_is_now(database: Database) -> None:
    made = await in_every_status(database)
    assert {one.status for one in made} == set(BookingStatus)
    async with database.reading() as connection:
        everything = await bookings.booking_page(connection, None, None, None, None, 100)
        numbers = sorted((one.number for one in made), reverse=True)
        assert [one.booking.number for one in everything] == numbers
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
        assert await bookings.refunds_due(connection, 100) == 2
        assert await bookings.refunds_due(connection, 1) == 1


async def test_pages_by_status_merge_lapsed_bookings_in_the_order_of_time(database: Database) -> None:
    codes = [f"A-{number}" for number in range(6)]
    project_id = await sales.new_units(database, *codes)
    made = [await sales.hold(database, (project_id, code)) for code in codes]
    await sales.make_lapse(database, made[0], made[3])
    assert await expire_due_holds(database, 1) == 1
    await sales.make_lapse(database, made[5])
    found = await listed(database, status=BookingStatus.LAPSED)
    assert [one.booking.number for one in found] == [made[at].number for at in (5, 3, 0)]


async def test_the_latest_is_the_first_whatever_its_number(database: Database) -> None:
    """Each process draws its numbers in blocks."""
    codes = ("A-1", "A-2", "A-3")
    project_id = await sales.new_units(database, *codes)
    drafts = [await sales.new_draft(database) for _ in codes]
    for code, draft in zip(codes, reversed(drafts), strict=True):
        opening = (await sales.new_opening(database))._replace(draft=draft)
        await sales.done(database, HoldUnit((project_id, code), COMMAND, opening))
        await rows(database, "select pg_sleep(0.002)")
    for slugs, status in ((None, None), (PALM, None), (None, OPEN)):
        found = await listed(database, slugs, status=status)
        assert [one.unit_code for one in found] == ["A-3", "A-2", "A-1"]


PALM, OTHER, BOTH = ["palm-court"], ["other"], ["palm-court", "other"]
OPEN, CANCELLED, SOLD = BookingStatus.OPEN, BookingStatus.CANCELLED, BookingStatus.SOLD
# Two projects that share a code.
BOOKED = [
    *[("palm-court", "A-1", CANCELLED)] * 2,
    ("other", "A-1", CANCELLED),
    *((slug, code, OPEN) for slug, code in zip(BOTH * 2, ("A-1", "A-1", "A-2", "B-1"), strict=True)),
]
SLUGS = (None, PALM, OTHER, BOTH, [*PALM, "elsewhere"], [], ["elsewhere"])
CODES = (None, "A-1", "A-2", "nowhere")


async def two_projects(database: Database) -> dict[int, tuple[str, str, BookingStatus]]:
    """What was booked, by the numbers of the bookings."""
    second = await new_project(database, "other")
    projects = {"palm-court": await sales.new_units(database, "A-1", "A-2"), "other": second}
    await store(database, *(replacement(second, code) for code in ("A-1", "B-1")))
    made = {}
    for slug, code, status in BOOKED:
        booking = await sales.hold(database, (projects[slug], code))
        if status is CANCELLED:
            await sales.done(database, sales.cancellation((projects[slug], code), booking))
        made[booking.number] = (slug, code, status)
    return made


async def test_a_list_is_of_what_is_asked_for_whatever_the_size_of_its_pages(database: Database) -> None:
    made = await two_projects(database)
    for slugs, code, status in product(SLUGS, CODES, (None, OPEN, CANCELLED, SOLD)):
        expected = [
            (number, slug, booked, current)
            for number, (slug, booked, current) in sorted(made.items(), reverse=True)
            if (slugs is None or slug in slugs) and code in (None, booked) and status in (None, current)
        ]
        for size in (1, 2, 100):
            found = [
                (one.booking.number, one.project_slug, one.unit_code, one.booking.status)
                for one in await listed(database, slugs, code, status, size)
            ]
            assert found == expected


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
        for number, (slug, code, status) in made.items():
            if status is OPEN and (slug, code) != ("other", "A-1"):
                await connection.execute(FILL, number, 20 if slug == "other" else 3000)
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
