"""CSV files: read in any usual encoding and with any usual delimiter, written for spreadsheet programs."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from holdfast.domain.cells import escaped
from holdfast.domain.errors import MessageError

CellValue = str | int | Decimal | None
CellRow = list[CellValue]

BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel takes UTF-8 for another encoding."""
DELIMITERS = (",", ";", "\t", "|")

ENDLESS_CELL = "A quoted cell of the file is never closed; look for an extra quotation mark."

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
    for row in rows:
        writer.writerow(
            escaped(value) if isinstance(value, str) else "" if value is None else format(Decimal(value), "f")
            for value in row
        )
    return text.getvalue().encode()


class CsvText(NamedTuple):
    text: str
    encoding: str
    delimiter: str

    def rows(self) -> Iterator[list[str]]:
        csv.field_size_limit(_LONGEST_CELL)
        try:
            # A quotation mark too many would swallow the rest of the file; only a strict reader reports it.
            deque(csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True), 0)
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                raise UnreadableFile(ENDLESS_CELL) from None
        try:
            yield from csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter)
        except csv.Error:
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
    # UTF-16 without a mark: delimiters and line ends have a zero in every second byte.
    sample = content[:_SAMPLE_BYTES]
    zeros_first, zeros_second = sample[::2].count(0), sample[1::2].count(0)
    if sample and max(zeros_first, zeros_second) >= len(sample) / 20:
        encoding = "utf-16-be" if zeros_first > zeros_second else "utf-16-le"
        return encoding, content.decode(encoding, "replace")
    try:
        return "utf-8", content.decode()
    except UnicodeDecodeError:
        # In Arabic whole words are outside ASCII; in Western languages only a letter here and there is.
        runs = [len(run) for run in _NOT_ASCII.findall(content)]
        in_words = sum(length for length in runs if length > 1)
        encoding = "windows-1256" if 2 * in_words > sum(runs) else "windows-1252"
        return encoding, content.decode(encoding, "replace")


def _evenness(sample: str, delimiter: str) -> tuple[int, int, int]:
    """Return how many rows a delimiter cuts like the first, which nearly always has the headings; then how
    many it cuts into the same number of cells."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    try:
        row_widths = [len(row) for row in islice(reader, _SAMPLE_ROWS) if row]
    except csv.Error:
        return 0, 0, 0
    counts = Counter(width for width in row_widths if width > 1)
    width, rows = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    like_first = counts[row_widths[0]] if row_widths else 0
    return like_first if like_first > 1 else 0, rows, width
