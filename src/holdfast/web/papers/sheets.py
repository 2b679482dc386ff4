"""A paper, ready to be shown or set: every text as it stands there."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.booking import Agreement, Booking
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.language import Language
from holdfast.web.papers.facts import Row, Table, buyer_name, buyer_rows, price_table, unit_table
from holdfast.web.papers.standing import Standing, standing_of
from holdfast.web.papers.wording import Clause, clauses_of
from holdfast.web.papers.writing import amount, isolated, moment


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


class Sheet(NamedTuple):
    kind: Kind
    language: Language
    title: str
    project: str
    reference: str
    headline: Row | None
    standing: Standing
    standing_note: str
    tables: tuple[Table, ...]
    clauses: tuple[Clause, ...]
    last: Table | None
    """After the clauses."""
    remarks: tuple[str, ...]
    at: datetime
    """When it came into being."""


def sheet_of(kind: Kind, subject: Subject, language: Language) -> Sheet:
    make = _agreement if kind is Kind.AGREEMENT else _receipt
    return make(subject, language)


def title_of(kind: Kind, language: Language) -> str:
    _ = language.gettext
    return _("Reservation agreement") if kind is Kind.AGREEMENT else _("Deposit receipt")


def _agreement(subject: Subject, language: Language) -> Sheet:
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


def _receipt(subject: Subject, language: Language) -> Sheet:
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


def _sheet(kind: Kind, subject: Subject, language: Language, at: datetime) -> Sheet:
    booking = subject.booking
    project = in_language(subject.agreement.project_name, language.code)
    remarks = () if subject.is_kept else (_as_now(language),)
    standing = standing_of(booking, language)
    return Sheet(
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
