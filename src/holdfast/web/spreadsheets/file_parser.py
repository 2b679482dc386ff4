"""Parses one file, from standard input to standard output, in a process of its own.

A file from outside may be made to take all memory and time. Here it takes those of this process, which
``processes`` gives little of either.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from holdfast.domain.cells import COMMA, POINT, Cell, find_decimal_sign
from holdfast.domain.errors import Message
from holdfast.domain.imports import HEAD_ROWS, MAX_ROWS, Contents, Row, Sheet
from holdfast.operations.imports import ROWS_A_PART, ParsedFile, pack
from holdfast.web.spreadsheets.csv_files import UnreadableFile, read_csv
from holdfast.web.spreadsheets.workbooks import PROTECTED, TOO_LARGE, open_sheets

MAX_COLUMNS = 200
MAX_SHEETS = 20
# A text that many cells share is short in the file, and long in each of them.
CHARACTERS_A_ROW = 1024**2
CHARACTERS_A_PART = 4 * 1024**2
MAX_CHARACTERS = 256 * 1024**2

TOO_MANY_ROWS = Message("The file has more than %(limit)s rows; split it.", {"limit": MAX_ROWS})
TOO_MANY_COLUMNS = Message("The file has more than %(limit)s columns.", {"limit": MAX_COLUMNS})
EMPTY = "The file is empty."
TOO_MUCH_MEMORY = "The file is too large to read; split it, or save it as CSV."

_ZIP, _COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_PREVIEW_LENGTH = 80


def parse_file(content: bytes) -> ParsedFile:
    parser = _Parser()
    try:
        if content.startswith(_COMPOUND):
            raise UnreadableFile(PROTECTED)
        if content.startswith(_ZIP):
            for name, rows in islice(open_sheets(content), MAX_SHEETS):
                parser.add_sheet(name, rows)
            return parser.reply("xlsx")
        text = read_csv(content)
        parser.add_sheet("", text.rows())
        return parser.reply("csv", text.encoding, text.delimiter)
    except UnreadableFile as error:
        return ParsedFile(fault=error.message)
    except MemoryError:
        return ParsedFile(fault=TOO_MUCH_MEMORY)


class _Parser:
    """Packs sheet after sheet; only the rows of one part are in memory."""

    def __init__(self) -> None:
        self._sheets: list[Sheet] = []
        self._parts: list[list[bytes]] = []
        self._rows = self._characters = 0

    def add_sheet(self, name: str, rows: Iterable[Sequence[Cell]]) -> None:
        head: list[Row] = []
        part: list[Row] = []
        parts: list[bytes] = []
        signs: Counter[str | None] = Counter()
        count = width = part_size = 0
        for number, cells in _filled_rows(rows):
            count, width = count + 1, max(width, len(cells))
            part.append((number, cells))
            part_size += self._check_size(number, cells)
            if len(part) == ROWS_A_PART or part_size > CHARACTERS_A_PART:
                parts.append(pack(part))
                part, part_size = [], 0
            for cell in cells:
                if isinstance(cell, str) and len(cell) < 40 and (COMMA in cell or POINT in cell):
                    signs[find_decimal_sign(cell)] += 1
            if len(head) < HEAD_ROWS:
                preview = [cell[:_PREVIEW_LENGTH] if isinstance(cell, str) else cell for cell in cells]
                head.append((number, preview))
        if part:
            parts.append(pack(part))
        if count:
            self._sheets.append(Sheet(name, count, width, len(parts), head, signs[COMMA], signs[POINT]))
            self._parts.append(parts)

    def reply(self, kind: str, encoding: str = "", delimiter: str = "") -> ParsedFile:
        if not self._sheets:
            raise UnreadableFile(EMPTY)
        return ParsedFile(contents=Contents(kind, encoding, delimiter, self._sheets), parts=self._parts)

    def _check_size(self, number: int, cells: Sequence[Cell]) -> int:
        """Return the characters of the row."""
        characters = sum(len(cell) for cell in cells if isinstance(cell, str))
        self._rows += 1
        self._characters += characters
        if self._rows > MAX_ROWS + HEAD_ROWS:
            raise UnreadableFile(TOO_MANY_ROWS)
        if len(cells) > MAX_COLUMNS:
            raise UnreadableFile(TOO_MANY_COLUMNS)
        if characters > CHARACTERS_A_ROW:
            message = "Row %(number)s of the file is too long."
            raise UnreadableFile(Message(message, {"number": number}))
        if self._characters > MAX_CHARACTERS:
            raise UnreadableFile(TOO_LARGE)
        return characters


def _filled_rows(rows: Iterable[Sequence[Cell]]) -> Iterator[Row]:
    """Yield the rows that are not empty, numbered as the spreadsheet numbers them."""
    for number, row in enumerate(rows, 1):
        # A damaged file may have lone surrogates.
        cells = [cell.encode(errors="replace").decode() if isinstance(cell, str) else cell for cell in row]
        while cells and (cells[-1] == "" or str(cells[-1]).isspace()):
            cells.pop()
        if cells:
            yield number, cells


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(parse_file(sys.stdin.buffer.read())))
