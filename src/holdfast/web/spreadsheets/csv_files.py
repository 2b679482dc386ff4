"""Why a file cannot be read, in plain words."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from holdfast.domain.message import MessageError


class UnreadableFile(MessageError):
    """Its message is a sentence for the person who chose the file."""


# CSV as it comes: of any usual encoding, with any usual delimiter.

DELIMITERS = (",", ";", "\t", "|")

ENDLESS_CELL = "A cell of the file never ends; look for a quotation mark too many."

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_NAMED_DELIMITER = re.compile(r"sep=(.)\r?\n")
_FOREIGN = re.compile(rb"[\x80-\xff]+")
_LONGEST_CELL = 1024**2
_SAMPLE = 64 * 1024
_ROWS_LOOKED_AT = 50


class CsvText(NamedTuple):
    text: str
    encoding: str
    delimiter: str

    def rows(self) -> Iterator[list[str]]:
        csv.field_size_limit(_LONGEST_CELL)
        self._refuse_endless_cells()
        try:
            yield from csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter)
        except csv.Error:
            raise UnreadableFile(ENDLESS_CELL) from None

    def _refuse_endless_cells(self) -> None:
        """A quotation mark too many would swallow the rest of the file, and nobody would miss it."""
        try:
            for _ in csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True):
                pass
        except csv.Error as fault:
            if str(fault) == "unexpected end of data":
                raise UnreadableFile(ENDLESS_CELL) from None


def read_csv(content: bytes) -> CsvText:
    encoding, text = _decoded(content)
    if named := _NAMED_DELIMITER.match(text):
        return CsvText(text[named.end() :], encoding, named[1])
    return CsvText(text, encoding, _delimiter(text[:_SAMPLE]))


def _decoded(content: bytes) -> tuple[str, str]:
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return encoding, content[len(mark) :].decode(encoding, "replace")
    if guessed := _utf_16_without_mark(content[:_SAMPLE]):
        return guessed, content.decode(guessed, "replace")
    try:
        return "utf-8", content.decode()
    except UnicodeDecodeError:
        encoding = _windows_page(content)
        return encoding, content.decode(encoding, "replace")


def _utf_16_without_mark(sample: bytes) -> str | None:
    """Delimiters and line ends have a zero in every second byte."""
    zeros_first, zeros_second = sample[::2].count(0), sample[1::2].count(0)
    if max(zeros_first, zeros_second) < len(sample) / 20:
        return None
    return "utf-16-be" if zeros_first > zeros_second else "utf-16-le"


def _windows_page(content: bytes) -> str:
    """Arabic words are all foreign to ASCII; of Western ones only a letter here and there is."""
    runs = [len(run) for run in _FOREIGN.findall(content)]
    in_words = sum(length for length in runs if length > 1)
    return "windows-1256" if 2 * in_words > sum(runs) else "windows-1252"


def _delimiter(sample: str) -> str:
    """The one that cuts most rows as it cuts the first, which is nearly always the headings; or else the one
    that cuts most rows into the same number of cells."""
    return max(DELIMITERS, key=lambda delimiter: _evenness(sample, delimiter))


def _evenness(sample: str, delimiter: str) -> tuple[int, int, int]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    try:
        found = [len(row) for row in islice(reader, _ROWS_LOOKED_AT) if row]
    except csv.Error:
        return 0, 0, 0
    widths = Counter(width for width in found if width > 1)
    width, rows = max(widths.items(), key=lambda one: (one[1], one[0]), default=(1, 0))
    as_first = widths[found[0]] if found else 0
    return as_first if as_first > 1 else 0, rows, width
