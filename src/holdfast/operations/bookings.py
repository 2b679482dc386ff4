"""Bookings: the operations of buyers, payment systems and staff."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain import booking_actions, errors
from holdfast.domain.api_key import new_token_text, token_hash
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import CLAIMING, Agreement, Booking, BookingStatus, Buyer
from holdfast.domain.booking_actions import LANGUAGE, BookingAction
from holdfast.domain.decision import UNCONDITIONAL, Decision, Precondition, UnitSnapshot
from holdfast.domain.email import Email, EmailStatus
from holdfast.domain.errors import DatabaseUnavailable, DomainError, NotAvailable, UnknownBooking
from holdfast.domain.holds import HoldLimits, HoldPeriods, HoldRequest
from holdfast.domain.project import Project
from holdfast.domain.references import read_reference
from holdfast.domain.seller import effective
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import Unit, unit_id
from holdfast.operations import booking_commands as commands
from holdfast.operations.booking_commands import Requester
from holdfast.operations.units import Units, UnitWithBooking
from holdfast.operations.write_path import Command, WriteResult
from holdfast.storage import bookings, emails, sellers
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox

__all__ = ["BookingDetails", "Bookings", "FoundBooking", "Held", "Requester", "StaffAction"]


class Held(NamedTuple):
    booking: Booking
    token: str
    unit: Unit
    project: Project
    is_new: bool
    """False: the caller had it already, and sent its token."""


class OpenedBooking(NamedTuple):
    reference: str
    token: str


class StaffAction(NamedTuple):
    """An action on a unit, with the values that its body may carry."""

    action: Action
    buyer: Buyer | None = None
    until: datetime | None = None


class BookingDetails(NamedTuple):
    """A booking with all that staff need to decide on it."""

    found: FoundBooking
    unit: UnitWithBooking
    possible: Mapping[BookingAction, Decision]
    """The actions that are possible now, each with its result."""


class Bookings:
    def __init__(
        self,
        database: Database,
        units: Units,
        periods: HoldPeriods,
        limits: HoldLimits,
        email_box: SecretBox | None = None,
    ) -> None:
        """``email_box`` seals the links in e-mail to buyers; without it they get none."""
        self._email_box = email_box
        self.sends_email = email_box is not None
        self._database = database
        self._units = units
        self.periods = periods
        self.limits = limits
        self.drafts = commands.BookingDrafts(database)

    async def hold(
        self, slug: str, code: str, requester: Requester, token: str | None, request_id: str
    ) -> Held:
        """Return a new hold, or the caller's own: by its token, or by the Idempotency-Key of its request."""
        own_hash = None if token is None else token_hash(token)
        drafted, command = await self._draft_hold(slug, code, requester, own_hash, request_id)
        written = await self._write_drafted(drafted, command)
        booking = written.booking
        if token is not None and booking.token_hash == own_hash:
            return Held(booking, token, written.unit, written.project, is_new=False)
        return Held(booking, drafted.token, written.unit, written.project, is_new=True)

    async def hold_error(
        self, slug: str, code: str, requester: Requester, request_id: str
    ) -> DomainError | None:
        """Return the error that ``hold`` would raise now. Nothing is held."""
        drafted, command = await self._draft_hold(slug, code, requester, None, request_id)
        (outcome,) = await self._units.write_many([command], store=False)
        if not isinstance(outcome, DatabaseUnavailable):
            self.drafts.give_back(drafted.draft)
        return outcome if isinstance(outcome, DomainError) else None

    async def _draft_hold(
        self, slug: str, code: str, requester: Requester, own_hash: bytes | None, request_id: str
    ) -> tuple[commands.DraftedBooking, commands.HoldUnit]:
        project_id = await self._units.project_id(slug)
        drafted = await self.drafts.draft_for(requester, project_id, code)
        author = Author(ActorKind.BUYER, drafted.draft.reference, request_id)
        request = HoldRequest(drafted.draft, Caller.BUYER, self.periods, self.limits, own_hash)
        return drafted, commands.HoldUnit((project_id, code), author, request)

    async def sign(
        self,
        found: FoundBooking,
        buyer: Buyer,
        request_id: str,
        language: str = LANGUAGE,
        as_read: Agreement | None = None,
        token: str | None = None,
    ) -> WriteResult:
        """``token`` opens the booking: it is sent to the buyer."""
        number, author = found.booking.number, Author(ActorKind.BUYER, found.booking.reference, request_id)
        profiles = await self._database.read(sellers.find, found.project_slug)
        seller = effective(profiles, found.project_slug)
        sealed_token = self._email_box.seal(token) if self._email_box and token else None

        def sign(snapshot: UnitSnapshot, now: datetime) -> Decision:
            return booking_actions.sign(snapshot, number, buyer, now, language, as_read, seller, sealed_token)

        return await self._write(found, author, sign)

    async def cancel_as_buyer(self, found: FoundBooking, request_id: str) -> WriteResult:
        author = Author(ActorKind.BUYER, found.booking.reference, request_id)
        return await self.act_on_booking(found, BookingAction.CANCEL, Caller.BUYER, author)

    async def find(self, reference: str) -> FoundBooking:
        stored = read_reference(reference)
        found = None if stored is None else await self._database.read(bookings.find, stored)
        if found is None:
            raise UnknownBooking(reference)
        return found

    async def find_with_token(self, reference: str, token: str) -> FoundBooking:
        found = await self.find(reference)
        if not hmac.compare_digest(found.booking.token_hash, token_hash(token)):
            raise UnknownBooking(reference)
        return found

    async def page(
        self,
        before: tuple[datetime, int] | None,
        slugs: tuple[str, ...] | None,
        unit_code: str | None,
        status: BookingStatus | None,
        limit: int,
    ) -> list[FoundBooking]:
        """Return one more than ``limit``, if there is one, before this time and number of a booking."""
        return await self._database.read(bookings.booking_page, before, slugs, unit_code, status, limit + 1)

    async def emails_page(
        self, before: tuple[datetime, UUID] | None, status: EmailStatus | None, limit: int
    ) -> list[Email]:
        """Return one more than ``limit``, if there is one, before this time and id of an e-mail."""
        return await self._database.read(emails.page, before, status, limit + 1)

    async def refunds_due(self, at_most: int) -> int:
        return await self._database.read(bookings.refunds_due, at_most)

    async def load_details(self, reference: str, caller: Caller) -> BookingDetails:
        found = await self.find(reference)
        unit = await self._units.find_for_staff(found.project_slug, found.unit_code)
        booking, claim = found.booking, unit.booking
        if claim is not None and claim.number == booking.number:
            claim = booking
        snapshot = UnitSnapshot(unit.project, unit.unit, booking=claim, others={booking.number: booking})
        possible = booking_actions.possible_actions(snapshot, booking.number, caller, self.periods, found.now)
        return BookingDetails(found, unit, possible)

    async def act_on_unit(
        self,
        slug: str,
        code: str,
        staff_action: StaffAction,
        caller: Caller,
        author: Author,
        precondition: Precondition = UNCONDITIONAL,
    ) -> WriteResult:
        key = (await self._units.project_id(slug), code)
        action, buyer, until = staff_action
        periods = self.periods
        if action is Action.OPEN:
            drafted = await self.drafts.draft()
            request = HoldRequest(drafted.draft, caller, periods)
            return await self._write_drafted(drafted, commands.HoldUnit(key, author, request, precondition))
        if action is Action.CLOSE_SALE:
            drafted = await self.drafts.draft()

            def close_sale(snapshot: UnitSnapshot, now: datetime) -> Decision:
                return booking_actions.close_sale(snapshot, code, drafted.draft, buyer, caller, now)

            command = commands.BookingCommand(key, author, None, close_sale, precondition=precondition)
            return await self._write_drafted(drafted, command)

        def decide(snapshot: UnitSnapshot, now: datetime) -> Decision:
            if action is Action.EXTEND:
                return booking_actions.extend(snapshot, code, caller, until, periods, now)
            if action is Action.CONFIRM_DEPOSIT:
                return booking_actions.confirm_deposit_of_unit(snapshot, code, caller, periods, now)
            return booking_actions.change_status(snapshot, code, action, caller, now)

        checked_end = until if action is Action.EXTEND else None
        command = commands.BookingCommand(
            key, author, None, decide, until=checked_end, precondition=precondition,
            sends_email=self.sends_email,
        )  # fmt: skip
        return await self._units.write(command)

    async def act_on_booking(
        self,
        found: FoundBooking,
        action: BookingAction,
        caller: Caller,
        author: Author,
        *,
        seen_status: str | None = None,
        until: datetime | None = None,
        payment_id: str | None = None,
    ) -> WriteResult:
        """With ``seen_status`` fail if the status is another one now: the caller decided on what they saw."""
        number, periods = found.booking.number, self.periods

        def decide(snapshot: UnitSnapshot, now: datetime) -> Decision:
            return booking_actions.act_on_booking(
                snapshot, number, action, caller, periods, now,
                until=until, payment_id=payment_id,
            )  # fmt: skip

        return await self._write(found, author, decide, seen_status, until, payment_id)

    async def reissue_link(
        self, found: FoundBooking, author: Author, seen_version: str | None = None
    ) -> tuple[WriteResult, str]:
        """With ``seen_version`` fail if the ``link_version`` is another one now."""
        number, token = found.booking.number, new_token_text()
        written = await self._write(
            found,
            author,
            lambda at, _: booking_actions.reissue_link(at, number, token_hash(token), seen_version),
        )
        return written, token

    async def _write(
        self,
        found: FoundBooking,
        author: Author,
        decide: commands.Decide,
        seen_status: str | None = None,
        until: datetime | None = None,
        payment_id: str | None = None,
    ) -> WriteResult:
        key, number = (found.booking.project_id, found.unit_code), found.booking.number
        command = commands.BookingCommand(
            key, author, number, decide, seen_status, until, payment_id=payment_id,
            sends_email=self.sends_email,
        )  # fmt: skip
        try:
            return await self._units.write(command)
        except UnknownBooking:
            raise UnknownBooking(found.booking.reference) from None

    async def _write_drafted(self, drafted: commands.DraftedBooking, command: Command) -> WriteResult:
        """Give back a draft that became no booking, unless it is unknown whether it did."""
        try:
            written = await self._units.write(command)
        except DatabaseUnavailable:
            # Perhaps it is another database from now on, in which these numbers are taken.
            self.drafts.forget()
            raise
        except DomainError as error:
            # What the database rejects may be the reference: an earlier release may have given it out.
            if not isinstance(error, errors.InvalidInput):
                self.drafts.give_back(drafted.draft)
            raise
        if written.booking.number != drafted.draft.number:
            self.drafts.give_back(drafted.draft)
        return written

    # A buyer at our pages has two cookies: their holds are counted by one (``visitor``), and what was made
    # with the other (``secret``) is opened by it. The first may be anybody's choice: alone it opens nothing.

    async def open(self, slug: str, code: str, requester: Requester, request_id: str) -> OpenedBooking:
        """Hold the unit for the buyer, unless it is theirs already: by a second click or in another tab."""
        secret = requester.secret or ""
        own = await self.own_claim(slug, code, secret)
        if own is not None:
            own = await self.own_claim(slug, code, secret, acknowledges=True)
        if own is not None:
            return own
        try:
            held = await self.hold(slug, code, requester, None, request_id)
        except NotAvailable:
            own = await self.own_claim(slug, code, secret, acknowledges=True)
            if own is None:
                raise
            return own
        return OpenedBooking(held.booking.reference, held.token)

    async def own_claim(
        self, slug: str, code: str, secret: str, *, acknowledges: bool = False
    ) -> OpenedBooking | None:
        """Return the buyer's booking by which the unit is held, reserved or sold."""
        claimed_id = unit_id(await self._units.project_id(slug), code)
        read = self._database.read_to_acknowledge if acknowledges else self._database.read
        claim = (await read(bookings.claims_on, [claimed_id])).get(claimed_id)
        return None if claim is None else await self._open_own(claim, secret)

    async def live_holds(self, visitor: str, secret: str, slug: str | None = None) -> list[FoundBooking]:
        """Return what is counted for the visitor and the secret opens, the first to end first."""
        visitor_id = await self.drafts.visitor_id(visitor)
        live = [
            found
            for found in await self._database.read(bookings.held_by, visitor_id)
            if slug in (None, found.project_slug)
            and found.booking.status in CLAIMING
            and await self._open_own(found.booking, secret) is not None
        ]
        return sorted(live, key=lambda found: (found.booking.hold_expires_at or found.now, found.unit_code))

    async def find_own(
        self, reference: str, secret: str, link_token: str | None = None
    ) -> tuple[FoundBooking, str]:
        """Find a booking by the buyer's secret or the token of a link; return also its token."""
        found = await self.find(reference)
        own = await self._open_own(found.booking, secret)
        if own is not None:
            return found, own.token
        if link_token and hmac.compare_digest(found.booking.token_hash, token_hash(link_token)):
            return found, link_token
        raise UnknownBooking(reference)

    async def _open_own(self, booking: Booking, secret: str) -> OpenedBooking | None:
        token = await self.drafts.token_of_buyer(secret, booking.reference)
        is_own = hmac.compare_digest(booking.token_hash, token_hash(token))
        return OpenedBooking(booking.reference, token) if is_own else None
