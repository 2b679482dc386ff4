"""The columns of a spreadsheet of units: what they are called, and which is which."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

CODE = "code"
STATUS = "status"

NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
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
        "ar": ("نسبة العربون %", "عربون", "نسبة العربون", "دفعة أولى", "مقدم", "الدفعة المقدمة"),
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
        "en": ("Delivery year", "delivery", "delivery date", "handover year", "handover",
               "completion year", "completion"),
        "ar": ("سنة التسليم", "تسليم", "تاريخ التسليم", "موعد التسليم", "عام التسليم"),
    },
    "description": {
        "en": ("Description", "notes", "note", "details", "remarks", "comments"),
        "ar": ("الوصف", "ملاحظات", "تفاصيل", "وصف الوحدة"),
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

FIELDS = tuple(NAMES)
"""In the order in which they are shown and exported."""

REQUIRED = ("type", "area_sqm", "price_sar")
"""What a unit cannot do without, besides its code."""

NOT_IMPORTED = {
    "ref": {"en": "Ref", "ar": "المرجع"},
    "updated_at": {"en": "Updated", "ar": "آخر تحديث"},
}
"""What an export has besides, for its reader."""

_PARTS_OF_A_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NOT_A_LETTER = re.compile(r"[^\w]+|_")
_ARTICLE = re.compile(r"^ال(?=\w{2})")
_ALIKE = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ة": "ه", "ى": "ي", "ـ": None})  # noqa: RUF001
# They say in what a column is counted, not what.
_MEASURES = frozenset({"sar", "sr", "sqm", "sq", "m", "m2", "percent", "ر", "س", "ريال", "م", "م2"})


def guess_fields(headings: Sequence[str]) -> list[str | None]:
    """The field of each column, or None; no field twice, the first that is called so has it."""
    taken: set[str] = set()
    guesses: list[str | None] = []
    for heading in headings:
        field = field_called(heading)
        guesses.append(None if field in taken else field)
        if field is not None:
            taken.add(field)
    return guesses


def field_called(heading: str) -> str | None:
    words = _words(heading)
    return _FIELD_OF.get(" ".join(words)) or _FIELD_OF.get(" ".join(_without_measures(words)))


def is_heading_row(headings: Sequence[str]) -> bool:
    """A row that names the code and something else; what stands above it in many files is a title."""
    guesses = [guess for guess in guess_fields(headings) if guess is not None]
    return CODE in guesses and len(guesses) > 1


def _words(heading: str) -> list[str]:
    split = _PARTS_OF_A_WORD.sub(" ", unicodedata.normalize("NFKC", heading))
    plain = "".join(letter for letter in split.casefold() if not unicodedata.combining(letter))
    return [_ARTICLE.sub("", word) for word in _NOT_A_LETTER.split(plain.translate(_ALIKE)) if word]


def _without_measures(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in _MEASURES]


def _field_of() -> dict[str, str]:
    found: dict[str, str] = {}
    for field, of_language in NAMES.items():
        for names in of_language.values():
            for name in names:
                words = _words(name)
                found.setdefault(" ".join(words), field)
                found.setdefault(" ".join(_without_measures(words)), field)
    return found


_FIELD_OF = _field_of()
