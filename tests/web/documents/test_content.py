"""What papers say of a booking in each of its states."""

from datetime import timedelta
from decimal import Decimal

import pytest

from holdfast.domain.booking import BookingStatus, Terms
from holdfast.operations.bookings import FoundBooking
from holdfast.web.documents.content import Kind, Table, find_missing, price_table
from holdfast.web.documents.rendering import status_url
from holdfast.web.pages.i18n import language_of
from holdfast.web.pages.storefront.base import booking_path
from tests.web.documents.subjects import LATER, NOW, a_booking, a_document

ENGLISH = language_of("en", "latn", "Asia/Riyadh")
STATES = {
    BookingStatus.SIGNED: "10:35:12 (Arabian Standard Time); the deposit is not confirmed yet.",
    BookingStatus.RESERVED: "The unit is reserved until 30 November 2026, 10:30:12",
    BookingStatus.SOLD: "The sale was closed on 16 November 2026, 10:30:12",
    BookingStatus.LAPSED: "The hold ran out on 18 November 2026, 10:30:12",
    BookingStatus.CANCELLED: "The booking was cancelled on 18 November 2026, 10:30:12",
    BookingStatus.REFUND_DUE: "The deposit of SAR\xa0136,395.00 is due back to the buyer.",
    BookingStatus.REFUNDED: "The deposit of SAR\xa0136,395.00 was paid back on 19 November 2026, 10:30:12",
}
OVER = {BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED}


def rows(table: Table) -> dict[str, str]:
    return {row.label: row.value.strip("\u2066\u2068\u2069") for row in table.rows}


@pytest.mark.parametrize("status", STATES)
def test_a_paper_says_where_the_booking_stands(status: BookingStatus) -> None:
    document = a_document(booking=a_booking(status))
    assert STATES[status] in document.booking_state
    assert document.is_over is (status in OVER)


def test_what_is_left_to_pay_is_not_told_where_there_will_be_no_sale() -> None:
    for status in (BookingStatus.REFUND_DUE, BookingStatus.REFUNDED):
        document = a_document(Kind.RECEIPT, booking=a_booking(status))
        assert "Left to pay" not in str(document.tables)
    assert "Left to pay" in str(a_document(Kind.RECEIPT).tables)


def test_of_a_buyer_whose_data_were_erased_that_alone_is_said() -> None:
    booking = a_booking(BookingStatus.REFUNDED, buyer=None, buyer_erased_at=LATER + timedelta(days=3))
    for kind in Kind:
        text = str(a_document(kind, booking=booking))
        assert "Personal data erased on 21 November 2026" in text
        assert "Nora" not in text


def test_a_booking_from_before_says_that_the_unit_is_as_it_is_now() -> None:
    assert any("as it is now" in remark for remark in a_document(is_signed_text=False).remarks)
    assert not any("as it is now" in remark for remark in a_document().remarks)


def test_a_receipt_without_a_deposit_says_so() -> None:
    booking = a_booking(terms=Terms(Decimal(900), None, None, None), payment_id=None)
    document = a_document(Kind.RECEIPT, booking=booking)
    assert document.headline is not None
    assert document.headline.value == "SAR\xa00.00"
    assert rows(document.tables[0])["For"] == "Reservation without a deposit"
    assert "Payment number" not in rows(document.tables[0])


@pytest.mark.parametrize(
    ("included", "rate", "told"),
    [
        (False, "15", "SAR\xa0150.00 (15%, added to the price)"),
        (True, "15", "15%, included in the price"),
        (None, "15", "15%, included in the price"),
        (True, None, "included in the price"),
        (False, None, "none stated"),
        (None, None, "none stated"),
        (False, "0", "none stated"),
    ],
)
def test_vat_is_told_as_the_total_has_it(included: bool | None, rate: str | None, told: str) -> None:
    terms = Terms(Decimal(1000), included, None if rate is None else Decimal(rate), None)
    value = rows(price_table(terms, ENGLISH))["VAT"]
    assert value.replace("\u2068", "").replace("\u2069", "") == told


def test_a_paper_that_may_come_is_told_from_one_that_will_not() -> None:
    unsigned = a_booking(BookingStatus.OPEN, signed_at=None, deposit_confirmed_at=None)
    lapsed = unsigned._replace(status=BookingStatus.LAPSED, ended_at=NOW)
    walked_in = unsigned._replace(status=BookingStatus.SOLD, hold_expires_at=None, closed_at=NOW)
    for kind in Kind:
        reasons = [find_missing(kind, booking, ENGLISH) for booking in (unsigned, lapsed, walked_in)]
        assert [reason and reason.may_come for reason in reasons] == [True, False, False]
        assert "not signed yet" in str(reasons[0])
        assert "sold at the sales office" in str(reasons[2])


def test_the_receipt_waits_for_the_deposit() -> None:
    signed = a_booking(BookingStatus.SIGNED, deposit_confirmed_at=None)
    missing = find_missing(Kind.RECEIPT, signed, ENGLISH)
    assert missing == ("The deposit is not confirmed yet.", True)
    assert find_missing(Kind.AGREEMENT, signed, ENGLISH) is None


def test_the_code_to_scan_leads_to_the_page_of_the_booking() -> None:
    found = FoundBooking(a_booking(), "A-1203", "narjis-heights", NOW)
    path = booking_path("narjis-heights", found.booking.reference)
    assert status_url("https://sales.example.com", found) == f"https://sales.example.com{path}"
    assert status_url("", found) is None
