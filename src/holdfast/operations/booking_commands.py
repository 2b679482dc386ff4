"""The commands of selling: each is one write to one unit and its booking."""

from __future__ import annotations

import asyncio
import hmac
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from holdfast.domain import booking_actions
from holdfast.domain.api_key import new_token_text, token_from, token_hash
from holdfast.domain.audit import Author
from holdfast.domain.booking import NOBODY, Agreement, Buyer, Draft, Holder
from holdfast.domain.booking_actions import check_status_unchanged
from holdfast.domain.decision import UNCONDITIONAL, Decision, Needs, Precondition, UnitSnapshot
from holdfast.domain.holds import HoldPeriods, HoldRequest, check_end, get_unit, open_unit
from holdfast.domain.references import encode_reference
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import revision, unit_id
from holdfast.storage import bookings
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey

_CLAIM = Needs(claim=True)


class HoldUnit(NamedTuple):
    """The one that comes by the thousand, hence a tuple."""

    key: UnitKey
    author: Author
    opening: HoldRequest
    precondition: Precondition = UNCONDITIONAL

    @property
    def needs(self) -> Needs:
        draft, limits, token_hash = self.opening.draft, self.opening.limits, self.opening.token_hash
        address_id, visitor_id = draft.holder
        counted = Holder(
            address_id if limits.per_address else None, visitor_id if limits.per_visitor else None
        )
        recalled = (visitor_id, token_hash) if limits.rehold_seconds else (None, None)
        may_be_back = token_hash is not None or draft.idempotency_id is not None
        return Needs(may_be_back, None, counted, *recalled, limits.rehold_seconds, draft.idempotency_id)

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        if self.precondition is not UNCONDITIONAL:
            _hold_against(self.precondition, snapshot, self.key[1])
        return open_unit(snapshot, self.key[1], self.opening, now)


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
    def needs(self) -> Needs:
        return _CLAIM

    def meet_condition(self, snapshot: UnitSnapshot) -> None:
        if self.precondition is not UNCONDITIONAL:
            _hold_against(self.precondition, snapshot, self.key[1])


@dataclass(frozen=True, slots=True)
class ConfirmDepositOfUnit(OfUnit):
    caller: Caller
    periods: HoldPeriods

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.confirm_deposit_of_unit(snapshot, self.key[1], self.caller, self.periods, now)


@dataclass(frozen=True, slots=True)
class CloseSale(OfUnit):
    """``draft`` and ``buyer`` are for a unit that is sold to a buyer who walked in."""

    caller: Caller
    draft: Draft
    buyer: Buyer | None

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.close_sale(snapshot, self.key[1], self.draft, self.buyer, self.caller, now)


@dataclass(frozen=True, slots=True)
class ExtendUnit(OfUnit):
    caller: Caller
    until: datetime | None
    periods: HoldPeriods

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        check_end(self.until, now)
        self.meet_condition(snapshot)
        return booking_actions.extend(snapshot, self.key[1], self.caller, self.until, self.periods, now)


@dataclass(frozen=True, slots=True)
class ChangeSaleStatus(OfUnit):
    """The actions that need nothing but the unit, and end its booking if it has one."""

    action: Action
    caller: Caller

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.change_status(snapshot, self.key[1], self.action, self.caller, now)


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
    def needs(self) -> Needs:
        return Needs(claim=True, booking_number=self.number)

    def meet_condition(self, snapshot: UnitSnapshot) -> None:
        if self.seen_status is not None:
            check_status_unchanged(snapshot, self.number, self.seen_status)


@dataclass(frozen=True, slots=True)
class Sign(OfBooking):
    buyer: Buyer
    language: str = booking_actions.LANGUAGE
    as_read: Agreement | None = None

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.sign(snapshot, self.number, self.buyer, now, self.language, self.as_read)


@dataclass(frozen=True, slots=True)
class Cancel(OfBooking):
    caller: Caller

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.cancel(snapshot, self.number, self.caller, now)


@dataclass(frozen=True, slots=True)
class ConfirmDeposit(OfBooking):
    caller: Caller
    periods: HoldPeriods
    payment_id: str | None = None

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.confirm_deposit(
            snapshot, self.number, self.caller, self.periods, now, self.payment_id
        )


@dataclass(frozen=True, slots=True)
class CloseBooking(OfBooking):
    caller: Caller

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.close_sale_of_booking(snapshot, self.number, self.caller, now)


@dataclass(frozen=True, slots=True)
class ExtendBooking(OfBooking):
    caller: Caller
    until: datetime | None
    periods: HoldPeriods

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        check_end(self.until, now)
        self.meet_condition(snapshot)
        return booking_actions.extend_booking(
            snapshot, self.number, self.caller, self.until, self.periods, now
        )


@dataclass(frozen=True, slots=True)
class MarkRefunded(OfBooking):
    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.mark_refunded(snapshot, self.number, now)


@dataclass(frozen=True, slots=True)
class ReissueLink(OfBooking):
    token_hash: bytes

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.reissue_link(snapshot, self.number, self.token_hash)


@dataclass(frozen=True, slots=True)
class EraseBuyer(OfBooking):
    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        self.meet_condition(snapshot)
        return booking_actions.erase_buyer(snapshot, self.number, now)


def _hold_against(precondition: Precondition, snapshot: UnitSnapshot, code: str) -> None:
    precondition.check(revision(get_unit(snapshot, code), snapshot.project))


# What of a booking is made before its transaction: its reference, its token, and who asks for it.

NUMBERS_AT_ONCE = 200


class Requester(NamedTuple):
    """Who asks for a hold, as HTTP knows them."""

    address: str
    visitor: str | None = None
    """The cookie by which live holds are counted. Anybody may have chosen it, so it opens nothing."""
    idempotency_key: str | None = None
    secret: str | None = None
    """The cookie by which a buyer at our pages gets at their bookings again."""


class DraftedBooking(NamedTuple):
    draft: Draft
    token: str
    """The token itself: given to the buyer, never stored."""


class BookingDrafts:
    """Makes drafts without asking the database for each. One for each process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: deque[int] = deque()
        self._refilling = asyncio.Lock()
        self._secret: bytes | None = None

    def give_back(self, draft: Draft) -> None:
        """Of a draft that became no booking: nobody has seen its reference."""
        self._numbers.append(draft.number)

    def forget(self) -> None:
        """What was taken from a database that is gone, perhaps for good."""
        self._numbers.clear()
        self._secret = None

    async def draft(self) -> DraftedBooking:
        """For a booking that staff make."""
        token = new_token_text()
        return DraftedBooking(_draft(await self._number(), token, NOBODY, None), token)

    async def draft_for(self, requester: Requester, project_id: UUID, code: str) -> DraftedBooking:
        """The same request again (by its Idempotency-Key) gets the same token again.

        Such a token is made of the installation's secret and the key: whoever guesses the key cannot make
        it, nor can whoever reads the database, unless the key can be guessed. A buyer who comes back has
        tokens of the same kind, one for each reference.
        """
        secret = self._secret or await self._installation_secret()
        number = await self._number()
        idempotency_id, token = None, new_token_text()
        if requester.idempotency_key is not None:
            unit = str(unit_id(project_id, code))
            name = f"{unit}\n{requester.address}\n{requester.visitor or ''}\n{requester.idempotency_key}"
            idempotency_id = _hidden_id(secret, "idempotency key", name)
            token = token_from(hmac.digest(secret, b"token\n" + name.encode(), "sha256"))
        elif requester.secret is not None:
            token = _token_of_buyer(secret, requester.secret, encode_reference(number))
        return DraftedBooking(_draft(number, token, _holder(secret, requester), idempotency_id), token)

    async def token_of_buyer(self, own: str, reference: str) -> str:
        """The token of a booking that was made for the buyer whose secret this is."""
        secret = self._secret or await self._installation_secret()
        return _token_of_buyer(secret, own, reference)

    async def visitor_id(self, visitor: str) -> UUID:
        """By which the bookings of a visitor are known."""
        secret = self._secret or await self._installation_secret()
        return _hidden_id(secret, "visitor", visitor)

    async def _number(self) -> int:
        return self._numbers.popleft() if self._numbers else await self._next_number()

    async def _next_number(self) -> int:
        """Numbers that a process took and never used are gone; references are never made twice."""
        while not self._numbers:
            async with self._refilling:
                if not self._numbers:
                    async with self._database.reading() as connection:
                        self._numbers.extend(await bookings.next_numbers(connection, NUMBERS_AT_ONCE))
        return self._numbers.popleft()

    async def _installation_secret(self) -> bytes:
        if self._secret is None:
            async with self._database.reading() as connection:
                self._secret = await bookings.installation_secret(connection)
        return self._secret


def _draft(number: int, token: str, holder: Holder, idempotency_id: UUID | None) -> Draft:
    return Draft(number, encode_reference(number), token_hash(token), holder, idempotency_id)


def _token_of_buyer(secret: bytes, own: str, reference: str) -> str:
    return token_from(hmac.digest(secret, f"buyer's token\n{reference}\n{own}".encode(), "sha256"))


def _holder(secret: bytes, requester: Requester) -> Holder:
    visitor = requester.visitor
    return Holder(
        _hidden_id(secret, "address", requester.address),
        None if visitor is None else _hidden_id(secret, "visitor", visitor),
    )


def _hidden_id(secret: bytes, kind: str, name: str) -> UUID:
    return UUID(bytes=blake2b(f"{kind}\n{name}".encode(), key=secret, digest_size=16).digest())
