"""Payments of deposits: the payment page for the buyer, and its signed reports."""

from __future__ import annotations

import logging
from typing import NamedTuple, Protocol

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import Conflict, InvalidInput, PaymentUsed, UnknownBooking
from holdfast.domain.payment import Payment, PaymentRequest, check_amount, check_payable, signed_query
from holdfast.domain.signature import SignatureProblem, verify
from holdfast.domain.transitions import Caller
from holdfast.operations.bookings import Bookings, FoundBooking
from holdfast.operations.units import Units
from holdfast.operations.write_path import WriteResult
from holdfast.storage.database import Database, current_time

logger = logging.getLogger("holdfast.payments")


class PaymentProvider(Protocol):
    """Takes the money, and reports it by the signed callback."""

    async def address_for(self, request: PaymentRequest) -> str:
        """Return the address of the page that the buyer is sent to."""


class HostedPaymentPage(NamedTuple):
    """A page of the provider or of an adapter, which gets the request in its signed address."""

    url: str
    secret: str

    def __repr__(self) -> str:
        return f"HostedPaymentPage({self.url})"

    async def address_for(self, request: PaymentRequest) -> str:
        return f"{self.url}?{signed_query(request, self.secret)}"


class PaymentPage(NamedTuple):
    """The settings of an installation for payments."""

    provider: PaymentProvider | None = None
    secret: str | None = None
    """Signs callbacks; None: there are none."""
    callback_url: str = ""


class Payments:
    def __init__(self, database: Database, units: Units, operations: Bookings, page: PaymentPage) -> None:
        self._database = database
        self._units = units
        self._bookings = operations
        self._page = page

    @property
    def is_open(self) -> bool:
        """Return whether there is a payment page, and so whether callbacks are accepted."""
        return self._page.secret is not None

    async def address_for(self, found: FoundBooking, return_url: str, language: str) -> str | None:
        """Return None without a payment page or a deposit. Raise an error before the signature, and once it
        is paid or the booking has ended."""
        unit, _ = await self._units.find(found.project_slug, found.unit_code)
        check_payable(unit, found.booking)
        provider, amount = self._page.provider, found.booking.terms.deposit_sar
        if provider is None or not amount:
            return None
        assert found.booking.hold_expires_at is not None
        request = PaymentRequest(
            found.booking.reference, amount, return_url, self._page.callback_url, language,
            found.booking.hold_expires_at, found.now,
        )  # fmt: skip
        return await provider.address_for(request)

    async def signature_fault(
        self, timestamp: str | None, signature: str | None, body: bytes
    ) -> SignatureProblem | None:
        """Check the age by the database's clock, but only for those who know the secret."""
        secret = self._page.secret
        assert secret is not None
        fault = verify(secret, timestamp, signature, body, None)
        if fault is not None:
            return fault
        now = await self._database.read(current_time)
        return verify(secret, timestamp, signature, body, now.timestamp())

    async def confirm(self, payment: Payment, request_id: str) -> WriteResult:
        """Confirm the deposit once for each payment, however often it is reported."""
        try:
            found = await self._bookings.find(payment.reference)
            check_amount(payment, found.booking)
            author = Author(ActorKind.PAYMENT, payment.id, request_id)
            written = await self._bookings.act_on_booking(
                found, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, author, payment_id=payment.id
            )
        except PaymentUsed:
            _warn("a payment was reported for another booking than the one that it has confirmed", payment)
            raise
        except (UnknownBooking, InvalidInput, Conflict) as error:
            _warn("a payment was rejected and must be refunded", payment, why=str(error))
            raise
        is_due = written.booking.status is BookingStatus.REFUND_DUE
        was_confirmed = found.booking.deposit_confirmed_at is not None
        # Its id was written, and nothing else: the unit had its reservation, or the booking its end.
        if written.changed and not written.decision.events and (was_confirmed or not is_due):
            _warn("a payment was reported for a deposit that staff had confirmed", payment)
        if is_due:
            _warn("a payment came too late and is due back", payment)
        return written


def _warn(message: str, payment: Payment, **more: str) -> None:
    """Log the ids alone, and nothing about the buyer."""
    fields = {"paymentId": payment.id, "reference": payment.reference, "amountSar": payment.amount_sar}
    logger.warning(message, extra={"fields": fields | more})
