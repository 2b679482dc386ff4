"""The database takes every booking that the domain can make, and none that it cannot."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from holdfast.domain import booking_actions
from holdfast.domain.booking import CLAIMING, Booking, BookingStatus
from holdfast.domain.decision import Decision, UnitSnapshot, apply, expire
from holdfast.domain.errors import DomainError
from holdfast.domain.holds import HoldPeriods
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.storage.database import Database
from tests.domain.bookings import BUYER, DRAFT, NUMBER, OTHER_NUMBER, after_the_end, booking, claimed
from tests.domain.units import NOW, snapshot, unit

TIMES = ("signed_at", "deposit_confirmed_at", "reserved_until", "closed_at", "ended_at", "refunded_at")
SOUND = f"""
    select status, {", ".join(f"{name} is not null" for name in TIMES)}
    from unnest($1::text[]) as status,
        {", ".join(f"(values (null), (now())) as at_{name} ({name})" for name in TIMES)}
    where is_sound_booking(status, {", ".join(TIMES)})
"""
PERIODS = HoldPeriods()


class Form(NamedTuple):
    """What is there of a booking in a status."""

    status: str
    times: tuple[bool, ...]


def form_of(one: Booking) -> Form:
    return Form(one.status, tuple(getattr(one, name) is not None for name in TIMES))


def decisions(found: UnitSnapshot, number: int) -> list[Decision]:
    """Everything that can be done to a booking and its unit."""
    steps: list[Callable[[], Decision]] = [
        lambda: booking_actions.sign(found, number, BUYER, NOW),
        lambda: booking_actions.cancel(found, number, Caller.STAFF, NOW),
        lambda: booking_actions.extend_booking(found, number, Caller.STAFF, None, PERIODS, NOW),
        lambda: booking_actions.confirm_deposit(found, number, Caller.STAFF, PERIODS, NOW),
        lambda: booking_actions.close_sale_of_booking(found, number, Caller.STAFF, NOW),
        lambda: booking_actions.mark_refunded(found, number, NOW),
        lambda: booking_actions.change_status(found, "A-101", Action.ARCHIVE, Caller.STAFF, NOW),
        lambda: booking_actions.change_status(found, "A-101", Action.PUT_ON_SALE, Caller.STAFF, NOW),
        lambda: booking_actions.change_status(found, "A-101", Action.REVOKE_SALE, Caller.ADMIN, NOW),
    ]
    if found.booking is not None and found.booking.ends_at is not None:
        steps.append(lambda: expire(found))
    made = []
    for step in steps:
        try:
            made.append(step())
        except DomainError:
            continue
    return made


def reachable() -> set[Form]:
    """From a hold and from a sale to a walk-in, by every way there is; also while another has the unit."""
    walk_in = booking_actions.close_sale(snapshot(unit()), "A-101", DRAFT, BUYER, Caller.STAFF, NOW)
    start = [(claimed(), NUMBER), (apply(snapshot(unit()), walk_in), OTHER_NUMBER)]
    forms: set[Form] = set()
    seen: set[tuple[Form, str]] = set()
    while start:
        found, number = start.pop()
        one = found.booking_numbered(number)
        assert one is not None
        assert found.unit is not None
        if (form_of(one), found.unit.status) in seen:
            continue
        seen.add((form_of(one), found.unit.status))
        forms.add(form_of(one))
        start += [(apply(found, decision), number) for decision in decisions(found, number)]
        if one.status not in CLAIMING:
            taken = found._replace(unit=unit(Status.HELD), booking=booking(number=number + 1))
            start.append((taken, number))
    return forms


async def sound(database: Database) -> set[Form]:
    async with database.reading() as connection:
        rows = await connection.fetch(SOUND, list(BookingStatus))
    return {Form(row[0], tuple(row[1:])) for row in rows}


def test_the_domain_reaches_every_status() -> None:
    assert {form.status for form in reachable()} == set(BookingStatus)


async def test_whatever_the_domain_makes_of_a_booking_can_be_stored(database: Database) -> None:
    assert reachable() - await sound(database) == set()


def is_lawful(form: Form) -> bool:
    """What each status says of the times, in words of its own."""
    signed, paid, until, closed, ended, refunded = form.times
    lives = not ended and not refunded
    return {
        BookingStatus.OPEN: lives and not signed and not paid and not closed,
        BookingStatus.SIGNED: lives and signed and not paid and not closed,
        BookingStatus.RESERVED: lives and signed and paid and until and not closed,
        BookingStatus.SOLD: lives and closed,
        BookingStatus.LAPSED: ended and not paid and not refunded,
        BookingStatus.CANCELLED: ended and not paid and not refunded,
        BookingStatus.REFUND_DUE: ended and paid and not refunded,
        BookingStatus.REFUNDED: ended and paid and refunded,
    }[BookingStatus(form.status)]


async def test_the_database_takes_what_is_lawful_and_nothing_else(database: Database) -> None:
    forms = [Form(status, times) for status in BookingStatus for times in product((False, True), repeat=6)]
    assert await sound(database) == {form for form in forms if is_lawful(form)}


async def test_the_table_asks_for_the_times_in_their_order(database: Database) -> None:
    async with database.reading() as connection:
        constraint = await connection.fetchval(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'sound_booking'"
        )
    places = [constraint.index(name) for name in ("is_sound_booking", *TIMES)]
    assert places == sorted(places)


ERASED = """
    select status, named, linked from unnest($1::text[]) as status,
        (values (false), (true)) as is_named (named), (values (false), (true)) as is_linked (linked)
    where is_rid_of_its_buyer(
        status, case when named then 'x' end, null, null, case when linked then gen_random_uuid() end, null
    )
"""


def can_be_erased(status: BookingStatus) -> bool:
    found = claimed(status) if status in CLAIMING else after_the_end(status)
    try:
        booking_actions.erase_buyer(found, NUMBER, NOW)
    except DomainError:
        return False
    return True


async def test_the_database_takes_a_booking_as_erased_when_nothing_is_left_of_its_buyer(
    database: Database,
) -> None:
    async with database.reading() as connection:
        rows = [tuple(row) for row in await connection.fetch(ERASED, list(BookingStatus))]
    erasable = {status for status in BookingStatus if can_be_erased(status)}
    # Late money of somebody who was erased before it came.
    later = {BookingStatus.REFUND_DUE}
    assert set(rows) == {(status, False, False) for status in erasable | later}
