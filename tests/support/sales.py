"""Bookings made through our own operations, inside the test's process."""

from dataclasses import replace
from uuid import UUID

from holdfast.domain import booking_actions as actions
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Booking, Buyer, Draft, Holder
from holdfast.domain.holds import NO_LIMITS, HoldLimits, HoldPeriods, HoldRequest
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.booking_commands import BookingCommand, BookingDrafts, Decide, HoldUnit
from holdfast.operations.write_path import Command, WriteResult, write
from holdfast.storage import bookings
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey
from tests.support.inventory import new_project, replacement, store
from tests.support.unit_rows import END_NOW, WAIT

BUYER = Buyer("Nora Al-Harbi", "nora@example.com", "+966 50 123 4567")
PERIODS = HoldPeriods()
CODE = "A-1"


async def new_draft(database: Database, holder: Holder | None = None) -> Draft:
    drafted = await BookingDrafts(database).draft()
    return drafted.draft if holder is None else drafted.draft._replace(holder=holder)


async def new_opening(
    database: Database,
    hold_seconds: float = 300,
    holder: Holder | None = None,
    limits: HoldLimits = NO_LIMITS,
) -> HoldRequest:
    draft = await new_draft(database, holder)
    return HoldRequest(draft, Caller.BUYER, HoldPeriods(hold_seconds=hold_seconds), limits)


async def new_units(database: Database, *codes: str) -> UUID:
    """A project with these units on sale; its id."""
    project_id = await new_project(database)
    await store(database, *(replacement(project_id, code) for code in codes))
    return project_id


async def new_unit(database: Database) -> UnitKey:
    """A project with one unit on sale."""
    return await new_units(database, CODE), CODE


async def done(database: Database, command: Command) -> WriteResult:
    (outcome,) = await write(database, [command])
    assert isinstance(outcome, WriteResult), outcome
    return outcome


async def hold(database: Database, key: UnitKey, hold_seconds: float = 300) -> Booking:
    return (await done(database, HoldUnit(key, COMMAND, await new_opening(database, hold_seconds)))).booking


def command(key: UnitKey, booking: Booking | None, run: Decide) -> BookingCommand:
    return BookingCommand(key, COMMAND, booking and booking.number, run)


def signature(key: UnitKey, booking: Booking, language: str = actions.LANGUAGE) -> BookingCommand:
    return command(key, booking, lambda found, now: actions.sign(found, booking.number, BUYER, now, language))


def deposit(
    key: UnitKey, booking: Booking, periods: HoldPeriods = PERIODS, payment_id: str | None = None
) -> BookingCommand:
    confirmation = command(
        key,
        booking,
        lambda found, now: actions.confirm_deposit(
            found, booking.number, Caller.PAYMENT_SYSTEM, periods, now, payment_id
        ),
    )
    return replace(confirmation, payment_id=payment_id)


def cancellation(key: UnitKey, booking: Booking) -> BookingCommand:
    return command(key, booking, lambda found, now: actions.cancel(found, booking.number, Caller.STAFF, now))


def closing(key: UnitKey, booking: Booking) -> BookingCommand:
    return command(
        key,
        booking,
        lambda found, now: actions.close_sale_of_booking(found, booking.number, Caller.STAFF, now),
    )


def refund(key: UnitKey, booking: Booking) -> BookingCommand:
    return command(key, booking, lambda found, now: actions.mark_refunded(found, booking.number, now))


def archiving(key: UnitKey) -> BookingCommand:
    return command(
        key,
        None,
        lambda found, now: actions.change_status(found, key[1], Action.ARCHIVE, Caller.STAFF, now),
    )


async def sign(database: Database, key: UnitKey, hold_seconds: float = 300) -> Booking:
    return (await done(database, signature(key, await hold(database, key, hold_seconds)))).booking


async def reserve(database: Database, key: UnitKey, seconds: float = 86_400) -> Booking:
    booking, periods = await sign(database, key), HoldPeriods(reservation_days=seconds / 86_400)
    return (await done(database, deposit(key, booking, periods))).booking


async def sell(database: Database, key: UnitKey) -> Booking:
    booking = await reserve(database, key)
    return (await done(database, closing(key, booking))).booking


async def found(database: Database, booking: Booking) -> Booking:
    """As readers see it."""
    seen = await database.read(bookings.find, booking.reference)
    assert seen is not None
    return seen.booking


async def stored(database: Database, booking: Booking) -> Booking:
    """As it stands in its row, whatever the clock says."""
    ((_, found),) = await database.read(bookings.load_related, [], [booking.number])
    return found


async def refund_due(database: Database, key: UnitKey) -> Booking:
    return (await done(database, cancellation(key, await reserve(database, key)))).booking


async def make_lapse(database: Database, *made: Booking) -> None:
    """What was to end later is over by the database's clock."""
    async with database.writing() as connection:
        end = await connection.fetchval(END_NOW, [booking.reference for booking in made])
        await connection.execute(WAIT, end)
