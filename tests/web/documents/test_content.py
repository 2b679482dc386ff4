"""What papers say of a booking in each of its states, and the text of agreements in both languages."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from holdfast.domain.booking import WORDING, BookingStatus, Terms
from holdfast.operations.bookings import FoundBooking
from holdfast.web.documents import content
from holdfast.web.documents.content import TEXTS, Kind, Table, build_clauses, find_missing, terms_in_full
from holdfast.web.documents.rendering import status_url
from holdfast.web.pages.i18n import DIRECTIONS, language_of
from holdfast.web.pages.storefront.base import booking_path
from tests.web.documents.subjects import (
    AGREEMENT,
    LATER,
    NOW,
    REFERENCE,
    SELLER,
    TERMS,
    a_booking,
    a_document,
)

ENGLISH = language_of("en", "latn", "Asia/Riyadh")
STATES = {
    BookingStatus.SIGNED: "10:35:12 (Arabian Standard Time). The deposit is not confirmed yet.",
    BookingStatus.RESERVED: "The unit is reserved until 30 November 2026, 10:30:12",
    BookingStatus.SOLD: "The sale was completed on 16 November 2026, 10:30:12",
    BookingStatus.LAPSED: "The hold expired on 18 November 2026, 10:30:12",
    BookingStatus.CANCELLED: "The booking was cancelled on 18 November 2026, 10:30:12",
    BookingStatus.REFUND_DUE: "The deposit of SAR\xa0136,395.00 is to be refunded to the buyer.",
    BookingStatus.REFUNDED: "The deposit of SAR\xa0136,395.00 was refunded on 19 November 2026, 10:30:12",
}
OVER = {BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED}


def rows(table: Table) -> dict[str, str]:
    return {row.label: row.value.strip("\u2066\u2068\u2069") for row in table.rows}


@pytest.mark.parametrize("status", STATES)
def test_a_paper_says_where_the_booking_stands(status: BookingStatus) -> None:
    document = a_document(booking=a_booking(status))
    assert STATES[status] in document.booking_state
    assert document.is_over is (status in OVER)


def test_what_is_left_to_pay_is_told_only_where_there_may_be_a_sale() -> None:
    for status in (BookingStatus.RESERVED, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED):
        document = a_document(Kind.RECEIPT, booking=a_booking(status))
        assert ("Balance due" in str(document.tables)) is (status is BookingStatus.RESERVED)


def test_a_paper_says_whether_the_unit_is_told_as_it_is_now() -> None:
    for is_signed_text in (True, False):
        remarks = a_document(is_signed_text=is_signed_text).remarks
        assert any("as it is now" in remark for remark in remarks) is not is_signed_text


def test_of_a_buyer_whose_data_were_erased_that_alone_is_said() -> None:
    booking = a_booking(BookingStatus.REFUNDED, buyer=None, buyer_erased_at=LATER + timedelta(days=3))
    for kind in Kind:
        text = str(a_document(kind, booking=booking))
        assert "Personal data erased on 21 November 2026" in text
        assert "Nora" not in text


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
        (False, None, "not stated"),
        (None, None, "not stated"),
        (False, "0", "not stated"),
    ],
)
def test_vat_is_told_as_the_total_has_it(included: bool | None, rate: str | None, told: str) -> None:
    terms = Terms(Decimal(1000), included, None if rate is None else Decimal(rate), None)
    value = rows(content.price_table(terms, ENGLISH))["VAT"]
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
    signed = a_booking(BookingStatus.SIGNED, deposit_confirmed_at=None)
    assert find_missing(Kind.RECEIPT, signed, ENGLISH) == ("The deposit is not confirmed yet.", True)
    assert find_missing(Kind.AGREEMENT, signed, ENGLISH) is None


def test_the_code_to_scan_leads_to_the_page_of_the_booking() -> None:
    found = FoundBooking(a_booking(), "A-1203", "narjis-heights", NOW)
    path = booking_path("narjis-heights", found.booking.reference)
    assert status_url("https://sales.example.com", found) == f"https://sales.example.com{path}"
    assert status_url("", found) is None


@pytest.mark.parametrize("version", range(1, WORDING + 1))
def test_every_version_is_there_in_every_language_and_built_alike(version: int) -> None:
    texts = [(TEXTS / str(version) / f"{code}.txt").read_text() for code in DIRECTIONS]
    clauses = [re.findall(r"^#([a-z-]*) .", text, re.MULTILINE) for text in texts]
    parts = [re.split("^#", text, flags=re.MULTILINE) for text in texts]
    paragraphs = [[len(part.split("\n\n")) for part in found] for found in parts]
    places = [sorted(re.findall(r"\{(\w+)\}", text)) for text in texts]
    for built in (clauses, paragraphs, places):
        assert all(one == built[0] for one in built)
    assert {"project", "unit", "total", "deposit"} == set(places[0])


@pytest.mark.parametrize("code", DIRECTIONS)
def test_the_text_is_that_of_the_terms_with_a_deposit_or_without(code: str) -> None:
    language = language_of(code, "latn", "Asia/Riyadh")
    clauses = build_clauses(AGREEMENT, TERMS, "A-1203", language)
    for part in ("136,395.00", "1,363,950.00", "A-1203"):
        assert part in str(clauses)
    assert "{" not in str(clauses)
    without = build_clauses(AGREEMENT, Terms(Decimal(1299000), True, None, None), "A-1203", language)
    assert len(without) == len(clauses)
    assert "0.00" not in str(without).replace("1,299,000.00", "")
    for agreement in (AGREEMENT, AGREEMENT._replace(seller=SELLER)):
        read = terms_in_full(agreement, TERMS, "A-1203", REFERENCE, language)
        signed = a_document(code=code, agreement=agreement)
        assert read.clauses == signed.clauses
        assert read.clauses[: len(clauses)] == clauses
        seller, *others = read.tables
        assert set(seller.rows) <= set(signed.tables[0].rows)
        assert set(others) <= set(signed.tables)


def test_the_seller_is_named_with_numbers_account_and_terms_of_the_day_of_the_signature() -> None:
    agreement = AGREEMENT._replace(seller=SELLER)
    text = str(a_document(agreement=agreement))
    for part in ("Palm Court Company", "1010123456", "310123456700003", "SA03 8000", "Palm Bank", REFERENCE):
        assert part in text
    assert "شركة" not in text
    *_, additional = a_document(code="ar", agreement=agreement).clauses
    assert [line.strip("\u2068\u2069") for line in additional.paragraphs] == ["No {pets}.", "لا أسود."]
    receipt = a_document(Kind.RECEIPT, agreement=agreement)
    assert "1010123456" in str(receipt)
    assert "SA03" not in str(receipt)
    nothing_to_pay = a_booking(terms=Terms(Decimal(1), True, None, None))
    assert "SA03" not in str(a_document(agreement=agreement, booking=nothing_to_pay))
    assert "The seller of" in str(a_document())


def test_an_agreement_of_the_first_version_keeps_its_word_for_the_deposit() -> None:
    language = language_of("ar", "latn", "Asia/Riyadh")
    for version, word, other in ((1, "العربون", "مبلغ الحجز"), (2, "مبلغ الحجز", "العربون")):
        signed = terms_in_full(AGREEMENT._replace(wording=version), TERMS, "A-1203", "RE-FER-ENC", language)
        assert word in str(signed.tables)
        assert word in str(signed.clauses)
        assert other not in str(signed)


def test_a_name_in_the_text_is_neither_a_place_nor_a_clause() -> None:
    agreement = AGREEMENT._replace(project_name="{unit}\n# Clause")
    clauses = build_clauses(agreement, TERMS, "{total}", ENGLISH)
    assert len(clauses) == len(build_clauses(AGREEMENT, TERMS, "A-1203", ENGLISH))
    assert "{unit}\n# Clause" in clauses[0].paragraphs[0]
    assert "{total}" in clauses[0].paragraphs[0]
