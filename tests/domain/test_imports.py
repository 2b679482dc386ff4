"""Imports of spreadsheets: cells as people write them, which column is which, and rows as changes."""

import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import cells, imports
from holdfast.domain.cells import COMMA, POINT, Cell, InvalidCell, escaped, parse_cell, unescaped
from holdfast.domain.decision import Decision
from holdfast.domain.errors import InvalidInput
from holdfast.domain.imports import COLUMN_HEADINGS, FIELDS, NOT_IMPORTED, find_field
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields
from holdfast.domain.wire_format import camel_case
from tests.domain.units import NOW, snapshot, unit

WITH_POINT: dict[Cell, str] = {
    "1234.50": "1234.5", "1,234.50": "1234.5", "1 234.50": "1234.5", "1'234.50": "1234.5",
    "١٢٣٤٫٥٠": "1234.5", "١٬٢٣٤٫٥٠": "1234.5", "۱۲۳۴٫۵": "1234.5",
    "SAR 1,200,000": "1200000", "1,200,000 SAR": "1200000", "S.R. 5": "5", "٥ ر.س": "5", "٥ ريال سعودي": "5",
    "5 ﷼": "5", "142.75 m²": "142.75", "142.75 م2": "142.75", "120 متر مربع": "120", "15%": "15", "١٥٪": "15",
    " 7 ": "7", "\u200f7\u200e": "7", "−5": "-5", ".5": "0.5", "0.1": "0.1",
    0.1 + 0.2: "0.3", 1250000.55: "1250000.55", 3: "3",
}  # fmt: skip
WITH_COMMA: dict[Cell, str] = {
    "1.234,50": "1234.5", "1234,5": "1234.5", "1.234": "1234", "١٬٢٣٤٫٥": "1234.5", 1.234: "1.234",
}  # fmt: skip


@pytest.mark.parametrize(
    ("sign", "cell", "number"),
    [(sign, *row) for sign, rows in ((POINT, WITH_POINT), (COMMA, WITH_COMMA)) for row in rows.items()],
)
def test_a_number_is_read_as_people_write_it(sign: str, cell: Cell, number: str) -> None:
    assert parse_cell("price_sar", cell, sign) == Decimal(number)


@pytest.mark.parametrize(
    ("field", "cell", "sign", "message"),
    [
        *(("area_sqm", cell, POINT, cells.NUMBER_MESSAGE)
          for cell in ("abc", "1..2", "1,23,4", "5 apples", "9" * 100, True)),
        ("area_sqm", "12,5", POINT, cells.SIGN_MESSAGE % {"sign": POINT}),
        ("area_sqm", "12.5", COMMA, cells.SIGN_MESSAGE % {"sign": COMMA}),
        ("area_sqm", "1.25E+06", POINT, cells.SHORTENED_MESSAGE),
        ("area_sqm", "#N/A", POINT, cells.ERROR_MESSAGE),
        ("area_sqm", None, POINT, cells.ERROR_MESSAGE),
        ("vat_included", "perhaps", POINT, cells.YES_OR_NO_MESSAGE),
        *(("files", cell, POINT, cells.MEDIA_MESSAGE) for cell in ("[", "[1", '["a"', "[" * 100_000)),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_a_cell_that_cannot_be_read_has_a_reason(field: str, cell: Cell, sign: str, message: str) -> None:
    with pytest.raises(InvalidCell) as refused:
        parse_cell(field, cell, sign)
    assert str(refused.value) == message


@pytest.mark.parametrize("cell", ["", "-", "–", "  "])
def test_an_empty_cell_is_nothing(cell: str) -> None:
    assert [parse_cell(field, cell, POINT) for field in ("price_sar", "vat_included", "status")] == [None] * 3
    assert parse_cell("images", " ", POINT) is None


VALUES: dict[str, list[tuple[Cell, object]]] = {
    "vat_included": [
        *((cell, True) for cell in ("yes", "Y", "نعم", "TRUE", True, "١", 1)),
        *((cell, False) for cell in ("no", "لا", "0", False)),
    ],
    # Any other word is left to be refused.
    "status": [
        ("Available", "available"), ("متاحة", "available"), ("غير معروضة", "unavailable"), ("مباعة", "sold"),
        ("محجوزة مؤقتًا", "held"), ("محجوزة", "reserved"), ("gone", "gone"),
    ],
    "delivery_year": [("2027", 2027), (2027.0, 2027), ("2027-06-30", 2027), ("٢٠٢٧", 2027)],
    "floor": [("GF", 0), (" ground ", 0), ("الأرضي", 0), ("-2", -2), (12, 12), ("", None), ("0", 0)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "cell", "value"), [(field, *row) for field, rows in VALUES.items() for row in rows]
)
def test_words_years_and_floors_are_known_in_both_languages(field: str, cell: Cell, value: object) -> None:
    found = parse_cell(field, cell, POINT)
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        *((text, COMMA) for text in ("1.234,50", "12,5", "1.234.567")),
        *((text, POINT) for text in ("1,234.50", "12.5")),
        *((text, None) for text in ("1,234", "1.234", "1234", ".5", "A-1.5,", "https://x.example/a,b", "")),
    ],
)
def test_a_number_has_a_decimal_sign_only_where_there_is_no_doubt(text: str, sign: str | None) -> None:
    assert cells.find_decimal_sign(text) == sign


@given(st.text() | st.text("a;= '\"+-@\n\t\r"))
def test_escaped_text_reads_as_it_was_and_starts_no_formula_wherever_a_program_cuts_it(text: str) -> None:
    assert unescaped(escaped(text)) == unescaped(cells.escaped_in_workbook(text)) == text
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    for cell in re.split("[;\t\r\n]", escaped(text))[1:]:
        assert not cell.lstrip(' "').startswith(("=", "+"))


@given(st.decimals(0, 999_999_999_999, places=2))
def test_a_number_of_a_workbook_loses_no_digit(number: Decimal) -> None:
    assert parse_cell("price_sar", float(number), COMMA) == number


@given(st.text(), st.sampled_from([POINT, COMMA]))
def test_any_text_is_read_or_refused(text: str, sign: str) -> None:
    for field in ("price_sar", "vat_included", "status", "delivery_year", "images", "description"):
        try:
            parse_cell(field, text, sign)
        except InvalidCell:
            continue


urls = st.text("aZ9/,;=~!", max_size=8).map("https://a.example/{}".format)
named = st.fixed_dictionaries({"url": urls}, optional={"name": st.none() | st.text()})


@given(st.lists(urls | named))
def test_media_are_read_as_they_were_written(media: list[Any]) -> None:
    read = parse_cell("images", escaped(cells.media_text(tuple(media))), POINT)
    assert (read or []) == media


def test_media_without_names_are_written_on_lines_of_their_own() -> None:
    media = ("https://a.example", "https://b.example")
    assert cells.media_text(media) == "\n".join(media)


@pytest.mark.parametrize(
    ("cell", "text"),
    [(101.0, "101"), (1.5, "1.5"), (1e20, "100000000000000000000"), (True, "TRUE"), ("007", "007")],
)
def test_a_number_is_shown_as_the_spreadsheet_shows_it(cell: Cell, text: str) -> None:
    assert cells.cell_text(cell) == text


# Columns


def test_every_field_of_a_unit_has_a_column_that_is_found_by_all_its_names() -> None:
    assert set(FIELDS) == {*UnitFields._fields, "code", "status"}
    for field, languages in COLUMN_HEADINGS.items():
        names = [name for names in languages.values() for name in names]
        spelled = [said for name in names for said in (name, name.upper(), f"  {name}: ")]
        assert {said: find_field(said) for said in (*spelled, camel_case(field))} == dict.fromkeys(
            (*spelled, camel_case(field)), field
        )


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("Unit No.", "code"), ("رقم الوحده", "code"), ("الْمساحة", "area_sqm"), ("Area sqm", "area_sqm"),
        ("PRICE_SAR", "price_sar"), ("السعر بالريال", None), ("Colour", None), ("", None), ("ref", None),
        *((name, None) for names in NOT_IMPORTED.values() for name in names.values()),
    ],
)  # fmt: skip
def test_headings_are_known_however_they_are_spelled(heading: str, field: str | None) -> None:
    assert find_field(heading) == field


def test_a_field_has_one_column_and_headings_name_the_code_and_something_else() -> None:
    guessed = imports.guess_fields(["Code", "Price", "Selling price", "Beds", "Unit"])
    assert guessed == ["code", "price_sar", None, "bedrooms", None]
    assert imports.is_heading_row(["Code", "Price"])
    assert not imports.is_heading_row(["Code"])
    assert not imports.is_heading_row(["Price list", "November"])


SHEET = imports.Sheet("Units", 3, 2, 1, [(1, ["Price list"]), (2, ["Code", "Price"]), (3, ["A-1", 5])], 0, 0)


def test_a_sheet_with_headings_is_guessed_with_its_first_row_of_them() -> None:
    title = imports.Sheet("Title", 1, 1, 1, [(1, ["Prices"])], 0, 0)
    contents = imports.Contents("xlsx", "", "", [title, SHEET._replace(commas=1)])
    assert imports.guess(contents) == imports.ColumnMapping(1, 2, ["code", "price_sar"], False, COMMA)
    assert imports.guess(contents, 0) == imports.ColumnMapping(0, 1, [None], False, POINT)
    assert imports.guess(contents, 1, 3).fields == [None, None]
    assert imports.guess(contents._replace(sheets=[title])).sheet == 0


@pytest.mark.parametrize(
    ("choice", "pointers"),
    [
        (imports.ColumnMapping(0, 2, ["code", "price_sar"], False, POINT), []),
        (imports.ColumnMapping(0, 2, ["code", "code"], False, POINT), ["/column1"]),
        (imports.ColumnMapping(0, 2, [None, "price_sar"], False, POINT), ["/code"]),
        (imports.ColumnMapping(0, 2, ["code", "price_sar"], True, POINT), ["/type", "/area_sqm"]),
        (imports.ColumnMapping(0, 3, ["code", None], False, POINT), ["/heading_row"]),
    ],
)
def test_a_choice_of_columns_has_faults(choice: imports.ColumnMapping, pointers: list[str]) -> None:
    faults = imports.choice_faults(choice, imports.Contents("csv", "utf-8", ",", [SHEET]))
    assert [fault.pointer for fault in faults] == pointers


def test_an_import_has_rows_once_its_columns_are_chosen_and_runs_while_its_process_lives() -> None:
    contents = imports.Contents("csv", "utf-8", ",", [SHEET])
    choice = imports.ColumnMapping(0, 2, ["code", None], False, POINT)
    started = imports.Import(UUID(int=1), UUID(int=2), "a.csv", NOW, contents, choice, "checking", None, True)
    assert (started.rows, started._replace(choice=None).rows) == (1, 0)
    assert (started.is_running, started.is_interrupted) == (True, False)
    stopped = started._replace(is_alive=False)
    assert (stopped.is_running, stopped.is_interrupted) == (False, True)


# Rows

NEW = {"type": " Flat ", "area_sqm": Decimal(80), "price_sar": Decimal(1)}


def imported(found: Unit | None, status: Status | None = None, **values: Any) -> Decision:
    return imports.import_row(snapshot(found), "A-101", values, status, NOW)


def test_a_row_makes_a_unit_or_changes_what_it_has_a_column_for() -> None:
    made = imported(None, Status.UNAVAILABLE, **NEW).unit
    assert (made.fields, made.status) == (UnitFields("Flat", Decimal(80), Decimal(1)), Status.UNAVAILABLE)
    found = unit(fields=made.fields._replace(type=" Flat", description=""))
    assert imported(found, Status.AVAILABLE, type="Flat  ", description=None).unit is found
    changed = imported(found, type="Villa ", bedrooms=2).unit.fields
    assert changed == found.fields._replace(type="Villa", bedrooms=2)
    assert imported(found, description=" ").unit is found
    # A new unit needs the required fields.
    with pytest.raises(InvalidInput) as refused:
        imported(None, type="Flat")
    assert [fault.pointer for fault in refused.value.faults] == ["/areaSqm", "/priceSar"]


@pytest.mark.parametrize("status", [Status.HELD, Status.RESERVED, Status.SOLD])
def test_a_row_may_name_the_status_of_a_booking_but_not_set_it(status: Status) -> None:
    assert imported(unit(status), status, bedrooms=2).unit.status is status
    for found in (None, unit()):
        with pytest.raises(InvalidInput, match="only a booking") as refused:
            imported(found, status, **NEW)
        assert [fault.pointer for fault in refused.value.faults] == ["/status"]
