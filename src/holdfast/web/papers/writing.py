"""How papers write amounts and times: the same for everybody, with every digit."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from babel.dates import format_datetime, get_timezone_name
from babel.numbers import format_decimal

from holdfast.web.html.language import Language

_NO_BREAK = "\N{NO-BREAK SPACE}"


def amount(value: Decimal, language: Language) -> str:
    """With halalas, also where there are none: nothing can be added to it by hand."""
    figures = format_decimal(value, "#,##0.00", locale="en")
    return f"{figures}{_NO_BREAK}ر.س" if language.code == "ar" else f"SAR{_NO_BREAK}{figures}"


def moment(at: datetime, language: Language) -> str:
    """To the second, with the name of its time zone."""
    here = at.astimezone(language.zone)
    comma = "،" if language.code == "ar" else ","
    written = format_datetime(here, f"d MMMM y{comma} HH:mm:ss", locale=language.code)
    return f"{written} ({get_timezone_name(here, locale=language.code)})"


def isolated(text: str) -> str:
    """Of either direction, in the midst of the other."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"


def from_left(text: str) -> str:
    """What has no letter to tell its direction by, and is read from the left everywhere: a phone number."""
    return f"\N{LEFT-TO-RIGHT ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
