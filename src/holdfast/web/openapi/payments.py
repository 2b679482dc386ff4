"""The operation of payment systems: signed, and without a key."""

from __future__ import annotations

from typing import Any

from holdfast.domain.booking import BookingStatus
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.web.openapi import selling_examples as examples
from holdfast.web.openapi.answers import ANYWHERE, WITH_BODY, json_answer, problems
from holdfast.web.openapi.example_unit import REFERENCE
from holdfast.web.openapi.forms import TEXT, Schema, body_schema, parameter, record, reference
from holdfast.web.openapi.operations import Operation, Paths, body_of, operation
from holdfast.web.openapi.selling_schemas import own_reference
from holdfast.web.payments.bodies import PAYMENT
from holdfast.web.payments.routes import BODY_LIMIT, CALLBACK, SIGNATURE, TIMESTAMP

_TAG = "Payments"
_SIGNED = f"""\
`sha256=` and the HMAC-SHA256, in hexadecimal, with the payment secret as key, over `{TIMESTAMP}`, a dot and
the body exactly as it is sent.
"""
_AT = f"The Unix time of the signature, in seconds; at most {TOLERANCE_SECONDS} seconds from now."
_FIELDS = {
    "id": "What the payment system calls this payment: visible ASCII, without spaces. For one booking the "
    "same id is the same payment, however often it is told.",
    "reference": "The reference of the booking, as it came to the payment page.",
    "amountSar": "What was paid: the deposit of the booking, to the halala.",
}
_CALLBACK = f"""\
The deposit of a booking was paid. While the hold lives, the unit is reserved. If the booking had ended, it is
held and reserved again where the unit is free; where it is not, the booking becomes `refund-due`. `status`
says which.

Tell a payment again until the answer is 200: the same `id` changes nothing, and is answered with the booking
as it is now. A second payment for a deposit that is paid already, under another `id`, is 409
`transition-not-allowed`, and so is one for a deposit that staff had confirmed and that was refunded; one
before the signature is 409 `not-signed`; another amount is 422. Such money is recorded in the log alone, and
is to be paid back by whoever received it. Tell a payment for one booking: ids are compared within a booking,
and not across them.

The body has at most {BODY_LIMIT // 1024} KiB.
"""

PAYMENT_SECURITY = {
    "paymentSignature": {"type": "apiKey", "in": "header", "name": SIGNATURE, "description": _SIGNED}
}
PAYMENT_PARAMETERS: dict[str, dict[str, Any]] = {
    "paymentTimestamp": parameter("header", TIMESTAMP, TEXT | {"pattern": "^[0-9]{1,20}$"}, _AT, "1794648600")
    | {"required": True},
}


def payment_paths() -> Paths:
    return {CALLBACK: {"post": _callback()}}


def payment_schemas() -> dict[str, Schema]:
    return {
        "Payment": body_schema(PAYMENT, _FIELDS),
        "PaymentTaken": record({"reference": own_reference(), "status": reference("BookingStatus")}),
    }


def payment() -> Any:
    return {
        "id": "pay_123",
        "reference": REFERENCE,
        "amountSar": examples.booking("signed")["terms"]["depositSar"],
    }


def _callback() -> Operation:
    taken = {"reference": REFERENCE, "status": str(BookingStatus.RESERVED)}
    answers = {
        "200": json_answer("The payment is known.", "PaymentTaken", taken, "Cache-Control"),
        **problems(
            *ANYWHERE, *WITH_BODY, "Unsigned", "InvalidRequest", "UnknownBooking", "PaymentRefused",
            "DatabaseAway",
        ),
    }  # fmt: skip
    return operation(
        "tellPayment", _TAG, "Tell that a deposit was paid", "paymentTimestamp", description=_CALLBACK,
        security=[{"paymentSignature": []}],
        requestBody=body_of("Payment", paid=("A deposit", payment())), responses=answers,
    )  # fmt: skip
