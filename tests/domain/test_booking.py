"""A booking: the terms that were agreed, and how it ends."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.booking import BookingStatus, Slots, Terms, as_seen, end, new_booking, unit_terms
from tests.domain.bookings import BUYER, DRAFT, UNIT_STATUS, booking
from tests.domain.units import FIELDS, MILLISECOND, MINUTE, NOW, unit

HALF_A_HALALA = Decimal("0.005")
percentages = st.none() | st.decimals(0, 100, places=4)
terms = st.builds(
    Terms,
    st.decimals(0, Decimal("999999999999.99"), places=2),
    st.none() | st.booleans(),
    percentages,
    percentages,
)


@pytest.mark.parametrize(
    ("price", "included", "rate", "total"),
    [
        ("1000", False, "15", "1150.00"), ("1000", True, "15", "1000.00"), ("1000", None, "15", "1000.00"),
        ("1000", False, None, "1000.00"), ("1000", False, "0", "1000.00"),
        # Halves go up, where the nearest even would go down.
        ("0.10", False, "5", "0.11"), ("0.30", False, "15", "0.35"), ("0.50", False, "5", "0.53"),
        ("0.10", False, "4.9999", "0.10"), ("999999999999.99", False, "100", "1999999999999.98"),
    ],
)  # fmt: skip
def test_vat_is_added_to_a_net_price(price: str, included: bool | None, rate: str | None, total: str) -> None:
    agreed = Terms(Decimal(price), included, None if rate is None else Decimal(rate), None)
    assert str(agreed.total_sar) == total


@pytest.mark.parametrize(
    ("price", "percent", "deposit"),
    [("950000", None, "0.00"), ("950000", "2.5", "23750.00"), ("0.50", "1", "0.01"), ("0.25", "2", "0.01")],
)
def test_the_deposit_is_a_share_of_the_total_half_up(price: str, percent: str | None, deposit: str) -> None:
    agreed = Terms(Decimal(price), True, None, None if percent is None else Decimal(percent))
    assert str(agreed.deposit_sar) == deposit


def test_the_deposit_is_a_share_of_the_rounded_total() -> None:
    agreed = Terms(Decimal("0.10"), False, Decimal(5), Decimal(50))
    # Half of 0.11; half of 0.105 would be 0.05.
    assert (str(agreed.total_sar), str(agreed.deposit_sar)) == ("0.11", "0.06")


@given(terms)
def test_amounts_are_whole_halalas_within_half_of_one(agreed: Terms) -> None:
    rate = (agreed.vat_rate or 0) if agreed.vat_included is False else 0
    total, deposit = agreed.total_sar, agreed.deposit_sar
    assert total.as_tuple().exponent == deposit.as_tuple().exponent == -2
    # Half up: never more than half below, and less than half above.
    assert -HALF_A_HALALA < total - agreed.price_sar * (100 + rate) / 100 <= HALF_A_HALALA
    assert -HALF_A_HALALA < deposit - total * (agreed.deposit_percent or 0) / 100 <= HALF_A_HALALA
    assert deposit <= total


def test_a_new_booking_has_the_terms_of_its_unit_and_ends_with_its_hold() -> None:
    walk_in = new_booking(DRAFT, unit(), BookingStatus.SOLD, NOW, buyer=BUYER)
    assert (walk_in.hold_expires_at, walk_in.ends_at) == (None, None)
    opened = new_booking(DRAFT, unit(), BookingStatus.OPEN, NOW, hold_expires_at=NOW + MINUTE)
    assert (opened.closed_at, opened.ends_at) == (None, NOW + MINUTE)
    assert (opened.number, opened.holder, opened.buyer) == (DRAFT.number, DRAFT.holder, None)
    own = (FIELDS.price_sar, FIELDS.vat_included, FIELDS.vat_rate, FIELDS.deposit_percent)
    assert opened.terms == unit_terms(FIELDS) == own


@pytest.mark.parametrize("expired", [True, False])
@pytest.mark.parametrize("status", sorted(UNIT_STATUS))
def test_a_booking_that_ends_unsold_after_a_deposit_is_due_back(status: BookingStatus, expired: bool) -> None:
    found = booking(status, slots=Slots(1, 2))
    unpaid = BookingStatus.LAPSED if expired else BookingStatus.CANCELLED
    status_after = BookingStatus.REFUND_DUE if found.deposit_confirmed_at else unpaid
    ended = end(found, NOW, expired=expired)
    assert ended == found._replace(status=status_after, ended_at=NOW, slots=Slots())


OVER = {
    BookingStatus.OPEN: BookingStatus.LAPSED,
    BookingStatus.SIGNED: BookingStatus.LAPSED,
    BookingStatus.RESERVED: BookingStatus.REFUND_DUE,
}


@pytest.mark.parametrize("status", BookingStatus)
def test_only_holds_and_reservations_end_by_themselves_and_to_the_millisecond(status: BookingStatus) -> None:
    found = booking(status, reserved_until=NOW + 2 * MINUTE)
    if status not in OVER:
        assert found.ends_at is None
        assert as_seen(found, NOW + 1_000_000 * MINUTE) is found
        return
    ends_at = found.reserved_until if status is BookingStatus.RESERVED else found.hold_expires_at
    assert ends_at is not None
    assert found.ends_at == ends_at
    assert as_seen(found, ends_at - MILLISECOND) is found
    for moment in (ends_at, ends_at + MINUTE):
        assert as_seen(found, moment) == end(found, ends_at, expired=True)
    assert as_seen(found, ends_at).status is OVER[status]
