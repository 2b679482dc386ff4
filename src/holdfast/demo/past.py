"""The demo's past: 90 days of sales, lapsed holds, refunds and new prices, decided by the rules of today."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import itemgetter
from random import Random
from typing import NamedTuple
from uuid import UUID

from holdfast.demo.deliveries import REGISTERED_DAYS, deliver_past
from holdfast.demo.project import EMAIL, DemoUnit, demo_units
from holdfast.domain import booking_actions as actions
from holdfast.domain.audit import CLOCK, ActorKind, Author
from holdfast.domain.booking import BookingStatus, Buyer, Draft
from holdfast.domain.decision import Decision, UnitSnapshot, expire
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.errors import DomainError, StatusLocked
from holdfast.domain.holds import HoldPeriods, HoldRequest, open_unit
from holdfast.domain.seller import Seller
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from holdfast.operations.booking_commands import BookingCommand, BookingDrafts, Decide
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.operations.write_path import Batch, Command
from holdfast.simulation.plans import Person, plan_buyers
from holdfast.storage import past
from holdfast.storage.database import Database, current_time

DAYS = 89
"""The units were created so many days ago."""

# The first tower is well under way, the second has just been opened.
SOLD = (
    "A-0102", "A-0103", "A-0104", "A-0106", "A-0201", "A-0203", "A-0204", "A-0302", "A-0305", "A-0306",
    "A-0404", "A-0503", "A-0506", "A-0602", "A-0704", "A-0806", "A-0903", "A-1004", "A-1106", "A-1102",
    "B-0103", "B-0105", "B-0204", "B-0405",
)  # fmt: skip
RESERVED = (
    "A-0205", "A-0303", "A-0402", "A-0504", "A-0606", "A-0803", "A-1006",
    "B-0102", "B-0203", "B-0305", "B-0503", "B-0904",
)  # fmt: skip

# How many days ago.
_OFF_SALE = {"A-0105": 33, "B-0101": 12}
_WALK_IN = {"A-0101": 61, "B-0302": 9}
"""Sold to buyers who were at the sales office."""
_CANCELLED = {
    BookingStatus.CANCELLED: {"A-0403": 52, "A-0703": 27, "B-0303": 11, "B-0701": 0},
    BookingStatus.REFUND_DUE: {"B-0602": 6},
    BookingStatus.REFUNDED: {"A-0304": 70, "B-0401": 40, "A-0904": 22},
}
_NEW_PRICES = {"A": (45, 25_000), "B": (16, -20_000)}
"""By tower, and how many SAR were added."""

_SEED = 2026
_STAFF = Author(ActorKind.STAFF, EMAIL)
_PERIODS = HoldPeriods()

Dated = tuple[datetime, Command]


class Visit(NamedTuple):
    """A buyer at a unit: the status of their booking, and when the seller closed or cancelled it."""

    at: datetime
    code: str
    status: BookingStatus
    ended_at: datetime


def early(now: datetime, days_ago: int = DAYS) -> datetime:
    """Return a time in the morning, before units are held."""
    return (now - timedelta(days=days_ago)).replace(hour=5, minute=30, second=0, microsecond=0)


def visits(now: datetime) -> list[Visit]:
    """Return the visits in the order of time: the same at each start."""
    random = Random(_SEED)  # noqa: S311 - not a secret

    def ago(days: int) -> datetime:
        """In the hours in which people look for a home in Riyadh; of today a moment ago, at any hour."""
        if days <= 0:
            return now.replace(microsecond=0) - timedelta(minutes=random.randint(90, 150))
        return early(now, days) + timedelta(seconds=random.randint(1800, 45_000))

    plan = [(days, code, BookingStatus.SOLD) for code, days in _WALK_IN.items()]
    for place, code in enumerate(random.sample(SOLD, len(SOLD))):
        plan.append((86 - 10 * place // 3, code, BookingStatus.SOLD))
    for place, code in enumerate(random.sample(RESERVED, len(RESERVED))):
        plan.append((place, code, BookingStatus.RESERVED))
    for status, cancelled in _CANCELLED.items():
        plan += [(days, code, status) for code, days in cancelled.items()]
    taken = {*_OFF_SALE, *(code for _, code, _ in plan)}
    for _ in range(85):
        code = f"{random.choice('AAB')}-{random.randint(1, 11):02}0{random.randint(1, 5)}"
        if code not in taken:
            plan.append((random.randint(0, DAYS - 1), code, BookingStatus.LAPSED))
    return sorted(
        Visit(ago(days), code, status, ago(days - random.randint(3, 9))) for days, code, status in plan
    )


async def store_past(
    database: Database, project_id: UUID, public_url: str, seller: Seller, receiver: IssuedSecret | None
) -> None:
    """Store the units, what happened to them, and the deliveries of it, in one transaction."""
    now, drafts = await database.read(current_time), BookingDrafts(database)
    dated = [one for unit in demo_units(public_url) for one in _unit_commands(project_id, unit, now)]
    made = visits(now)
    for visit, buyer in zip(made, plan_buyers(len(made), _SEED), strict=True):
        drafted = await drafts.draft()
        dated += _booking_commands(project_id, visit, buyer.person, drafted.draft, seller)
    dated.sort(key=itemgetter(0))
    batch = Batch([command for _, command in dated], is_final=True)
    async with database.writing() as connection:
        await past.backdate(connection, early(now))
        await batch.load(connection, database.project_cache, locked=True)
        batch.decide_past([at for at, _ in dated])
        for outcome in batch.outcomes:
            # The price of a unit that was reserved or sold by then stays.
            if isinstance(outcome, DomainError) and not isinstance(outcome, StatusLocked):
                raise outcome
        await batch.store(connection)
        if receiver is not None:
            await deliver_past(connection, receiver, early(now, REGISTERED_DAYS))


def _unit_commands(project_id: UUID, unit: DemoUnit, now: datetime) -> Iterator[Dated]:
    key, price = (project_id, unit.code), unit.fields.price_sar
    days_ago, added = _NEW_PRICES[unit.code[0]]
    yield early(now), ReplaceUnit(key, unit.fields._replace(price_sar=price - added), unit.status)
    yield early(now, days_ago), PatchUnit(key, {"price_sar": price}, unit.status, author=_STAFF)
    if unit.code in _OFF_SALE:
        off_sale = PatchUnit(key, {}, Status.UNAVAILABLE, author=_STAFF)
        yield early(now, _OFF_SALE[unit.code]), off_sale


def _booking_commands(
    project_id: UUID, visit: Visit, person: Person, draft: Draft, seller: Seller
) -> Iterator[Dated]:
    at, code, status, ended_at = visit
    number, reference, staff = draft.number, draft.reference, Caller.STAFF
    buyer, language = Buyer(person.name, person.email, person.phone), "en" if person.name.isascii() else "ar"
    visitor, payment = Author(ActorKind.BUYER, reference), Author(ActorKind.PAYMENT, f"pay_{reference}")
    request = HoldRequest(draft, Caller.BUYER, _PERIODS)

    def step(at: datetime, minutes: float, author: Author, decide: Decide) -> Dated:
        return at + timedelta(minutes=minutes), BookingCommand((project_id, code), author, number, decide)

    def sign(unit: UnitSnapshot, now: datetime) -> Decision:
        return actions.sign(unit, number, buyer, now, language, seller=seller)

    def pay(unit: UnitSnapshot, now: datetime) -> Decision:
        return actions.confirm_deposit(unit, number, Caller.PAYMENT_SYSTEM, _PERIODS, now, payment.id)

    hold = step(at, 0, visitor, lambda unit, now: open_unit(unit, code, request, now))
    lapse = step(at, 5, CLOCK, lambda unit, _: expire(unit))
    leave = step(at, 2, visitor, lambda unit, now: actions.cancel(unit, number, Caller.BUYER, now))
    walk_in = step(at, 0, _STAFF, lambda unit, now: actions.close_sale(unit, code, draft, buyer, staff, now))
    paid = [hold, step(at, 1.5, visitor, sign), step(at, 3, payment, pay)]
    end = actions.close_sale_of_booking if status is BookingStatus.SOLD else actions.cancel
    ended = [*paid, step(ended_at, 0, _STAFF, lambda unit, now: end(unit, number, staff, now))]
    refund = step(ended_at, 1200, _STAFF, lambda unit, now: actions.mark_refunded(unit, number, now))
    yield from {
        BookingStatus.LAPSED: [hold, lapse],
        BookingStatus.CANCELLED: [hold, leave],
        BookingStatus.RESERVED: paid,
        BookingStatus.SOLD: [walk_in] if code in _WALK_IN else ended,
        BookingStatus.REFUND_DUE: ended,
        BookingStatus.REFUNDED: [*ended, refund],
    }[status]
