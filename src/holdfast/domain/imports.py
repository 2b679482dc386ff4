"""Imports of spreadsheets of units: headings of columns, choices of their owner, and rows as changes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.cells import COMMA, POINT, Cell, cell_text
from holdfast.domain.decision import UNCONDITIONAL, Decision, UnitSnapshot, replace
from holdfast.domain.errors import Fault, InvalidInput, Message
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import REQUIRED_FIELDS, Unit, UnitFields
from holdfast.domain.wire_format import camel_case

CODE = "code"
STATUS = "status"

COLUMN_HEADINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "code": {
        "en": ("Code", "unit code", "unit", "unit no", "unit number", "unit id", "apartment no", "flat no",
               "apartment number", "villa no", "villa number", "plot no", "no", "number"),
        "ar": ("رمز الوحدة", "رمز", "كود", "كود الوحدة", "رقم الوحدة", "وحدة", "رقم الشقة", "رقم الفيلا",
               "رقم"),
    },
    "type": {
        "en": ("Type", "unit type", "property type", "category", "kind"),
        "ar": ("النوع", "نوع الوحدة", "نوع العقار", "صنف", "تصنيف", "فئة"),
    },
    "area_sqm": {
        "en": ("Area (m²)", "area", "size", "bua", "built up area", "unit area", "total area", "net area",
               "gross area", "built area"),
        "ar": ("المساحة (م²)", "مساحة", "مساحة الوحدة", "المساحة بالمتر المربع", "المساحة الإجمالية"),
    },
    "price_sar": {
        "en": ("Price (SAR)", "price", "unit price", "selling price", "sale price", "list price",
               "total price"),
        "ar": ("السعر (ر.س)", "سعر", "سعر الوحدة", "سعر البيع", "قيمة", "ثمن", "السعر الإجمالي"),
    },
    "vat_included": {
        "en": ("VAT included", "includes vat", "incl vat", "vat incl", "vat inclusive", "price includes vat"),
        "ar": ("شامل الضريبة", "السعر شامل الضريبة", "الضريبة مشمولة", "شامل ضريبة القيمة المضافة"),
    },
    "vat_rate": {
        "en": ("VAT %", "vat", "vat rate", "tax", "tax rate"),
        "ar": ("نسبة الضريبة %", "ضريبة", "نسبة الضريبة", "ضريبة القيمة المضافة",
               "نسبة ضريبة القيمة المضافة"),
    },
    "deposit_percent": {
        "en": ("Deposit %", "deposit", "down payment", "downpayment", "deposit rate"),
        "ar": ("نسبة مبلغ الحجز %", "عربون", "نسبة العربون", "دفعة أولى", "مقدم", "الدفعة المقدمة"),
    },
    "bedrooms": {
        "en": ("Bedrooms", "bedroom", "beds", "bed", "br", "bed rooms", "rooms", "no of bedrooms",
               "number of bedrooms"),
        "ar": ("غرف النوم", "عدد غرف النوم", "غرف", "عدد الغرف"),
    },
    "bathrooms": {
        "en": ("Bathrooms", "bathroom", "baths", "bath", "toilets", "wc", "no of bathrooms",
               "number of bathrooms"),
        "ar": ("دورات المياه", "عدد دورات المياه", "حمامات", "عدد الحمامات"),
    },
    "delivery_year": {
        "en": ("Handover year", "delivery year", "delivery", "delivery date", "handover",
               "completion year", "completion"),
        "ar": ("سنة التسليم", "تسليم", "تاريخ التسليم", "موعد التسليم", "عام التسليم"),
    },
    "floor": {
        "en": ("Floor", "level", "storey", "floor no", "floor number"),
        "ar": ("الطابق", "دور", "رقم الطابق", "رقم الدور"),
    },
    "description": {
        # Buyers read it: a column of notes or remarks is only imported if somebody chooses it.
        "en": ("Description", "unit description"),
        "ar": ("الوصف", "وصف الوحدة"),
    },
    "images": {
        "en": ("Images", "image", "photos", "photo", "pictures", "picture", "image url", "image urls"),
        "ar": ("الصور", "صورة", "روابط الصور", "رابط الصورة"),
    },
    "files": {
        "en": ("Files", "file", "documents", "document", "attachments", "brochure", "floor plan", "plans"),
        "ar": ("الملفات", "ملف", "مستندات", "مرفقات", "مخططات", "المخطط"),
    },
    "status": {
        "en": ("Status", "availability", "unit status", "state"),
        "ar": ("الحالة", "حالة الوحدة", "توفر"),
    },
}  # fmt: skip
"""Of each field, in each language, how its column may be headed; the first is how we head it ourselves."""

FIELDS = tuple(COLUMN_HEADINGS)
"""In the order in which they are shown and exported."""

REQUIRED = REQUIRED_FIELDS

NOT_IMPORTED = {"ref": {"en": "Ref", "ar": "المرجع"}, "updated_at": {"en": "Updated", "ar": "آخر تحديث"}}
"""What an export has besides, for its reader."""

_PARTS_OF_A_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST_HEADING = 200
_NOT_A_LETTER = re.compile(r"[^\w]+|_")
_ARTICLE = re.compile(r"^ال(?=\w{2})")
_ALIKE = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ة": "ه", "ى": "ي", "ـ": None})  # noqa: RUF001
# They say in what a column is counted, not what.
_MEASURES = frozenset({"sar", "sr", "sqm", "sq", "m", "m2", "percent", "ر", "س", "ريال", "م", "م2"})


def guess_fields(headings: Sequence[str]) -> list[str | None]:
    """Return the field of each column, or None; of columns with the same field the first has it."""
    fields = [find_field(heading) for heading in headings]
    return [None if field in fields[:at] else field for at, field in enumerate(fields)]


def find_field(heading: str) -> str | None:
    return next((_FIELD_BY_HEADING[key] for key in _heading_keys(heading) if key in _FIELD_BY_HEADING), None)


def is_heading_row(headings: Sequence[str]) -> bool:
    """Tell whether a row names the code and something else; the row above it in many files is a title."""
    fields = {find_field(heading) for heading in headings} - {None}
    return CODE in fields and len(fields) > 1


def _heading_keys(heading: str) -> tuple[str, str]:
    """Return a heading as it is compared with others: all its words, and those that are no measure."""
    split = _PARTS_OF_A_WORD.sub(" ", unicodedata.normalize("NFKC", heading[:_LONGEST_HEADING]))
    plain = "".join(letter for letter in split.casefold() if not unicodedata.combining(letter))
    words = [_ARTICLE.sub("", word) for word in _NOT_A_LETTER.split(plain.translate(_ALIKE)) if word]
    return " ".join(words), " ".join(word for word in words if word not in _MEASURES)


_FIELD_BY_HEADING: dict[str, str] = {}
for _field, _names in COLUMN_HEADINGS.items():
    for _name in (name for names in _names.values() for name in names):
        for _key in _heading_keys(_name):
            _FIELD_BY_HEADING.setdefault(_key, _field)


# The contents of a file of units, and the choices of its owner.

MAX_ROWS = 100_000
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


class ColumnMapping(NamedTuple):
    sheet: int
    heading_row: int
    fields: list[str | None]
    """Of each column; None: it is left out."""
    clears_absent: bool
    """What the file has no column for is cleared, as PUT does; else it stays as it is."""
    sign: str

    def column_of(self, field: str) -> int | None:
        return self.fields.index(field) if field in self.fields else None


def guess(
    contents: Contents, sheet_number: int | None = None, heading_row: int | None = None
) -> ColumnMapping:
    """Guess for the first sheet that looks like units, unless one is named."""
    if sheet_number is None:
        fitting = [at for at, sheet in enumerate(contents.sheets) if _heading(sheet) is not None]
        sheet_number = fitting[0] if fitting else 0
    sheet = contents.sheets[sheet_number]
    row = heading_row or _heading(sheet) or (sheet.head[0][0] if sheet.head else 1)
    sign = COMMA if sheet.commas > sheet.points else POINT
    return ColumnMapping(sheet_number, row, guess_fields(headings(sheet, row)), False, sign)


def headings(sheet: Sheet, row: int) -> list[str]:
    """Return the heading of every column, empty for those without one."""
    found = next((cells for number, cells in sheet.head if number == row), [])
    texts = [cell_text(cell).strip() for cell in found]
    return texts + [""] * (sheet.width - len(texts))


def rows_to_read(sheet: Sheet, heading_row: int) -> int:
    return sheet.rows - sum(number <= heading_row for number, _ in sheet.head)


CHECKING, IMPORTING = "checking", "importing"


class Import(NamedTuple):
    id: UUID
    project_id: UUID
    file_name: str
    created_at: datetime
    contents: Contents
    choice: ColumnMapping | None
    stage: str
    """``uploaded``, ``checking``, ``checked``, ``importing`` or ``imported``."""
    run_id: UUID | None
    is_alive: bool

    @property
    def is_running(self) -> bool:
        return self.stage in (CHECKING, IMPORTING) and self.is_alive

    @property
    def is_interrupted(self) -> bool:
        return self.stage in (CHECKING, IMPORTING) and not self.is_alive

    @property
    def rows(self) -> int:
        if self.choice is None:
            return 0
        return rows_to_read(self.contents.sheets[self.choice.sheet], self.choice.heading_row)


def choice_faults(choice: ColumnMapping, contents: Contents) -> list[Fault]:
    sheet = contents.sheets[choice.sheet]
    chosen = [field for field in choice.fields if field is not None]
    faults = [
        Fault(f"/column{at}", "Another column is already imported as this field.")
        for at, field in enumerate(choice.fields)
        if field is not None and field in choice.fields[:at]
    ]
    if CODE not in chosen:
        faults.append(Fault("/code", "Choose the column with the unit codes."))
    if choice.clears_absent:
        message = "This field cannot be cleared; choose its column, or keep the current values."
        faults += [Fault(f"/{name}", message) for name in REQUIRED if name not in chosen]
    if rows_to_read(sheet, choice.heading_row) == 0:
        faults.append(Fault("/heading_row", "There are no rows below the headings."))
    return faults


def _heading(sheet: Sheet) -> int | None:
    rows = (number for number, cells in sheet.head if is_heading_row([cell_text(cell) for cell in cells]))
    return next(rows, None)


# Rows of a file as changes of units.

_TEXTS = ("type", "description")


def import_row(
    snapshot: UnitSnapshot, code: str, values: Mapping[str, Any], status: Status | None, now: datetime
) -> Decision:
    """Replace the unit by the values of the row, and keep its other fields."""
    unit = snapshot.unit
    fields = _new_fields(values) if unit is None else _changed_fields(unit.fields, values)
    return replace(snapshot, code, fields, _status_to_set(unit, status), UNCONDITIONAL, now)


def _new_fields(values: Mapping[str, Any]) -> UnitFields:
    missing = [name for name in REQUIRED if name not in values]
    if missing:
        message = "New units need this field, and the file has no column for it."
        raise InvalidInput([Fault(f"/{camel_case(name)}", message) for name in missing])
    return UnitFields(**{name: _tidy(name, value) for name, value in values.items()})


def _changed_fields(stored: UnitFields, values: Mapping[str, Any]) -> UnitFields:
    changed = {name: _tidy(name, value) for name, value in values.items()}
    for name in _TEXTS:
        # A cell has spaces at its ends by accident, and cannot tell empty text from none.
        if name in values and (getattr(stored, name) or "").strip() == (values[name] or "").strip():
            del changed[name]
    return stored._replace(**changed)


def _tidy(name: str, value: Any) -> Any:
    """Remove spaces at the ends of a text, unless there is nothing else."""
    return (value.strip() or value) if name in _TEXTS and value is not None else value


def _status_to_set(unit: Unit | None, status: Status | None) -> Status | None:
    """Leave out a status that only a booking can set: an exported file names it as it was."""
    if status not in LOCKED:
        return status
    if unit is None:
        message = "A new unit cannot be %(unit_status)s: only a booking can make it so."
        raise InvalidInput.at("/status", Message(message, {"unit_status": status}))
    if unit.status is not status:
        message = "The unit is %(unit_status)s; a file cannot make it %(new_status)s, only a booking can."
        parameters = {"unit_status": unit.status, "new_status": status}
        raise InvalidInput.at("/status", Message(message, parameters))
    return None
