"""Cells of a spreadsheet, as people write them."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.cells import (
    COMMA,
    ERROR_MESSAGE,
    NUMBER_MESSAGE,
    POINT,
    SHORTENED_MESSAGE,
    Cell,
    InvalidCell,
    cell_text,
    escaped,
    escaped_in_workbook,
    find_decimal_sign,
    media_text,
    parse_cell,
    unescaped,
)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1234.50", "1234.5"),
        ("1,234.50", "1234.5"),
        ("1 234.50", "1234.5"),
        ("1'234.50", "1234.5"),
        ("١٢٣٤٫٥٠", "1234.5"),
        ("١٬٢٣٤٫٥٠", "1234.5"),
        ("۱۲۳۴٫۵", "1234.5"),
        ("SAR 1,200,000", "1200000"),
        ("1,200,000 SAR", "1200000"),
        ("S.R. 5", "5"),
        ("٥ ر.س", "5"),
        ("٥ ريال سعودي", "5"),
        ("5 ﷼", "5"),
        ("142.75 m²", "142.75"),
        ("142.75 م2", "142.75"),
        ("120 متر مربع", "120"),
        ("15%", "15"),
        ("١٥٪", "15"),
        (" 7 ", "7"),
        ("\u200f7\u200e", "7"),
        ("−5", "-5"),
        (".5", "0.5"),
        ("0.1", "0.1"),
        (0.1 + 0.2, "0.3"),
        (1250000.55, "1250000.55"),
        (3, "3"),
    ],
)
def test_a_number_is_read_as_people_write_it(cell: Cell, number: str) -> None:
    assert parse_cell("price_sar", cell, POINT) == Decimal(number)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1.234,50", "1234.5"),
        ("1234,5", "1234.5"),
        ("1.234", "1234"),
        ("١٬٢٣٤٫٥", "1234.5"),
        (1.234, "1.234"),
    ],
)
def test_a_number_with_a_decimal_comma_is_read_where_that_is_the_sign(cell: Cell, number: str) -> None:
    assert parse_cell("price_sar", cell, COMMA) == Decimal(number)


@pytest.mark.parametrize(
    ("cell", "sign", "message"),
    [
        ("abc", POINT, NUMBER_MESSAGE),
        ("1..2", POINT, NUMBER_MESSAGE),
        ("1,23,4", POINT, NUMBER_MESSAGE),
        ("5 apples", POINT, NUMBER_MESSAGE),
        ("9" * 100, POINT, NUMBER_MESSAGE),
        (True, POINT, NUMBER_MESSAGE),
        ("12,5", POINT, "This is not a number with `.` as its decimal sign; check the sign that was chosen."),
        ("12.5", COMMA, "This is not a number with `,` as its decimal sign; check the sign that was chosen."),
        ("1.25E+06", POINT, SHORTENED_MESSAGE),
        ("#N/A", POINT, ERROR_MESSAGE),
        (None, POINT, ERROR_MESSAGE),
    ],
)
def test_what_is_no_number_says_why(cell: Cell, sign: str, message: str) -> None:
    with pytest.raises(InvalidCell) as refused:
        parse_cell("area_sqm", cell, sign)
    assert str(refused.value) == message


@pytest.mark.parametrize("cell", ["", "-", "–", "  "])
def test_an_empty_cell_is_nothing(cell: str) -> None:
    assert [parse_cell(field, cell, POINT) for field in ("price_sar", "vat_included", "status")] == [None] * 3


@pytest.mark.parametrize(
    ("cell", "value"),
    [("yes", True), ("Y", True), ("نعم", True), ("TRUE", True), (True, True), ("١", True), (1, True),
     ("no", False), ("لا", False), ("0", False), (False, False)],
)  # fmt: skip
def test_yes_and_no_are_known_in_both_languages(cell: Cell, value: bool) -> None:
    assert parse_cell("vat_included", cell, POINT) is value


def test_what_is_neither_yes_nor_no_is_told() -> None:
    with pytest.raises(InvalidCell, match="yes or no"):
        parse_cell("vat_included", "perhaps", POINT)


@pytest.mark.parametrize(
    ("cell", "status"),
    [("Available", "available"), ("متاحة", "available"), ("غير معروضة", "unavailable"), ("مباعة", "sold"),
     ("محجوزة مؤقتًا", "held"), ("محجوزة", "reserved"), ("gone", "gone")],
)  # fmt: skip
def test_a_status_is_known_in_both_languages_and_any_other_word_is_left_to_be_refused(
    cell: str, status: str
) -> None:
    assert parse_cell("status", cell, POINT) == status


@pytest.mark.parametrize(
    ("cell", "year"), [("2027", 2027), (2027.0, 2027), ("2027-06-30", 2027), ("٢٠٢٧", 2027)]
)
def test_the_year_of_a_date_is_a_year(cell: Cell, year: int) -> None:
    assert parse_cell("delivery_year", cell, POINT) == year


@pytest.mark.parametrize(
    ("cell", "floor"), [("GF", 0), (" ground ", 0), ("الأرضي", 0), ("-2", -2), (12, 12), ("", None), ("0", 0)]
)
def test_the_ground_floor_may_be_a_word(cell: str | int, floor: int | None) -> None:
    assert parse_cell("floor", cell, POINT) == floor


@pytest.mark.parametrize(
    ("text", "sign"),
    [("1.234,50", COMMA), ("12,5", COMMA), ("1.234.567", COMMA), ("1,234.50", POINT), ("12.5", POINT),
     ("1,234", None), ("1.234", None), ("1234", None), ("A-1.5,", None),
     ("https://x.example/a,b", None), ("", None)],
)  # fmt: skip
def test_a_number_tells_its_decimal_sign_only_where_there_is_no_doubt(text: str, sign: str | None) -> None:
    assert find_decimal_sign(text) == sign


@given(st.text())
def test_what_is_escaped_reads_as_it_was_and_starts_no_formula(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert unescaped(escaped_in_workbook(text)) == text
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@given(st.from_regex(r"'{0,3}[=+\-@\t\r].*"))
def test_what_looks_like_a_formula_reads_as_it_was(text: str) -> None:
    assert unescaped(escaped(text)) == unescaped(escaped_in_workbook(text)) == text


@given(st.text(st.sampled_from("a;= '\"+\n\t")))
def test_no_formula_begins_where_another_program_would_cut_the_text(text: str) -> None:
    assert unescaped(escaped(text)) == unescaped(escaped_in_workbook(text)) == text
    for cell in re.split("[;\t\r\n]", escaped(text))[1:]:
        assert not cell.lstrip(' "').startswith(("=", "+"))


@given(st.decimals(0, 999_999_999_999, places=2))
def test_a_number_of_a_workbook_loses_no_digit(number: Decimal) -> None:
    assert parse_cell("price_sar", float(number), COMMA) == number


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for field in ("price_sar", "vat_included", "status", "delivery_year", "images", "description"):
        for sign in (POINT, COMMA):
            try:
                parse_cell(field, text, sign)
            except InvalidCell:
                continue


ADDRESSES = st.from_regex(r"https://[a-z]+\.example(/[!-~]{0,8})?", fullmatch=True)
NAMED = st.fixed_dictionaries({"url": ADDRESSES}, optional={"name": st.none() | st.text()})


@given(st.lists(ADDRESSES | NAMED))
def test_media_are_read_as_they_were_written(media: list[Any]) -> None:
    read = parse_cell("images", escaped(media_text(tuple(media))), POINT)
    assert (read or []) == media


@pytest.mark.parametrize("cell", ["[", "[1", '["a"', "[" * 100_000], ids=["a", "b", "c", "deep"])
def test_media_that_are_no_list_are_refused(cell: str) -> None:
    with pytest.raises(InvalidCell, match="URLs"):
        parse_cell("files", cell, POINT)


@pytest.mark.parametrize(
    ("cell", "text"),
    [(101.0, "101"), (1.5, "1.5"), (1e20, "100000000000000000000"), (True, "TRUE"), ("007", "007")],
)
def test_a_number_is_shown_as_the_spreadsheet_shows_it(cell: Cell, text: str) -> None:
    assert cell_text(cell) == text
