"""The commands of selling: each is one write to one unit and its booking."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holdfast.domain import selling
from holdfast.domain.audit import Author
from holdfast.domain.booking import Buyer, Draft, Holder
from holdfast.domain.decision import Decision, Standing, Wanted
from holdfast.domain.opening import Opening, open_unit, unit_in
from holdfast.domain.periods import Periods
from holdfast.domain.precondition import Precondition
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import revision
from holdfast.operations.command import Command
from holdfast.storage.standings import UnitKey

_CLAIM = Wanted(claim=True)


class Open(NamedTuple):
    key: UnitKey
    author: Author
    opening: Opening

    @property
    def wanted(self) -> Wanted:
        draft, limits, token_hash = self.opening.draft, self.opening.limits, self.opening.token_hash
        address_id, visitor_id = draft.holder
        counted = Holder(
            address_id if limits.per_address else None, visitor_id if limits.per_visitor else None
        )
        recalled = (visitor_id, token_hash) if limits.rehold_seconds else (None, None)
        may_be_back = token_hash is not None or draft.idempotency_id is not None
        return Wanted(may_be_back, None, counted, *recalled, limits.rehold_seconds, draft.idempotency_id)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return open_unit(standing, self.key[1], self.opening, now)


class Sign(NamedTuple):
    key: UnitKey
    author: Author
    number: int
    buyer: Buyer

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.sign(standing, self.number, self.buyer, now)


class Cancel(NamedTuple):
    key: UnitKey
    author: Author
    number: int
    caller: Caller

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.cancel(standing, self.number, self.caller, now)


class ConfirmDeposit(NamedTuple):
    key: UnitKey
    author: Author
    number: int | None
    """None: of the booking that claims the unit."""
    caller: Caller
    periods: Periods

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        if self.number is None:
            return selling.confirm_deposit_of_unit(standing, self.key[1], self.caller, self.periods, now)
        return selling.confirm_deposit(standing, self.number, self.caller, self.periods, now)


class CloseSale(NamedTuple):
    """Of a unit; ``draft`` and ``buyer`` are for one that is sold to a buyer who walked in."""

    key: UnitKey
    author: Author
    caller: Caller
    draft: Draft
    buyer: Buyer | None

    @property
    def wanted(self) -> Wanted:
        return _CLAIM

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.close_sale(standing, self.key[1], self.draft, self.buyer, self.caller, now)


class CloseBooking(NamedTuple):
    key: UnitKey
    author: Author
    number: int
    caller: Caller

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.close_sale_of_booking(standing, self.number, self.caller, now)


class Extend(NamedTuple):
    key: UnitKey
    author: Author
    number: int | None
    """None: whatever booking claims the unit."""
    caller: Caller
    until: datetime | None
    periods: Periods

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        if self.number is None:
            return selling.extend(standing, self.key[1], self.caller, self.until, self.periods, now)
        return selling.extend_booking(standing, self.number, self.caller, self.until, self.periods, now)


class Act(NamedTuple):
    """The actions that need nothing but the unit, and end its booking if it has one."""

    key: UnitKey
    author: Author
    action: Action
    caller: Caller

    @property
    def wanted(self) -> Wanted:
        return _CLAIM

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.act(standing, self.key[1], self.action, self.caller, now)


class OnCondition(NamedTuple):
    """Another command, if the unit is in the state that its caller knows (If-Match)."""

    command: Command
    precondition: Precondition

    @property
    def key(self) -> UnitKey:
        return self.command.key

    @property
    def author(self) -> Author:
        return self.command.author

    @property
    def wanted(self) -> Wanted:
        return self.command.wanted

    def decide(self, standing: Standing, now: datetime) -> Decision:
        unit = unit_in(standing, self.key[1])
        self.precondition.check(revision(unit, standing.project))
        return self.command.decide(standing, now)


class MarkRefunded(NamedTuple):
    key: UnitKey
    author: Author
    number: int

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.mark_refunded(standing, self.number, now)


class ReissueLink(NamedTuple):
    key: UnitKey
    author: Author
    number: int
    token_hash: bytes

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return selling.reissue_link(standing, self.number, self.token_hash)
