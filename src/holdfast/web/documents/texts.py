"""How papers write amounts and times: the same for everybody, with every digit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from babel.dates import format_datetime, get_timezone_name
from babel.numbers import format_decimal

from holdfast.domain.booking import Agreement, Booking, Terms
from holdfast.web.pages.i18n import Language, in_language

_NO_BREAK = "\N{NO-BREAK SPACE}"


def amount(value: Decimal, language: Language) -> str:
    """With halalas, also where there are none: nothing can be added to it by hand."""
    figures = format_decimal(value, "#,##0.00", locale="en")
    return f"{figures}{_NO_BREAK}ر.س" if language.code == "ar" else f"SAR{_NO_BREAK}{figures}"


def moment(at: datetime, language: Language) -> str:
    """To the second, with the name of its time zone."""
    here = at.astimezone(language.zone)
    comma = "،" if language.code == "ar" else ","
    written = format_datetime(here, f"d MMMM y{comma} HH:mm:ss", locale=language.code)
    return f"{written} ({get_timezone_name(here, locale=language.code)})"


def isolated(text: str) -> str:
    """Of either direction, in the midst of the other."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"


def from_left(text: str) -> str:
    """What has no letter to tell its direction by, and is read from the left everywhere: a phone number."""
    return f"\N{LEFT-TO-RIGHT ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"


# The text of agreements, in versions: one file for each language, read by all that show it.
#
# ``#`` begins a clause; ``#deposit`` and ``#no-deposit`` begin one for that case only. Empty lines separate
# paragraphs. Values are filled in after the text was split, so that no name can look like a clause.

TEXTS = Path(__file__).parent / "texts"

_HEADING = re.compile(r"^#([a-z-]*) (.+)$", re.MULTILINE)


class Clause(NamedTuple):
    heading: str
    paragraphs: tuple[str, ...]


class _Part(NamedTuple):
    case: str
    """Where it is left out otherwise; empty: it always stands there."""
    clause: Clause


def clauses_of(agreement: Agreement, terms: Terms, unit_code: str, language: Language) -> tuple[Clause, ...]:
    """In the version of the agreement, in whichever language it is read now."""
    values = {
        "project": isolated(in_language(agreement.project_name, language.code)),
        "unit": isolated(unit_code),
        "total": isolated(amount(terms.total_sar, language)),
        "deposit": isolated(amount(terms.deposit_sar, language)),
    }
    case = "deposit" if terms.deposit_sar else "no-deposit"
    parts = _parts(agreement.wording, language.code)
    return tuple(_filled(part.clause, values) for part in parts if part.case in ("", case))


@cache
def _parts(version: int, language_code: str) -> tuple[_Part, ...]:
    text = (TEXTS / str(version) / f"{language_code}.txt").read_text(encoding="utf-8")
    return tuple(_taken_apart(text))


def _taken_apart(text: str) -> Iterator[_Part]:
    _, *pieces = _HEADING.split(text)
    for case, heading, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        paragraphs = (paragraph.strip() for paragraph in body.split("\n\n"))
        yield _Part(case, Clause(heading, tuple(filter(None, paragraphs))))


def _filled(clause: Clause, values: Mapping[str, str]) -> Clause:
    return Clause(clause.heading, tuple(paragraph.format(**values) for paragraph in clause.paragraphs))


# The facts of a booking as papers list them: label by label, in one language.

_HALALA = Decimal("0.01")


class Row(NamedTuple):
    label: str
    value: str
    is_strong: bool = False


class Table(NamedTuple):
    heading: str
    rows: tuple[Row, ...]


def unit_table(agreement: Agreement, unit_code: str, language: Language) -> Table:
    _ = language.gettext
    counted = (
        (_("Bedrooms"), agreement.bedrooms),
        (_("Bathrooms"), agreement.bathrooms),
        (_("Delivery year"), agreement.delivery_year),
    )
    rows = (
        Row(_("Project"), isolated(in_language(agreement.project_name, language.code))),
        Row(_("Unit"), isolated(unit_code), is_strong=True),
        Row(_("Type"), isolated(in_language(agreement.unit_type, language.code))),
        Row(_("Area"), language.area(agreement.area_sqm)),
        *(Row(label, str(value)) for label, value in counted if value is not None),
    )
    return Table(_("The unit"), rows)


def price_table(terms: Terms, language: Language, *, is_over: bool = False) -> Table:
    """``is_over``: nothing is left to pay, since there will be no sale."""
    _ = language.gettext
    deposit = _deposit_rows(terms, language)
    rows = (
        Row(_("Price"), amount(terms.price_sar, language)),
        Row(_("VAT"), _vat(terms, language)),
        Row(_("Total price"), amount(terms.total_sar, language), is_strong=True),
        *(deposit[:1] if is_over else deposit),
    )
    return Table(_("Price and deposit"), rows)


def buyer_rows(booking: Booking, language: Language) -> tuple[Row, ...]:
    """Of a buyer whose data were erased nothing but that."""
    _ = language.gettext
    buyer = booking.buyer
    if buyer is None:
        return (Row(_("Buyer"), _erased(booking, language)),)
    return (
        Row(_("Buyer"), isolated(buyer.name), is_strong=True),
        Row(_("E-mail address"), isolated(buyer.email)),
        Row(_("Phone number"), from_left(buyer.phone)),
    )


def buyer_name(booking: Booking, language: Language) -> str:
    return _erased(booking, language) if booking.buyer is None else isolated(booking.buyer.name)


def _erased(booking: Booking, language: Language) -> str:
    if booking.buyer_erased_at is None:
        return language.gettext("The buyer's personal data were erased.")
    at = moment(booking.buyer_erased_at, language)
    return language.gettext("Personal data erased on %(at)s", at=at)


def _vat(terms: Terms, language: Language) -> str:
    _ = language.gettext
    if not terms.vat_rate:
        return _("included in the price") if terms.vat_included else _("none stated")
    rate = isolated(language.percent(terms.vat_rate))
    if terms.vat_included is False:
        added = terms.total_sar - terms.price_sar.quantize(_HALALA, ROUND_HALF_UP)
        return _("%(amount)s (%(rate)s, added to the price)", amount=amount(added, language), rate=rate)
    return _("%(rate)s, included in the price", rate=rate)


def _deposit_rows(terms: Terms, language: Language) -> tuple[Row, ...]:
    _ = language.gettext
    if not terms.deposit_sar:
        return (Row(_("Deposit"), _("none")),)
    percent = isolated(language.percent(terms.deposit_percent or 0))
    written = _(
        "%(amount)s (%(percent)s of the total)", amount=amount(terms.deposit_sar, language), percent=percent
    )
    return (
        Row(_("Deposit"), written, is_strong=True),
        Row(_("Left to pay after the deposit"), amount(terms.total_sar - terms.deposit_sar, language)),
    )


# All that a buyer signs for, to be read before the signature.


class TermsInFull(NamedTuple):
    tables: tuple[Table, ...]
    clauses: tuple[Clause, ...]


def terms_in_full(agreement: Agreement, terms: Terms, unit_code: str, language: Language) -> TermsInFull:
    tables = (unit_table(agreement, unit_code, language), price_table(terms, language))
    return TermsInFull(tables, clauses_of(agreement, terms, unit_code, language))
