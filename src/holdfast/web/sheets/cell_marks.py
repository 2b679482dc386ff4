"""Cells that show something else than they hold: percentages, and formulas that failed.

The reader of workbooks gives 0.15 for a cell that shows 15%, and nothing for one that shows #N/A.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

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
