"""The text of agreements, in versions: one file for each language, read by all that show it.

``#`` begins a clause; ``#deposit`` and ``#no-deposit`` one that stands there in that case only. Empty lines
part paragraphs. Places are filled in after the text was taken apart, so that no name can look like a clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from holdfast.domain.booking import Agreement, Terms
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.language import Language
from holdfast.web.papers.writing import amount, isolated

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
