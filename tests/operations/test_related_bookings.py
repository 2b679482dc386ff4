"""A decision sees a unit and its booking as they were at the same time."""

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import InvalidInput
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.write_path import Command, WriteResult, write
from holdfast.storage.database import Database
from tests.operations.interference import Hook, InterferingDatabase
from tests.support.booking_commands import change_status, close_booking, close_sale
from tests.support.sales import (
    cancellation,
    deposit,
    done,
    hold,
    new_draft,
    new_units,
    reserve,
    sign,
    signature,
)


async def overtaken(database: Database, command: Command, meanwhile: Hook) -> WriteResult:
    (outcome,) = await write(InterferingDatabase(database, meanwhile), [command])
    assert isinstance(outcome, WriteResult), outcome
    return outcome


async def test_a_signature_between_two_looks_is_seen(database: Database) -> None:
    """The unit is the same before and after it; only its turn is not."""
    key = (await new_units(database, "A-1"), "A-1")
    booking = await hold(database, key)
    written = await overtaken(
        database, deposit(key, booking), lambda: done(database, signature(key, booking))
    )
    assert (written.unit.status, written.booking.status) == (Status.RESERVED, BookingStatus.RESERVED)


async def test_a_booking_is_never_put_beside_a_unit_of_another_moment(database: Database) -> None:
    """Both paid at once, late: whoever comes second must not answer with a unit that is still free."""
    key = (await new_units(database, "A-1"), "A-1")
    late = (await done(database, cancellation(key, await sign(database, key)))).booking
    written = await overtaken(database, deposit(key, late), lambda: done(database, deposit(key, late)))
    assert (written.unit.status, written.booking.status) == (Status.RESERVED, BookingStatus.RESERVED)
    assert not written.changed


async def test_a_claim_that_is_gone_at_the_second_look_is_looked_for_again(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    booking = await hold(database, key)
    archive = change_status(key, COMMAND, Action.ARCHIVE, Caller.STAFF)
    written = await overtaken(database, archive, lambda: done(database, cancellation(key, booking)))
    assert (written.unit.status, written.unit.archived) == (Status.UNAVAILABLE, True)
    assert [event.previous_status for event in written.decision.events] == [Status.AVAILABLE]
    assert written.decision.booking is None


async def test_nobody_is_told_of_a_claim_that_is_gone_at_the_second_look(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    booking = await reserve(database, key)
    close = close_sale(key, COMMAND, Caller.STAFF, await new_draft(database), None)
    interfering = InterferingDatabase(database, lambda: done(database, cancellation(key, booking)))
    (outcome,) = await write(interfering, [close])
    # The unit is available again, so the sale needs the name of its buyer.
    assert isinstance(outcome, InvalidInput), outcome


async def test_a_claim_of_somebody_else_that_came_between_is_the_one_that_ends(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    first = await hold(database, key)

    async def somebody_else_holds_it() -> None:
        await done(database, cancellation(key, first))
        await hold(database, key)

    archive = change_status(key, COMMAND, Action.ARCHIVE, Caller.STAFF)
    written = await overtaken(database, archive, somebody_else_holds_it)
    assert written.booking.number != first.number
    assert written.booking.status is BookingStatus.CANCELLED


async def test_a_deposit_between_two_looks_lets_the_sale_be_closed(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    booking = await sign(database, key)
    close = close_booking(key, COMMAND, booking.number, Caller.STAFF)
    written = await overtaken(database, close, lambda: done(database, deposit(key, booking)))
    assert (written.unit.status, written.booking.status) == (Status.SOLD, BookingStatus.SOLD)
