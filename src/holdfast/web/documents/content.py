"""Where a booking stands when a paper is made of it. It is no part of what was signed, and says so."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.booking import HOLDING, Agreement, Booking, BookingStatus
from holdfast.web.documents.texts import (
    Clause,
    Row,
    Table,
    amount,
    buyer_name,
    buyer_rows,
    clauses_of,
    isolated,
    moment,
    price_table,
    unit_table,
)
from holdfast.web.pages.i18n import Language, in_language

_ENDED = frozenset(
    {BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED}
)


class BookingState(NamedTuple):
    text: str
    is_over: bool
    """Whether the reservation is none any more."""


def booking_state(booking: Booking, language: Language) -> BookingState:
    return BookingState(_text(booking, language), booking.status in _ENDED)


def _text(booking: Booking, language: Language) -> str:
    _, status = language.gettext, booking.status
    if status is BookingStatus.RESERVED:
        return _("The unit is reserved until %(until)s.", until=_at(booking.reserved_until, language))
    if status is BookingStatus.SOLD:
        return _("The sale was closed on %(at)s.", at=_at(booking.closed_at, language))
    if status is BookingStatus.LAPSED:
        return _(
            "The hold ran out on %(at)s before the deposit was confirmed: this booking is over.",
            at=_at(booking.ended_at, language),
        )
    if status is BookingStatus.CANCELLED:
        return _("The booking was cancelled on %(at)s: it is over.", at=_at(booking.ended_at, language))
    if status in (BookingStatus.REFUND_DUE, BookingStatus.REFUNDED):
        return _money_back(booking, language)
    return _(
        "The unit is held until %(until)s; the deposit is not confirmed yet.",
        until=_at(booking.hold_expires_at, language),
    )


def _money_back(booking: Booking, language: Language) -> str:
    _, deposit = language.gettext, amount(booking.terms.deposit_sar, language)
    ended = _at(booking.ended_at, language)
    if booking.status is BookingStatus.REFUND_DUE:
        return _(
            "The booking ended unsold on %(at)s. The deposit of %(deposit)s is due back to the buyer.",
            at=ended,
            deposit=deposit,
        )
    return _(
        "The booking ended unsold on %(at)s. The deposit of %(deposit)s was paid back on %(back)s.",
        at=ended,
        deposit=deposit,
        back=_at(booking.refunded_at, language),
    )


def _at(at: datetime | None, language: Language) -> str:
    return "–" if at is None else moment(at, language)  # noqa: RUF001


# A paper, ready to be shown or set: every text as it stands there.


class Kind(StrEnum):
    AGREEMENT = "agreement"
    RECEIPT = "receipt"


class Subject(NamedTuple):
    """What a paper is about."""

    booking: Booking
    unit_code: str
    agreement: Agreement
    is_kept: bool
    """Whether it was kept when it was signed; older bookings describe the unit as it is now."""


class Document(NamedTuple):
    kind: Kind
    language: Language
    title: str
    project: str
    reference: str
    headline: Row | None
    standing: BookingState
    standing_note: str
    tables: tuple[Table, ...]
    clauses: tuple[Clause, ...]
    last: Table | None
    """After the clauses."""
    remarks: tuple[str, ...]
    at: datetime
    """When it came into being."""


def sheet_of(kind: Kind, subject: Subject, language: Language) -> Document:
    make = _agreement if kind is Kind.AGREEMENT else _receipt
    return make(subject, language)


def title_of(kind: Kind, language: Language) -> str:
    _ = language.gettext
    return _("Reservation agreement") if kind is Kind.AGREEMENT else _("Deposit receipt")


def _agreement(subject: Subject, language: Language) -> Document:
    booking, code, agreement, _ = subject
    assert booking.signed_at is not None
    return _sheet(Kind.AGREEMENT, subject, language, booking.signed_at)._replace(
        tables=(
            _parties(subject, language),
            unit_table(agreement, code, language),
            price_table(booking.terms, language),
        ),
        clauses=clauses_of(agreement, booking.terms, code, language),
        last=_signature(subject, language),
    )


def _receipt(subject: Subject, language: Language) -> Document:
    booking, code, agreement, _ = subject
    assert booking.deposit_confirmed_at is not None
    sheet = _sheet(Kind.RECEIPT, subject, language, booking.deposit_confirmed_at)
    return sheet._replace(
        headline=Row(language.gettext("Amount received"), amount(booking.terms.deposit_sar, language)),
        tables=(
            _received(booking, language),
            unit_table(agreement, code, language),
            price_table(booking.terms, language, is_over=sheet.standing.is_over),
        ),
        remarks=(
            *sheet.remarks,
            language.gettext("This receipt was made electronically and is valid without a signature."),
            language.gettext("It is not a tax invoice."),
        ),
    )


def _sheet(kind: Kind, subject: Subject, language: Language, at: datetime) -> Document:
    booking = subject.booking
    project = in_language(subject.agreement.project_name, language.code)
    remarks = () if subject.is_kept else (_as_now(language),)
    standing = booking_state(booking, language)
    return Document(
        kind, language, title_of(kind, language), project, booking.reference, None,
        standing, _standing_note(kind, language), (), (), None, remarks, at,
    )  # fmt: skip


def _standing_note(kind: Kind, language: Language) -> str:
    if kind is Kind.AGREEMENT:
        return language.gettext("as of this copy, and not part of the agreement")
    return language.gettext("as of this copy")


def _as_now(language: Language) -> str:
    return language.gettext(
        "Signed before descriptions were kept with bookings: the unit is described as it is now."
    )


def _parties(subject: Subject, language: Language) -> Table:
    _ = language.gettext
    project = isolated(in_language(subject.agreement.project_name, language.code))
    seller = Row(_("Seller"), _("The seller of %(project)s", project=project), is_strong=True)
    return Table(_("The parties"), (seller, *buyer_rows(subject.booking, language)))


def _signature(subject: Subject, language: Language) -> Table:
    _, agreement = language.gettext, subject.agreement
    assert subject.booking.signed_at is not None
    rows = (
        Row(_("Signed electronically by"), buyer_name(subject.booking, language), is_strong=True),
        Row(_("Signed at"), moment(subject.booking.signed_at, language)),
        Row(_("Language of the signature"), _name(agreement.language, language)),
        Row(_("Version of the text"), str(agreement.wording)),
    )
    return Table(_("Signature"), rows)


def _name(code: str, language: Language) -> str:
    return language.gettext("Arabic") if code == "ar" else language.gettext("English")


def _received(booking: Booking, language: Language) -> Table:
    _ = language.gettext
    assert booking.deposit_confirmed_at is not None
    paid = booking.terms.deposit_sar
    payment = () if booking.payment_id is None else (Row(_("Payment number"), isolated(booking.payment_id)),)
    rows = (
        Row(_("For"), _("Deposit for the reservation") if paid else _("Reservation without a deposit")),
        Row(_("Received from"), buyer_name(booking, language)),
        Row(_("Confirmed at"), moment(booking.deposit_confirmed_at, language)),
        *payment,
    )
    return Table(_("Payment received"), rows)


# Why there is no such paper, and whether there may be one later.


class MissingDocument(NamedTuple):
    text: str
    may_come: bool


def lacking(kind: Kind, booking: Booking, language: Language) -> MissingDocument | None:
    """None: there is one."""
    _ = language.gettext
    at = booking.signed_at if kind is Kind.AGREEMENT else booking.deposit_confirmed_at
    if at is not None:
        return None
    if booking.hold_expires_at is None:
        text = _("The unit was sold at the sales office, without a reservation: its papers are there.")
        return MissingDocument(text, may_come=False)
    if booking.status not in HOLDING:
        return MissingDocument(_ended(kind, language), may_come=False)
    return MissingDocument(_awaited(booking.status, language), may_come=True)


def _ended(kind: Kind, language: Language) -> str:
    if kind is Kind.AGREEMENT:
        return language.gettext("The booking ended before it was signed.")
    return language.gettext("The booking ended before a deposit was confirmed.")


def _awaited(status: BookingStatus, language: Language) -> str:
    if status is BookingStatus.OPEN:
        return language.gettext("The booking is not signed yet.")
    return language.gettext("The deposit is not confirmed yet.")
