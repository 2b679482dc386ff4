"""CSV and XLSX files, as they come from outside."""

import io
import signal
import struct
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime

import pytest
import xlsxwriter  # type: ignore[import-untyped]

from holdfast.domain.cells import Cell, InvalidCell, escaped, escaped_in_workbook, parse_cell, unescaped
from holdfast.domain.errors import InvalidInput
from holdfast.domain.imports import ColumnMapping, Row, guess
from holdfast.operations.imports import ParsedFile, unpack
from holdfast.web.spreadsheets import processes, workbooks
from holdfast.web.spreadsheets.csv_files import CellRow
from holdfast.web.spreadsheets.file_parser import TOO_MUCH_MEMORY, parse_file
from holdfast.web.spreadsheets.processes import READ_FAILED, WRITE_FAILED, FileReader, Limits, WorkbookWriter

TEXT = "الرمز,السعر\r\nA-1,100\r\n"


def rows_of(reply: ParsedFile, sheet: int = 0) -> list[tuple[int, list[Cell]]]:
    assert reply.fault == ""
    return [row for part in reply.parts[sheet] for row in unpack(list[Row], part)]


def workbook(*sheets: tuple[str, list[list[object]]], hidden: tuple[str, ...] = ()) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"strings_to_urls": False, "default_date_format": "yyyy-mm-dd"}) as made:
        for name, rows in sheets:
            sheet = made.add_worksheet(name)
            for at, row in enumerate(rows):
                sheet.write_row(at, 0, row)
            if name in hidden:
                sheet.hide()
    return file.getvalue()


def test_csv_of_every_usual_encoding_is_read() -> None:
    for encoding, mark in (
        ("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
        ("utf-16-le", b""), ("utf-16-be", b""), ("windows-1256", b""),
    ):  # fmt: skip
        reply = parse_file(mark + TEXT.encode(encoding))
        assert rows_of(reply) == [(1, ["الرمز", "السعر"]), (2, ["A-1", "100"])]
        assert reply.contents is not None
        assert reply.contents.encoding == encoding
    western = parse_file("Código;Descripción\r\nA-1;Área: 5 m²\r\n".encode("windows-1252"))
    assert rows_of(western)[1] == (2, ["A-1", "Área: 5 m²"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_usual_delimiter_is_found_by_itself(delimiter: str) -> None:
    rows = [["Code", "Notes", "Price"], ["A-1", "one; two, three", "1,5"], ["A-2", "", "2"]]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    assert rows_of(parse_file(text.encode())) == [(at, row) for at, row in enumerate(rows, 1)]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("code;price\nA-1;1,200,000\nA-2;1,300,000\n", 2),
        ("code;type;area;price\nA-1;Villa, corner;1,112.50;12,000,000\n", 4),
        ("code;type;price\nA-1;Pool, gym, parking, garden;5\nA-2;Pool, gym, parking, garden;5\n", 3),
        ("code,price\nA-1,a|b|c|d\nA-2,a|b|c|d\n", 2),
        ('code,type,price\nA-1,"a;b\nc;d\ne;f\ng;h",5\n', 3),
        ("Price list\ncode;price\nA-1;1,200,000\n", 2),
        ("code,price\n", 2),
    ],
)
def test_what_the_cells_are_full_of_is_no_delimiter(text: str, cells: int) -> None:
    assert {len(row) for _, row in rows_of(parse_file(text.encode()))[-2:]} <= {cells}


def test_rows_are_numbered_as_a_spreadsheet_numbers_them() -> None:
    text = 'Code,Notes\r\n\r\n"A-1","two\r\nlines"\r\n,\r\nA-2,x\r\n'
    expected = [(1, ["Code", "Notes"]), (3, ["A-1", "two\r\nlines"]), (5, ["A-2", "x"])]
    assert rows_of(parse_file(text.encode())) == expected
    assert rows_of(parse_file(b"sep=;\r\nCode;Price,SAR\r\n")) == [(1, ["Code", "Price,SAR"])]


def test_the_sheets_that_a_person_sees_are_read() -> None:
    units: list[list[object]] = [["Code", "Price"], ["A-1", 5]]
    content = workbook(("Cover", [["Hello"]]), ("Units", units), ("Secret", units), hidden=("Secret",))
    reply = parse_file(content)
    assert reply.contents is not None
    assert [sheet.name for sheet in reply.contents.sheets] == ["Cover", "Units"]
    assert guess(reply.contents).sheet == 1
    assert rows_of(reply, 1) == [(1, ["Code", "Price"]), (2, ["A-1", 5.0])]


def test_a_percentage_is_the_number_that_is_shown_and_a_failed_formula_is_no_value() -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as made:
        sheet = made.add_worksheet()
        shown = made.add_format({"num_format": "0.0%"})
        built_in = made.add_format({"num_format": 9})
        sheet.write_row(0, 0, ["Code", "VAT", "Deposit", "Beds", "Baths", "Price"])
        sheet.write_string(1, 0, "A-1")
        sheet.write_number(1, 1, 0.15, shown)
        sheet.write_number(1, 2, 0.07, built_in)
        sheet.write_formula(1, 3, "=1/0", None, "#DIV/0!")
        sheet.write_formula(1, 4, "=1+1", None, 2)
        sheet.write_number(1, 5, 0.15)
    assert rows_of(parse_file(file.getvalue()))[1] == (2, ["A-1", 15.0, 7.0, None, 2.0, 0.15])


def test_dates_and_yes_and_no_are_read_as_such() -> None:
    content = workbook(("Units", [["Code", "When", "Yes"], ["A-1", datetime(2027, 6, 30), True]]))  # noqa: DTZ001
    assert rows_of(parse_file(content))[1] == (2, ["A-1", "2027-06-30", True])


def mapping_for(text: str) -> ColumnMapping:
    contents = parse_file(text.encode()).contents
    assert contents is not None
    return guess(contents)


def test_the_decimal_sign_and_the_headings_are_guessed_from_the_whole_file() -> None:
    assert mapping_for("Code;Price\nA;1.000\nB;12,50\n").sign == ","
    assert mapping_for("Code;Price\nA;1,000\nB;12.50\n").sign == "."
    below_a_title = mapping_for("Price list,\n,\nUnit No.,Price\nA-1,5\n")
    assert (below_a_title.heading_row, below_a_title.fields) == (3, ["code", "price_sar"])


def test_a_file_with_too_much_in_it_is_refused() -> None:
    for content, fault in (
        ("x\n" * 100_021, "The file has more than 100000 rows; split it."),
        (",".join("x" * 201), "The file has more than 200 columns."),
        ("Code\n" + ",".join(["x" * 200_000] * 6), "Row 2 of the file is too long."),
    ):
        assert str(parse_file(content.encode()).fault) == fault


def test_long_rows_are_kept_in_smaller_parts() -> None:
    reply = parse_file(b"Code,Notes\n" + b"\n".join(b"A-%d,%b" % (at, b"x" * 100_000) for at in range(200)))
    assert len(rows_of(reply)) == 201
    assert max(len(unpack(list[Row], part)) for part in reply.parts[0]) < 50


def bomb(name: str, size: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        with archive.open("xl/" + name, "w", force_zip64=True) as member:
            for _ in range(size // 1024**2 + 1):
                member.write(bytes(1024**2))
    return file.getvalue()


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workbooks, "MAX_UNPACKED_BYTES", 8 * 1024**2)
    assert parse_file(bomb("sharedStrings.xml", 9 * 1024**2)).fault == workbooks.TOO_LARGE


def test_a_damaged_workbook_is_refused() -> None:
    for content in (b"PK\x03\x04", workbook(("A", [["x"]]))[:-40], b"PK\x03\x04" + bytes(100)):
        assert parse_file(content).fault == workbooks.NOT_A_WORKBOOK


async def test_a_sheet_that_claims_to_be_endless_takes_nothing_from_the_web_process() -> None:
    """Two cells in opposite corners: whoever makes a table of them needs half a terabyte."""
    plain = io.BytesIO(workbook(("A", [["Code"]])))
    file = io.BytesIO()
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            text = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                corner = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
                text = text.replace(b"</sheetData>", corner)
            target.writestr(name, text)
    with pytest.raises(InvalidInput, match="too complex"):
        await FileReader().read(file.getvalue())


async def test_a_member_that_lies_about_its_size_takes_nothing_from_the_web_process() -> None:
    content = bytearray(bomb("worksheets/sheet1.xml", 64 * 1024**2))
    directory = content.rindex(b"PK\x01\x02")
    struct.pack_into("<L", content, directory + 24, 1000)
    with pytest.raises(InvalidInput) as refused:
        await FileReader().read(bytes(content))
    assert refused.value.faults[0].message in (workbooks.NOT_A_WORKBOOK, workbooks.TOO_LARGE, READ_FAILED)


async def test_a_file_is_read_beside_the_web_process_without_the_database_and_the_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rows_of(await FileReader().read(TEXT.encode()))[1] == (2, ["A-1", "100"])
    program = (
        "import os, msgspec; from holdfast.operations.imports import ParsedFile;"
        "os.write(1, msgspec.msgpack.encode(ParsedFile(fault=' '.join(os.environ))))"
    )
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://nobody@localhost/nothing")
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEYS", "not for strangers")
    monkeypatch.setattr(processes, "_PARSER", (sys.executable, "-I", "-c", program))
    with pytest.raises(InvalidInput) as told:
        await FileReader().read(b"")
    known = str(told.value.faults[0].message).split()
    assert "PATH" in known
    assert not [name for name in known if name.startswith("HOLDFAST")]


GENEROUS = Limits(cpu_seconds=600, seconds=600)
LIMITS_ARE_SET = "import os, resource, signal\nwhile resource.getrlimit(resource.RLIMIT_CORE)[1]: pass\n"
LITTLE_CPU, LITTLE_OUTPUT = GENEROUS._replace(cpu_seconds=1), GENEROUS._replace(file_bytes=2**20)
IGNORING = "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
TOO_GREEDY = [
    pytest.param(LITTLE_CPU, "while True: pass", -signal.SIGXCPU, "", id="CPU"),
    pytest.param(LITTLE_CPU, IGNORING, -signal.SIGKILL, "", id="CPU, ignoring", marks=pytest.mark.slow),
    pytest.param(GENEROUS._replace(memory_bytes=2**28), f"bytearray({2**29})", 1, "MemoryError", id="memory"),
    pytest.param(GENEROUS._replace(seconds=0.2), "signal.pause()", -signal.SIGKILL, "", id="time"),
    pytest.param(LITTLE_OUTPUT, "while True: os.write(1, bytes(10_000))", 1, "too large", id="output"),
    pytest.param(LITTLE_OUTPUT, "while True: os.write(2, bytes(10_000))", 120, "", id="errors"),
]


@pytest.mark.parametrize(("limits", "program", "exit_code", "error"), TOO_GREEDY)
async def test_a_reader_that_takes_too_much_is_ended_and_the_answer_says_so(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: Limits,
    program: str,
    exit_code: int,
    error: str,
) -> None:
    monkeypatch.setattr(processes, "_PARSER", (sys.executable, "-I", "-c", LIMITS_ARE_SET + program))
    with pytest.raises(InvalidInput) as refused:
        await FileReader(limits).read(TEXT.encode())
    assert refused.value.faults[0].message == READ_FAILED
    (record,) = caplog.records
    fields = vars(record)["fields"]
    assert fields["exit"] == exit_code
    assert error in fields["stderr"]
    assert len(fields["stderr"]) <= 500


@pytest.mark.parametrize(
    ("limits", "program"),
    [pytest.param(*one.values[:2], id=one.id, marks=one.marks) for one in TOO_GREEDY[:-1]],
)
async def test_a_writer_that_takes_too_much_is_ended_and_the_answer_says_so(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, program: str
) -> None:
    async def pages() -> AsyncIterator[list[CellRow]]:
        yield [["A-1"]]

    monkeypatch.setattr(processes, "_WRITER", (sys.executable, "-I", "-c", LIMITS_ARE_SET + program))
    with pytest.raises(InvalidInput) as refused:
        await WorkbookWriter(limits).write(["Code"], pages(), right_to_left=False)
    assert refused.value.faults[0].message == WRITE_FAILED


async def test_a_file_that_takes_more_memory_than_its_reader_has_is_refused() -> None:
    content = b"Code,Notes\n" + b"\n".join(b"A-%d,%b" % (at, b"x" * 1000) for at in range(20_000))
    assert len(rows_of(await FileReader().read(content))) == 20_001
    with pytest.raises(InvalidInput) as refused:
        await FileReader(GENEROUS._replace(memory_bytes=100 * 1024**2)).read(content)
    assert refused.value.faults[0].message in (TOO_MUCH_MEMORY, READ_FAILED)


def test_tags_that_never_end_are_not_searched_again_and_again() -> None:
    """Each to the end of the sheet would take days."""
    file = io.BytesIO()
    plain = io.BytesIO(workbook(("A", [["Code"]])))
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            target.writestr(name, b"<c " * 3_000_000 if is_sheet else source.read(name))
    assert parse_file(file.getvalue()).fault in (workbooks.NOT_A_WORKBOOK, "The file is empty.")


@pytest.mark.parametrize(
    "filling", [" ", '"', "'", "\t", ";", "; ", '; "', "; '", "\r\n", "\u200f", "1", "1,"]
)
def test_cells_are_read_and_written_in_one_pass(filling: str) -> None:
    """In two nested ones, a cell of a million characters would take hours."""
    text = f";{filling * (1_000_000 // len(filling))}x"
    assert unescaped(escaped(text)) == text
    assert unescaped(escaped_in_workbook(text)) == text
    for field in ("type", "price_sar", "delivery_year", "vat_included", "status", "images", "floor"):
        with suppress(InvalidCell):
            parse_cell(field, text, ".")
