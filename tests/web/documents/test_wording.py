"""The text of agreements: the same in both languages, and filled with names that stay names."""

import re
from decimal import Decimal

import pytest

from holdfast.domain.booking import WORDING, Terms
from holdfast.web.documents.content import TEXTS, build_clauses, terms_in_full
from holdfast.web.pages.i18n import DIRECTIONS, language_of
from tests.web.documents.subjects import AGREEMENT, TERMS, a_document

VERSIONS = range(1, WORDING + 1)
LANGUAGES = {code: language_of(code, "latn", "Asia/Riyadh") for code in DIRECTIONS}
NO_DEPOSIT = Terms(Decimal(1299000), True, None, None)


def text_of(version: int, code: str) -> str:
    return (TEXTS / str(version) / f"{code}.txt").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_there_in_every_language_and_built_alike(version: int) -> None:
    shapes = set()
    for code in DIRECTIONS:
        cases = re.findall(r"^#([a-z-]*) .", text_of(version, code), re.MULTILINE)
        paragraphs = [
            len(part.split("\n\n")) for part in re.split("^#", text_of(version, code), flags=re.MULTILINE)
        ]
        shapes.add((tuple(cases), tuple(paragraphs)))
    assert len(shapes) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_the_places_of_a_text_are_the_same_in_every_language(version: int) -> None:
    places = [re.findall(r"\{(\w+)\}", text_of(version, code)) for code in DIRECTIONS]
    assert all(sorted(one) == sorted(places[0]) for one in places)
    assert {"project", "unit", "total", "deposit"} == set(places[0])


@pytest.mark.parametrize("code", DIRECTIONS)
def test_with_a_deposit_the_text_tells_how_it_is_paid_back(code: str) -> None:
    clauses = build_clauses(AGREEMENT, TERMS, "A-1203", LANGUAGES[code])
    text = str(clauses)
    assert "136,395.00" in text
    assert "1,363,950.00" in text
    assert "A-1203" in text
    assert "{" not in text


@pytest.mark.parametrize("code", DIRECTIONS)
def test_without_a_deposit_none_is_asked_for(code: str) -> None:
    with_one = build_clauses(AGREEMENT, TERMS, "A-1203", LANGUAGES[code])
    without = build_clauses(AGREEMENT, NO_DEPOSIT, "A-1203", LANGUAGES[code])
    assert len(with_one) == len(without)
    assert "0.00" not in str(without).replace("1,299,000.00", "")


def test_a_name_in_the_text_is_neither_a_place_nor_a_clause() -> None:
    agreement = AGREEMENT._replace(project_name="{unit}\n# Clause")
    clauses = build_clauses(agreement, TERMS, "{total}", LANGUAGES["en"])
    assert len(clauses) == len(build_clauses(AGREEMENT, TERMS, "A-1203", LANGUAGES["en"]))
    assert "{unit}\n# Clause" in clauses[0].paragraphs[0]
    assert "{total}" in clauses[0].paragraphs[0]


@pytest.mark.parametrize("code", DIRECTIONS)
def test_what_is_read_before_the_signature_stands_in_the_agreement(code: str) -> None:
    read = terms_in_full(AGREEMENT, TERMS, "A-1203", LANGUAGES[code])
    signed = a_document(code=code)
    assert read.clauses == signed.clauses
    assert set(read.tables) <= set(signed.tables)
