"""Writes one XLSX, from rows on standard input to a file on standard output, in a process of its own.

XlsxWriter takes ten seconds for a hundred thousand units.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO

import msgspec
import xlsxwriter  # type: ignore[import-untyped]

from holdfast.domain.cells import LEAVE_AS_IS, escaped_in_workbook
from holdfast.web.spreadsheets.csv_files import CellRow, CellValue

LONGEST_CELL = 32_767
LENGTH_BYTES = 4
END = bytes(LENGTH_BYTES)

_NUMBER_FORMATS = {2: "#,##0.00##", 3: "#,##0.00"}
_WIDTHS = {0: 14, 1: 16, 2: 12, 3: 16, 10: 40, 11: 30, 12: 30, 13: 16, 14: 14, 15: 24}
_TEXT_ONLY = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
# XML has no way to write them.
_NONCHARACTERS = ("\ufffe", "\uffff")


class Heading(msgspec.Struct):
    cells: list[str]
    right_to_left: bool


def encode_frame(message: Heading | Sequence[CellRow]) -> bytes:
    """Return a message of the protocol: its length, then the heading or a page of rows."""
    if isinstance(message, Heading):
        frame = msgspec.msgpack.encode(message)
    else:
        frame = msgspec.msgpack.encode([[_workbook_cell(value) for value in row] for row in message])
    return len(frame).to_bytes(LENGTH_BYTES) + frame


def write(source: IO[bytes], target: IO[bytes]) -> None:
    with xlsxwriter.Workbook(target, {"constant_memory": True, **_TEXT_ONLY}) as workbook:
        sheet = workbook.add_worksheet()
        heading = msgspec.msgpack.decode(_read_frame(source), type=Heading)
        if heading.right_to_left:
            sheet.right_to_left()
        sheet.freeze_panes(1, 1)
        bold = workbook.add_format({"bold": True})
        for column, text in enumerate(heading.cells):
            number = _NUMBER_FORMATS.get(column)
            cell_format = workbook.add_format({"num_format": number}) if number else None
            sheet.set_column(column, column, _WIDTHS.get(column, 12), cell_format)
            sheet.write_string(0, column, text, bold)
        row = 0
        while frame := _read_frame(source):
            for cells in msgspec.msgpack.decode(frame, type=list[list[str | float | None]]):
                row += 1
                for column, cell in enumerate(cells):
                    if isinstance(cell, str):
                        sheet.write_string(row, column, cell)
                    elif cell is not None:
                        sheet.write_number(row, column, cell)


def _read_frame(source: IO[bytes]) -> bytes:
    """Return the next frame, empty at the end. A source that ends without ``END`` was cut off."""
    length = source.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        raise EOFError
    return source.read(int.from_bytes(length))


def _workbook_cell(value: CellValue) -> str | float | None:
    """Numbers of units have at most fourteen digits, which a float gives back exactly."""
    if not isinstance(value, str):
        return None if value is None else float(value)
    text = escaped_in_workbook(value)
    fits = len(text) <= LONGEST_CELL and not any(character in text for character in _NONCHARACTERS)
    return text if fits else LEAVE_AS_IS


if __name__ == "__main__":
    write(sys.stdin.buffer, sys.stdout.buffer)
