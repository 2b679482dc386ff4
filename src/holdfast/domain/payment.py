"""Payments of deposits: requests to a payment page and its reports, signed with a shared secret. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import quote, urlencode

from holdfast.domain.booking import Booking, BookingStatus
from holdfast.domain.booking_actions import hold_lapsed_error, not_signed_message
from holdfast.domain.errors import InvalidInput, Message, NotSigned, TransitionNotAllowed
from holdfast.domain.signature import sign
from holdfast.domain.unit import Unit
from holdfast.domain.wire_format import format_timestamp

LINK_PREFIX = "redirect."
"""What is signed for a link begins so, and what is signed for a callback with a digit: neither passes for the
other, though one secret signs both."""


class PaymentRequest(NamedTuple):
    reference: str
    amount_sar: Decimal
    return_url: str
    callback_url: str
    language: str
    expires_at: datetime
    """When the hold ends: a later payment may come too late."""
    made_at: datetime


class Payment(NamedTuple):
    id: str
    reference: str
    amount_sar: Decimal


def signed_query(request: PaymentRequest, secret: str) -> str:
    """Sign the bytes before ``&timestamp=``, as they are sent, behind the prefix and the timestamp."""
    parameters = {
        "reference": request.reference,
        "amountSar": f"{request.amount_sar:.2f}",
        "returnUrl": request.return_url,
        "callbackUrl": request.callback_url,
        "language": request.language,
        "expiresAt": format_timestamp(request.expires_at),
    }
    query = urlencode(parameters, quote_via=quote, safe="")
    timestamp = int(request.made_at.timestamp())
    signature = sign(secret, timestamp, query.encode(), LINK_PREFIX)
    return f"{query}&timestamp={timestamp}&signature={signature}"


def check_payable(unit: Unit, booking: Booking) -> None:
    """Allow payment between the signature and the end of the hold, and once."""
    if booking.status is BookingStatus.SIGNED:
        return
    if booking.deposit_confirmed_at is not None:
        raise TransitionNotAllowed("The deposit has already been paid.", unit.status)
    if booking.status is BookingStatus.LAPSED:
        raise hold_lapsed_error(unit)
    if booking.status is BookingStatus.OPEN:
        raise NotSigned(not_signed_message(booking), unit.status)
    message = "The booking is %(booking_status)s: there is nothing to pay."
    raise TransitionNotAllowed(Message(message, {"booking_status": booking.status}), unit.status)


def check_amount(payment: Payment, booking: Booking) -> None:
    due = booking.terms.deposit_sar
    if payment.amount_sar != due:
        message = Message("The deposit of this booking is %(amount)s SAR.", {"amount": due})
        raise InvalidInput.at("/amountSar", message)
