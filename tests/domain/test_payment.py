"""Payments: the signed address of the payment page, and when a buyer is asked for which amount."""

from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import errors
from holdfast.domain.booking import BookingStatus
from holdfast.domain.payment import (
    LINK_PREFIX,
    Payment,
    PaymentRequest,
    check_amount,
    check_payable,
    signed_query,
)
from holdfast.domain.signature import SignatureProblem, sign, verify
from holdfast.domain.status import Status
from tests.domain.bookings import UNIT_STATUS, booking
from tests.domain.units import MILLISECOND, MINUTE, NOW, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
SECRET = "the secret that the two share"
REQUEST = PaymentRequest(
    reference="Q39-4F6-4K6",
    amount_sar=Decimal(149385),
    return_url="https://units.example.com/p/narjis-heights/bookings/Q39-4F6-4K6?paid=1",
    callback_url="https://units.example.com/v1/payments/callback",
    language="ar",
    expires_at=NOW + 5 * MINUTE,
    made_at=NOW + 999 * MILLISECOND,
)


def split(query: str) -> tuple[str, str, str]:
    """As the payment page reads its address: what is signed, the timestamp, the signature."""
    signed, _, rest = query.partition("&timestamp=")
    timestamp, _, signature = rest.partition("&signature=")
    return signed, timestamp, signature


def test_the_address_of_the_payment_page_says_everything_and_is_signed() -> None:
    signed, timestamp, signature = split(signed_query(REQUEST, SECRET))
    assert dict(parse_qsl(signed, strict_parsing=True)) == {
        "reference": "Q39-4F6-4K6",
        "amountSar": "149385.00",
        "returnUrl": REQUEST.return_url,
        "callbackUrl": REQUEST.callback_url,
        "language": "ar",
        "expiresAt": "2026-11-14T09:35:00.000Z",
    }
    assert timestamp == "1794648600"
    assert signature == sign(SECRET, 1_794_648_600, signed.encode(), LINK_PREFIX)
    # One secret signs both: the signature of an address is none of a callback.
    assert verify(SECRET, timestamp, signature, signed.encode(), None) is SignatureProblem.DIGEST_DIFFERS
    assert verify("another", timestamp, signature, signed.encode(), None, LINK_PREFIX) is not None


@given(st.text(), st.text())
def test_no_address_in_the_query_moves_the_borders_of_what_is_signed(first: str, second: str) -> None:
    request = REQUEST._replace(
        return_url=f"https://a.example/{first.encode(errors='replace').decode()}",
        callback_url=f"https://b.example/?{second.encode(errors='replace').decode()}&timestamp=1",
    )
    query = signed_query(request, SECRET)
    signed, timestamp, signature = split(query)
    assert query.isascii()
    read = dict(parse_qsl(signed, strict_parsing=True))
    assert (read["returnUrl"], read["callbackUrl"]) == (request.return_url, request.callback_url)
    assert verify(SECRET, timestamp, signature, signed.encode(), None, LINK_PREFIX) is None


UNPAID = {"deposit_confirmed_at": None}
UNSIGNED = "The buyer has not signed yet; the hold ends at 2026-11-14T09:31:00.000Z."
NOTHING_TO_PAY = "The booking is %s: there is nothing to pay."


@pytest.mark.parametrize(
    ("status", "facts", "unit_status", "refusal", "sentence"),
    [
        (OPEN, {}, None, errors.NotSigned, UNSIGNED),
        (
            LAPSED, {}, Status.AVAILABLE, errors.HoldLapsed,
            "The hold has lapsed. The unit is available again.",
        ),
        (LAPSED, {}, Status.HELD, errors.HoldLapsed, "The hold has lapsed."),
        *((paid, {}, None, errors.TransitionNotAllowed, "The deposit has already been paid.")
          for paid in (RESERVED, SOLD, REFUND_DUE, REFUNDED)),
        *((ended, UNPAID, None, errors.TransitionNotAllowed, NOTHING_TO_PAY % ended)
          for ended in (CANCELLED, SOLD)),
    ],
)  # fmt: skip
def test_nobody_pays_unsigned_late_or_twice(
    status: BookingStatus,
    facts: dict[str, Any],
    unit_status: Status | None,
    refusal: type[errors.Conflict],
    sentence: str,
) -> None:
    found = unit(unit_status or UNIT_STATUS.get(status, Status.AVAILABLE))
    with pytest.raises(refusal) as refused:
        check_payable(found, booking(status, **facts))
    assert str(refused.value) == sentence
    assert refused.value.status is found.status


def pay(amount: str, percent: Decimal | None = Decimal(100)) -> None:
    terms = booking().terms._replace(price_sar=Decimal("1000.10"), deposit_percent=percent)
    check_amount(Payment("pay_1", "234-679-FHK", Decimal(amount)), booking(SIGNED, terms=terms))


def test_only_the_exact_deposit_of_a_signed_hold_is_accepted_however_it_is_written() -> None:
    check_payable(unit(Status.HELD), booking(SIGNED))
    for amount in ("1000.10", "1000.1", "1000.100"):
        pay(amount)
    pay("0", percent=None)
    for amount in ("1000.09", "1000.11", "0", "10001.0", "1000"):
        with pytest.raises(errors.InvalidInput) as refused:
            pay(amount)
        assert str(refused.value) == "amountSar: The deposit of this booking is 1000.10 SAR."
