"""Reads one file, from standard input to standard output, in a process of its own.

A file from outside may be made to take all memory and time. Here it takes those of this process, which
has little of either.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from holdfast.domain.cells import COMMA, POINT, Cell, sign_evidence
from holdfast.domain.imports import HEAD_ROWS, ROWS_AT_MOST, Contents, Row, Sheet
from holdfast.domain.message import Message
from holdfast.operations.imports import ROWS_A_PART, Reply, pack
from holdfast.web.spreadsheets.csv_files import UnreadableFile, read_csv
from holdfast.web.spreadsheets.workbooks import PROTECTED, TOO_LARGE, open_sheets

MEMORY_AT_MOST = 1024**3
CPU_SECONDS_AT_MOST = 60
COLUMNS_AT_MOST = 200
SHEETS_AT_MOST = 20
# A text that many cells share is short in the file, and long in each of them.
CHARACTERS_A_ROW = 1024**2
CHARACTERS_A_PART = 4 * 1024**2
CHARACTERS_AT_MOST = 256 * 1024**2

_ZIP, _COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_SHOWN = 80

TOO_MANY_ROWS = Message("The file has more than %(limit)s rows; split it.", {"limit": ROWS_AT_MOST})
TOO_MANY_COLUMNS = Message("The file has more than %(limit)s columns.", {"limit": COLUMNS_AT_MOST})
EMPTY = "There is nothing in the file."
TOO_MUCH_MEMORY = "The file is too large to be read; split it, or save it as CSV."


def read(content: bytes) -> Reply:
    try:
        return _read(content)
    except UnreadableFile as refused:
        return Reply(fault=refused.message)
    except MemoryError:
        return Reply(fault=TOO_MUCH_MEMORY)


def _read(content: bytes) -> Reply:
    if content.startswith(_COMPOUND):
        raise UnreadableFile(PROTECTED)
    if content.startswith(_ZIP):
        reader = _Reader()
        for number, sheet in enumerate(open_sheets(content)):
            if number == SHEETS_AT_MOST:
                break
            reader.take(sheet.name, sheet.rows)
        return reader.reply("xlsx")
    text = read_csv(content)
    reader = _Reader()
    reader.take("", text.rows())
    return reader.reply("csv", text.encoding, text.delimiter)


class _Part:
    """Rows that are kept together, neither too many nor too long."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._characters = 0
        self.packed: list[bytes] = []

    def take(self, row: Row, characters: int) -> None:
        self._rows.append(row)
        self._characters += characters
        if len(self._rows) == ROWS_A_PART or self._characters > CHARACTERS_A_PART:
            self.end()

    def end(self) -> None:
        if self._rows:
            self.packed.append(pack(self._rows))
        self._rows, self._characters = [], 0


class _Reader:
    """Sheet after sheet, of which one part is in memory as rows."""

    def __init__(self) -> None:
        self._sheets: list[Sheet] = []
        self._parts: list[list[bytes]] = []
        self._rows = self._characters = 0

    def take(self, name: str, rows: Iterable[Sequence[Cell]]) -> None:
        part = _Part()
        head: list[Row] = []
        signs = {COMMA: 0, POINT: 0}
        count = width = 0
        for number, cells in _filled(rows):
            count, width = count + 1, max(width, len(cells))
            part.take((number, cells), self._counted(number, cells))
            _note_signs(cells, signs)
            if len(head) < HEAD_ROWS:
                head.append((number, [_clipped(cell) for cell in cells]))
        part.end()
        if count:
            parts = part.packed
            self._sheets.append(Sheet(name, count, width, len(parts), head, signs[COMMA], signs[POINT]))
            self._parts.append(parts)

    def reply(self, kind: str, encoding: str = "", delimiter: str = "") -> Reply:
        if not self._sheets:
            raise UnreadableFile(EMPTY)
        return Reply(contents=Contents(kind, encoding, delimiter, self._sheets), parts=self._parts)

    def _counted(self, number: int, cells: Sequence[Cell]) -> int:
        characters = sum(len(cell) for cell in cells if isinstance(cell, str))
        self._rows += 1
        self._characters += characters
        if self._rows > ROWS_AT_MOST + HEAD_ROWS:
            raise UnreadableFile(TOO_MANY_ROWS)
        if len(cells) > COLUMNS_AT_MOST:
            raise UnreadableFile(TOO_MANY_COLUMNS)
        if characters > CHARACTERS_A_ROW:
            message = "Row %(number)s of the file is longer than any unit can be."
            raise UnreadableFile(Message(message, {"number": number}))
        if self._characters > CHARACTERS_AT_MOST:
            raise UnreadableFile(TOO_LARGE)
        return characters


def _filled(rows: Iterable[Sequence[Cell]]) -> Iterator[Row]:
    """Rows with something in them, numbered as the spreadsheet numbers them."""
    for number, row in enumerate(rows, 1):
        cells: list[Cell] = [_storable(cell) for cell in row]
        while cells and (cells[-1] == "" or str(cells[-1]).isspace()):
            cells.pop()
        if cells:
            yield number, cells


def _storable(cell: Cell) -> Cell:
    """Half a character, which a damaged file may have, is no text."""
    if not isinstance(cell, str) or cell.isascii():
        return cell
    return cell.encode(errors="replace").decode()


def _note_signs(cells: list[Cell], signs: dict[str, int]) -> None:
    for cell in cells:
        if isinstance(cell, str) and len(cell) < 40 and (COMMA in cell or POINT in cell):
            sign = sign_evidence(cell)
            if sign is not None:
                signs[sign] += 1


def _clipped(cell: Cell) -> Cell:
    return cell[:_SHOWN] if isinstance(cell, str) else cell


def _limit() -> None:
    with suppress(ValueError):
        # Not every system knows it.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_AT_MOST, MEMORY_AT_MOST))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_AT_MOST, CPU_SECONDS_AT_MOST))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _limit()
    sys.stdout.buffer.write(msgspec.msgpack.encode(read(sys.stdin.buffer.read())))
