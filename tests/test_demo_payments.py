"""The payment page that stands in for a provider's: what it makes of the ways that lead to it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from holdfast.demo.external.payments import InvalidLink, parse_link
from holdfast.domain.payment import PaymentRequest, signed_query

SECRET = "a secret of payments"
NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
ASKED = PaymentRequest(
    "Q39-4F6-4K6",
    Decimal("129950.00"),
    "https://units.example.com/p/palm-court/bookings/Q39-4F6-4K6",
    "https://units.example.com/v1/payments/callback",
    "en",
    NOW + timedelta(minutes=5),
    NOW,
)


def payment_id(request: PaymentRequest) -> str:
    query = signed_query(request, SECRET)
    return parse_link(query, SECRET, request.made_at.timestamp()).payment_id


def test_a_buyer_who_comes_to_pay_again_has_the_same_payment() -> None:
    later = ASKED._replace(made_at=NOW + timedelta(minutes=1), language="ar")
    assert signed_query(later, SECRET) != signed_query(ASKED, SECRET)
    assert payment_id(later) == payment_id(ASKED)


@pytest.mark.parametrize("change", [{"reference": "XMQ-QYX-6YK"}, {"amount_sar": Decimal("129951.00")}])
def test_another_booking_or_amount_is_another_payment(change: dict[str, object]) -> None:
    assert payment_id(ASKED._replace(**change)) != payment_id(ASKED)  # type: ignore[arg-type]


def test_the_way_there_is_believed_for_five_minutes_and_as_it_was_signed() -> None:
    query = signed_query(ASKED, SECRET)
    for changed, now in ((query, NOW.timestamp() + 301), (query.replace("129950", "1"), NOW.timestamp())):
        with pytest.raises(InvalidLink):
            parse_link(changed, SECRET, now)
