"""Writes one XLSX, from rows on standard input to a file on standard output, in a process of its own.

Its library takes ten seconds for a hundred thousand units, which nobody else should wait for.
"""

from __future__ import annotations

import sys
from typing import IO

import msgspec
import xlsxwriter  # type: ignore[import-untyped]
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

Cells = list[str | int | float | None]

LENGTH_BYTES = 4
_NUMBER_FORMATS = {2: "#,##0.00##", 3: "#,##0.00"}
_WIDTHS = {0: 14, 1: 16, 2: 12, 3: 16, 10: 40, 11: 30, 12: 30, 13: 16, 14: 14, 15: 24}
_TEXT_ONLY = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}


class Heading(msgspec.Struct):
    cells: list[str]
    right_to_left: bool


def write(source: IO[bytes], target: IO[bytes]) -> None:
    with xlsxwriter.Workbook(target, {"constant_memory": True, **_TEXT_ONLY}) as workbook:
        sheet = workbook.add_worksheet()
        heading = msgspec.msgpack.decode(_frame(source), type=Heading)
        if heading.right_to_left:
            sheet.right_to_left()
        sheet.freeze_panes(1, 1)
        for column in range(len(heading.cells)):
            number = _NUMBER_FORMATS.get(column)
            cell_format = workbook.add_format({"num_format": number}) if number else None
            sheet.set_column(column, column, _WIDTHS.get(column, 12), cell_format)
        bold = workbook.add_format({"bold": True})
        for column, text in enumerate(heading.cells):
            sheet.write_string(0, column, text, bold)
        _write_rows(source, sheet)


def _write_rows(source: IO[bytes], sheet: Worksheet) -> None:
    at = 0
    while frame := _frame(source):
        for cells in msgspec.msgpack.decode(frame, type=list[Cells]):
            at += 1
            for column, cell in enumerate(cells):
                if isinstance(cell, str):
                    sheet.write_string(at, column, cell)
                elif cell is not None:
                    sheet.write_number(at, column, cell)


def _frame(source: IO[bytes]) -> bytes:
    """Empty at the end. A source that ends without one was cut off, and so must be what is made of it."""
    length = source.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        raise EOFError
    return source.read(int.from_bytes(length))


if __name__ == "__main__":
    write(sys.stdin.buffer, sys.stdout.buffer)
