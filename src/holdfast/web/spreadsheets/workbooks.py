"""Cells that show something else than they hold: percentages, and formulas that failed.

The reader of workbooks gives 0.15 for a cell that shows 15%, and nothing for one that shows #N/A."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from xml.etree import ElementTree

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    load_workbook,
)

from holdfast.domain.cells import Cell, exact
from holdfast.web.spreadsheets.csv_files import UnreadableFile

_PIECE = 1024**2
_BUILT_IN_PERCENTAGES = frozenset({"9", "10"})
_STYLES = "xl/styles.xml"
_LETTER_A = ord("A") - 1


class Marks(NamedTuple):
    of_row: dict[int, list[int]]
    """The columns of each row that has any; rows count from one, columns from zero."""
    errors: frozenset[tuple[int, int]]


def marks_of(archive: zipfile.ZipFile, path: str) -> Marks:
    styles = "|".join(_percentage_styles(archive))
    kinds = 't="e"' + (rf'|s="(?:{styles})"' if styles else "")
    marked = re.compile(rf"<(?:\w+:)?c\b(?=[^>]*\b(?:{kinds}))[^>]*>".encode())
    of_row: dict[int, list[int]] = {}
    errors = set()
    for tag in _found(archive, path, marked):
        if place := re.search(rb'\br="([A-Z]{1,3})([0-9]{1,7})"', tag):
            row, column = int(place[2]), _column(place[1])
            of_row.setdefault(row, []).append(column)
            if b't="e"' in tag:
                errors.add((row, column))
    return Marks(of_row, frozenset(errors))


def _found(archive: zipfile.ZipFile, path: str, wanted: re.Pattern[bytes]) -> Iterator[bytes]:
    """A sheet may be large: it is looked at piece by piece, none of which ends within a tag."""
    rest = b""
    with archive.open(path) as sheet:
        while piece := sheet.read(_PIECE):
            whole, start, rest = (rest + piece).rpartition(b"<")
            rest = start + rest
            yield from wanted.findall(whole)
    yield from wanted.findall(rest)


def _percentage_styles(archive: zipfile.ZipFile) -> list[str]:
    """The numbers of the cell styles that show a percentage."""
    if _STYLES not in archive.namelist():
        return []
    root = ElementTree.fromstring(archive.read(_STYLES))  # noqa: S314
    formats = {
        element.get("numFmtId", "")
        for element in root.iter()
        if element.tag.endswith("}numFmt") and "%" in element.get("formatCode", "")
    }
    formats |= _BUILT_IN_PERCENTAGES
    styles = [style for group in root if group.tag.endswith("}cellXfs") for style in group]
    return [str(at) for at, style in enumerate(styles) if style.get("numFmtId") in formats]


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - _LETTER_A
    return number - 1


# XLSX: its sheets, and what the reader of them does not tell.

UNPACKED_AT_MOST = 512 * 1024**2
_MEMBERS_AT_MOST = 2000

PROTECTED = "The file is protected by a password, or an old .xls; save it as .xlsx without one."
NOT_A_WORKBOOK = "The file is damaged, or no XLSX workbook."
TOO_LARGE = "The file is too large when it is unpacked."

_XML_SPACE = re.compile(r"\{[^}]*\}")
_Value = int | float | str | bool | date | datetime | time | timedelta


class OpenSheet(NamedTuple):
    name: str
    rows: Iterator[list[Cell]]


def open_sheets(content: bytes) -> Iterator[OpenSheet]:
    """Those that a person sees."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _refuse_bombs(archive)
            paths = _sheet_paths(archive)
            workbook = load_workbook(io.BytesIO(content))
            for name in _visible(workbook):
                marks = marks_of(archive, paths[name]) if name in paths else Marks({}, frozenset())
                yield OpenSheet(name, _rows(workbook.get_sheet_by_name(name), marks))
    except PasswordError:
        raise UnreadableFile(PROTECTED) from None
    except (CalamineError, zipfile.BadZipFile, ElementTree.ParseError, KeyError, NotImplementedError):
        raise UnreadableFile(NOT_A_WORKBOOK) from None


def _refuse_bombs(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > _MEMBERS_AT_MOST or sum(one.file_size for one in members) > UNPACKED_AT_MOST:
        raise UnreadableFile(TOO_LARGE)
    if "xl/workbook.xml" not in archive.namelist():
        raise UnreadableFile(NOT_A_WORKBOOK)


def _visible(workbook: CalamineWorkbook) -> list[str]:
    return [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]


def _sheet_paths(archive: zipfile.ZipFile) -> dict[str, str]:
    """Where the cells of each sheet stand."""
    targets = {
        relation.get("Id"): relation.get("Target", "")
        for relation in ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    }
    found = {}
    for element in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter():  # noqa: S314
        if _XML_SPACE.sub("", element.tag) == "sheet":
            relation = next(
                value for key, value in element.items() if _XML_SPACE.sub("", key) == "id" and "}" in key
            )
            target = targets.get(relation, "")
            found[element.get("name", "")] = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    names = set(archive.namelist())
    return {name: path for name, path in found.items() if path in names}


def _rows(sheet: CalamineSheet, marks: Marks) -> Iterator[list[Cell]]:
    """From the first row of the sheet on, empty ones included."""
    for at, row in enumerate(sheet.iter_rows(), 1):
        cells = [_cell(value) for value in row]
        for column in marks.of_row.get(at, ()):
            if column < len(cells):
                cells[column] = _marked(cells[column], (at, column) in marks.errors)
        yield cells


def _marked(cell: Cell, is_error: bool) -> Cell:
    """A percentage is kept as a part of one; people mean the number that they see."""
    if is_error:
        return None
    return float(exact(cell) * 100) if isinstance(cell, float) else cell


def _cell(value: _Value) -> Cell:
    if isinstance(value, str | bool | float | int):
        return value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)
