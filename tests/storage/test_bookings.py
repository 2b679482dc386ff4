"""Bookings in the database: stored exactly, found by everything they are known by."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import CLAIMING, Booking, BookingStatus, Holder, LiveHold, Slots, Terms
from holdfast.domain.holds import HoldLimits
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit
from holdfast.storage import bookings
from holdfast.storage.database import Connection, Database, TransactionConflict
from holdfast.storage.units import Holders, UnitKey, load_for_update
from tests.support.booking_commands import mark_refunded, reissue_link
from tests.support.sales import (
    cancellation,
    deposit,
    done,
    hold,
    make_lapse,
    new_opening,
    new_units,
    refund_due,
    reserve,
    sell,
    sign,
    signature,
    stored,
)

LIMITS = HoldLimits(3, 20, 60)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def live_holds(
    connection: Connection, key: UnitKey, holders: Holders, *, locked: bool = False
) -> Mapping[UUID, Sequence[LiveHold]]:
    _, (snapshot,) = await load_for_update(connection, {}, [key], locked=locked, holders=holders)
    return snapshot.live_holds


async def test_a_booking_is_read_back_exactly_after_each_of_its_steps(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    key = (project_id, "A-1")
    terms = Terms(Decimal("999999999999.99"), False, Decimal("0.0001"), Decimal(100))
    await done(database, PatchUnit(key, terms._asdict()))
    opening = await new_opening(database, holder=Holder(uuid4(), uuid4()), limits=LIMITS)
    opening = opening._replace(draft=opening.draft._replace(idempotency_id=uuid4()))
    opened = (await done(database, HoldUnit(key, COMMAND, opening))).booking
    assert (opened.terms, opened.slots) == (terms, Slots(1, 1))
    steps = [opened]
    for command in (
        signature(key, opened),
        reissue_link(key, COMMAND, opened.number, b"new"),
        deposit(key, opened),
        cancellation(key, opened),
        mark_refunded(key, COMMAND, opened.number),
    ):
        assert repr(await stored(database, opened)) == repr(steps[-1]).replace("asyncpg.pgproto.pgproto.", "")
        steps.append((await done(database, command)).booking)
    assert await stored(database, opened) == steps[-1]
    statuses = ["open", "signed", "signed", "reserved", "refund-due", "refunded"]
    assert [step.status for step in steps] == statuses


COPY = """
    insert into booking
    select (jsonb_populate_record(booking, jsonb_build_object('number', number + 1000) || $2::jsonb)).*
    from booking where number = $1
"""


async def copy(database: Database, booking: Booking, changes: str) -> None:
    """Beside the code: what the database itself lets through."""
    async with database.writing() as connection:
        await connection.execute(COPY, booking.number, changes)


MAKE = {
    BookingStatus.OPEN: hold,
    BookingStatus.SIGNED: sign,
    BookingStatus.RESERVED: reserve,
    BookingStatus.SOLD: sell,
    BookingStatus.REFUND_DUE: refund_due,
}


@pytest.mark.parametrize("first", sorted(CLAIMING))
@pytest.mark.parametrize("second", MAKE)
async def test_the_database_itself_lets_one_booking_claim_a_unit(
    database: Database, first: BookingStatus, second: BookingStatus
) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    claim = await MAKE[first](database, (project_id, "A-1"))
    other = await MAKE[second](database, (project_id, "A-2"))
    moved = f'{{"unit_id": "{claim.unit_id}"}}'
    if second not in CLAIMING:
        await copy(database, other, moved)
        return
    with pytest.raises(TransactionConflict) as refused:
        await copy(database, other, moved)
    assert "one_booking_claims_a_unit" in refused.value.reason


@pytest.mark.parametrize("who", ["address", "visitor"])
async def test_the_database_itself_gives_each_place_of_a_holder_once(database: Database, who: str) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    first = await hold(database, (project_id, "A-1"))
    holder = uuid4()
    async with database.writing() as connection:
        await connection.execute(
            f"update booking set {who}_id = $1, {who}_slot = 1 where number = $2", holder, first.number
        )
    ended = f'"ended_at": "{first.created_at.isoformat()}", "status": "cancelled"'
    with pytest.raises(TransactionConflict) as refused:
        await copy(database, first, f"{{{ended}}}")
    assert f"one_hold_per_{who}_slot" in refused.value.reason
    await copy(database, first, f'{{{ended}, "{who}_slot": 2}}')
    await copy(database, await hold(database, (project_id, "A-2")), f'{{{ended}, "{who}_id": "{holder}"}}')


async def test_live_holds_are_those_that_have_a_place(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    holder = Holder(uuid4(), uuid4())
    made = []
    for code in ("A-1", "A-2", "A-3"):
        opening = await new_opening(database, holder=holder, limits=LIMITS)
        made.append((await done(database, HoldUnit((project_id, code), COMMAND, opening))).booking)
    await done(database, cancellation((project_id, "A-2"), made[1]))
    assert holder.address_id is not None
    assert holder.visitor_id is not None
    stranger = uuid4()
    holders = Holders([holder.address_id, stranger], [holder.visitor_id])
    async with database.reading() as connection:
        found = await live_holds(connection, (project_id, "A-1"), holders)
        # Whether the unit is there or is still to be created, and whether it is locked or not.
        assert await live_holds(connection, (project_id, "A-9"), holders) == found
        assert await live_holds(connection, (project_id, "A-1"), holders, locked=True) == found
    expected = {LiveHold(1, made[0].hold_expires_at), LiveHold(3, made[2].hold_expires_at)}  # type: ignore[arg-type]
    assert set(found[holder.address_id]) == set(found[holder.visitor_id]) == expected
    assert found[stranger] == []


async def test_a_lapsed_hold_gives_up_its_place_before_its_end_is_written(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    holder = uuid4()
    made = []
    for code in ("A-1", "A-2"):
        opening = await new_opening(database, holder=Holder(holder, None), limits=LIMITS)
        made.append((await done(database, HoldUnit((project_id, code), COMMAND, opening))).booking)
    await make_lapse(database, made[0])
    async with database.reading() as connection:
        found = await live_holds(connection, (project_id, "A-2"), Holders([holder]))
    assert found == {holder: [LiveHold(2, made[1].hold_expires_at)]}  # type: ignore[arg-type]
    kept = await stored(database, made[0])
    assert (kept.status, kept.slots) == (BookingStatus.OPEN, Slots())


async def test_lately_lapsed_are_those_of_the_visitor_or_the_token(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    visitor = uuid4()
    opening = await new_opening(database, holder=Holder(None, visitor))
    first = (await done(database, HoldUnit((project_id, "A-1"), COMMAND, opening))).booking
    second = await hold(database, (project_id, "A-2"))
    units = [first.unit_id, second.unit_id]
    async with database.reading() as connection:
        none = await bookings.load_lately_expired(connection, units, LONG_AGO, [visitor], [second.token_hash])
        assert none == []
    await make_lapse(database, first, second)
    assert await expire_due_holds(database, 10) == 2
    async with database.reading() as connection:
        for since, visitors, tokens, expected in (
            (LONG_AGO, [visitor], [], [first.number]),
            (LONG_AGO, [], [second.token_hash], [second.number]),
            (LONG_AGO, [uuid4()], [b"unknown"], []),
            ((await stored(database, first)).ended_at, [visitor], [], []),
        ):
            assert since is not None
            lapsed = await bookings.load_lately_expired(connection, units, since, visitors, tokens)
            assert [one.number for one in lapsed] == expected


async def test_the_booking_of_an_idempotency_key_is_found_by_unit_and_key(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    opening = await new_opening(database)
    key_id = uuid4()
    opening = opening._replace(draft=opening.draft._replace(idempotency_id=key_id))
    made = (await done(database, HoldUnit((project_id, "A-1"), COMMAND, opening))).booking
    other = await hold(database, (project_id, "A-2"))
    async with database.reading() as connection:
        both = [made.unit_id, other.unit_id]
        assert await bookings.load_by_idempotency(connection, both, [uuid4(), key_id]) == [(2, made)]
        assert await bookings.load_by_idempotency(connection, [other.unit_id], [key_id]) == []
        assert await bookings.load_by_idempotency(connection, both, [uuid4()]) == []
    ended = (await done(database, cancellation((project_id, "A-1"), made))).booking
    async with database.reading() as connection:
        assert await bookings.load_by_idempotency(connection, both, [key_id]) == [(3, ended)]


async def test_a_booking_is_given_with_the_turn_of_its_unit(database: Database) -> None:
    """By which a reader without locks knows whether the two belong together."""
    project_id = await new_units(database, "A-1")
    key = (project_id, "A-1")
    made = await hold(database, key)
    for turn, command in ((3, signature(key, made)), (4, deposit(key, made)), (5, deposit(key, made))):
        await done(database, command)
        async with database.reading() as connection:
            by_unit = await bookings.load_related(connection, [made.unit_id], [])
            by_number = await bookings.load_related(connection, [made.unit_id], [made.number])
        assert by_unit == by_number
        # A deposit that is confirmed again stores nothing.
        assert [unit_turn for unit_turn, _ in by_unit] == [min(turn, 4)]


async def test_a_sale_of_a_unit_that_was_read_long_ago_finds_its_booking_by_number(
    database: Database,
) -> None:
    project_id = await new_units(database, "A-1")
    key = (project_id, "A-1")
    ended = (await done(database, cancellation(key, await hold(database, key)))).booking
    sold = await sell(database, key)
    async with database.reading() as connection:
        both = await bookings.load_related(connection, [sold.unit_id], [ended.number])
    assert {booking.number for _, booking in both} == {sold.number, ended.number}


async def test_numbers_are_given_once(database: Database) -> None:
    async with database.reading() as connection:
        first, second = (
            await bookings.next_numbers(connection, 50),
            await bookings.next_numbers(connection, 50),
        )
    assert len({*first, *second}) == 100


async def test_the_secret_of_the_installation_is_always_the_same(database: Database) -> None:
    async with database.reading() as connection:
        first, again = [await bookings.installation_secret(connection) for _ in range(2)]
    assert first == again
    assert len(first) == 32
