"""Units as rows of a spreadsheet, which an import reads back to the same units."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from holdfast.domain.cells import media_text
from holdfast.domain.imports import FIELDS, NAMES, NOT_IMPORTED
from holdfast.domain.spelling import moment_text
from holdfast.domain.unit import Unit

Written = str | int | Decimal | None
"""None: an empty cell."""

WORDS = {
    "en": {True: "yes", False: "no"},
    "ar": {True: "نعم", False: "لا"},
}
STATUS_WORDS = {
    "en": {name: name for name in ("available", "held", "reserved", "sold", "unavailable")},
    "ar": {
        "available": "متاحة",
        "held": "محجوزة مؤقتًا",
        "reserved": "محجوزة",
        "sold": "مباعة",
        "unavailable": "غير معروضة",
    },
}


def headings(language: str) -> list[str]:
    own = [NAMES[field][language][0] for field in FIELDS]
    return own + [names[language] for names in NOT_IMPORTED.values()]


def row_of(unit: Unit, language: str) -> list[Written]:
    fields = unit.fields._asdict()
    if unit.fields.vat_included is not None:
        fields["vat_included"] = WORDS[language][unit.fields.vat_included]
    values: dict[str, Any] = {**fields, "code": unit.code, "status": STATUS_WORDS[language][unit.status]}
    own = [_written(values[field]) for field in FIELDS]
    return [*own, unit.ref, moment_text(unit.updated_at)]


def _written(value: Any) -> Written:
    if isinstance(value, tuple):
        return media_text(value) or None
    return value  # type: ignore[no-any-return]
