"""From a row of a file to the command that brings it in, by the checks that bodies of units go through."""

from __future__ import annotations

import unicodedata
from typing import Any
from uuid import UUID

from holdfast.domain.audit import Author
from holdfast.domain.cells import KEPT, Cell, Unreadable, text_of, value_of
from holdfast.domain.errors import DomainError, Fault, InvalidInput
from holdfast.domain.imports import CODE, FIELDS, REQUIRED, STATUS, Choice, Row
from holdfast.domain.message import Message
from holdfast.domain.unit import code_fault
from holdfast.operations.imports import ImportUnit, RowRead
from holdfast.web.api.unit_bodies import UnitPatch, check_unit
from holdfast.web.json import camel_case

_OPTIONAL = tuple(name for name in FIELDS if name not in (CODE, STATUS, *REQUIRED))


class RowReading:
    """Rows come in their order: of a code named twice, the second row is refused."""

    def __init__(self, project_id: UUID, slug: str, choice: Choice, author: Author) -> None:
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
        absent = [name for name in _OPTIONAL if name not in choice.fields]
        self._absent: dict[str, Any] = dict.fromkeys(map(camel_case, absent) if choice.clears_absent else ())
        self._rows_of: dict[str, int] = {}

    def __call__(self, row: Row) -> RowRead:
        number, cells = row
        cells += [""] * (self._width - len(cells))
        code = unicodedata.normalize("NFC", text_of(cells[self._code_column]).strip())
        faults = self._code_faults(code, number)
        body = self._body(cells, faults)
        return RowRead(number, code, cells, self._command(code, body, faults))

    def _body(self, cells: list[Cell], faults: list[Fault]) -> dict[str, Any]:
        """As JSON has it, but for what cannot be read."""
        body = dict(self._absent)
        for at, field, name in self._columns:
            cell = cells[at]
            if cell == KEPT:
                continue
            try:
                value = value_of(field, cell, self._sign)
            except Unreadable as unreadable:
                faults.append(Fault(f"/{name}", unreadable.message))
                continue
            if value is not None or field in _OPTIONAL:
                body[name] = value
            elif field in REQUIRED:
                faults.append(Fault(f"/{name}", "This cannot be empty."))
            # An empty status leaves it to those who look after it.
        return body

    def _command(self, code: str, body: dict[str, Any], faults: list[Fault]) -> ImportUnit | DomainError:
        checked = check_unit(UnitPatch, body, self._slug, code)
        if isinstance(checked, list):
            faults += checked
        if faults or isinstance(checked, list):
            return InvalidInput(faults)
        return ImportUnit((self._project_id, code), checked.fields, checked.status, self._author)

    def _code_faults(self, code: str, number: int) -> list[Fault]:
        if not code:
            return [Fault("/code", "The row has no code.")]
        if fault := code_fault(code, "/code"):
            return [fault]
        if code in self._rows_of:
            message = Message("This code stands in row %(row)s already.", {"row": self._rows_of[code]})
            return [Fault("/code", message)]
        self._rows_of[code] = number
        return []
