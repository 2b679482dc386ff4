"""Payments of deposits: the payment page for the buyer, and its signed reports."""

from __future__ import annotations

import logging
from typing import NamedTuple, Protocol

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import Conflict, DomainError, InvalidInput, UnknownBooking
from holdfast.domain.payment import (
    Payment,
    PaymentRequest,
    check_amount,
    check_payable,
    signed_query,
)
from holdfast.domain.signature import SignatureProblem, verify
from holdfast.domain.status import Caller
from holdfast.operations.bookings import Bookings, FoundBooking
from holdfast.operations.units import Units
from holdfast.operations.write_path import Written
from holdfast.storage import bookings
from holdfast.storage.database import Database

__all__ = ["HostedPaymentPage", "Payment", "PaymentPage", "PaymentProvider", "PaymentRequest", "Payments"]

_NOT_TAKEN = (UnknownBooking, InvalidInput, Conflict)

logger = logging.getLogger("holdfast.payments")


class PaymentProvider(Protocol):
    """Whoever takes the money. What was paid is told by the signed callback, whoever it is."""

    async def address_for(self, request: PaymentRequest) -> str:
        """Of the page that the buyer is sent to."""
        ...


class HostedPaymentPage:
    """A page of the provider or of an adapter, which is told everything in its address."""

    def __init__(self, url: str, secret: str) -> None:
        self._url = url
        self._secret = secret

    async def address_for(self, request: PaymentRequest) -> str:
        return f"{self._url}?{signed_query(request, self._secret)}"


class PaymentPage(NamedTuple):
    """What an installation has settled about payments."""

    provider: PaymentProvider | None = None
    secret: str | None = None
    """That callbacks are signed with; None: there are none."""
    callback_url: str = ""


class Payments:
    def __init__(self, database: Database, units: Units, operations: Bookings, page: PaymentPage) -> None:
        self._database = database
        self._units = units
        self._bookings = operations
        self._page = page

    @property
    def is_open(self) -> bool:
        """Whether there is a payment page; what its owner tells is taken then, and only then."""
        return self._page.secret is not None

    async def address_for(self, found: FoundBooking, return_url: str, language: str) -> str | None:
        """Where the buyer pays; None: nowhere here, for there is no payment page or no deposit.

        Refused before the signature, and once it is paid or the booking has ended.
        """
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
        """The age goes by the database's clock, which is asked only for those who know the secret."""
        secret = self._page.secret
        assert secret is not None
        fault = verify(secret, timestamp, signature, body, None)
        if fault is not None:
            return fault
        async with self._database.reading() as connection:
            now = await bookings.now(connection)
        return verify(secret, timestamp, signature, body, now.timestamp())

    async def confirm(self, payment: Payment, request_id: str) -> Written:
        """For its booking a payment counts once, however often it is told. Any other is money of somebody.

        Ids are compared within a booking: that a payment is told for one booking alone is its owner's part.
        """
        try:
            found, written = await self._confirmed(payment, request_id)
        except _NOT_TAKEN as refusal:
            _warn("a payment was not taken and is to be paid back", payment, refusal)
            raise
        if _was_confirmed_without_it(found, written):
            _warn("a payment was told for a deposit that staff had confirmed", payment)
        if written.booking.status is BookingStatus.REFUND_DUE:
            _warn("a payment came too late and is due back", payment)
        return written

    async def _confirmed(self, payment: Payment, request_id: str) -> tuple[FoundBooking, Written]:
        found = await self._bookings.find(payment.reference)
        check_amount(payment, found.booking)
        author = Author(ActorKind.PAYMENT, payment.id, request_id)
        written = await self._bookings.confirm_deposit(
            found, Caller.PAYMENT_SYSTEM, author, payment_id=payment.id
        )
        return found, written


def _was_confirmed_without_it(found: FoundBooking, written: Written) -> bool:
    """Its id was written, and nothing else: the unit had its reservation, or the booking its end."""
    if not written.changed or written.decision.events:
        return False
    return written.booking.status is not BookingStatus.REFUND_DUE or _is_confirmed(found)


def _is_confirmed(found: FoundBooking) -> bool:
    return found.booking.deposit_confirmed_at is not None


def _warn(message: str, payment: Payment, refusal: DomainError | None = None) -> None:
    """By the ids alone: the buyer's person is nobody's business in a log."""
    fields = {"paymentId": payment.id, "reference": payment.reference, "amountSar": payment.amount_sar}
    why = {} if refusal is None else {"why": str(refusal)}
    logger.warning(message, extra={"fields": fields | why})
