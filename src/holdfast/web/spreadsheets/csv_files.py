"""CSV files: read in any usual encoding and with any usual delimiter, written for spreadsheet programs."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from holdfast.domain.cells import escaped
from holdfast.domain.message import MessageError

CellValue = str | int | Decimal | None
CellRow = list[CellValue]

BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel takes UTF-8 for another encoding."""
DELIMITERS = (",", ";", "\t", "|")

ENDLESS_CELL = "A cell of the file never ends; look for a quotation mark too many."

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_NAMED_DELIMITER = re.compile(r"sep=(.)\r?\n")
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_LONGEST_CELL = 1024**2
_SAMPLE_BYTES = 64 * 1024
_SAMPLE_ROWS = 50


class UnreadableFile(MessageError):
    """Its message is a sentence for the person who chose the file."""


def csv_lines(rows: Iterable[Iterable[CellValue]]) -> bytes:
    """Return rows as CSV in which no cell is run as a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _csv_cell(value: CellValue) -> str:
    if isinstance(value, str):
        return escaped(value)
    return "" if value is None else format(Decimal(value), "f")


class CsvText(NamedTuple):
    text: str
    encoding: str
    delimiter: str

    def rows(self) -> Iterator[list[str]]:
        csv.field_size_limit(_LONGEST_CELL)
        self._check_for_endless_cells()
        try:
            yield from csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter)
        except csv.Error:
            raise UnreadableFile(ENDLESS_CELL) from None

    def _check_for_endless_cells(self) -> None:
        """A quotation mark too many would swallow the rest of the file, and nobody would notice."""
        try:
            for _ in csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True):
                pass
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                raise UnreadableFile(ENDLESS_CELL) from None


def read_csv(content: bytes) -> CsvText:
    encoding, text = _decode(content)
    if named := _NAMED_DELIMITER.match(text):
        return CsvText(text[named.end() :], encoding, named[1])
    sample = text[:_SAMPLE_BYTES]
    return CsvText(text, encoding, max(DELIMITERS, key=lambda delimiter: _evenness(sample, delimiter)))


def _decode(content: bytes) -> tuple[str, str]:
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return encoding, content[len(mark) :].decode(encoding, "replace")
    if guessed := _utf_16_without_mark(content[:_SAMPLE_BYTES]):
        return guessed, content.decode(guessed, "replace")
    try:
        return "utf-8", content.decode()
    except UnicodeDecodeError:
        encoding = _windows_code_page(content)
        return encoding, content.decode(encoding, "replace")


def _utf_16_without_mark(sample: bytes) -> str | None:
    """Delimiters and line ends have a zero in every second byte."""
    zeros_first, zeros_second = sample[::2].count(0), sample[1::2].count(0)
    if max(zeros_first, zeros_second) < len(sample) / 20:
        return None
    return "utf-16-be" if zeros_first > zeros_second else "utf-16-le"


def _windows_code_page(content: bytes) -> str:
    """In Arabic whole words are outside ASCII; in Western languages only a letter here and there is."""
    runs = [len(run) for run in _NOT_ASCII.findall(content)]
    in_words = sum(length for length in runs if length > 1)
    return "windows-1256" if 2 * in_words > sum(runs) else "windows-1252"


def _evenness(sample: str, delimiter: str) -> tuple[int, int, int]:
    """Return how well a delimiter fits, for comparison with others.

    Best is the one that cuts most rows as it cuts the first, which nearly always has the headings; then the
    one that cuts most rows into the same number of cells.
    """
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    try:
        row_widths = [len(row) for row in islice(reader, _SAMPLE_ROWS) if row]
    except csv.Error:
        return 0, 0, 0
    counts = Counter(width for width in row_widths if width > 1)
    width, rows = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    like_first = counts[row_widths[0]] if row_widths else 0
    return like_first if like_first > 1 else 0, rows, width
