"""Bookings in the database: stored exactly, found by everything they are known by, listed page by page."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import cast
from uuid import UUID, uuid4

import asyncpg
import pytest

from holdfast.domain import booking as domain
from holdfast.domain import booking_actions
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import CLAIMING, Booking, BookingStatus, Holder, LiveHold, Slots, as_seen
from holdfast.domain.holds import HoldLimits
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.storage import bookings
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Connection, Database, TransactionConflict
from holdfast.storage.units import UnitKey, load_live_holds
from tests.support import sales
from tests.support.inventory import fields, new_project, replacement, store
from tests.support.sales import cancellation, deposit, done, hold, new_unit, new_units, signature, stored
from tests.support.sql import execute, rows

LIMITS = HoldLimits(3, 20, 60)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def held(
    database: Database, key: UnitKey, holder: Holder | None = None, idempotency_id: UUID | None = None
) -> Booking:
    opening = await sales.new_opening(database, holder=holder, limits=LIMITS)
    opening = opening._replace(draft=opening.draft._replace(idempotency_id=idempotency_id))
    return (await done(database, HoldUnit(key, COMMAND, opening))).booking


async def test_a_booking_is_read_back_exactly_after_each_of_its_steps(database: Database) -> None:
    key = await new_unit(database)
    terms = domain.Terms(Decimal("999999999999.99"), False, Decimal("0.0001"), Decimal(100))
    await done(database, PatchUnit(key, terms._asdict()))
    opened = await held(database, key, Holder(uuid4(), uuid4()), uuid4())
    assert (opened.terms, opened.slots) == (terms, Slots(1, 1))
    steps = [opened]
    for step in (
        signature(key, opened),
        sales.command(key, opened, lambda at, _: booking_actions.reissue_link(at, opened.number, b"new")),
        deposit(key, opened, payment_id="!~" * 100),
        cancellation(key, opened),
        sales.refund(key, opened),
    ):
        assert repr(await stored(database, opened)) == repr(steps[-1]).replace("asyncpg.pgproto.pgproto.", "")
        steps.append((await done(database, step)).booking)
    assert await stored(database, opened) == steps[-1]
    assert steps[-1].payment_id == "!~" * 100
    statuses = ["open", "signed", "signed", "reserved", "refund-due", "refunded"]
    assert [step.status for step in steps] == statuses


@pytest.mark.parametrize("area", ["0.0001", "9999999.9999", "120", "1E+2"])
async def test_an_agreement_stays_as_it_was_signed(database: Database, area: str) -> None:
    key, name = await new_unit(database), 'Narjis "Heights" | مرتفعات النرجس \\ 😀'
    described = fields()._replace(
        type="3-bedroom apartment | شقة بثلاث غرف",
        area_sqm=Decimal(area),
        bedrooms=3,
        bathrooms=0,
        delivery_year=2028,
    )
    await done(database, ReplaceUnit(key, described, None))
    await execute(database, f"update project set name = '{name}', turn = turn + 1")
    booking = await hold(database, key)
    assert booking.agreement is None
    signed = (await done(database, signature(key, booking, "ar"))).booking
    agreement = domain.Agreement(name, described.type, Decimal(area), 3, 0, 2028, "ar", domain.WORDING)
    assert signed.agreement == agreement
    kept = (await stored(database, booking)).agreement
    assert kept == agreement
    assert isinstance(kept.area_sqm, Decimal)
    changes = {"area_sqm": Decimal(1), "type": "cupboard", "bedrooms": None, "delivery_year": None}
    await done(database, PatchUnit(key, changes))
    await execute(database, "update project set name = 'Another Name', turn = turn + 1")
    await done(database, deposit(key, booking))
    assert (await sales.found(database, booking)).agreement == agreement
    await done(database, cancellation(key, booking))
    assert (await stored(database, booking)).agreement == agreement
    # What is not known of a unit stays unknown.
    other = await sales.sign(database, key)
    unknown = (await stored(database, other)).agreement
    assert unknown is not None
    assert (unknown.bedrooms, unknown.delivery_year, unknown.language) == (None, None, "en")


COPY = """
    insert into booking
    select (jsonb_populate_record(booking, jsonb_build_object(
        'number', number + 1000, 'reference', 'a copy'
    ) || $2::jsonb)).*
    from booking where number = $1
"""


async def copy(database: Database, booking: Booking, **changes: object) -> None:
    """Beside the code, and for a moment only: what the database itself lets through."""
    async with database.writing() as connection:
        await connection.execute(COPY, booking.number, json.dumps(changes, default=str))
        await connection.execute("delete from booking where number = $1", booking.number + 1000)


MAKE = {
    BookingStatus.OPEN: hold,
    BookingStatus.SIGNED: sales.sign,
    BookingStatus.RESERVED: sales.reserve,
    BookingStatus.SOLD: sales.sell,
    BookingStatus.REFUND_DUE: sales.refund_due,
}


async def test_the_database_itself_lets_one_booking_claim_a_unit(database: Database) -> None:
    project_id = await new_units(database, *MAKE)
    made = {status: await make(database, (project_id, status)) for status, make in MAKE.items()}
    for first, second in product(CLAIMING, MAKE):
        unit_id = made[first].unit_id
        if second not in CLAIMING:
            await copy(database, made[second], unit_id=unit_id)
            continue
        with pytest.raises(TransactionConflict) as refused:
            await copy(database, made[second], unit_id=unit_id)
        assert "one_booking_claims_a_unit" in refused.value.reason


@pytest.mark.parametrize("who", ["address", "visitor"])
async def test_the_database_itself_gives_each_place_of_a_holder_once(database: Database, who: str) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    first, holder = await hold(database, (project_id, "A-1")), uuid4()
    await execute(database, f"update booking set {who}_id = '{holder}', {who}_slot = 1")
    ended: dict[str, object] = {"ended_at": first.created_at.isoformat(), "status": "cancelled"}
    with pytest.raises(TransactionConflict) as refused:
        await copy(database, first, **ended)
    assert f"one_hold_per_{who}_slot" in refused.value.reason
    await copy(database, first, **ended, **{f"{who}_slot": 2})
    await copy(database, await hold(database, (project_id, "A-2")), **ended, **{f"{who}_id": holder})


async def test_live_holds_are_those_that_have_a_place(database: Database) -> None:
    codes = ("A-1", "A-2", "A-3", "A-4")
    project_id, address, visitor, stranger = await new_units(database, *codes), uuid4(), uuid4(), uuid4()
    made = [await held(database, (project_id, code), Holder(address, visitor)) for code in codes[:3]]
    await done(database, cancellation((project_id, "A-2"), made[1]))
    holders = ((address, stranger), (visitor,), (), ())
    found = await database.read(load_live_holds, holders, datetime.now(UTC), clear=False)
    expected = {LiveHold(1, made[0].hold_expires_at), LiveHold(3, made[2].hold_expires_at)}  # type: ignore[arg-type]
    assert set(found[address]) == set(found[visitor]) == expected
    assert found[stranger] == []
    # A lapsed hold gives up its place before its end is written.
    await sales.make_lapse(database, made[0])
    found = await database.write(load_live_holds, ((address,), (), (), ()), datetime.now(UTC), clear=True)
    assert found == {address: [LiveHold(3, made[2].hold_expires_at)]}  # type: ignore[arg-type]
    kept = await stored(database, made[0])
    assert (kept.status, kept.slots) == (BookingStatus.OPEN, Slots())


async def test_lately_lapsed_are_those_of_the_visitor_or_the_token(database: Database) -> None:
    project_id, visitor = await new_units(database, "A-1", "A-2"), uuid4()
    first = await held(database, (project_id, "A-1"), Holder(None, visitor))
    second = await hold(database, (project_id, "A-2"))

    async def lately(since: datetime | None, visitors: list[UUID], tokens: list[bytes]) -> list[int]:
        units = [first.unit_id, second.unit_id]
        assert since is not None
        lapsed = await database.read(bookings.load_lately_expired, units, since, visitors, tokens)
        return [one.number for one in lapsed]

    assert await lately(LONG_AGO, [visitor], [second.token_hash]) == []
    await sales.make_lapse(database, first, second)
    assert await expire_due_holds(database, 10) == 2
    assert await lately(LONG_AGO, [visitor], []) == [first.number]
    assert await lately(LONG_AGO, [], [second.token_hash]) == [second.number]
    assert await lately(LONG_AGO, [uuid4()], [b"unknown"]) == []
    assert await lately((await stored(database, first)).ended_at, [visitor], []) == []


async def test_a_booking_is_given_with_the_turn_of_its_unit(database: Database) -> None:
    """By which a reader without locks knows whether the two belong together."""
    key = await new_unit(database)
    ended = (await done(database, cancellation(key, await hold(database, key)))).booking
    made = await hold(database, key)
    # A deposit that is confirmed again stores nothing.
    for turn, step in ((5, signature(key, made)), (6, deposit(key, made)), (6, deposit(key, made))):
        await done(database, step)
        by_unit = await database.read(bookings.load_related, [made.unit_id], [])
        assert by_unit == await database.read(bookings.load_related, [made.unit_id], [made.number])
        assert [unit_turn for unit_turn, _ in by_unit] == [turn]
    both = await database.read(bookings.load_related, [made.unit_id], [ended.number])
    assert {booking.number for _, booking in both} == {made.number, ended.number}


async def test_numbers_are_given_once_and_the_secret_stays(database: Database) -> None:
    made = [one for _ in range(2) for one in await database.read(bookings.next_references, 50)]
    assert [len(set(column)) for column in zip(*made, strict=True)] == [100, 100]
    first, again = [await database.read(bookings.installation_secret) for _ in range(2)]
    assert (first == again, len(first)) == (True, 32)


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
        for one in seen.values():
            found = await bookings.find(connection, one.reference)
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
SLUGS: tuple[list[str] | None, ...] = (None, PALM, OTHER, BOTH, [*PALM, "elsewhere"], [], ["elsewhere"])
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

    async def fetchrow(self, statement: str, *arguments: object) -> asyncpg.Record:
        return (await self.fetch(statement, *arguments))[0]


def reads_in_vain(plan: str) -> bool:
    """It goes through bookings that it does not list by the thousand; by the index of a status, say, they
    are some hundred here."""
    return sum(map(int, re.findall(r"Rows Removed by Filter: (\d+)", plan))) > 1000


FILL = """
    insert into booking
    select (jsonb_populate_record(booking, jsonb_build_object(
        'number', booking.number + 1000 * place,
        'reference', booking.reference || place,
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
    await execute(database, "analyze booking, unit, project")


SCOPES = [(None, None), (PALM, None), (OTHER, None), (BOTH, None), (None, "A-1"), (OTHER, "B-1")]


async def test_no_read_goes_through_bookings_that_it_is_not_about(database: Database) -> None:
    await fill(database)
    async with database.reading() as connection:
        explaining = Explaining(connection)
        for reference in await connection.fetch("select reference from booking limit 1"):
            assert await bookings.find(cast(Connection, explaining), *reference) is not None
        assert len(await bookings.next_references(cast(Connection, explaining), 20)) == 20
        for slugs, code in SCOPES:
            for status in (None, *BookingStatus):
                await bookings.booking_page(cast(Connection, explaining), None, slugs, code, status, 101)
    about_bookings = [plan for plan in explaining.plans if " on booking" in plan]
    assert len(about_bookings) == 2 + len(SCOPES) * (1 + len(BookingStatus))
    assert [plan for plan in about_bookings if "Seq Scan on booking" in plan or reads_in_vain(plan)] == []
