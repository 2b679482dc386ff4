"""The content of an agreement or a receipt: every text as the page and the PDF show it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.booking import HOLDING, Agreement, Booking, BookingStatus
from holdfast.web.documents.sections import (
    Clause,
    Row,
    Table,
    build_clauses,
    buyer_name,
    buyer_rows,
    format_amount,
    format_time,
    isolate,
    price_table,
    unit_table,
)
from holdfast.web.pages.i18n import Language, in_language

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
        text = _("The unit was sold at the sales office, without a reservation: its papers are there.")
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
    note = _("as of this copy, and not part of the agreement")
    seller = _(
        "The seller of %(project)s", project=isolate(in_language(agreement.project_name, language.code))
    )
    parties = (Row(_("Seller"), seller, is_strong=True), *buyer_rows(booking, language))
    signature = (
        Row(_("Signed electronically by"), buyer_name(booking, language), is_strong=True),
        Row(_("Signed at"), format_time(booking.signed_at, language)),
        Row(_("Language of the signature"), _("Arabic") if agreement.language == "ar" else _("English")),
        Row(_("Version of the text"), str(agreement.wording)),
    )
    return _document(Kind.AGREEMENT, subject, language, booking.signed_at, note)._replace(
        tables=(
            Table(_("The parties"), parties),
            unit_table(agreement, code, language),
            price_table(booking.terms, language),
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
        Row(_("Confirmed at"), format_time(booking.deposit_confirmed_at, language)),
        *payment,
    )
    document = _document(Kind.RECEIPT, subject, language, booking.deposit_confirmed_at, _("as of this copy"))
    return document._replace(
        headline=Row(_("Amount received"), format_amount(deposit, language)),
        tables=(
            Table(_("Payment received"), received),
            unit_table(subject.agreement, subject.unit_code, language),
            price_table(booking.terms, language, is_over=document.is_over),
        ),
        remarks=(
            *document.remarks,
            _("This receipt was made electronically and is valid without a signature."),
            _("It is not a tax invoice."),
        ),
    )


def _document(
    kind: Kind, subject: Subject, language: Language, created_at: datetime, state_note: str
) -> Document:
    booking = subject.booking
    note = language.gettext(
        "Signed before descriptions were kept with bookings: the unit is described as it is now."
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
    )


def _booking_state(booking: Booking, language: Language) -> str:
    _ = language.gettext

    def time(at: datetime | None) -> str:
        return "–" if at is None else format_time(at, language)  # noqa: RUF001

    ended_at, deposit = time(booking.ended_at), format_amount(booking.terms.deposit_sar, language)
    match booking.status:
        case BookingStatus.RESERVED:
            return _("The unit is reserved until %(until)s.", until=time(booking.reserved_until))
        case BookingStatus.SOLD:
            return _("The sale was closed on %(at)s.", at=time(booking.closed_at))
        case BookingStatus.LAPSED:
            return _(
                "The hold ran out on %(at)s before the deposit was confirmed: this booking is over.",
                at=ended_at,
            )
        case BookingStatus.CANCELLED:
            return _("The booking was cancelled on %(at)s: it is over.", at=ended_at)
        case BookingStatus.REFUND_DUE:
            return _(
                "The booking ended unsold on %(at)s. The deposit of %(deposit)s is due back to the buyer.",
                at=ended_at,
                deposit=deposit,
            )
        case BookingStatus.REFUNDED:
            return _(
                "The booking ended unsold on %(at)s. The deposit of %(deposit)s was paid back on %(back)s.",
                at=ended_at,
                deposit=deposit,
                back=time(booking.refunded_at),
            )
    return _(
        "The unit is held until %(until)s; the deposit is not confirmed yet.",
        until=time(booking.hold_expires_at),
    )
