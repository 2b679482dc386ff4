"""What somebody chose for the columns of a file."""

from __future__ import annotations

from holdfast.domain.cells import Cell
from holdfast.domain.imports import SIGNS, Choice, Contents, Row, guess, is_field
from holdfast.web.html.forms import Form

_LONGEST_NUMBER = 6


def asked_for(contents: Contents, chosen: Choice | None, query: Form) -> Choice:
    """What the page shows at first: as it was chosen, or guessed for the sheet and the row of the query."""
    if chosen is not None and not query.has("sheet"):
        return chosen
    sheet = _number(query.text("sheet"), len(contents.sheets) - 1)
    row = _number(query.text("heading"), _last_heading(contents, sheet or 0))
    return guess(contents, sheet, row)


def choice_of(contents: Contents, form: Form) -> Choice:
    """Whatever is no choice of ours is as if it had not been made."""
    sheet = _number(form.text("sheet"), len(contents.sheets) - 1) or 0
    guessed = guess(contents, sheet, _number(form.text("heading"), _last_heading(contents, sheet)))
    sent = [form.text(f"column{at}") for at in range(contents.sheets[sheet].width)]
    sign = form.text("sign")
    return guessed._replace(
        fields=[field if is_field(field) else None for field in sent],
        clears_absent=form.text("absent") == "clear",
        sign=sign if sign in SIGNS else guessed.sign,
    )


def samples(head: list[Row], heading_row: int, column: int, many: int = 3) -> list[Cell]:
    """The first cells of a column that have something in them."""
    below = (cells for number, cells in head if number > heading_row)
    found = [cells[column] for cells in below if column < len(cells) and cells[column] != ""]
    return found[:many]


def _last_heading(contents: Contents, sheet: int) -> int:
    return max((number for number, _ in contents.sheets[sheet].head), default=1)


def _number(text: str, most: int) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number and int(text) <= most else None
