"""The body that tells a payment."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, StringConstraints, TypeAdapter, with_config
from typing_extensions import TypedDict

from holdfast.operations.paying import Payment
from holdfast.web.checking import names_of
from holdfast.web.fields import NO_NUL, STRICT, canonical, number_schema, within
from holdfast.web.unit_bounds import DEPOSIT

LONGEST_ID = 200
LONGEST_REFERENCE = 50
PAYMENT_ID = r"^[!-~]+$"

PaymentId = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID, pattern=PAYMENT_ID)]
# Whatever is no reference names no booking.
Reference = Annotated[str, StringConstraints(max_length=LONGEST_REFERENCE, pattern=NO_NUL)]
Amount = Annotated[Decimal, within(DEPOSIT), AfterValidator(canonical), number_schema(DEPOSIT)]


@with_config(STRICT)
class PaymentBody(TypedDict):
    id: PaymentId
    reference: Reference
    amount_sar: Amount


PAYMENT: TypeAdapter[Any] = TypeAdapter(PaymentBody)
PAYMENT_NAMES = names_of(PaymentBody)


def payment_from(values: dict[str, Any]) -> Payment:
    return Payment(values["id"], values["reference"], values["amount_sar"])
