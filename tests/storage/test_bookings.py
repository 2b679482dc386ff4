"""Bookings in the database: stored exactly, found by everything they are known by."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from uuid import UUID, uuid4

import pytest

from holdfast.domain import booking as domain
from holdfast.domain import booking_actions
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import CLAIMING, Booking, BookingStatus, Holder, LiveHold, Slots
from holdfast.domain.holds import HoldLimits
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.storage import bookings
from holdfast.storage.database import Connection, Database, TransactionConflict
from holdfast.storage.units import Holders, UnitKey, load_for_update
from tests.support import sales
from tests.support.inventory import fields
from tests.support.sales import cancellation, deposit, done, hold, new_unit, new_units, signature, stored
from tests.support.sql import execute

LIMITS = HoldLimits(3, 20, 60)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def held(
    database: Database, key: UnitKey, holder: Holder | None = None, idempotency_id: UUID | None = None
) -> Booking:
    opening = await sales.new_opening(database, holder=holder, limits=LIMITS)
    opening = opening._replace(draft=opening.draft._replace(idempotency_id=idempotency_id))
    return (await done(database, HoldUnit(key, COMMAND, opening))).booking


async def live_holds(
    connection: Connection, key: UnitKey, holders: Holders, *, locked: bool = False
) -> Mapping[UUID, Sequence[LiveHold]]:
    _, (snapshot,) = await load_for_update(connection, {}, [key], locked=locked, holders=holders)
    return snapshot.live_holds


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
    select (jsonb_populate_record(booking, jsonb_build_object('number', number + 1000) || $2::jsonb)).*
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
    holders = Holders([address, stranger], [visitor])
    async with database.reading() as connection:
        found = await live_holds(connection, (project_id, "A-1"), holders)
        # Whether the unit is there or is still to be created, and whether it is locked or not.
        assert await live_holds(connection, (project_id, "A-9"), holders) == found
        assert await live_holds(connection, (project_id, "A-1"), holders, locked=True) == found
    expected = {LiveHold(1, made[0].hold_expires_at), LiveHold(3, made[2].hold_expires_at)}  # type: ignore[arg-type]
    assert set(found[address]) == set(found[visitor]) == expected
    assert found[stranger] == []
    # A lapsed hold gives up its place before its end is written.
    await sales.make_lapse(database, made[0])
    async with database.reading() as connection:
        found = await live_holds(connection, (project_id, "A-4"), Holders([address]))
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


async def test_the_booking_of_an_idempotency_key_is_found_by_unit_and_key(database: Database) -> None:
    project_id, key_id = await new_units(database, "A-1", "A-2"), uuid4()
    made = await held(database, (project_id, "A-1"), None, key_id)
    other = await hold(database, (project_id, "A-2"))
    both = [made.unit_id, other.unit_id]

    async def by_key(units: list[UUID], *keys: UUID) -> list[tuple[int, Booking]]:
        return await database.read(bookings.load_by_idempotency, units, keys)

    assert await by_key(both, uuid4(), key_id) == [(2, made)]
    assert await by_key([other.unit_id], key_id) == await by_key(both, uuid4()) == []
    ended = (await done(database, cancellation((project_id, "A-1"), made))).booking
    assert await by_key(both, key_id) == [(3, ended)]


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
    numbers = [number for _ in range(2) for number in await database.read(bookings.next_numbers, 50)]
    assert len(set(numbers)) == 100
    first, again = [await database.read(bookings.installation_secret) for _ in range(2)]
    assert (first == again, len(first)) == (True, 32)
