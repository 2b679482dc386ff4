"""What is asked of a payment page, and what it tells: both signed with a secret that the two share. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import quote, urlencode

from holdfast.domain.booking import Booking, BookingStatus
from holdfast.domain.booking_actions import hold_lapsed_error, not_signed_message
from holdfast.domain.errors import InvalidInput, NotSigned, TransitionNotAllowed
from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.signature import sign
from holdfast.domain.spelling import format_timestamp
from holdfast.domain.status import Action
from holdfast.domain.unit import Unit


class PaymentRequest(NamedTuple):
    """The deposit of one booking, to be paid by its buyer."""

    reference: str
    amount_sar: Decimal
    return_url: str
    """Where the buyer goes afterwards, paid or not."""
    callback_url: str
    """Where the payment is told, by the payment system itself."""
    language: str
    expires_at: datetime
    """When the hold ends: what is paid later may come too late."""
    made_at: datetime


class Payment(NamedTuple):
    """Money that has arrived, as the payment system tells it."""

    id: str
    reference: str
    amount_sar: Decimal


def signed_query(request: PaymentRequest, secret: str) -> str:
    """The signature is made of the bytes before ``&timestamp=``, as they are sent."""
    asked = {
        "reference": request.reference,
        "amountSar": f"{request.amount_sar:.2f}",
        "returnUrl": request.return_url,
        "callbackUrl": request.callback_url,
        "language": request.language,
        "expiresAt": format_timestamp(request.expires_at),
    }
    query = urlencode(asked, quote_via=quote, safe="")
    timestamp = int(request.made_at.timestamp())
    return f"{query}&timestamp={timestamp}&signature={sign(secret, timestamp, query.encode())}"


def check_payable(unit: Unit, booking: Booking) -> None:
    """A buyer is asked for money between the signature and the end of the hold, and once."""
    if booking.status is BookingStatus.SIGNED:
        return
    if booking.deposit_confirmed_at is not None:
        raise _nothing_to_pay("The deposit is paid already.", unit)
    if booking.status is BookingStatus.LAPSED:
        raise hold_lapsed_error(unit)
    if booking.status is BookingStatus.OPEN:
        raise NotSigned(not_signed_message(booking), unit.status)
    message = "The booking is %(booking_status)s: there is nothing to pay."
    raise _nothing_to_pay(Message(message, {"booking_status": booking.status}), unit)


def check_amount(payment: Payment, booking: Booking) -> None:
    """Less is no deposit, and more is somebody's money: neither is taken for the sum that was agreed."""
    due = booking.terms.deposit_sar
    if payment.amount_sar != due:
        message = Message("The deposit of this booking is %(amount)s SAR.", {"amount": due})
        raise InvalidInput.at("/amountSar", message)


def _nothing_to_pay(detail: AnyMessage, unit: Unit) -> TransitionNotAllowed:
    return TransitionNotAllowed(Action.CONFIRM_DEPOSIT, unit.status, detail=detail)
