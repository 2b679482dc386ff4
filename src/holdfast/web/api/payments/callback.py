"""The callback by which a payment system reports a paid deposit. It is signed and needs no key."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from holdfast.domain import errors
from holdfast.domain import payment as domain
from holdfast.domain.booking import BookingStatus
from holdfast.domain.signature import TOLERANCE_SECONDS, SignatureProblem, check_signature_headers
from holdfast.web.api.bodies import BodyModel, ModelBody
from holdfast.web.api.models import Document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.api.unit_bodies import PRICE
from holdfast.web.auth import Guard
from holdfast.web.errors import UnknownRoute
from holdfast.web.fields import NO_NUL
from holdfast.web.request import Request
from holdfast.wiring import PAYMENT_CALLBACK_PATH

PREFIX = "/v1/payments"
TIMESTAMP, SIGNATURE = "X-Payment-Timestamp", "X-Payment-Signature"
CALLBACK_BODY_LIMIT = 64 * 1024
LONGEST_ID = 200
LONGEST_REFERENCE = 50
PAYMENT_ID = r"^[!-~]+$"

_NOT_SIGNED = f"Send `{TIMESTAMP}` and `{SIGNATURE}: sha256=<hex digest>`."
_DIFFERS = (
    "The signature is not the one of this timestamp and this body: HMAC-SHA256 with the payment secret over "
    "the timestamp, a dot and the body as it is sent."
)
_TOO_FAR = f"The timestamp is more than {TOLERANCE_SECONDS} seconds from now: sign anew, or set the clock."
_REASONS = {
    SignatureProblem.SIGNATURE_MISSING: _NOT_SIGNED,
    SignatureProblem.TIMESTAMP_MISSING: _NOT_SIGNED,
    SignatureProblem.SCHEME_NOT_SHA256: f"`{SIGNATURE}` must begin with `sha256=`.",
    SignatureProblem.DIGEST_MISSING: f"`{SIGNATURE}` has no digest.",
    SignatureProblem.DIGEST_MALFORMED: f"The digest of `{SIGNATURE}` must be 64 digits of 0-9 and a-f.",
    SignatureProblem.TIMESTAMP_NOT_A_NUMBER: f"`{TIMESTAMP}` must be the Unix time in seconds.",
    SignatureProblem.TOO_OLD: _TOO_FAR,
    SignatureProblem.TOO_FAR_AHEAD: _TOO_FAR,
    SignatureProblem.DIGEST_DIFFERS: _DIFFERS,
}


async def _check_signature(request: Request) -> None:
    """Require a signature by the payment secret. The body is read only if both headers are well formed."""
    service = request.services.payments
    if not service.is_open:
        raise UnknownRoute
    timestamp, signature = (request.header(name.lower().encode()) for name in (TIMESTAMP, SIGNATURE))
    fault = check_signature_headers(timestamp, signature)
    if fault is None:
        body = await request.read_body(CALLBACK_BODY_LIMIT)
        fault = await service.signature_fault(timestamp, signature, body)
    if fault is not None:
        raise errors.InvalidSignature(_REASONS[fault])


routes = ApiRoutes(
    PREFIX,
    "Payments",
    Guard(_check_signature, ("paymentSignature",), (errors.InvalidSignature, UnknownRoute)),
)

# The highest price, with as much VAT on top.
Amount = Annotated[Decimal, PRICE._replace(most=2 * PRICE.most)]
PaymentId = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID, pattern=PAYMENT_ID)]
# Text that is not a reference is 404, as an unknown reference is.
Reference = Annotated[str, StringConstraints(max_length=LONGEST_REFERENCE, pattern=NO_NUL)]


class Payment(BodyModel):
    example: ClassVar[Any] = {"id": "pay_7Kq2Xw", "reference": "Q39-4F6-4K6", "amountSar": 149385}

    id: PaymentId = Field(
        description="What the payment system calls this payment: visible ASCII, without spaces. The same "
        "id is the same payment, however often it is reported."
    )
    reference: Reference = Field(
        description="The reference of the booking, as it came to the payment page."
    )  # fmt: skip
    amount_sar: Amount = Field(description="What was paid: the deposit of the booking, to the halala.")


class PaymentTakenDocument(Document):
    reference: str
    status: BookingStatus


@routes.post(
    PAYMENT_CALLBACK_PATH.removeprefix(PREFIX),
    summary="Report a paid deposit",
    body=ModelBody(Payment, CALLBACK_BODY_LIMIT),
    headers=(TIMESTAMP,),
    errors=(errors.UnknownBooking, errors.NotSigned, errors.PaymentUsed, errors.TransitionNotAllowed),
)
async def report_payment(request: Request, body: Payment) -> PaymentTakenDocument:
    """While the hold lasts, this reserves the unit. If the booking had ended, the unit is held and reserved
    again if it is available; otherwise the booking becomes `refund-due`. `status` says which.

    Repeat the call until the response is 200. The same `id` changes nothing, and the response is the booking
    as it is now. These payments are rejected, recorded only in the log, and must be refunded by their
    recipient: a second payment for the same deposit under another `id`, or one for a deposit that staff
    confirmed and that was refunded (409 `transition-not-allowed`); one before the signature (409
    `not-signed`); one that has confirmed another booking (409 `payment-used`); another amount (422)."""
    payment = domain.Payment(body.id, body.reference, body.amount_sar)
    booking = (await request.services.payments.confirm(payment, request.request_id)).booking
    return PaymentTakenDocument(booking.reference, booking.status)
