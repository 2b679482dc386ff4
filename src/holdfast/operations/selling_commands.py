"""The commands of selling: each is one write to one unit and its booking."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from holdfast.domain import booking_steps
from holdfast.domain.audit import Author
from holdfast.domain.booking import Agreement, Buyer, Draft, Holder
from holdfast.domain.booking_steps import refuse_changed
from holdfast.domain.decision import Decision, Standing, Wanted
from holdfast.domain.holds import Opening, Periods, open_unit, refuse_impossible_end, unit_in
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import revision
from holdfast.domain.unit_writes import UNCONDITIONAL, Precondition
from holdfast.storage.units import UnitKey

_CLAIM = Wanted(claim=True)


class Open(NamedTuple):
    """The one that comes by the thousand, hence a tuple."""

    key: UnitKey
    author: Author
    opening: Opening
    precondition: Precondition = UNCONDITIONAL

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
        if self.precondition is not UNCONDITIONAL:
            _hold_against(self.precondition, standing, self.key[1])
        return open_unit(standing, self.key[1], self.opening, now)


# About a unit, whatever booking claims it


@dataclass(frozen=True, slots=True)
class OfUnit:
    """What is asked of a unit by its code, perhaps only if it is as the caller knows it (If-Match).

    A command refuses what is wrong whatever the unit is, then meets its condition, then decides: a body
    that does not fit the unit is no fault of a caller who said which state it was made for.
    """

    key: UnitKey
    author: Author
    precondition: Precondition = field(default=UNCONDITIONAL, kw_only=True)

    @property
    def wanted(self) -> Wanted:
        return _CLAIM

    def meet_condition(self, standing: Standing) -> None:
        if self.precondition is not UNCONDITIONAL:
            _hold_against(self.precondition, standing, self.key[1])


@dataclass(frozen=True, slots=True)
class ConfirmDepositOfUnit(OfUnit):
    caller: Caller
    periods: Periods

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.confirm_deposit_of_unit(standing, self.key[1], self.caller, self.periods, now)


@dataclass(frozen=True, slots=True)
class CloseSale(OfUnit):
    """``draft`` and ``buyer`` are for a unit that is sold to a buyer who walked in."""

    caller: Caller
    draft: Draft
    buyer: Buyer | None

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.close_sale(standing, self.key[1], self.draft, self.buyer, self.caller, now)


@dataclass(frozen=True, slots=True)
class ExtendUnit(OfUnit):
    caller: Caller
    until: datetime | None
    periods: Periods

    def decide(self, standing: Standing, now: datetime) -> Decision:
        refuse_impossible_end(self.until, now)
        self.meet_condition(standing)
        return booking_steps.extend(standing, self.key[1], self.caller, self.until, self.periods, now)


@dataclass(frozen=True, slots=True)
class Act(OfUnit):
    """The actions that need nothing but the unit, and end its booking if it has one."""

    action: Action
    caller: Caller

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.act(standing, self.key[1], self.action, self.caller, now)


# About a booking, whether it claims its unit or not


@dataclass(frozen=True, slots=True)
class OfBooking:
    """What is asked of a booking, perhaps only if it has the status that the caller has seen."""

    key: UnitKey
    """Of its unit."""
    author: Author
    number: int
    seen_status: str | None = field(default=None, kw_only=True)

    @property
    def wanted(self) -> Wanted:
        return Wanted(claim=True, booking_number=self.number)

    def meet_condition(self, standing: Standing) -> None:
        if self.seen_status is not None:
            refuse_changed(standing, self.number, self.seen_status)


@dataclass(frozen=True, slots=True)
class Sign(OfBooking):
    buyer: Buyer
    language: str = booking_steps.LANGUAGE
    as_read: Agreement | None = None

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.sign(standing, self.number, self.buyer, now, self.language, self.as_read)


@dataclass(frozen=True, slots=True)
class Cancel(OfBooking):
    caller: Caller

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.cancel(standing, self.number, self.caller, now)


@dataclass(frozen=True, slots=True)
class ConfirmDeposit(OfBooking):
    caller: Caller
    periods: Periods
    payment_id: str | None = None

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.confirm_deposit(
            standing, self.number, self.caller, self.periods, now, self.payment_id
        )


@dataclass(frozen=True, slots=True)
class CloseBooking(OfBooking):
    caller: Caller

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.close_sale_of_booking(standing, self.number, self.caller, now)


@dataclass(frozen=True, slots=True)
class ExtendBooking(OfBooking):
    caller: Caller
    until: datetime | None
    periods: Periods

    def decide(self, standing: Standing, now: datetime) -> Decision:
        refuse_impossible_end(self.until, now)
        self.meet_condition(standing)
        return booking_steps.extend_booking(standing, self.number, self.caller, self.until, self.periods, now)


@dataclass(frozen=True, slots=True)
class MarkRefunded(OfBooking):
    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.mark_refunded(standing, self.number, now)


@dataclass(frozen=True, slots=True)
class ReissueLink(OfBooking):
    token_hash: bytes

    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.reissue_link(standing, self.number, self.token_hash)


@dataclass(frozen=True, slots=True)
class EraseBuyer(OfBooking):
    def decide(self, standing: Standing, now: datetime) -> Decision:
        self.meet_condition(standing)
        return booking_steps.erase_buyer(standing, self.number, now)


def _hold_against(precondition: Precondition, standing: Standing, code: str) -> None:
    precondition.check(revision(unit_in(standing, code), standing.project))
