"""A booking: the terms that were agreed, and how it ends."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.booking import (
    CLAIMING,
    HOLDING,
    NO_SLOTS,
    BookingStatus,
    Slots,
    Terms,
    as_seen,
    end,
    new_booking,
    unit_terms,
)
from tests.domain.bookings import BUYER, DRAFT, MILLISECOND, booking
from tests.domain.units import FIELDS, MINUTE, NOW, decimals, unit

prices = decimals("0", "999999999999.99", 2)
percentages = st.none() | decimals("0", "100", 4)
terms = st.builds(Terms, prices, st.none() | st.booleans(), percentages, percentages)

TOTALS: list[tuple[str, bool | None, str | None, str]] = [
    ("1000", False, "15", "1150.00"),
    ("1000", True, "15", "1000.00"),
    ("1000", None, "15", "1000.00"),
    ("1000", False, None, "1000.00"),
    ("1000", False, "0", "1000.00"),
    # Halves go up, where the nearest even would go down.
    ("0.10", False, "5", "0.11"),
    ("0.30", False, "15", "0.35"),
    ("0.50", False, "5", "0.53"),
    ("0.10", False, "4.9999", "0.10"),
    ("999999999999.99", False, "100", "1999999999999.98"),
]


@pytest.mark.parametrize(("price", "included", "rate", "total"), TOTALS)
def test_vat_comes_on_top_only_where_the_price_is_without_it(
    price: str, included: bool | None, rate: str | None, total: str
) -> None:
    agreed = Terms(Decimal(price), included, None if rate is None else Decimal(rate), None)
    assert str(agreed.total_sar) == total


DEPOSITS = [
    ("950000", None, "0.00"),
    ("950000", "2.5", "23750.00"),
    ("0.50", "1", "0.01"),
    ("0.25", "2", "0.01"),
]


@pytest.mark.parametrize(("price", "percent", "deposit"), DEPOSITS)
def test_the_deposit_is_a_share_of_the_total_half_up(price: str, percent: str | None, deposit: str) -> None:
    agreed = Terms(Decimal(price), True, None, None if percent is None else Decimal(percent))
    assert str(agreed.deposit_sar) == deposit


def test_the_deposit_is_reckoned_from_the_rounded_total() -> None:
    agreed = Terms(Decimal("0.10"), False, Decimal(5), Decimal(50))
    # Half of 0.11; half of 0.105 would be 0.05.
    assert (str(agreed.total_sar), str(agreed.deposit_sar)) == ("0.11", "0.06")


@given(terms)
def test_amounts_are_whole_halalas_within_half_of_one(agreed: Terms) -> None:
    rate = (agreed.vat_rate or 0) if agreed.vat_included is False else 0
    total, deposit = agreed.total_sar, agreed.deposit_sar
    assert total.as_tuple().exponent == deposit.as_tuple().exponent == -2
    # Half up: never more than half below, and less than half above.
    assert -Decimal("0.005") < total - agreed.price_sar * (100 + rate) / 100 <= Decimal("0.005")
    off = deposit - total * (agreed.deposit_percent or 0) / 100
    assert -Decimal("0.005") < off <= Decimal("0.005")
    assert deposit <= total


def test_the_terms_are_those_of_the_unit() -> None:
    assert unit_terms(FIELDS) == (
        FIELDS.price_sar,
        FIELDS.vat_included,
        FIELDS.vat_rate,
        FIELDS.deposit_percent,
    )


def test_a_new_booking_ends_with_its_hold() -> None:
    walked_in = new_booking(DRAFT, unit(), BookingStatus.SOLD, NOW, buyer=BUYER)
    assert (walked_in.hold_expires_at, walked_in.ends_at) == (None, None)
    opened = new_booking(DRAFT, unit(), BookingStatus.OPEN, NOW, hold_expires_at=NOW + MINUTE)
    assert (opened.closed_at, opened.ends_at) == (None, NOW + MINUTE)
    assert (opened.number, opened.holder, opened.buyer) == (DRAFT.number, DRAFT.holder, None)


@pytest.mark.parametrize("status", BookingStatus)
def test_only_holds_and_reservations_end_by_themselves(status: BookingStatus) -> None:
    expected = {
        BookingStatus.OPEN: booking().hold_expires_at,
        BookingStatus.SIGNED: booking().hold_expires_at,
        BookingStatus.RESERVED: booking(BookingStatus.RESERVED).reserved_until,
    }
    assert booking(status).ends_at == expected.get(status)


@pytest.mark.parametrize("lapsed", [True, False])
@pytest.mark.parametrize("status", sorted(CLAIMING))
def test_a_booking_that_ends_unsold_after_its_deposit_is_due_back(
    status: BookingStatus, lapsed: bool
) -> None:
    found = booking(status, slots=Slots(1, 2))
    ended = end(found, NOW, expired=lapsed)
    unpaid = BookingStatus.LAPSED if lapsed else BookingStatus.CANCELLED
    assert ended.status is (BookingStatus.REFUND_DUE if found.deposit_confirmed_at else unpaid)
    assert ended == found._replace(status=ended.status, ended_at=NOW, slots=NO_SLOTS)


@pytest.mark.parametrize("status", BookingStatus)
def test_a_booking_is_over_at_its_end_to_the_millisecond(status: BookingStatus) -> None:
    found = booking(status)
    ends_at = found.ends_at
    if ends_at is None:
        assert as_seen(found, NOW + 1_000_000 * MINUTE) is found
        return
    assert as_seen(found, ends_at - MILLISECOND) is found
    for moment in (ends_at, ends_at + MINUTE):
        assert as_seen(found, moment) == end(found, ends_at, expired=True)
    over = BookingStatus.LAPSED if status in HOLDING else BookingStatus.REFUND_DUE
    assert as_seen(found, ends_at).status is over
