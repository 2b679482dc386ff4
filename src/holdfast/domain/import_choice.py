"""What a file of units holds, and what its owner chose to make of it."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.cells import COMMA, POINT, Cell, text_of
from holdfast.domain.columns import CODE, FIELDS, REQUIRED, guess_fields, is_heading_row
from holdfast.domain.refusals import Fault

ROWS_AT_MOST = 100_000
HEAD_ROWS = 20
"""How many rows of a sheet are shown, and may be the headings."""

SIGNS = (POINT, COMMA)

Row = tuple[int, list[Cell]]
"""Its number in the file, and its cells; empty ones at the end are left out."""


class Sheet(NamedTuple):
    name: str
    rows: int
    """That are not empty."""
    width: int
    parts: int
    head: list[Row]
    commas: int
    """How many numbers leave no doubt that the comma is their decimal sign."""
    points: int


class Contents(NamedTuple):
    format: str
    """``xlsx`` or ``csv``."""
    encoding: str
    delimiter: str
    sheets: list[Sheet]


class Choice(NamedTuple):
    sheet: int
    heading_row: int
    fields: list[str | None]
    """Of each column; None: it is left out."""
    clears_absent: bool
    """What the file has no column for is cleared, as PUT does; else it stays as it is."""
    sign: str

    def column_of(self, field: str) -> int | None:
        return self.fields.index(field) if field in self.fields else None


def guess(contents: Contents, sheet_number: int | None = None, heading_row: int | None = None) -> Choice:
    """For the first sheet that looks like units, unless one is named."""
    if sheet_number is None:
        fitting = [at for at, sheet in enumerate(contents.sheets) if _heading(sheet) is not None]
        sheet_number = fitting[0] if fitting else 0
    sheet = contents.sheets[sheet_number]
    row = heading_row or _heading(sheet) or (sheet.head[0][0] if sheet.head else 1)
    sign = COMMA if sheet.commas > sheet.points else POINT
    return Choice(sheet_number, row, guess_fields(headings(sheet, row)), False, sign)


def headings(sheet: Sheet, row: int) -> list[str]:
    """Of every column, those without one included."""
    found = next((cells for number, cells in sheet.head if number == row), [])
    texts = [text_of(cell).strip() for cell in found]
    return texts + [""] * (sheet.width - len(texts))


def rows_to_read(sheet: Sheet, heading_row: int) -> int:
    return sheet.rows - sum(number <= heading_row for number, _ in sheet.head)


def choice_faults(choice: Choice, contents: Contents) -> list[Fault]:
    sheet = contents.sheets[choice.sheet]
    chosen = [field for field in choice.fields if field is not None]
    faults = [
        Fault(f"/column{at}", "Another column is already used for this.")
        for at, field in enumerate(choice.fields)
        if field is not None and field in choice.fields[:at]
    ]
    if CODE not in chosen:
        faults.append(Fault("/code", "Choose the column with the unit codes."))
    if choice.clears_absent:
        faults += [
            Fault(
                f"/{name}", "This cannot be cleared; choose its column, or keep what the file does not have."
            )
            for name in REQUIRED
            if name not in chosen
        ]
    if rows_to_read(sheet, choice.heading_row) == 0:
        faults.append(Fault("/heading_row", "There are no rows below the headings."))
    return faults


def is_field(name: str) -> bool:
    return name in FIELDS


def _heading(sheet: Sheet) -> int | None:
    for number, cells in sheet.head:
        if is_heading_row([text_of(cell) for cell in cells]):
            return number
    return None
