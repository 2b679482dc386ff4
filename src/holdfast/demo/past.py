"""Store the demo's units with their past, by the rules that decide what happens to units today."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from operator import itemgetter
from uuid import UUID

from holdfast.demo import history
from holdfast.demo.deliveries import deliver_past
from holdfast.demo.history import UNPAID, Visit
from holdfast.demo.project import DemoUnit
from holdfast.demo.seller import SELLER
from holdfast.domain import booking_actions as actions
from holdfast.domain.api_key import Key
from holdfast.domain.audit import CLOCK, ActorKind, Author
from holdfast.domain.booking import BookingStatus, Draft
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.decision import Decision, UnitSnapshot, expire
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.errors import DomainError
from holdfast.domain.holds import HoldPeriods, HoldRequest
from holdfast.domain.staff import Staff
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from holdfast.operations.booking_commands import BookingCommand, BookingDrafts, HoldUnit
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import sum_up
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.operations.write_path import Batch, Command
from holdfast.storage import past
from holdfast.storage.audit import INSTALLATION_ID
from holdfast.storage.database import Database, current_time
from holdfast.storage.units import UnitKey

_PERIODS = HoldPeriods()
_PAYING, _REFUNDING = timedelta(seconds=80), timedelta(hours=20)
_SELLER_ACTIONS = {
    BookingStatus.SOLD: (BookingAction.CLOSE_SALE,),
    BookingStatus.REFUND_DUE: (BookingAction.CANCEL,),
    BookingStatus.REFUNDED: (BookingAction.CANCEL, BookingAction.MARK_REFUNDED),
}

Dated = tuple[datetime, Command]


async def store_past(
    database: Database,
    project_id: UUID,
    units: Iterable[DemoUnit],
    staff: Staff,
    key: Key,
    receiver: IssuedSecret | None,
) -> None:
    """Store the units, what happened to them, and the deliveries of it, in one transaction.

    ``staff`` sells, and ``key`` is that of the system that sets prices: both were there from the beginning.
    """
    now = await database.read(current_time)
    seller, pricing = Author(ActorKind.STAFF, staff.email), Author(ActorKind.KEY, str(key.id))
    drafts, paid_at, dated = BookingDrafts(database), dict[str, datetime](), list[Dated]()
    for visit in history.visits(now):
        if visit.status not in UNPAID:
            paid_at[visit.code] = visit.at
        drafted = await drafts.draft()
        commands = _walk_in_commands if visit.is_walk_in else _visit_commands
        dated += commands((project_id, visit.code), visit, drafted.draft, seller)
    for unit in units:
        dated += _unit_commands((project_id, unit.code), unit, paid_at.get(unit.code, now), pricing, now)
    for code, days_ago in history.OFF_SALE.items():
        off_sale = PatchUnit((project_id, code), {}, Status.UNAVAILABLE, author=seller)
        dated.append((history.early(now, days_ago), off_sale))
    dated.sort(key=itemgetter(0))
    batch = Batch([command for _, command in dated], is_final=True)
    async with database.writing() as connection:
        await batch.load(connection, database.project_cache, locked=True)
        batch.decide_past([at for at, _ in dated])
        for outcome in batch.outcomes:
            if isinstance(outcome, DomainError):
                raise outcome
        await batch.store(connection)
        await past.backdate(connection, [project_id, staff.id, key.id, INSTALLATION_ID], history.early(now))
        if receiver is not None:
            await deliver_past(connection, receiver, now)
    await EventFeed(database).number()
    await sum_up(database)


def _unit_commands(
    key: UnitKey, unit: DemoUnit, paid_at: datetime, pricing: Author, now: datetime
) -> Iterator[Dated]:
    fields = unit.fields
    for days_ago, tower, floors, change in history.PRICE_CHANGES:
        if unit.code[0] == tower and fields.floor in floors:
            at = history.early(now, days_ago)
            # Whoever had reserved it has bought it for the earlier price.
            if at < paid_at:
                yield at, PatchUnit(key, {"price_sar": fields.price_sar}, author=pricing)
            fields = fields._replace(price_sar=fields.price_sar - change)
    yield history.early(now), ReplaceUnit(key, fields, unit.status)


def _walk_in_commands(key: UnitKey, visit: Visit, draft: Draft, seller: Author) -> Iterator[Dated]:
    def sell(unit: UnitSnapshot, now: datetime) -> Decision:
        return actions.close_sale(unit, visit.code, draft, visit.buyer, Caller.STAFF, now)

    yield visit.at, BookingCommand(key, seller, None, sell)


def _visit_commands(key: UnitKey, visit: Visit, draft: Draft, seller: Author) -> Iterator[Dated]:
    status, number, buyer = visit.status, draft.number, Author(ActorKind.BUYER, draft.reference)

    def act(author: Author, action: BookingAction, caller: Caller = Caller.STAFF) -> BookingCommand:
        def run(unit: UnitSnapshot, now: datetime) -> Decision:
            return actions.act_on_booking(unit, number, action, caller, _PERIODS, now, payment_id=author.id)

        return BookingCommand(key, author, number, run)

    def sign(unit: UnitSnapshot, now: datetime) -> Decision:
        return actions.sign(unit, number, visit.buyer, now, visit.language, seller=SELLER)

    yield visit.at, HoldUnit(key, buyer, HoldRequest(draft, Caller.BUYER, _PERIODS))
    signed_at = visit.at + timedelta(seconds=50 + visit.number)
    if status is BookingStatus.CANCELLED:
        yield signed_at, act(buyer, BookingAction.CANCEL, Caller.BUYER)
    elif status is not BookingStatus.LAPSED or visit.number % 3 == 0:
        yield signed_at, BookingCommand(key, buyer, number, sign)
    if status is BookingStatus.LAPSED:
        lapsed_at = visit.at + timedelta(seconds=_PERIODS.hold_seconds)
        yield lapsed_at, BookingCommand(key, CLOCK, number, lambda unit, _: expire(unit))
    elif status is not BookingStatus.CANCELLED:
        payment = Author(ActorKind.PAYMENT, f"pay_{draft.reference}")
        yield signed_at + _PAYING, act(payment, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM)
    for place, action in enumerate(_SELLER_ACTIONS.get(status, ())):
        yield visit.ended_at + place * _REFUNDING, act(seller, action)
