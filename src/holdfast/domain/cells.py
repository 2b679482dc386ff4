"""Cells of a spreadsheet, parsed: numbers, words and URLs as people write them. Exact, no floats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from holdfast.domain.errors import Message, MessageError
from holdfast.domain.status import Status
from holdfast.domain.unit import fields_of_type

Cell = str | int | float | bool | None
"""A workbook knows numbers, and None is a formula of it that failed; all else is text, be it empty."""

POINT, COMMA = ".", ","

LEAVE_AS_IS = "(does not fit a cell; left as it is)"
"""An export writes this where a cell cannot hold the value, and an import leaves the value alone."""

ERROR_MESSAGE = "The spreadsheet shows an error here instead of a value."
NUMBER_MESSAGE = "This is not a number."
SIGN_MESSAGE = (
    "This is not a number with “%(sign)s” as the decimal separator; check the separator that you chose."
)
SHORTENED_MESSAGE = "The spreadsheet has shortened this number; write it in full."
YES_OR_NO_MESSAGE = "This must be yes or no."
MEDIA_MESSAGE = "This must be http or https URLs, with spaces or new lines between them."

_LONGEST_NUMBER = 60
_INVISIBLE = re.compile("[\u200b-\u200f\u061c\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_DIGITS = {ord(digit): str(value) for value, digit in enumerate("٠١٢٣٤٥٦٧٨٩")}
_DIGITS |= {ord(digit): str(value) for value, digit in enumerate("۰۱۲۳۴۵۶۷۸۹")}
_DIGITS |= {ord(digit): str(value) for value, digit in enumerate("０１２３４５６７８９")}  # noqa: RUF001
_SIGNS = _DIGITS | {ord("\u2212"): "-", ord("،"): ",", ord("\u2019"): "'"}
_MEASURES = (
    r"(?:s\.?a\.?r\.?|s\.?r\.?|saudi riyals?|riyals?|ر\.? ?س\.?|ريال(?: سعودي)?|﷼|\u20c1"
    r"|m²|m2|sq\.? ?m\.?|sqm|م²|م2|م|متر(?: مربع)?|%|٪|﹪)"
)
_BEFORE_A_NUMBER = re.compile(rf"^{_MEASURES}", re.IGNORECASE)
_BEHIND_A_NUMBER = re.compile(rf"(?<=.){_MEASURES}$", re.IGNORECASE)
# What nearly every number is, read in a quarter of the time.
_PLAIN = {POINT: re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?"), COMMA: re.compile(r"[0-9]{1,20}")}
_GROUPED = {
    sign: re.compile(rf"([+-]?(?:\d{{1,3}}(?:{other}\d{{3}})+|\d+|(?=\{sign})))(?:\{sign}(\d+))?")
    for sign, other in ((POINT, "[,' ]"), (COMMA, "[.' ]"))
}
_SHORTENED = re.compile(r"[+-]?\d([.,]\d+)?e\+\d+", re.IGNORECASE)
_YEAR_OF_DATE = re.compile(r"(\d{4})-\d{2}-\d{2}\b.*", re.DOTALL)
_NOTHING = ("", "-", "–", "—")  # noqa: RUF001

_YES = frozenset({"yes", "y", "true", "1", "x", "✓", "✔", "نعم", "صح", "شامل"})
_GROUND_FLOOR = frozenset(
    {"g", "gf", "ground", "ground floor", "أرضي", "الأرضي", "الدور الأرضي", "الطابق الأرضي"}
)
_NO = frozenset({"no", "n", "false", "0", "✗", "✘", "لا", "خطا", "غير شامل"})

_STATUS_WORDS: Mapping[Status, tuple[str, ...]] = {
    Status.AVAILABLE: ("available", "for sale", "متاحة", "متاح", "متوفرة", "متوفر"),
    Status.HELD: ("held", "on hold", "قيد الحجز", "محجوزة مؤقتًا", "محجوزة مؤقتا", "محجوز مؤقتا"),
    Status.RESERVED: ("reserved", "محجوزة بدفعة", "محجوزة", "محجوز"),
    Status.SOLD: ("sold", "تم البيع", "مباعة", "مباع"),
    Status.UNAVAILABLE: ("unavailable", "not available", "off sale", "غير معروضة", "غير متاحة", "غير متاح"),
}
_STATUS_OF = {word: status for status, words in _STATUS_WORDS.items() for word in words}


class InvalidCell(MessageError):
    """A cell that cannot be parsed; the message says why."""


def parse_cell(field: str, cell: Cell, sign: str) -> Any:
    """Return the value as a JSON body would have it: None, text, ``Decimal``, a boolean, a list."""
    if cell is None:
        raise InvalidCell(ERROR_MESSAGE)
    return _PARSERS[field](cell, sign)


def cell_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return unescaped(cell)
    if cell is None or isinstance(cell, bool):
        return {None: "#ERROR!", True: "TRUE", False: "FALSE"}[cell]
    return format(exact(cell), "f")


def exact(number: float) -> Decimal:
    """Return the number to the fifteen digits that a spreadsheet shows."""
    return Decimal(number) if isinstance(number, int) else Decimal(f"{number:.15g}")


# A program that opens a CSV takes such text for a formula, and runs it: at the beginning of a cell, and where
# the same program in another country ends a cell.
_SIGNS_OF_FORMULA = "=+\\-@＝＋－＠"  # noqa: RUF001
_FORMULA = re.compile(rf"'*[{_SIGNS_OF_FORMULA}\t\r\n]")
_QUOTED_FORMULA = re.compile(rf"'+[{_SIGNS_OF_FORMULA}\t\r\n]")
_INNER_FORMULA = re.compile(rf"""([;\t\r\n][ "]*)('*[{_SIGNS_OF_FORMULA}])""")
_QUOTED_INNER_FORMULA = re.compile(rf"""([;\t\r\n][ "]*)'('*[{_SIGNS_OF_FORMULA}])""")


def escaped(text: str) -> str:
    """Escape text for CSV, so that no program runs it as a formula and an import reads it as it was."""
    text = _INNER_FORMULA.sub(r"\1'\2", text)
    return f"'{text}" if _FORMULA.match(text) else text


def escaped_in_workbook(text: str) -> str:
    """Escape text that looks escaped once more; a workbook runs no text as a formula."""
    text = _QUOTED_INNER_FORMULA.sub(r"\1''\2", text)
    return f"'{text}" if _QUOTED_FORMULA.match(text) else text


def unescaped(text: str) -> str:
    text = text[1:] if _QUOTED_FORMULA.match(text) else text
    return _QUOTED_INNER_FORMULA.sub(r"\1\2", text)


def find_decimal_sign(text: str) -> str | None:
    """Return the decimal sign if only one is possible: for 1.234,50 or 12,5, but not for 1,234."""
    number = _strip_units(text)
    if number.count(POINT) + number.count(COMMA) == 0 or not number[:1].strip("+-.,").isdigit():
        return None
    fits = [sign for sign, form in _GROUPED.items() if form.fullmatch(number)]
    return fits[0] if len(fits) == 1 else None


def _strip_units(text: str) -> str:
    plain = _INVISIBLE.sub("", text).translate(_SIGNS)
    plain = re.sub(r"[\s\u00a0\u202f\u2009]+", " ", plain).strip()
    return _BEHIND_A_NUMBER.sub("", _BEFORE_A_NUMBER.sub("", plain)).strip()


def _number(cell: Cell, sign: str) -> Decimal | None:
    if cell is None or isinstance(cell, bool):
        raise InvalidCell(NUMBER_MESSAGE)
    if not isinstance(cell, str):
        return exact(cell)
    if _PLAIN[sign].fullmatch(cell):
        return Decimal(cell)
    text = unescaped(cell).lstrip("'")
    if len(text) > _LONGEST_NUMBER:
        raise InvalidCell(NUMBER_MESSAGE)
    other = COMMA if sign == POINT else POINT
    if _INVISIBLE.sub("", text).strip() in _NOTHING:
        return None
    number = _strip_units(text.replace("٫", sign).replace("٬", other))  # noqa: RUF001
    if found := _GROUPED[sign].fullmatch(number):
        whole, decimals = found.groups()
        return Decimal(f"{re.sub('[^0-9+-]', '', whole)}.{decimals or 0}")
    if _SHORTENED.fullmatch(number):
        raise InvalidCell(SHORTENED_MESSAGE)
    if number.startswith("#"):
        raise InvalidCell(ERROR_MESSAGE)
    is_other_sign = _GROUPED[other].fullmatch(number)
    raise InvalidCell(Message(SIGN_MESSAGE, {"sign": sign}) if is_other_sign else NUMBER_MESSAGE)


def _year(cell: Cell, sign: str) -> Decimal | None:
    """Return the year of a date, or the number."""
    date = _YEAR_OF_DATE.fullmatch(cell) if isinstance(cell, str) else None
    return Decimal(date[1]) if date else _number(cell, sign)


def _floor(cell: Cell, sign: str) -> Decimal | None:
    """The ground floor may be written as a word."""
    return Decimal(0) if isinstance(cell, str) and _word(cell) in _GROUND_FLOOR else _number(cell, sign)


def _boolean(cell: Cell, _: str) -> bool | None:
    if isinstance(cell, bool):
        return cell
    word = _word(cell)
    if word in _NOTHING:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise InvalidCell(YES_OR_NO_MESSAGE)


def _status(cell: Cell, _: str) -> str | None:
    """Return a word that is no status as it is; the check of the fields rejects it."""
    word = _word(cell)
    if word in _NOTHING:
        return None
    status = _STATUS_OF.get(word)
    return cell_text(cell) if status is None else status.value


def _word(cell: Cell) -> str:
    return " ".join(_INVISIBLE.sub("", cell_text(cell)).casefold().translate(_DIGITS).split())


def _text(cell: Cell, _: str) -> str | None:
    return cell_text(cell) or None


def _media(cell: Cell, _: str) -> list[Any] | None:
    text = cell_text(cell).strip()
    if not text:
        return None
    if not text.startswith("["):
        return [address.rstrip(",;") for address in text.split()]
    try:
        found = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        raise InvalidCell(MEDIA_MESSAGE) from None
    return list(found)


def media_text(media: tuple[Any, ...]) -> str:
    """Return URLs on lines of their own, or JSON where they have names."""
    if all(isinstance(element, str) and not element.endswith((",", ";")) for element in media):
        return "\n".join(media)
    return json.dumps(media, ensure_ascii=False)


_Parser = Callable[[Cell, str], Any]
_PARSERS_OF_TYPES: Mapping[type, _Parser] = {
    str: _text, Decimal: _number, int: _number, bool: _boolean, tuple: _media,
}  # fmt: skip
_PARSERS: Mapping[str, _Parser] = {
    **{name: parse for kind, parse in _PARSERS_OF_TYPES.items() for name in fields_of_type(kind)},
    "delivery_year": _year,
    "floor": _floor,
    "status": _status,
}
