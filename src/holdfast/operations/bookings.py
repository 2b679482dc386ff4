"""Bookings: the operations of buyers, payment systems and staff, and the expiry of holds."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import UUID

from holdfast.domain import booking_actions
from holdfast.domain.api_key import new_token_text, token_hash
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import CLAIMING, Agreement, Booking, BookingStatus, Buyer
from holdfast.domain.booking_actions import LANGUAGE, BookingAction, possible_actions
from holdfast.domain.decision import UNCONDITIONAL, Decision, Precondition, UnitSnapshot
from holdfast.domain.errors import DatabaseUnavailable, DomainError, NotAvailable, UnknownBooking
from holdfast.domain.holds import HoldLimits, HoldPeriods, HoldRequest, expire_due_unit
from holdfast.domain.layout import BoardUnit
from holdfast.domain.project import Project
from holdfast.domain.references import decode_reference
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import Unit, unit_id
from holdfast.observability.metrics import count_expired
from holdfast.operations.booking_commands import (
    BookingCommand,
    BookingDrafts,
    Decide,
    DraftedBooking,
    HoldUnit,
    Requester,
    UnitCommand,
)
from holdfast.operations.events import with_payload
from holdfast.operations.listings import SharedReads
from holdfast.operations.units import StaffUnit, StaffUnits, Units
from holdfast.operations.write_path import Command, Written
from holdfast.storage import bookings, holds, listings
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Database, TransactionConflict

__all__ = [
    "BookingAction",
    "BookingFile",
    "Bookings",
    "FoundBooking",
    "Held",
    "Requester",
    "StaffAction",
    "booking_file",
]


class BookingRules(NamedTuple):
    """What the server settles where a project does not."""

    periods: HoldPeriods = HoldPeriods()
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


class Bookings:
    def __init__(self, database: Database, units: Units, rules: BookingRules) -> None:
        self._database = database
        self._units = units
        self._rules = rules
        self._drafts = BookingDrafts(database)
        self.units = StaffUnits(database, units)

    @property
    def periods(self) -> HoldPeriods:
        return self._rules.periods

    @property
    def limits(self) -> HoldLimits:
        return self._rules.limits

    # Buyers

    async def hold(
        self, slug: str, code: str, requester: Requester, token: str | None, request_id: str
    ) -> Held:
        """Own hold re-entered: by its token, or by the Idempotency-Key of the request that made it."""
        project_id = await self._units.project_id(slug)
        drafted = await self._drafts.draft_for(requester, project_id, code)
        author = Author(ActorKind.BUYER, drafted.draft.reference, request_id)
        own_hash = None if token is None else token_hash(token)
        opening = HoldRequest(drafted.draft, Caller.BUYER, self._rules.periods, self._rules.limits, own_hash)
        written = await self._run_drafted(drafted, HoldUnit((project_id, code), author, opening))
        booking = written.booking
        if token is not None and booking.token_hash == own_hash:
            return Held(booking, token, written.unit, written.project, is_new=False)
        return Held(booking, drafted.token, written.unit, written.project, is_new=True)

    async def sign(
        self,
        found: FoundBooking,
        buyer: Buyer,
        request_id: str,
        language: str = LANGUAGE,
        as_read: Agreement | None = None,
    ) -> Written:
        number, author = found.booking.number, Author(ActorKind.BUYER, found.booking.reference, request_id)
        return await self._write_booking(
            found,
            author,
            lambda snapshot, now: booking_actions.sign(snapshot, number, buyer, now, language, as_read),
        )

    async def cancel_as_buyer(self, found: FoundBooking, request_id: str) -> Written:
        author = Author(ActorKind.BUYER, found.booking.reference, request_id)
        return await self.cancel(found, Caller.BUYER, author)

    async def find_with_token(self, reference: str, token: str) -> FoundBooking:
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

    async def find(self, reference: str) -> FoundBooking:
        number = decode_reference(reference)
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
    ) -> list[FoundBooking]:
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
        staff_action: StaffAction,
        caller: Caller,
        author: Author,
        precondition: Precondition = UNCONDITIONAL,
    ) -> Written:
        key = (await self._units.project_id(slug), code)
        action, buyer, until = staff_action
        periods = self.periods
        if action in (Action.OPEN, Action.CLOSE_SALE):
            drafted = await self._drafts.draft()
            command: Command
            if action is Action.OPEN:
                command = HoldUnit(key, author, HoldRequest(drafted.draft, caller, periods), precondition)
            else:
                command = UnitCommand(
                    key,
                    author,
                    lambda snapshot, now: booking_actions.close_sale(
                        snapshot, code, drafted.draft, buyer, caller, now
                    ),
                    precondition,
                )
            return await self._run_drafted(drafted, command)

        def run(snapshot: UnitSnapshot, now: datetime) -> Decision:
            if action is Action.EXTEND:
                return booking_actions.extend(snapshot, code, caller, until, periods, now)
            if action is Action.CONFIRM_DEPOSIT:
                return booking_actions.confirm_deposit_of_unit(snapshot, code, caller, periods, now)
            return booking_actions.change_status(snapshot, code, action, caller, now)

        checked_end = until if action is Action.EXTEND else None
        return await self._units.write(UnitCommand(key, author, run, precondition, checked_end))

    # With ``seen`` these fail if the booking no longer has this status: the caller decided on what they saw.

    async def confirm_deposit(
        self,
        found: FoundBooking,
        caller: Caller,
        author: Author,
        seen: str | None = None,
        payment_id: str | None = None,
    ) -> Written:
        number, periods = found.booking.number, self.periods
        return await self._write_booking(
            found,
            author,
            lambda snapshot, now: booking_actions.confirm_deposit(
                snapshot, number, caller, periods, now, payment_id
            ),
            seen,
        )

    async def cancel(
        self, found: FoundBooking, caller: Caller, author: Author, seen: str | None = None
    ) -> Written:
        number = found.booking.number
        return await self._write_booking(
            found, author, lambda snapshot, now: booking_actions.cancel(snapshot, number, caller, now), seen
        )

    async def close_sale(
        self, found: FoundBooking, caller: Caller, author: Author, seen: str | None = None
    ) -> Written:
        number = found.booking.number
        return await self._write_booking(
            found,
            author,
            lambda snapshot, now: booking_actions.close_sale_of_booking(snapshot, number, caller, now),
            seen,
        )

    async def extend(
        self,
        found: FoundBooking,
        until: datetime | None,
        caller: Caller,
        author: Author,
        seen: str | None = None,
    ) -> Written:
        number, periods = found.booking.number, self.periods
        return await self._write_booking(
            found,
            author,
            lambda snapshot, now: booking_actions.extend_booking(
                snapshot, number, caller, until, periods, now
            ),
            seen,
            until,
        )

    async def mark_refunded(self, found: FoundBooking, author: Author, seen: str | None = None) -> Written:
        number = found.booking.number
        return await self._write_booking(
            found, author, lambda snapshot, now: booking_actions.mark_refunded(snapshot, number, now), seen
        )

    async def reissue_link(self, found: FoundBooking, author: Author) -> tuple[Written, str]:
        number, token = found.booking.number, new_token_text()
        written = await self._write_booking(
            found,
            author,
            lambda snapshot, _: booking_actions.reissue_link(snapshot, number, token_hash(token)),
        )
        return written, token

    async def erase_buyer(self, found: FoundBooking, author: Author, seen: str | None = None) -> Written:
        number = found.booking.number
        return await self._write_booking(
            found, author, lambda snapshot, now: booking_actions.erase_buyer(snapshot, number, now), seen
        )

    async def _write_booking(
        self,
        found: FoundBooking,
        author: Author,
        run: Decide,
        seen: str | None = None,
        until: datetime | None = None,
    ) -> Written:
        key = (found.booking.project_id, found.unit_code)
        return await self._units.write(BookingCommand(key, author, found.booking.number, run, seen, until))

    async def _run_drafted(self, drafted: DraftedBooking, command: Command) -> Written:
        """A draft that no booking was made of is used again, unless nobody knows whether one was."""
        try:
            written = await self._units.write(command)
        except DatabaseUnavailable:
            # Perhaps it is another database from now on, in which these numbers are taken.
            self._drafts.forget()
            raise
        except DomainError:
            self._drafts.give_back(drafted.draft)
            raise
        if written.booking.number != drafted.draft.number:
            self._drafts.give_back(drafted.draft)
        return written


# A booking with all that staff need to decide on it.


class BookingFile(NamedTuple):
    found: FoundBooking
    unit: StaffUnit
    possible: Mapping[BookingAction, Decision]
    """What can be done to it now, and what would come of it."""

    @property
    def booking(self) -> Booking:
        return self.found.booking


async def booking_file(operations: Bookings, reference: str, caller: Caller) -> BookingFile:
    found = await operations.find(reference)
    unit = await operations.units.find(found.project_slug, found.unit_code)
    booking = found.booking
    claim = unit.booking
    if claim is not None and claim.number == booking.number:
        claim = booking
    snapshot = UnitSnapshot(unit.project, unit.unit, claim, {booking.number: booking})
    possible = possible_actions(snapshot, booking.number, caller, operations.periods, found.now)
    return BookingFile(found, unit, possible)


# What buyers do on our pages: open a unit, come back to it, look for another one like it.

SIMILAR_UNITS = 3


class OpenedBooking(NamedTuple):
    """A buyer has come to a booking of their own."""

    reference: str
    token: str


class BuyerBookings:
    """A buyer has two cookies: their holds are counted by one (``visitor``), and what was made with the other
    (``secret``) is opened by it. The first anybody may have chosen, so it opens nothing.
    """

    def __init__(self, database: Database, units: Units, operations: Bookings) -> None:
        self._database = database
        self._units = units
        self._bookings = operations
        self._reads = SharedReads()

    async def open(
        self, slug: str, code: str, address: str, visitor: str, secret: str, request_id: str
    ) -> OpenedBooking:
        """The unit is held for the buyer, or is theirs already: by a second click or in another tab."""
        own = await self.own_claim(slug, code, secret)
        if own is not None:
            return own
        requester = Requester(address, visitor, secret=secret)
        try:
            held = await self._bookings.hold(slug, code, requester, None, request_id)
        except NotAvailable:
            own = await self.own_claim(slug, code, secret)
            if own is None:
                raise
            return own
        return OpenedBooking(held.booking.reference, held.token)

    async def own_claim(self, slug: str, code: str, secret: str) -> OpenedBooking | None:
        """The buyer's booking that the unit is held, reserved or sold by."""
        wanted = unit_id(await self._units.project_id(slug), code)
        async with self._database.reading() as connection:
            claims = await bookings.claims_on(connection, [wanted])
        claim = claims.get(wanted)
        return None if claim is None else await self._entered(claim, secret)

    async def live_holds(self, slug: str, visitor: str, secret: str) -> list[FoundBooking]:
        """What the buyer holds in this project now, to go back to."""
        return [one for one in await self.all_live_holds(visitor, secret) if one.project_slug == slug]

    async def all_live_holds(self, visitor: str, secret: str) -> list[FoundBooking]:
        """What is counted for the visitor in every project and the secret opens; the first to end first."""
        visitor_id = await self._bookings.visitor_id(visitor)
        async with self._database.reading() as connection:
            found = await bookings.held_by(connection, visitor_id)
        live = [
            one
            for one in found
            if one.booking.status in CLAIMING and await self._entered(one.booking, secret) is not None
        ]
        return sorted(live, key=lambda one: (one.booking.hold_expires_at or one.now, one.unit_code))

    async def find(self, reference: str, secret: str, tokens: Sequence[str]) -> tuple[FoundBooking, str]:
        """By the buyer's secret, or by a token that came with a link; and the token that opened it."""
        found = await self._bookings.find(reference)
        own = await self._bookings.token_of_buyer(secret, found.booking.reference)
        for token in (own, *tokens):
            if hmac.compare_digest(found.booking.token_hash, token_hash(token)):
                return found, token
        raise UnknownBooking(reference)

    async def now(self) -> datetime:
        """By the clock that all holds end by."""
        async with self._database.reading() as connection:
            return await bookings.now(connection)

    async def similar(self, unit: Unit) -> list[BoardUnit]:
        """Free ones, the most alike first. All who look at a unit ask when it is taken."""
        return await self._reads.read((unit.id, unit.version), partial(self._similar, unit))

    async def _similar(self, unit: Unit) -> list[BoardUnit]:
        async with self._database.reading() as connection:
            return await listings.find_similar(connection, unit, SIMILAR_UNITS)

    async def _entered(self, claim: Booking, secret: str) -> OpenedBooking | None:
        token = await self._bookings.token_of_buyer(secret, claim.reference)
        if not hmac.compare_digest(claim.token_hash, token_hash(token)):
            return None
        return OpenedBooking(claim.reference, token)


class HoldExpiry:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def expire_due(self, at_most: int) -> int:
        """Expire up to so many units. Those that another process or a writer has locked are skipped."""
        try:
            async with self._database.writing() as connection:
                due = await holds.lock_due_units(connection, at_most)
                if not due:
                    return 0
                claims = await holds.load_claims(connection, [unit.id for unit in due])
                ended = [expire_due_unit(unit, claims.get(unit.id)) for unit in due]
                ended = [
                    one._replace(event=with_payload(one.event, unit.project_slug))
                    for unit, one in zip(due, ended, strict=True)
                ]
                deliveries = await holds.store_expired(connection, ended)
        except TransactionConflict:
            return 0
        if deliveries:
            self._database.notify_workers()
        count_expired(len(due))
        return len(due)

    async def is_foreground_busy(self) -> bool:
        async with self._database.reading() as connection:
            return await holds.is_foreground_busy(connection)

    async def seconds_until_next(self) -> float | None:
        """By the database's clock; None if nothing is held or reserved."""
        async with self._database.reading() as connection:
            return await holds.seconds_until_next_end(connection)
