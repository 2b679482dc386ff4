"""The database takes whatever the domain can make, and refuses what it cannot, whoever writes it."""

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from holdfast.domain import booking_actions
from holdfast.domain.booking import CLAIMING, Booking, BookingStatus
from holdfast.domain.decision import Decision, UnitSnapshot, apply, expire
from holdfast.domain.errors import DomainError
from holdfast.domain.event import EventName
from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS, HoldPeriods
from holdfast.domain.permissions import Role
from holdfast.domain.staff import DIGITS, LANGUAGES, Preferences, Theme
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller
from holdfast.storage import staff
from holdfast.storage.database import ConstraintViolated, Database
from tests.domain.bookings import BUYER, DRAFT, NUMBER, OTHER_NUMBER, after_the_end, booking, claimed
from tests.domain.units import NOW, snapshot, unit
from tests.support.inventory import new_project
from tests.support.sales import new_unit
from tests.support.sql import rows, value

PERIODS = HoldPeriods()
KNOWN = {(row.event, row.source, row.target) for row in TRANSITIONS if row.event}


async def is_refused(database: Database, statement: str, *arguments: object) -> bool:
    try:
        async with database.writing() as connection:
            await connection.execute(statement, *arguments)
    except ConstraintViolated:
        return True
    return False


async def definition(database: Database, constraint: str) -> str:
    found = "select pg_get_constraintdef(oid) from pg_constraint where conname = $1"
    return str(await value(database, found, constraint)).removeprefix("CHECK ")


BEYOND_BOUNDS: dict[str, tuple[Any, ...]] = {
    "code": ("", "x" * 51, " A", "e\N{COMBINING ACUTE ACCENT}"),
    "type": ("", "x" * 101),
    "area_sqm": (Decimal(0), Decimal("9999999.99991"), Decimal("1.00001"), Decimal("NaN")),
    "price_sar": (Decimal("-0.01"), Decimal("0.001"), Decimal(1000000000000), Decimal("NaN")),
    "vat_rate": (Decimal("100.0001"), Decimal("0.00001")),
    "deposit_percent": (Decimal(-1),),
    "bedrooms": (1000,),
    "bathrooms": (-1,),
    "delivery_year": (1899, 2201),
    "floor": (-10, 201),
    "description": ("x" * 10001,),
    "images": ("{}",),
    "files": ("[" + ",".join(["1"] * 101) + "]",),
    "status": ("gone", "held", "reserved"),
    "archived": (True,),
    "version": (0,),
}


async def test_the_database_itself_refuses_units_that_the_domain_refuses(database: Database) -> None:
    await new_unit(database)
    for column, values in BEYOND_BOUNDS.items():
        for beyond in values:
            assert await is_refused(database, f"update unit set {column} = $1", beyond), (column, beyond)


async def test_the_database_knows_the_same_transitions_as_the_status_table(database: Database) -> None:
    """No other event can be stored."""
    statuses = ", ".join(f"('{status}')" for status in [*Status, "gone"])
    names = ", ".join(f"('{name}')" for name in [*EventName, "ping"])
    known = await rows(
        database,
        f"""
        select type, previous_status, status
        from (values {names}) as event (type)
        cross join (values {statuses}) as before (previous_status)
        cross join (values {statuses}) as after (status)
        where {await definition(database, "known_transition")}
        """,
    )
    assert set(known) == KNOWN


@pytest.mark.parametrize(
    ("column", "longest"),
    [("hold_seconds", LONGEST_HOLD_SECONDS), ("reservation_days", LONGEST_RESERVATION_DAYS)],
)
async def test_the_longest_periods_agree(database: Database, column: str, longest: float) -> None:
    await new_project(database)
    periods = (0, 0.00001, longest, longest + 0.001)
    refused = [await is_refused(database, f"update project set {column} = $1", one) for one in periods]
    assert refused == [True, False, False, True]


async def test_every_role_and_preference_of_staff_can_be_stored_and_no_other(database: Database) -> None:
    for role in Role:
        person = await database.write(staff.insert, uuid4(), f"{role}@b", "A", role, None)
        assert (person.role, person.preferences) == (role, Preferences())
    assert await is_refused(database, "update staff set role = 'owner'")
    for language, digits, theme in product(LANGUAGES, DIGITS, Theme):
        wanted = Preferences(language, digits, theme)
        assert (await database.write(staff.update_preferences, person.id, wanted)).preferences == wanted
    # A new person has nothing to sign in with.
    account = await database.read(staff.find_account_by_email, f"{person.email.upper()}")
    assert account is not None
    assert account.staff.id == person.id
    assert (person.has_password, person.has_second_factor) == (False, False)
    assert (account.password_hash, account.factor_sealed, account.offered_sealed) == (None, None, None)
    assert person.failures_seen_at >= person.created_at.replace(microsecond=0)


# Bookings

TIMES = ("signed_at", "deposit_confirmed_at", "reserved_until", "closed_at", "ended_at", "refunded_at")
SOUND = f"""
    select status, {", ".join(f"{name} is not null" for name in TIMES)}
    from unnest($1::text[]) as status,
        {", ".join(f"(values (null), (now())) as at_{name} ({name})" for name in TIMES)}
    where is_sound_booking(status, {", ".join(TIMES)})
"""


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


async def test_the_database_takes_the_bookings_that_the_domain_makes(database: Database) -> None:
    sound = {
        Form(status, tuple(times)) for status, *times in await rows(database, SOUND, list(BookingStatus))
    }
    assert {form.status for form in reachable()} == set(BookingStatus)
    assert reachable() - sound == set()
    forms = [Form(status, times) for status in BookingStatus for times in product((False, True), repeat=6)]
    assert sound == {form for form in forms if is_lawful(form)}
    # The table asks for the times in their order.
    constraint = await definition(database, "sound_booking")
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


async def test_an_erased_booking_has_nothing_left_of_its_buyer(database: Database) -> None:
    erasable = {status for status in BookingStatus if can_be_erased(status)}
    # Late money of somebody who was erased before it came.
    later = {BookingStatus.REFUND_DUE}
    taken = set(await rows(database, ERASED, list(BookingStatus)))
    assert taken == {(status, False, False) for status in erasable | later}
