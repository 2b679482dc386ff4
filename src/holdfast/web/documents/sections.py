"""Sections of documents: clauses, tables of facts, and how amounts and times are written."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from babel.dates import format_datetime, get_timezone_name
from babel.numbers import format_decimal

from holdfast.domain.booking import Agreement, Booking, Terms
from holdfast.web.pages.i18n import Language, in_language

TEXTS = Path(__file__).parent / "texts"

_HEADING = re.compile(r"^#([a-z-]*) (.+)$", re.MULTILINE)
_HALALA = Decimal("0.01")
_NO_BREAK = "\N{NO-BREAK SPACE}"


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


class TermsInFull(NamedTuple):
    tables: tuple[Table, ...]
    clauses: tuple[Clause, ...]


def terms_in_full(agreement: Agreement, terms: Terms, unit_code: str, language: Language) -> TermsInFull:
    """Return all that a buyer signs for, to be read before the signature."""
    tables = (unit_table(agreement, unit_code, language), price_table(terms, language))
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
    return tuple(
        # Values are filled in after the text was split, so that no name can look like a clause.
        Clause(clause.heading, tuple(paragraph.format(**values) for paragraph in clause.paragraphs))
        for condition, clause in _load_clauses(agreement.wording, language.code)
        if condition in conditions
    )


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
        (_("Delivery year"), agreement.delivery_year),
    )
    rows = (
        Row(_("Project"), isolate(in_language(agreement.project_name, language.code))),
        Row(_("Unit"), isolate(unit_code), is_strong=True),
        Row(_("Type"), isolate(in_language(agreement.unit_type, language.code))),
        Row(_("Area"), language.area(agreement.area_sqm)),
        *(Row(label, str(value)) for label, value in counts if value is not None),
    )
    return Table(_("The unit"), rows)


def price_table(terms: Terms, language: Language, *, is_over: bool = False) -> Table:
    """``is_over``: nothing is left to pay, since there will be no sale."""
    _ = language.gettext
    deposit = _deposit_rows(terms, language)
    rows = (
        Row(_("Price"), format_amount(terms.price_sar, language)),
        Row(_("VAT"), _vat(terms, language)),
        Row(_("Total price"), format_amount(terms.total_sar, language), is_strong=True),
        *(deposit[:1] if is_over else deposit),
    )
    return Table(_("Price and deposit"), rows)


def buyer_rows(booking: Booking, language: Language) -> tuple[Row, ...]:
    _, buyer = language.gettext, booking.buyer
    if buyer is None:
        return (Row(_("Buyer"), buyer_name(booking, language)),)
    return (
        Row(_("Buyer"), isolate(buyer.name), is_strong=True),
        Row(_("E-mail address"), isolate(buyer.email)),
        # A phone number has no letter to tell its direction by; it is read from the left everywhere.
        Row(_("Phone number"), f"\N{LEFT-TO-RIGHT ISOLATE}{buyer.phone}\N{POP DIRECTIONAL ISOLATE}"),
    )


def buyer_name(booking: Booking, language: Language) -> str:
    """Return the buyer's name, or that it was erased."""
    if booking.buyer is not None:
        return isolate(booking.buyer.name)
    if booking.buyer_erased_at is None:
        return language.gettext("The buyer's personal data were erased.")
    at = format_time(booking.buyer_erased_at, language)
    return language.gettext("Personal data erased on %(at)s", at=at)


def _vat(terms: Terms, language: Language) -> str:
    _ = language.gettext
    if not terms.vat_rate:
        return _("included in the price") if terms.vat_included else _("none stated")
    rate = isolate(language.percent(terms.vat_rate))
    if terms.vat_included is False:
        added = terms.total_sar - terms.price_sar.quantize(_HALALA, ROUND_HALF_UP)
        amount = format_amount(added, language)
        return _("%(amount)s (%(rate)s, added to the price)", amount=amount, rate=rate)
    return _("%(rate)s, included in the price", rate=rate)


def _deposit_rows(terms: Terms, language: Language) -> tuple[Row, ...]:
    _ = language.gettext
    if not terms.deposit_sar:
        return (Row(_("Deposit"), _("none")),)
    deposit = _(
        "%(amount)s (%(percent)s of the total)",
        amount=format_amount(terms.deposit_sar, language),
        percent=isolate(language.percent(terms.deposit_percent or 0)),
    )
    left = format_amount(terms.total_sar - terms.deposit_sar, language)
    return (Row(_("Deposit"), deposit, is_strong=True), Row(_("Left to pay after the deposit"), left))


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


def isolate(text: str) -> str:
    """Keep the direction of a text from mixing with that of the text around it."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
