"""The content of an agreement or a receipt: every text as the page and the PDF show it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

from babel.dates import format_datetime, get_timezone_name
from babel.numbers import format_decimal

from holdfast.domain.booking import HOLDING, WORDING, Agreement, Booking, BookingStatus, Terms, rounded
from holdfast.web.pages.i18n import Language, in_language, translations

TEXTS = Path(__file__).parent / "texts"

_HEADING = re.compile(r"^#([a-z-]*) (.+)$", re.MULTILINE)
_NO_BREAK = "\N{NO-BREAK SPACE}"
_ENDED = frozenset(
    {BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED}
)


class Kind(StrEnum):
    AGREEMENT = "agreement"
    RECEIPT = "receipt"


class Subject(NamedTuple):
    booking: Booking
    unit_code: str
    agreement: Agreement
    is_signed_text: bool
    """False for bookings older than stored agreements: the unit is described as it is now."""


class Clause(NamedTuple):
    heading: str
    paragraphs: tuple[str, ...]


class Row(NamedTuple):
    label: str
    value: str
    is_strong: bool = False


class Table(NamedTuple):
    heading: str
    rows: tuple[Row, ...]


class Document(NamedTuple):
    kind: Kind
    language: Language
    title: str
    project: str
    reference: str
    created_at: datetime
    booking_state: str
    """The state of the booking at the time of this copy. It is not part of the agreement."""
    is_over: bool
    """Whether the booking ended without a sale."""
    state_note: str
    remarks: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    headline: Row | None = None
    clauses: tuple[Clause, ...] = ()
    signature: Table | None = None
    logo: str | None = None
    """The path of the seller's picture."""


class MissingDocument(NamedTuple):
    text: str
    may_come: bool


def find_missing(kind: Kind, booking: Booking, language: Language) -> MissingDocument | None:
    """Return why the booking has no such document, or None if it has one."""
    _ = language.gettext
    is_agreement = kind is Kind.AGREEMENT
    if (booking.signed_at if is_agreement else booking.deposit_confirmed_at) is not None:
        return None
    if booking.hold_expires_at is None:
        text = _(
            "The unit was sold at the sales office without a reservation. The sales office has its documents."
        )
        return MissingDocument(text, may_come=False)
    if booking.status in HOLDING:
        is_open = booking.status is BookingStatus.OPEN
        text = _("The booking is not signed yet.") if is_open else _("The deposit is not confirmed yet.")
        return MissingDocument(text, may_come=True)
    if is_agreement:
        return MissingDocument(_("The booking ended before it was signed."), may_come=False)
    return MissingDocument(_("The booking ended before a deposit was confirmed."), may_come=False)


def document_title(kind: Kind, language: Language) -> str:
    _ = language.gettext
    return _("Reservation agreement") if kind is Kind.AGREEMENT else _("Deposit receipt")


def build_document(kind: Kind, subject: Subject, language: Language) -> Document:
    return _agreement(subject, language) if kind is Kind.AGREEMENT else _receipt(subject, language)


def _agreement(subject: Subject, language: Language) -> Document:
    _ = language.gettext
    booking, code, agreement = subject.booking, subject.unit_code, subject.agreement
    assert booking.signed_at is not None
    note = _("when this copy was made; not part of the agreement")
    parties = (*seller_rows(agreement, language), *buyer_rows(booking, language))
    signature = (
        Row(_("Signed electronically by"), buyer_name(booking, language), is_strong=True),
        Row(_("Signed at"), format_time(booking.signed_at, language)),
        Row(_("Language of the signed text"), _("Arabic") if agreement.language == "ar" else _("English")),
        Row(_("Version of the terms"), str(agreement.wording)),
    )
    return _document(Kind.AGREEMENT, subject, language, booking.signed_at, note)._replace(
        tables=(
            Table(_("Parties"), parties),
            unit_table(agreement, code, language),
            price_table(booking.terms, language, agreement.wording),
            *bank_tables(agreement, booking.terms, booking.reference, language),
        ),
        clauses=build_clauses(agreement, booking.terms, code, language),
        signature=Table(_("Signature"), signature),
    )


def _receipt(subject: Subject, language: Language) -> Document:
    _, booking = language.gettext, subject.booking
    assert booking.deposit_confirmed_at is not None
    deposit = booking.terms.deposit_sar
    payment = () if booking.payment_id is None else (Row(_("Payment number"), isolate(booking.payment_id)),)
    received = (
        Row(_("For"), _("Deposit for the reservation") if deposit else _("Reservation without a deposit")),
        Row(_("Received from"), buyer_name(booking, language)),
        *seller_rows(subject.agreement, language, _("Received by")),
        Row(_("Confirmed at"), format_time(booking.deposit_confirmed_at, language)),
        *payment,
    )
    note = _("when this copy was made")
    document = _document(Kind.RECEIPT, subject, language, booking.deposit_confirmed_at, note)
    return document._replace(
        headline=Row(_("Amount received"), format_amount(deposit, language)),
        tables=(
            Table(_("Payment received"), received),
            unit_table(subject.agreement, subject.unit_code, language),
            price_table(booking.terms, language, subject.agreement.wording, is_over=document.is_over),
        ),
        remarks=(
            *document.remarks,
            _("This receipt was issued electronically and is valid without a signature."),
            _("It is not a tax invoice."),
        ),
    )


def _document(
    kind: Kind, subject: Subject, language: Language, created_at: datetime, state_note: str
) -> Document:
    booking = subject.booking
    note = language.gettext(
        "This agreement was signed before unit descriptions were stored with it. "
        "The unit is described as it is now."
    )
    return Document(
        kind,
        language,
        document_title(kind, language),
        in_language(subject.agreement.project_name, language.code),
        booking.reference,
        created_at,
        _booking_state(booking, language),
        booking.status in _ENDED,
        state_note,
        remarks=() if subject.is_signed_text else (note,),
        logo=subject.agreement.seller.logo,
    )


def _booking_state(booking: Booking, language: Language) -> str:
    _ = language.gettext

    def time(at: datetime | None) -> str:
        return "–" if at is None else format_time(at, language)  # noqa: RUF001

    texts = {
        BookingStatus.RESERVED: _("The unit is reserved until %(until)s."),
        BookingStatus.SOLD: _("The sale was completed on %(at)s."),
        BookingStatus.LAPSED: _(
            "The hold expired on %(at)s before the deposit was confirmed. This booking has ended."
        ),
        BookingStatus.CANCELLED: _("The booking was cancelled on %(at)s."),
        BookingStatus.REFUND_DUE: _(
            "The booking ended without a sale on %(at)s. "
            "The deposit of %(deposit)s is to be refunded to the buyer."
        ),
        BookingStatus.REFUNDED: _(
            "The booking ended without a sale on %(at)s. The deposit of %(deposit)s was refunded on %(back)s."
        ),
    }
    held = _("The unit is on hold until %(until)s. The deposit is not confirmed yet.")
    return texts.get(booking.status, held) % {
        "at": time(booking.closed_at if booking.status is BookingStatus.SOLD else booking.ended_at),
        "until": time(booking.ends_at),
        "deposit": format_amount(booking.terms.deposit_sar, language),
        "back": time(booking.refunded_at),
    }


class TermsInFull(NamedTuple):
    tables: tuple[Table, ...]
    clauses: tuple[Clause, ...]


def terms_in_full(
    agreement: Agreement, terms: Terms, unit_code: str, reference: str, language: Language
) -> TermsInFull:
    """Return all that a buyer signs for, to be read before the signature."""
    tables = (
        Table(language.gettext("The seller"), seller_rows(agreement, language)),
        unit_table(agreement, unit_code, language),
        price_table(terms, language, agreement.wording),
        *bank_tables(agreement, terms, reference, language),
    )
    return TermsInFull(tables, build_clauses(agreement, terms, unit_code, language))


def build_clauses(
    agreement: Agreement, terms: Terms, unit_code: str, language: Language
) -> tuple[Clause, ...]:
    """Return the clauses in the agreement's version of the text, in the language of the reader."""
    values = {
        "project": isolate(in_language(agreement.project_name, language.code)),
        "unit": isolate(unit_code),
        "total": isolate(format_amount(terms.total_sar, language)),
        "deposit": isolate(format_amount(terms.deposit_sar, language)),
    }
    conditions = ("", "deposit" if terms.deposit_sar else "no-deposit")
    # Whole, whatever the reader's language is: the buyer signs all of it.
    own = tuple(isolate(line) for line in (agreement.seller.terms or "").splitlines() if line.strip())
    additional = (Clause(language.gettext("Additional terms"), own),) if own else ()
    clauses = tuple(
        # Values are filled in after the text was split, so that no name can look like a clause.
        Clause(clause.heading, tuple(paragraph.format(**values) for paragraph in clause.paragraphs))
        for condition, clause in _load_clauses(agreement.wording, language.code)
        if condition in conditions
    )
    return clauses + additional


@cache
def _load_clauses(version: int, language_code: str) -> list[tuple[str, Clause]]:
    """Return each clause of a text with its condition.

    ``#`` begins a clause; ``#deposit`` and ``#no-deposit`` begin one for that case only. Empty lines separate
    paragraphs.
    """
    text = (TEXTS / str(version) / f"{language_code}.txt").read_text(encoding="utf-8")
    _, *pieces = _HEADING.split(text)
    clauses = []
    for condition, heading, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        paragraphs = (paragraph.strip() for paragraph in body.split("\n\n"))
        clauses.append((condition, Clause(heading, tuple(filter(None, paragraphs)))))
    return clauses


def unit_table(agreement: Agreement, unit_code: str, language: Language) -> Table:
    _ = language.gettext
    counts = (
        (_("Bedrooms"), agreement.bedrooms),
        (_("Bathrooms"), agreement.bathrooms),
        (_("Handover year"), agreement.delivery_year),
    )
    rows = (
        Row(_("Project"), isolate(in_language(agreement.project_name, language.code))),
        Row(_("Unit"), isolate(unit_code), is_strong=True),
        Row(_("Type"), isolate(in_language(agreement.unit_type, language.code))),
        Row(_("Area"), language.area(agreement.area_sqm)),
        *(Row(label, str(value)) for label, value in counts if value is not None),
    )
    return Table(_("The unit"), rows)


def price_table(terms: Terms, language: Language, wording: int = WORDING, *, is_over: bool = False) -> Table:
    """``is_over``: nothing is left to pay, since there will be no sale."""
    _ = _gettext_of_wording(wording, language)
    rows = [
        Row(_("Price"), format_amount(terms.price_sar, language)),
        Row(_("VAT"), _vat(terms, language)),
        Row(_("Total price"), format_amount(terms.total_sar, language), is_strong=True),
    ]
    if not terms.deposit_sar:
        return Table(_("Price and deposit"), (*rows, Row(_("Deposit"), _("none"))))
    amount = format_amount(terms.deposit_sar, language)
    percent = isolate(language.percent(terms.deposit_percent or 0))
    deposit = _("%(amount)s (%(percent)s of the total)", amount=amount, percent=percent)
    rows.append(Row(_("Deposit"), deposit, is_strong=True))
    if not is_over:
        left = format_amount(terms.total_sar - terms.deposit_sar, language)
        rows.append(Row(_("Balance due"), left))
    return Table(_("Price and deposit"), tuple(rows))


def _gettext_of_wording(wording: int, language: Language) -> Callable[..., str]:
    """The Arabic clauses of version 1 have another word for the deposit, so the table has it there too."""

    def gettext(text: str, /, **values: str) -> str:
        first = translations(language.code).pgettext("wording 1", text)
        return language.gettext(text, **values) if first == text else str(first)

    return gettext if wording == 1 else language.gettext


def seller_rows(agreement: Agreement, language: Language, label: str | None = None) -> tuple[Row, ...]:
    """Name the seller as it was known when the buyer signed."""
    _, seller = language.gettext, agreement.seller
    name = isolate(in_language(seller.legal_name or agreement.project_name, language.code))
    name = name if seller.legal_name else _("The seller of %(project)s", project=name)
    rows = (
        Row(label or _("Seller"), name, is_strong=True),
        Row(_("Commercial registration number"), _left_to_right(seller.commercial_registration)),
        Row(_("VAT registration number"), _left_to_right(seller.vat_number)),
        Row(_("Phone number"), _left_to_right(seller.phone)),
        Row(_("E-mail address"), _left_to_right(seller.email)),
    )
    return tuple(row for row in rows if row.value)


def bank_tables(agreement: Agreement, terms: Terms, reference: str, language: Language) -> tuple[Table, ...]:
    """Return where the deposit is transferred to, if there is one and the account is known."""
    _, seller = language.gettext, agreement.seller
    if seller.iban is None or not terms.deposit_sar:
        return ()
    names = ((_("Bank"), seller.bank_name), (_("Account holder"), seller.account_holder or seller.legal_name))
    rows = [Row(label, isolate(in_language(name, language.code))) for label, name in names if name]
    rows.append(Row(_("IBAN"), _left_to_right(seller.spaced_iban), is_strong=True))
    rows.append(Row(_("Payment reference"), _left_to_right(reference)))
    return (Table(_("Bank account for the deposit"), tuple(rows)),)


def buyer_rows(booking: Booking, language: Language) -> tuple[Row, ...]:
    _, buyer = language.gettext, booking.buyer
    if buyer is None:
        return (Row(_("Buyer"), buyer_name(booking, language)),)
    return (
        Row(_("Buyer"), isolate(buyer.name), is_strong=True),
        Row(_("E-mail address"), isolate(buyer.email)),
        # A phone number has no letter to tell its direction by; it is read from the left everywhere.
        Row(_("Phone number"), _left_to_right(buyer.phone)),
    )


def buyer_name(booking: Booking, language: Language) -> str:
    """Return the buyer's name, or that it was erased."""
    if booking.buyer is not None:
        return isolate(booking.buyer.name)
    if booking.buyer_erased_at is None:
        return language.gettext("The buyer's personal data was erased.")
    at = format_time(booking.buyer_erased_at, language)
    return language.gettext("Personal data erased on %(at)s", at=at)


def _vat(terms: Terms, language: Language) -> str:
    _ = language.gettext
    if not terms.vat_rate:
        return _("included in the price") if terms.vat_included else _("not stated")
    rate = isolate(language.percent(terms.vat_rate))
    if terms.vat_included is False:
        amount = format_amount(terms.total_sar - rounded(terms.price_sar), language)
        return _("%(amount)s (%(rate)s, added to the price)", amount=amount, rate=rate)
    return _("%(rate)s, included in the price", rate=rate)


def format_amount(value: Decimal, language: Language) -> str:
    """Always with halalas, so that nothing can be added by hand. Digits are the same in every language."""
    figures = format_decimal(value, "#,##0.00", locale="en")
    return f"{figures}{_NO_BREAK}ر.س" if language.code == "ar" else f"SAR{_NO_BREAK}{figures}"


def format_time(at: datetime, language: Language) -> str:
    """To the second, with the name of the time zone."""
    local = at.astimezone(language.zone)
    comma = "،" if language.code == "ar" else ","
    text = format_datetime(local, f"d MMMM y{comma} HH:mm:ss", locale=language.code)
    return f"{text} ({get_timezone_name(local, locale=language.code)})"


def _left_to_right(text: str | None) -> str:
    return f"\N{LEFT-TO-RIGHT ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}" if text else ""


def isolate(text: str) -> str:
    """Keep the direction of a text from mixing with that of the text around it."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
