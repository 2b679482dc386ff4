"""Bookings made through our own operations, inside the test's process."""

from uuid import UUID

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Booking, Buyer, Draft, Holder
from holdfast.domain.errors import DomainError
from holdfast.domain.holds import NO_LIMITS, HoldLimits, HoldPeriods, HoldRequest
from holdfast.domain.transitions import Caller
from holdfast.operations.booking_commands import BookingCommand, BookingDrafts, HoldUnit
from holdfast.operations.write_path import Command, WriteResult, write
from holdfast.storage import bookings
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey
from tests.support.booking_commands import cancel_booking, close_booking, confirm_deposit, sign_booking
from tests.support.inventory import new_project, replacement, store

BUYER = Buyer("Nora Al-Harbi", "nora@example.com", "+966 50 123 4567")
PERIODS = HoldPeriods()


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


async def done(database: Database, command: Command) -> WriteResult:
    (outcome,) = await write(database, [command])
    assert isinstance(outcome, WriteResult), outcome
    return outcome


async def refused(database: Database, command: Command) -> DomainError:
    (outcome,) = await write(database, [command])
    assert isinstance(outcome, DomainError), outcome
    return outcome


async def hold(database: Database, key: UnitKey, hold_seconds: float = 300) -> Booking:
    return (await done(database, HoldUnit(key, COMMAND, await new_opening(database, hold_seconds)))).booking


def signature(key: UnitKey, booking: Booking) -> BookingCommand:
    return sign_booking(key, COMMAND, booking.number, BUYER)


def deposit(key: UnitKey, booking: Booking, periods: HoldPeriods = PERIODS) -> BookingCommand:
    return confirm_deposit(key, COMMAND, booking.number, Caller.PAYMENT_SYSTEM, periods)


def cancellation(key: UnitKey, booking: Booking) -> BookingCommand:
    return cancel_booking(key, COMMAND, booking.number, Caller.STAFF)


async def sign(database: Database, key: UnitKey, hold_seconds: float = 300) -> Booking:
    return (await done(database, signature(key, await hold(database, key, hold_seconds)))).booking


async def reserve(database: Database, key: UnitKey, seconds: float = 86_400) -> Booking:
    booking, periods = await sign(database, key), HoldPeriods(reservation_days=seconds / 86_400)
    return (await done(database, deposit(key, booking, periods))).booking


async def sell(database: Database, key: UnitKey) -> Booking:
    booking = await reserve(database, key)
    return (await done(database, close_booking(key, COMMAND, booking.number, Caller.STAFF))).booking


async def found(database: Database, booking: Booking) -> Booking:
    """As readers see it."""
    async with database.reading() as connection:
        seen = await bookings.find(connection, booking.number)
    assert seen is not None
    return seen.booking


async def stored(database: Database, booking: Booking) -> Booking:
    """As it stands in its row, whatever the clock says."""
    async with database.reading() as connection:
        ((_, found),) = await bookings.load_related(connection, [], [booking.number])
    return found


async def refund_due(database: Database, key: UnitKey) -> Booking:
    return (await done(database, cancellation(key, await reserve(database, key)))).booking


async def make_lapse(database: Database, *made: Booking) -> None:
    """What was to end later is over: unit and booking are given an end that has just passed."""
    numbers = [booking.number for booking in made]
    async with database.writing() as connection:
        for statement in END_NOW:
            await connection.execute(statement, numbers)


_JUST_NOW = "date_trunc('milliseconds', now()) - interval '5 milliseconds'"
END_NOW = (
    f"""
    update unit set updated_at = created_at,
        hold_expires_at = case when status = 'held' then {_JUST_NOW} end,
        reserved_until = case when status = 'reserved' then {_JUST_NOW} end
    where id in (select unit_id from booking where number = any($1))
    """,
    """
    update booking
    set hold_expires_at = coalesce(unit.hold_expires_at, booking.hold_expires_at),
        reserved_until = unit.reserved_until
    from unit where unit.id = booking.unit_id and number = any($1)
    """,
)
