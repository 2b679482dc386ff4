"""Units as rows of a spreadsheet: written by exports, and parsed by imports into the same units.

Headings are matched in domain/imports.py.
"""

from __future__ import annotations

import unicodedata
from typing import Any
from uuid import UUID

from holdfast.domain.audit import Author
from holdfast.domain.cells import LEAVE_AS_IS, Cell, InvalidCell, cell_text, media_text, parse_cell
from holdfast.domain.errors import Fault, InvalidInput, Message
from holdfast.domain.imports import (
    CODE,
    COLUMN_HEADINGS,
    FIELDS,
    NOT_IMPORTED,
    REQUIRED,
    STATUS,
    ColumnMapping,
    Row,
)
from holdfast.domain.unit import CODE_LENGTH, Unit, code_fault
from holdfast.domain.wire_format import format_timestamp
from holdfast.operations.imports import ImportUnit, ParsedRow
from holdfast.web.api.unit_bodies import UnitPatch, check_unit
from holdfast.web.json import camel_case
from holdfast.web.spreadsheets.csv_files import CellRow

_OPTIONAL = tuple(name for name in FIELDS if name not in (CODE, STATUS, *REQUIRED))
_NO_YES = {"en": ("no", "yes"), "ar": ("لا", "نعم")}
_ARABIC_STATUS = {
    "available": "متاحة",
    "held": "قيد الحجز",
    "reserved": "محجوزة بدفعة",
    "sold": "تم البيع",
    "unavailable": "غير معروضة",
}
_URLS = ("https://example.com/unit.jpg", "https://example.com/plan.pdf")
_TYPE, _VIEW = "2-bedroom apartment | شقة بغرفتي نوم", "Garden view | إطلالة على الحديقة"
EXAMPLES: dict[str, list[CellRow]] = {
    language: [
        ["EXAMPLE-1", _TYPE, 113, 950_000, no, 15, 10, 2, 2, 2028, 1, _VIEW, *_URLS, status],
        ["EXAMPLE-2", _TYPE, 120, 1_010_000, *[None] * 10, status],
    ]
    for language, no, status in (("en", "no", "unavailable"), ("ar", "لا", "غير معروضة"))
}
"""Units that can be imported: one with everything, and one with what it needs. Neither is on sale."""
_LONGEST_TYPED_CODE = 4 * CODE_LENGTH[1]
"""Before marks are combined, which takes quadratic time. A longer one is refused as it is."""


def headings(language: str) -> list[str]:
    fields = [COLUMN_HEADINGS[field][language][0] for field in FIELDS]
    return fields + [names[language] for names in NOT_IMPORTED.values()]


def unit_row(unit: Unit, language: str) -> CellRow:
    values: dict[str, Any] = {**unit.fields._asdict(), "code": unit.code, "status": unit.status.value}
    if language == "ar":
        values["status"] = _ARABIC_STATUS[unit.status]
    if unit.fields.vat_included is not None:
        values["vat_included"] = _NO_YES[language][unit.fields.vat_included]
    values["images"], values["files"] = (
        media_text(media) or None for media in (unit.fields.images, unit.fields.files)
    )
    return [*(values[field] for field in FIELDS), unit.ref, format_timestamp(unit.updated_at)]


class RowParser:
    """Turns rows, which come in their order, into commands, by the same checks as the bodies of requests."""

    def __init__(self, project_id: UUID, slug: str, choice: ColumnMapping, author: Author) -> None:
        self._project_id = project_id
        self._slug = slug
        self._author = author
        self._sign = choice.sign
        self._width = len(choice.fields)
        self._code_column = choice.fields.index(CODE)
        self._columns = [
            (at, field, camel_case(field))
            for at, field in enumerate(choice.fields)
            if field is not None and field != CODE
        ]
        absent = [camel_case(name) for name in _OPTIONAL if name not in choice.fields]
        self._cleared: dict[str, Any] = dict.fromkeys(absent if choice.clears_absent else ())
        self._row_numbers: dict[str, int] = {}

    def __call__(self, row: Row) -> ParsedRow:
        number, cells = row
        cells += [""] * (self._width - len(cells))
        code = cell_text(cells[self._code_column]).strip()
        if len(code) <= _LONGEST_TYPED_CODE:
            code = unicodedata.normalize("NFC", code)
        faults = self._code_faults(code, number)
        checked = check_unit(UnitPatch, self._body(cells, faults), self._slug, code)
        if isinstance(checked, list):
            return ParsedRow(number, code, cells, InvalidInput([*faults, *checked]))
        if faults:
            return ParsedRow(number, code, cells, InvalidInput(faults))
        command = ImportUnit((self._project_id, code), checked.fields, checked.status, self._author)
        return ParsedRow(number, code, cells, command)

    def _code_faults(self, code: str, number: int) -> list[Fault]:
        if not code:
            return [Fault("/code", "The row has no code.")]
        if fault := code_fault(code, "/code"):
            return [fault]
        first = self._row_numbers.setdefault(code, number)
        if first != number:
            return [Fault("/code", Message("This code is already in row %(row)s.", {"row": first}))]
        return []

    def _body(self, cells: list[Cell], faults: list[Fault]) -> dict[str, Any]:
        """Return the body of the request that the row stands for, without the cells that are unreadable."""
        body = dict(self._cleared)
        for at, field, name in self._columns:
            cell = cells[at]
            if cell == LEAVE_AS_IS:
                continue
            try:
                value = parse_cell(field, cell, self._sign)
            except InvalidCell as unreadable:
                faults.append(Fault(f"/{name}", unreadable.message))
                continue
            if value is not None or field in _OPTIONAL:
                body[name] = value
            elif field in REQUIRED:
                faults.append(Fault(f"/{name}", "This cannot be empty."))
            # An empty status leaves the status of the unit as it is.
        return body
