"""The facts of a booking as papers list them: label by label, in one language."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from holdfast.domain.booking import Agreement, Booking, Terms
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.language import Language
from holdfast.web.papers.writing import amount, from_left, isolated, moment

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
