"""All that a buyer signs for, to be read before the signature."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.booking import Agreement, Terms
from holdfast.web.html.language import Language
from holdfast.web.papers.facts import Table, price_table, unit_table
from holdfast.web.papers.wording import Clause, clauses_of


class TermsInFull(NamedTuple):
    tables: tuple[Table, ...]
    clauses: tuple[Clause, ...]


def terms_in_full(agreement: Agreement, terms: Terms, unit_code: str, language: Language) -> TermsInFull:
    tables = (unit_table(agreement, unit_code, language), price_table(terms, language))
    return TermsInFull(tables, clauses_of(agreement, terms, unit_code, language))
