"""Store the demo's units with their past, by the rules that decide what happens to units today."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from uuid import UUID

from holdfast.demo import history
from holdfast.demo.deliveries import deliver_past
from holdfast.demo.history import UNPAID, Outcome, Visit
from holdfast.demo.project import DemoUnit, round_price
from holdfast.demo.seller import SELLER
from holdfast.domain import booking_actions as actions
from holdfast.domain.api_key import Key
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import Draft
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.errors import DomainError
from holdfast.domain.holds import HoldPeriods, HoldRequest
from holdfast.domain.staff import Staff
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.booking_commands import BookingCommand, BookingDrafts, HoldUnit, Requester
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import sum_up
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.operations.write_path import Batch, Command
from holdfast.storage import log_partitions, past
from holdfast.storage.database import Database, current_time
from holdfast.storage.units import UnitKey

_PERIODS = HoldPeriods()
_ADDRESS = "192.0.2.1"
"""Of all buyers: one that no real buyer has."""

_PAYING, _REFUNDING = timedelta(seconds=80), timedelta(hours=20)
_SELLER_ACTIONS = {
    Outcome.SOLD: (BookingAction.CLOSE_SALE,),
    Outcome.REFUND_DUE: (BookingAction.CANCEL,),
    Outcome.REFUNDED: (BookingAction.CANCEL, BookingAction.MARK_REFUNDED),
}

Dated = tuple[datetime, Command]


async def store_past(
    database: Database,
    project_id: UUID,
    new: Sequence[DemoUnit],
    staff: Staff,
    key: Key,
    receiver: IssuedSecret | None,
) -> None:
    """Store new units, what happened to them, and the deliveries of it, in one transaction.

    ``staff`` sells, and ``key`` is that of the system that sets prices: both were there from the beginning.
    """
    now = await database.read(current_time)
    dated = await _commands(
        database,
        project_id,
        new,
        Author(ActorKind.STAFF, staff.email),
        Author(ActorKind.KEY, str(key.id)),
        now,
    )
    batch = Batch([command for _, command in dated], is_final=True)
    begun = [project_id, staff.id, key.id]
    async with database.writing() as connection:
        await batch.load(connection, database.project_cache, locked=True)
        batch.decide_past([at for at, _ in dated])
        for outcome in batch.outcomes:
            if isinstance(outcome, DomainError):
                raise outcome
        await batch.store(connection)
        if receiver is not None:
            begun.append(receiver.endpoint.id)
            await log_partitions.create_upcoming(connection, history.DAYS)
            await deliver_past(connection, receiver, now)
        await past.backdate(connection, begun, history.early(now))
    await EventFeed(database).number()
    await sum_up(database)


async def _commands(
    database: Database,
    project_id: UUID,
    new: Sequence[DemoUnit],
    staff: Author,
    api_key: Author,
    now: datetime,
) -> list[Dated]:
    """Return all that happened to these units, in the order of time."""
    prices = {unit.code: unit.fields.price_sar for unit in new}
    visits = [visit for visit in history.visits(now) if visit.code in prices]
    paid_at = {visit.code: visit.at for visit in visits if visit.outcome not in UNPAID}
    first_prices, dated = dict(prices), list[Dated]()
    for at, code, share in history.price_changes(now, prices):
        first_prices[code] = round_price(prices[code] * share)
        # Whoever had reserved it has bought it for the earlier price.
        if at < paid_at.get(code, now):
            change = {"price_sar": prices[code]}
            dated.append((at, PatchUnit((project_id, code), change, author=api_key)))
    for unit in new:
        fields = unit.fields._replace(price_sar=first_prices[unit.code])
        dated.append((history.early(now), ReplaceUnit((project_id, unit.code), fields, unit.status)))
    drafts = BookingDrafts(database)
    for visit in visits:
        key, requester = (project_id, visit.code), Requester(_ADDRESS)
        if visit.outcome is Outcome.WALK_IN:
            dated.append((visit.at, _sell_to_walk_in(key, visit, (await drafts.draft()).draft, staff)))
        else:
            drafted = await drafts.draft_for(requester, project_id, visit.code)
            dated += _visit_commands(key, visit, drafted.draft, staff)
    for code, days in history.OFF_SALE.items():
        dated.append((history.early(now, days), _take_off_sale((project_id, code), staff)))
    return sorted(dated, key=itemgetter(0))


def _take_off_sale(key: UnitKey, staff: Author) -> BookingCommand:
    action = Action.TAKE_OFF_SALE
    return BookingCommand(
        key, staff, None, lambda unit, now: actions.change_status(unit, key[1], action, Caller.STAFF, now)
    )


def _sell_to_walk_in(key: UnitKey, visit: Visit, draft: Draft, staff: Author) -> BookingCommand:
    def decide(unit: UnitSnapshot, now: datetime) -> Decision:
        return actions.close_sale(unit, visit.code, draft, visit.buyer, Caller.STAFF, now)

    return BookingCommand(key, staff, None, decide)


def _visit_commands(key: UnitKey, visit: Visit, draft: Draft, staff: Author) -> Iterator[Dated]:
    outcome, number, buyer = visit.outcome, draft.number, Author(ActorKind.BUYER, draft.reference)

    def act(author: Author, action: BookingAction, caller: Caller = Caller.STAFF) -> BookingCommand:
        def decide(unit: UnitSnapshot, now: datetime) -> Decision:
            payment_id = author.id if author.kind is ActorKind.PAYMENT else None
            return actions.act_on_booking(unit, number, action, caller, _PERIODS, now, payment_id=payment_id)

        return BookingCommand(key, author, number, decide)

    def sign(unit: UnitSnapshot, now: datetime) -> Decision:
        return actions.sign(unit, number, visit.buyer, now, visit.language, seller=SELLER)

    yield visit.at, HoldUnit(key, buyer, HoldRequest(draft, Caller.BUYER, _PERIODS))
    signed_at = visit.at + timedelta(seconds=50 + visit.number)
    if outcome is Outcome.CANCELLED:
        yield signed_at, act(buyer, BookingAction.CANCEL, Caller.BUYER)
    elif outcome is not Outcome.LAPSED or visit.number % 3 == 0:
        yield signed_at, BookingCommand(key, buyer, number, sign)
    if outcome not in UNPAID:
        payment = Author(ActorKind.PAYMENT, f"pay_{draft.reference}")
        yield signed_at + _PAYING, act(payment, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM)
    for place, action in enumerate(_SELLER_ACTIONS.get(outcome, ())):
        yield visit.ended_at + place * _REFUNDING, act(staff, action)
