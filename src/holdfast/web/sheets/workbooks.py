"""XLSX: its sheets, and what the reader of them does not tell."""

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
from holdfast.web.sheets.cell_marks import Marks, marks_of
from holdfast.web.sheets.unreadable import FileRefused

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
        raise FileRefused(PROTECTED) from None
    except (CalamineError, zipfile.BadZipFile, ElementTree.ParseError, KeyError, NotImplementedError):
        raise FileRefused(NOT_A_WORKBOOK) from None


def _refuse_bombs(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > _MEMBERS_AT_MOST or sum(one.file_size for one in members) > UNPACKED_AT_MOST:
        raise FileRefused(TOO_LARGE)
    if "xl/workbook.xml" not in archive.namelist():
        raise FileRefused(NOT_A_WORKBOOK)


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
