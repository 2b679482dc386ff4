"""Commands about one unit or one holder that are stored together, or at the same time by others."""

import asyncio
from contextlib import suppress
from decimal import Decimal
from uuid import uuid4

import pytest

from holdfast.domain import errors
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import BookingStatus, Holder, Slots
from holdfast.domain.holds import HoldLimits
from holdfast.domain.status import Status
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.units import PatchUnit
from holdfast.operations.write_path import Command, RetriesExhausted, WriteResult, write
from holdfast.storage.database import Database
from tests.operations.interference import CountingDatabase, Hook, InterferingDatabase
from tests.operations.scene import kinds, new_keys, opening, until_somebody_waits
from tests.support import sales
from tests.support.inventory import replacement, store
from tests.support.sales import cancellation, closing, deposit, done, found, hold, make_lapse, new_unit
from tests.support.sql import REFUSE, execute, rows


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    told = [(record.message, vars(record)["fields"]) for record in caplog.records]
    return [(message, fields["unitCode"], fields["why"]) for message, fields in told]


async def test_a_hold_has_the_terms_of_the_put_before_it_and_locks_them(database: Database) -> None:
    first, second = await new_keys(database, "A-1", "A-2")
    outcomes = await write(database, [await opening(database, first), replacement(*first, 5)])
    assert kinds(outcomes) == [WriteResult, errors.TermsLocked]
    _, held = await store(database, replacement(*second, 5), await opening(database, second))
    assert held.booking.terms.price_sar == Decimal(5)
    assert await found(database, held.booking) == held.booking
    stored = await rows(database, "select price_sar, status, version from unit order by code")
    assert stored == [(Decimal(1_000_000), "held", 2), (Decimal(5), "held", held.unit.version)]
    assert await rows(database, "select type from event") == [("unit.held",)] * 2


async def test_the_first_hold_wins_and_the_same_request_twice_is_one_hold(database: Database) -> None:
    key, other = await new_keys(database, "A-1", "A-2")
    outcomes = await write(database, [await opening(database, key) for _ in range(3)])
    assert kinds(outcomes) == [WriteResult, errors.NotAvailable, errors.NotAvailable]
    same, key_id = [], uuid4()
    for _ in range(2):
        one = (await opening(database, other)).request
        draft = one.draft._replace(idempotency_id=key_id, token_hash=b"made of the key")
        same.append(HoldUnit(other, COMMAND, one._replace(draft=draft)))
    first, again = await store(database, *same)
    assert (first.booking, first.changed, again.changed) == (again.booking, True, False)
    assert await rows(database, "select count(*) from booking") == [(2,)]


async def test_a_whole_sale_in_one_batch_is_one_row_and_all_its_events(database: Database) -> None:
    key = await new_unit(database)
    (first,) = await store(database, await opening(database, key))
    steps = [step(key, first.booking) for step in (sales.signature, deposit, closing)]
    *_, sold = await store(database, *steps)
    assert await found(database, sold.booking) == sold.booking
    told = await rows(database, "select type, booking_reference from event order by unit_version")
    reference = first.booking.reference
    assert told == [("unit.held", None), ("unit.reserved", reference), ("unit.sold", reference)]
    noted = await rows(database, "select action from audit_entry where subject_id in (select id from unit)")
    assert sorted(noted) == [(name,) for name in ("close-sale", "confirm-deposit", "create", "open", "sign")]


async def test_one_payment_for_two_bookings_of_a_batch_confirms_one_at_once(database: Database) -> None:
    keys = await new_keys(database, "A-1", "A-2", "A-3")
    held = await store(database, *[await opening(database, key) for key in keys])
    await store(database, *[sales.signature(key, one.booking) for key, one in zip(keys, held, strict=True)])
    paid = [
        deposit(key, one.booking, payment_id=payment)
        for key, one, payment in zip(keys, held, ("pay_1", "pay_1", "pay_2"), strict=True)
    ]
    # Nothing is decided twice, as it would be if the database had to refuse the second.
    counting = CountingDatabase(database)
    assert kinds(await write(counting, paid)) == [WriteResult, errors.PaymentUsed, WriteResult]
    assert counting.transactions == 1
    assert kinds(await write(database, paid)) == [WriteResult, errors.PaymentUsed, WriteResult]


async def test_a_payment_that_was_overtaken_at_one_booking_confirms_the_other(database: Database) -> None:
    keys = await new_keys(database, "A-1", "A-2")
    held = await store(database, *[await opening(database, key) for key in keys])
    await store(database, *[sales.signature(key, one.booking) for key, one in zip(keys, held, strict=True)])
    first, second = [
        deposit(key, one.booking, payment_id="pay_1") for key, one in zip(keys, held, strict=True)
    ]
    another = deposit(keys[0], held[0].booking, payment_id="pay_2")
    overtaken = InterferingDatabase(database, before_store=lambda: store(database, another))
    assert kinds(await write(overtaken, [first, second])) == [errors.TransitionNotAllowed, WriteResult]
    assert (await found(database, held[1].booking)).payment_id == "pay_1"


async def test_the_holds_of_a_network_are_a_share_of_the_units_of_its_project(database: Database) -> None:
    keys, limits = await new_keys(database, *(f"A-{number}" for number in range(9))), HoldLimits(2, 0, 0, 40)
    network, other = [Holder(project_network_id=uuid4()) for _ in range(2)]
    await done(database, PatchUnit(keys[8], {}, Status.UNAVAILABLE))
    asked = [await opening(database, key, network, limits) for key in keys[:8]]
    first, *outcomes = await write(database, asked[:5])
    assert isinstance(first, WriteResult)
    assert kinds(outcomes) == [WriteResult] * 3 + [errors.TooManyHoldsAtAddress]
    assert kinds(await write(database, [await opening(database, keys[4], other, limits)])) == [WriteResult]
    # A hold that has lapsed or was cancelled does not count, and one that is signed does.
    await make_lapse(database, first.booking)
    assert kinds(await write(database, asked[5:])) == [WriteResult] + [errors.TooManyHoldsAtAddress] * 2
    second = outcomes[0]
    assert isinstance(second, WriteResult)
    await done(database, sales.signature(keys[1], second.booking))
    assert kinds(await write(database, asked[6:7])) == [errors.TooManyHoldsAtAddress]
    await done(database, cancellation(keys[1], second.booking))
    assert kinds(await write(database, asked[6:])) == [WriteResult, errors.TooManyHoldsAtAddress]


@pytest.mark.parametrize("by", ["visitor", "address"])
async def test_the_holds_of_one_batch_count_against_the_limit(database: Database, by: str) -> None:
    keys = await new_keys(database, *(f"A-{number}" for number in range(5)))
    holder = Holder(None, uuid4()) if by == "visitor" else Holder(uuid4(), None)
    outcomes = await write(database, [await opening(database, key, holder) for key in keys])
    refused = errors.TooManyHolds if by == "visitor" else errors.TooManyHoldsAtAddress
    assert kinds(outcomes) == [WriteResult] * 3 + [refused] * 2
    places = f"select {by}_slot from booking order by {by}_slot"
    assert await rows(database, places) == [(1,), (2,), (3,)]
    first = outcomes[0]
    assert isinstance(first, WriteResult)
    await done(database, cancellation(keys[0], first.booking))
    outcomes = await write(database, [await opening(database, key, holder) for key in keys[3:]])
    assert kinds(outcomes) == [WriteResult, refused]
    assert await rows(database, places) == [(1,), (2,), (3,), (None,)]


async def test_a_signature_is_no_second_hold(database: Database) -> None:
    keys = await new_keys(database, "A-1", "A-2", "A-3")
    holder = Holder(uuid4(), uuid4())
    held = await store(database, *[await opening(database, key, holder) for key in keys[:2]])
    signatures = [sales.signature(key, one.booking) for key, one in zip(keys, held, strict=False)]
    *_, third = await store(database, *signatures, await opening(database, keys[2], holder))
    assert third.booking.slots == Slots(3, 3)


async def test_a_hold_of_a_free_unit_takes_two_statements(database: Database) -> None:
    (key,) = await new_keys(database, "A-1")
    counting = CountingDatabase(database)
    await store(counting, await opening(database, key))
    assert len(counting.statements) == 2, counting.statements


async def test_a_hold_right_behind_a_cancellation_is_counted_too(database: Database) -> None:
    """The unit is not free when the batch begins. One that was not counted would be refused by the database,
    each time, and with it a stranger in the batch."""
    keys = await new_keys(database, "A-1", "A-2", "A-3", "A-4", "B-1")
    holder = Holder(uuid4(), None)
    await store(database, *[await opening(database, key, holder) for key in keys[:2]])
    commands: list[Command] = [
        cancellation(keys[2], await hold(database, keys[2])),
        await opening(database, keys[2], holder),
        await opening(database, keys[4]),
    ]
    counting = CountingDatabase(database)
    _, held, _ = await store(counting, *commands)
    assert (held.booking.slots.of_address, counting.transactions) == (3, 1)
    taken = await hold(database, keys[3])
    outcomes = await write(database, [cancellation(keys[3], taken), await opening(database, keys[3], holder)])
    assert kinds(outcomes) == [WriteResult, errors.TooManyHoldsAtAddress]


async def test_whoever_lets_a_hold_lapse_waits_even_if_nobody_has_written_its_end(database: Database) -> None:
    key = await new_unit(database)
    holder, other = Holder(None, uuid4()), Holder(None, uuid4())
    (held,) = await store(database, await opening(database, key, holder))
    await make_lapse(database, held.booking)
    again = [await opening(database, key, who) for who in (holder, other, holder)]
    assert kinds(await write(database, again)) == [errors.HeldTooRecently, WriteResult, errors.NotAvailable]
    assert (await found(database, held.booking)).status is BookingStatus.LAPSED


@pytest.mark.parametrize("table", ["booking", "event", "audit_entry"])
async def test_a_hold_is_stored_with_its_booking_its_event_and_its_entry_or_not_at_all(
    database: Database, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    key = await new_unit(database)
    await execute(database, REFUSE.format(table=table, state="check_violation", condition="true"))
    assert kinds(await write(database, [await opening(database, key)])) == [errors.InvalidInput]
    counts = "select (select count(*) from booking), (select count(*) from event), count(*) from audit_entry"
    assert await rows(database, f"{counts} where action = 'open'") == [(0, 0, 0)]
    assert await rows(database, "select status, version, turn from unit") == [("available", 1, 1)]
    assert logged(caplog) == [("the database rejected a change that the domain allows", "A-1", "23514")]


async def test_an_overtaken_command_fails_alone(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    keys = await new_keys(database, "A-0", "A-1", "A-2")
    commands = [await opening(database, key) for key in keys]
    second = f"new.number = {commands[1].request.draft.number}"
    await execute(database, REFUSE.format(table="booking", state="serialization_failure", condition=second))
    outcomes = await write(database, [*commands, replacement(keys[0][0], "B-1")])
    assert kinds(outcomes) == [WriteResult, RetriesExhausted, WriteResult, WriteResult]
    assert isinstance(outcomes[1], errors.DatabaseUnavailable)
    assert "Other changes came first each time" in str(outcomes[1])
    assert logged(caplog) == [("a change was overtaken again and again", "A-1", "not today")]
    stored = await rows(database, "select status from unit order by code")
    assert stored == [("held",), ("available",), ("held",), ("available",)]


# A decision sees a unit and its booking as they were at the same time.


async def overtaken(database: Database, command: Command, meanwhile: Hook) -> WriteResult:
    (written,) = await store(InterferingDatabase(database, meanwhile), command)
    return written


async def test_a_signature_or_a_deposit_between_two_looks_is_seen(database: Database) -> None:
    """The unit is the same before and after a signature; only its turn is not."""
    key, other = await new_keys(database, "A-1", "A-2")
    held = await hold(database, key)
    paid = await overtaken(database, deposit(key, held), lambda: done(database, sales.signature(key, held)))
    assert (paid.unit.status, paid.booking.status) == (Status.RESERVED, BookingStatus.RESERVED)
    signed = await sales.sign(database, other)
    sold = await overtaken(database, closing(other, signed), lambda: done(database, deposit(other, signed)))
    assert (sold.unit.status, sold.booking.status) == (Status.SOLD, BookingStatus.SOLD)


async def test_a_booking_is_never_put_beside_a_unit_of_another_moment(database: Database) -> None:
    """Both paid at once, late: whoever comes second must not answer with a unit that is still free."""
    key = await new_unit(database)
    late = (await done(database, cancellation(key, await sales.sign(database, key)))).booking
    written = await overtaken(database, deposit(key, late), lambda: done(database, deposit(key, late)))
    assert (written.unit.status, written.booking.status) == (Status.RESERVED, BookingStatus.RESERVED)
    assert not written.changed


async def test_a_claim_that_is_gone_at_the_second_look_is_looked_for_again(database: Database) -> None:
    key = await new_unit(database)
    held = await hold(database, key)
    written = await overtaken(database, sales.archiving(key), lambda: done(database, cancellation(key, held)))
    assert (written.unit.status, written.unit.archived) == (Status.UNAVAILABLE, True)
    assert [event.previous_status for event in written.decision.events] == [Status.AVAILABLE]
    assert written.decision.booking is None


async def test_a_claim_of_somebody_else_that_came_between_is_the_one_that_ends(database: Database) -> None:
    key = await new_unit(database)
    first = await hold(database, key)

    async def somebody_else_holds_it() -> None:
        await done(database, cancellation(key, first))
        await hold(database, key)

    written = await overtaken(database, sales.archiving(key), somebody_else_holds_it)
    assert written.booking.number != first.number
    assert written.booking.status is BookingStatus.CANCELLED


# As the sweeper writes it.
END = """
    update booking set status = 'lapsed', ended_at = hold_expires_at, address_slot = null, visitor_slot = null
    where number = $1
"""


class GivenUpError(Exception):
    """The sweeper's transaction comes to nothing."""


@pytest.mark.parametrize(("who", "slots"), [("address", Slots(1, None)), ("visitor", Slots(None, 1))])
@pytest.mark.parametrize("committed", [True, False])
async def test_a_hold_that_is_over_does_not_count_while_its_end_is_being_written(
    database: Database, who: str, slots: Slots, committed: bool
) -> None:
    keys = await new_keys(database, "A-1", "A-2")
    holder, one_each = Holder(**{f"{who}_id": uuid4()}), HoldLimits(1, 1, 0)
    first, second = [await opening(database, key, holder, one_each) for key in keys]
    booking = (await done(database, first)).booking
    await make_lapse(database, booking)
    with suppress(GivenUpError):
        async with database.writing() as connection:
            await connection.execute(END, booking.number)
            asked = asyncio.create_task(store(database, second))
            await until_somebody_waits(database)
            if not committed:
                raise GivenUpError
    (held,) = await asked
    assert held.booking.slots == slots
