"""CSV that spreadsheet programs open as it is, and that runs nothing in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from holdfast.domain.cells import escaped
from holdfast.web.sheets.unit_rows import Written

MARK = "\ufeff"
"""Without it a certain program takes the file for another encoding."""


def csv_lines(rows: Iterable[Iterable[Written]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _cell(value: Written) -> str:
    if isinstance(value, str):
        return escaped(value)
    return "" if value is None else format(value, "f" if not isinstance(value, int) else "d")
