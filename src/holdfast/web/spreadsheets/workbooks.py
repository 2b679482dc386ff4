"""XLSX workbooks, read with the percentages and failed formulas that calamine does not report."""

from __future__ import annotations

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from xml.etree import ElementTree

from python_calamine import (
    CalamineError,
    CalamineSheet,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    load_workbook,
)

from holdfast.domain.cells import Cell, exact
from holdfast.web.spreadsheets.csv_files import UnreadableFile

MAX_UNPACKED_BYTES = 512 * 1024**2

PROTECTED = "The file is password-protected or in the old .xls format; save it as .xlsx without a password."
NOT_A_WORKBOOK = "The file is damaged or not an XLSX workbook."
TOO_LARGE = "The file is too large when it is unpacked."

_MAX_MEMBERS = 2000
_CHUNK_BYTES = 1024**2
_LONGEST_TAG = 64 * 1024
_WORKBOOK, _RELATIONS, _STYLES = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"
_BUILT_IN_PERCENTAGES = frozenset({"9", "10"})

SpecialCells = dict[int, list[tuple[int, bool]]]
"""For each row, counted from one: columns, counted from zero, and whether the cell is an error."""
_Value = int | float | str | bool | date | datetime | time | timedelta


def open_sheets(content: bytes) -> Iterator[tuple[str, Iterator[list[Cell]]]]:
    """Yield the names and rows of the visible worksheets."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            unpacked = sum(member.file_size for member in members)
            if len(members) > _MAX_MEMBERS or unpacked > MAX_UNPACKED_BYTES:
                raise UnreadableFile(TOO_LARGE)
            paths = _sheet_paths(archive)
            workbook = load_workbook(io.BytesIO(content))
            for sheet in workbook.sheets_metadata:
                if sheet.typ != SheetTypeEnum.WorkSheet or sheet.visible != SheetVisibleEnum.Visible:
                    continue
                special = _special_cells(archive, paths[sheet.name]) if sheet.name in paths else {}
                yield sheet.name, _rows(workbook.get_sheet_by_name(sheet.name), special)
    except PasswordError:
        raise UnreadableFile(PROTECTED) from None
    except (CalamineError, zipfile.BadZipFile, ElementTree.ParseError, KeyError, NotImplementedError):
        raise UnreadableFile(NOT_A_WORKBOOK) from None


def _sheet_paths(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the member of the archive that has the cells of each sheet."""
    targets = {
        relation.get("Id"): relation.get("Target", "")
        for relation in ElementTree.fromstring(archive.read(_RELATIONS))  # noqa: S314
    }
    members = set(archive.namelist())
    paths = {}
    for sheet in ElementTree.fromstring(archive.read(_WORKBOOK)).findall(".//{*}sheet"):  # noqa: S314
        relation = next((value for key, value in sheet.items() if key.endswith("}id")), None)
        target = targets.get(relation, "")
        path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if path in members:
            paths[sheet.get("name", "")] = path
    return paths


def _special_cells(archive: zipfile.ZipFile, path: str) -> SpecialCells:
    """Find the cells that show something else than calamine gives: 15% for 0.15, #N/A for nothing."""
    styles = "|".join(_percentage_styles(archive))
    kinds = 't="e"' + (rf'|s="(?:{styles})"' if styles else "")
    tags = re.compile(rf"<(?:\w+:)?c\b(?=[^<>]*\b(?:{kinds}))[^<>]*>".encode())
    special: SpecialCells = defaultdict(list)
    for tag in _find_tags(archive, path, tags):
        if position := re.search(rb'\br="([A-Z]{1,3})([0-9]{1,7})"', tag):
            column = 0
            for letter in position[1]:
                column = column * 26 + letter - ord("A") + 1
            special[int(position[2])].append((column - 1, b't="e"' in tag))
    return special


def _find_tags(archive: zipfile.ZipFile, path: str, tags: re.Pattern[bytes]) -> Iterator[bytes]:
    """A sheet may be large: it is searched in chunks, none of which ends within a tag."""
    rest = b""
    with archive.open(path) as sheet:
        while chunk := sheet.read(_CHUNK_BYTES):
            whole, start, rest = (rest + chunk).rpartition(b"<")
            rest = (start + rest)[:_LONGEST_TAG]
            yield from tags.findall(whole)
    yield from tags.findall(rest)


def _percentage_styles(archive: zipfile.ZipFile) -> list[str]:
    """Return the numbers of the cell styles that show a percentage."""
    if _STYLES not in archive.namelist():
        return []
    root = ElementTree.fromstring(archive.read(_STYLES))  # noqa: S314
    formats = {
        element.get("numFmtId", "")
        for element in root.findall(".//{*}numFmt")
        if "%" in element.get("formatCode", "")
    }
    formats |= _BUILT_IN_PERCENTAGES
    styles = root.findall("{*}cellXfs/*")
    return [str(at) for at, style in enumerate(styles) if style.get("numFmtId") in formats]


def _rows(sheet: CalamineSheet, special: SpecialCells) -> Iterator[list[Cell]]:
    """Yield all rows from the first of the sheet on, empty ones included."""
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = [_cell(value) for value in row]
        for column, is_error in special.get(number, ()):
            if column >= len(cells):
                continue
            cell = cells[column]
            if is_error:
                cells[column] = None
            elif isinstance(cell, float):
                # The file has a percentage as a fraction; people mean the number that they see.
                cells[column] = float(exact(cell) * 100)
        yield cells


def _cell(value: _Value) -> Cell:
    if isinstance(value, str | bool | float | int):
        return value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)
