"""What is asked of a payment page, and when a buyer is asked for money at all."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.booking import Booking, BookingStatus
from holdfast.domain.errors import DomainError, HoldLapsed, InvalidInput, NotSigned, TransitionNotAllowed
from holdfast.domain.payment import (
    Payment,
    PaymentRequest,
    check_amount,
    check_payable,
    signed_query,
)
from holdfast.domain.signature import sign, verify
from holdfast.domain.status import Status
from tests.domain.bookings import UNIT_STATUS, booking
from tests.domain.units import unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
SECRET = "the secret that the two share"
REQUEST = PaymentRequest(
    reference="Q39-4F6-4K6",
    amount_sar=Decimal(149385),
    return_url="https://units.example.com/p/narjis-heights/bookings/Q39-4F6-4K6?paid=1",
    callback_url="https://units.example.com/v1/payments/callback",
    language="ar",
    expires_at=datetime(2026, 11, 14, 9, 35, tzinfo=UTC),
    made_at=datetime(2026, 11, 14, 9, 30, 0, 999_000, tzinfo=UTC),
)


@dataclass
class Read:
    """As the payment page reads its address."""

    signed: str
    timestamp: str
    signature: str

    @property
    def asked(self) -> dict[str, str]:
        return dict(parse_qsl(self.signed, strict_parsing=True))


def read(query: str) -> Read:
    signed, _, rest = query.partition("&timestamp=")
    timestamp, _, signature = rest.partition("&signature=")
    return Read(signed, timestamp, signature)


def test_the_address_of_the_payment_page_says_everything() -> None:
    found = read(signed_query(REQUEST, SECRET))
    assert found.asked == {
        "reference": "Q39-4F6-4K6",
        "amountSar": "149385.00",
        "returnUrl": REQUEST.return_url,
        "callbackUrl": REQUEST.callback_url,
        "language": "ar",
        "expiresAt": "2026-11-14T09:35:00.000Z",
    }
    assert found.timestamp == "1794648600"


def test_it_is_signed_as_webhooks_are_over_what_stands_before_the_timestamp() -> None:
    found = read(signed_query(REQUEST, SECRET))
    assert found.signature == sign(SECRET, 1_794_648_600, found.signed.encode())
    assert verify(SECRET, found.timestamp, found.signature, found.signed.encode(), 1_794_648_600) is None
    assert verify("another", found.timestamp, found.signature, found.signed.encode(), None) is not None


@given(st.text(), st.text())
def test_whatever_the_addresses_hold_it_is_read_back_and_moves_no_border(first: str, second: str) -> None:
    asked = REQUEST._replace(
        return_url=f"https://a.example/{first.encode(errors='replace').decode()}",
        callback_url=f"https://b.example/?{second.encode(errors='replace').decode()}&timestamp=1",
    )
    query = signed_query(asked, SECRET)
    found = read(query)
    assert query.isascii()
    assert (found.asked["returnUrl"], found.asked["callbackUrl"]) == (asked.return_url, asked.callback_url)
    assert verify(SECRET, found.timestamp, found.signature, found.signed.encode(), None) is None


def asked_for(status: BookingStatus, found: Status | None = None, **others: object) -> DomainError | None:
    try:
        check_payable(unit(found or UNIT_STATUS.get(status, Status.AVAILABLE)), booking(status, **others))
    except DomainError as refusal:
        return refusal
    return None


def test_a_buyer_is_asked_for_the_deposit_between_signature_and_end() -> None:
    assert asked_for(SIGNED) is None


def test_a_buyer_who_has_not_signed_is_not_asked_for_money() -> None:
    refusal = asked_for(OPEN)
    assert isinstance(refusal, NotSigned)
    assert refusal.status is Status.HELD


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (Status.AVAILABLE, "The hold has lapsed. The unit is free again."),
        (Status.HELD, "The hold has lapsed."),
    ],
)
def test_nobody_is_asked_to_pay_for_a_hold_that_has_lapsed(found: Status, sentence: str) -> None:
    refusal = asked_for(LAPSED, found)
    assert isinstance(refusal, HoldLapsed)
    assert str(refusal) == sentence


@pytest.mark.parametrize("status", [RESERVED, SOLD, REFUND_DUE, REFUNDED])
def test_nobody_pays_twice(status: BookingStatus) -> None:
    refusal = asked_for(status)
    assert isinstance(refusal, TransitionNotAllowed)
    assert str(refusal) == "The deposit is paid already."


@pytest.mark.parametrize("status", [CANCELLED, SOLD])
def test_what_has_ended_or_was_sold_without_a_hold_costs_nothing(status: BookingStatus) -> None:
    refusal = asked_for(status, deposit_confirmed_at=None)
    assert isinstance(refusal, TransitionNotAllowed)
    assert str(refusal) == f"The booking is {status}: there is nothing to pay."


def due(amount: str) -> Booking:
    terms = booking(SIGNED).terms._replace(
        price_sar=Decimal(amount), vat_included=True, deposit_percent=Decimal(100)
    )
    return booking(SIGNED, terms=terms)


@pytest.mark.parametrize("paid", ["1000.10", "1000.1", "1000.100"])
def test_the_deposit_is_paid_by_its_exact_amount_however_it_is_written(paid: str) -> None:
    check_amount(Payment("pay_1", "234-679-FHK", Decimal(paid)), due("1000.10"))


@pytest.mark.parametrize("paid", ["1000.09", "1000.11", "0", "10001.0", "1000"])
def test_another_amount_is_refused_and_told_what_is_due(paid: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_amount(Payment("pay_1", "234-679-FHK", Decimal(paid)), due("1000.10"))
    assert str(refused.value) == "amountSar: The deposit of this booking is 1000.10 SAR."


def test_where_there_is_no_deposit_nothing_is_the_exact_amount() -> None:
    terms = booking(SIGNED).terms._replace(deposit_percent=None)
    check_amount(Payment("pay_1", "234-679-FHK", Decimal(0)), booking(SIGNED, terms=terms))
