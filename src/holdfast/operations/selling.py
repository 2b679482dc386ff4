"""What buyers, payment systems and staff do to units and bookings."""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.api_key import new_token_text, token_hash
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import Agreement, Booking, BookingStatus, Buyer
from holdfast.domain.booking_steps import LANGUAGE
from holdfast.domain.errors import DatabaseAway, Refusal, UnknownBooking
from holdfast.domain.hold_limits import HoldLimits
from holdfast.domain.holds import Opening, Periods
from holdfast.domain.project import Project
from holdfast.domain.references import number_of
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import Unit
from holdfast.domain.unit_writes import UNCONDITIONAL, Precondition
from holdfast.operations.command import Command
from holdfast.operations.drafts import DraftBook, Drafted, Requester
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling_commands import (
    Act,
    Cancel,
    CloseBooking,
    CloseSale,
    ConfirmDeposit,
    ConfirmDepositOfUnit,
    EraseBuyer,
    ExtendBooking,
    ExtendUnit,
    MarkRefunded,
    Open,
    ReissueLink,
    Sign,
)
from holdfast.operations.staff_units import StaffUnits
from holdfast.operations.write_path import Written
from holdfast.storage import bookings
from holdfast.storage.bookings import Found
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey

__all__ = ["Found", "Held", "Requester", "Selling", "StaffAction"]


class Rules(NamedTuple):
    """What the server settles where a project does not."""

    periods: Periods = Periods()
    limits: HoldLimits = HoldLimits()


class Held(NamedTuple):
    booking: Booking
    token: str
    unit: Unit
    project: Project
    is_new: bool
    """False: the caller had it already, and said so."""


class StaffAction(NamedTuple):
    """An action on a unit, with what its body may carry."""

    action: Action
    buyer: Buyer | None = None
    until: datetime | None = None


class Selling:
    def __init__(self, database: Database, inventory: Inventory, rules: Rules) -> None:
        self._database = database
        self._inventory = inventory
        self._rules = rules
        self._drafts = DraftBook(database)
        self.units = StaffUnits(database, inventory)

    @property
    def periods(self) -> Periods:
        return self._rules.periods

    @property
    def limits(self) -> HoldLimits:
        return self._rules.limits

    # Buyers

    async def hold(
        self, slug: str, code: str, requester: Requester, token: str | None, request_id: str
    ) -> Held:
        """Own hold re-entered: by its token, or by the Idempotency-Key of the request that made it."""
        project_id = await self._inventory.project_id(slug)
        drafted = await self._drafts.draft_for(requester, project_id, code)
        author = Author(ActorKind.BUYER, drafted.draft.reference, request_id)
        own_hash = None if token is None else token_hash(token)
        opening = Opening(drafted.draft, Caller.BUYER, self._rules.periods, self._rules.limits, own_hash)
        written = await self._run_drafted(drafted, Open((project_id, code), author, opening))
        booking = written.booking
        if token is not None and booking.token_hash == own_hash:
            return Held(booking, token, written.unit, written.project, is_new=False)
        return Held(booking, drafted.token, written.unit, written.project, is_new=True)

    async def sign(
        self,
        found: Found,
        buyer: Buyer,
        request_id: str,
        language: str = LANGUAGE,
        as_read: Agreement | None = None,
    ) -> Written:
        author = Author(ActorKind.BUYER, found.booking.reference, request_id)
        return await self._run(Sign(_key(found), author, found.booking.number, buyer, language, as_read))

    async def cancel_as_buyer(self, found: Found, request_id: str) -> Written:
        author = Author(ActorKind.BUYER, found.booking.reference, request_id)
        return await self._run(Cancel(_key(found), author, found.booking.number, Caller.BUYER))

    async def find_with_token(self, reference: str, token: str) -> Found:
        found = await self.find(reference)
        if not hmac.compare_digest(found.booking.token_hash, token_hash(token)):
            raise UnknownBooking(reference)
        return found

    async def token_of_buyer(self, secret: str, reference: str) -> str:
        """Of a booking that our pages made for the buyer whose secret this is."""
        return await self._drafts.token_of_buyer(secret, reference)

    async def visitor_id(self, visitor: str) -> UUID:
        return await self._drafts.visitor_id(visitor)

    # Staff and payment systems

    async def find(self, reference: str) -> Found:
        number = number_of(reference)
        if number is not None:
            async with self._database.reading() as connection:
                found = await bookings.find(connection, number)
            if found is not None:
                return found
        raise UnknownBooking(reference)

    async def page(
        self,
        before: tuple[datetime, int] | None,
        slugs: tuple[str, ...] | None,
        unit_code: str | None,
        status: BookingStatus | None,
        limit: int,
    ) -> list[Found]:
        """One more than ``limit``, if there is one, so that the caller knows of a next page.

        ``before``: time and number of the last booking of the page before.
        """
        async with self._database.reading() as connection:
            return await bookings.booking_page(connection, before, slugs, unit_code, status, limit + 1)

    async def refunds_due(self, at_most: int) -> int:
        """How many deposits are to be paid back; no more than that many are counted."""
        async with self._database.reading() as connection:
            return await bookings.refunds_due(connection, at_most)

    async def act(
        self,
        slug: str,
        code: str,
        asked: StaffAction,
        caller: Caller,
        author: Author,
        precondition: Precondition = UNCONDITIONAL,
    ) -> Written:
        key = (await self._inventory.project_id(slug), code)
        if asked.action in (Action.OPEN, Action.CLOSE_SALE):
            drafted = await self._drafts.draft()
            command = self._making(drafted, key, asked, caller, author, precondition)
            return await self._run_drafted(drafted, command)
        return await self._run(self._changing(key, asked, caller, author, precondition))

    # With ``seen`` only a booking that has this status still: somebody decided on what they saw.

    async def confirm_deposit(
        self,
        found: Found,
        caller: Caller,
        author: Author,
        seen: str | None = None,
        payment_id: str | None = None,
    ) -> Written:
        number, periods = found.booking.number, self._rules.periods
        command = ConfirmDeposit(_key(found), author, number, caller, periods, payment_id, seen_status=seen)
        return await self._run(command)

    async def cancel(self, found: Found, caller: Caller, author: Author, seen: str | None = None) -> Written:
        number = found.booking.number
        return await self._run(Cancel(_key(found), author, number, caller, seen_status=seen))

    async def close_sale(
        self, found: Found, caller: Caller, author: Author, seen: str | None = None
    ) -> Written:
        number = found.booking.number
        return await self._run(CloseBooking(_key(found), author, number, caller, seen_status=seen))

    async def extend(
        self, found: Found, until: datetime | None, caller: Caller, author: Author, seen: str | None = None
    ) -> Written:
        number, periods = found.booking.number, self._rules.periods
        command = ExtendBooking(_key(found), author, number, caller, until, periods, seen_status=seen)
        return await self._run(command)

    async def mark_refunded(self, found: Found, author: Author, seen: str | None = None) -> Written:
        return await self._run(MarkRefunded(_key(found), author, found.booking.number, seen_status=seen))

    async def reissue_link(self, found: Found, author: Author) -> tuple[Written, str]:
        token = new_token_text()
        command = ReissueLink(_key(found), author, found.booking.number, token_hash(token))
        return await self._run(command), token

    async def erase_buyer(self, found: Found, author: Author, seen: str | None = None) -> Written:
        return await self._run(EraseBuyer(_key(found), author, found.booking.number, seen_status=seen))

    async def _run(self, command: Command) -> Written:
        return await self._inventory.write(command)

    def _making(
        self,
        drafted: Drafted,
        key: UnitKey,
        asked: StaffAction,
        caller: Caller,
        author: Author,
        known: Precondition,
    ) -> Command:
        """The actions that may make a booking."""
        if asked.action is Action.OPEN:
            return Open(key, author, Opening(drafted.draft, caller, self._rules.periods), known)
        return CloseSale(key, author, caller, drafted.draft, asked.buyer, precondition=known)

    def _changing(
        self, key: UnitKey, asked: StaffAction, caller: Caller, author: Author, known: Precondition
    ) -> Command:
        periods = self._rules.periods
        if asked.action is Action.EXTEND:
            return ExtendUnit(key, author, caller, asked.until, periods, precondition=known)
        if asked.action is Action.CONFIRM_DEPOSIT:
            return ConfirmDepositOfUnit(key, author, caller, periods, precondition=known)
        return Act(key, author, asked.action, caller, precondition=known)

    async def _run_drafted(self, drafted: Drafted, command: Command) -> Written:
        """A draft that no booking was made of is used again, unless nobody knows whether one was."""
        try:
            written = await self._run(command)
        except DatabaseAway:
            # Perhaps it is another database from now on, in which these numbers are taken.
            self._drafts.forget()
            raise
        except Refusal:
            self._drafts.give_back(drafted.draft)
            raise
        if written.booking.number != drafted.draft.number:
            self._drafts.give_back(drafted.draft)
        return written


def _key(found: Found) -> UnitKey:
    return found.booking.project_id, found.unit_code
