"""Languages: translations from gettext catalogues, and how numbers and times are written."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from babel.dates import format_datetime, format_timedelta
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.support import NullTranslations, Translations

from holdfast.domain.errors import AnyMessage, DomainError, Fault, InvalidInput, Message

SOURCE = "en"
_HERE = Path(__file__).parents[1] / "locale"


def catalogues(code: str) -> list[Path]:
    return sorted((_HERE / code).glob("*.po"))


@cache
def translations(code: str) -> NullTranslations:
    """All the catalogues of a language together; the source language needs none."""
    if code == SOURCE:
        return NullTranslations()
    merged: Translations | None = None
    for path in catalogues(code):
        compiled = BytesIO()
        write_mo(compiled, read_catalogue(path, code))
        compiled.seek(0)
        catalogue = Translations(compiled)
        merged = catalogue if merged is None else merged.merge(catalogue)
    assert merged is not None
    return merged


def read_catalogue(path: Path, code: str) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=code, abort_invalid=True)


# The language of one person: words, digits, direction of writing, time zone.

Number = int | float | Decimal

DIRECTIONS = {"en": "ltr", "ar": "rtl"}
NAMES = {"en": "English", "ar": "العربية"}
"""Each in its own writing, for those who cannot read the other."""

_LOCALE_OF_DIGITS = {"latn": "en", "arab": "ar"}
_ARABIC_DIGITS = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT ISOLATE}{}\N{POP DIRECTIONAL ISOLATE}"


class Language(NamedTuple):
    code: str
    digits: str
    zone: ZoneInfo

    @property
    def direction(self) -> str:
        return DIRECTIONS[self.code]

    @property
    def others(self) -> dict[str, str]:
        return {code: name for code, name in NAMES.items() if code != self.code}

    def gettext(self, text: str, /, **values: Any) -> str:
        """The text itself in English; ``%(name)s`` stands for a value."""
        found = translations(self.code).gettext(text)
        return found % values if values else found

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        found = translations(self.code).ngettext(one, many, num)
        return found % {"num": self.number(num), **values}

    def number(self, value: Number) -> str:
        """Format a number with as many decimals as it has, at most four."""
        return self._decimal(value, "#,##0.####")

    def plain(self, value: object) -> str:
        """Format a name in digits (a year, a floor) without separators."""
        return self._in_digits(str(value))

    def money(self, value: Number) -> str:
        amount = self._decimal(value, "#,##0" if value == int(value) else "#,##0.00")
        return f"{amount}{_NO_BREAK}ر.س" if self.code == "ar" else f"SAR{_NO_BREAK}{amount}"

    def short_money(self, value: Number) -> str:
        """Format an amount where there is little room: 1.3 M."""
        steps = ((1_000_000, 1_000_000, self.gettext("M")), (10_000, 1000, self.gettext("K")))
        for limit, divisor, sign in steps:
            if value >= limit:
                return f"{self._decimal(Decimal(value) / divisor, '#,##0.##')}{_NO_BREAK}{sign}"
        return self._decimal(value, "#,##0")

    def area(self, value: Number) -> str:
        return f"{self.number(value)}{_NO_BREAK}{self.gettext('m²')}"

    def percent(self, value: Number) -> str:
        """Format a percentage: 15 is 15 %."""
        return f"{self.number(value)}{'٪' if self.digits == 'arab' else '%'}"

    def date_time(self, at: datetime) -> str:
        return self._format_time(at, "d MMM y, HH:mm")

    def full_date_time(self, at: datetime) -> str:
        offset = self._format_time(at, "'UTC'xxx")
        return f"{self._format_time(at, 'd MMM y, HH:mm:ss.SSS')} {_LEFT_TO_RIGHT.format(offset)}"

    def date(self, at: datetime) -> str:
        return self._format_time(at, "d MMM y")

    def time(self, at: datetime) -> str:
        return self._format_time(at, "HH:mm:ss")

    def ago(self, at: datetime, now: datetime) -> str:
        """Format a time relative to ``now``: 3 minutes ago, in 2 hours."""
        if abs(at - now) < timedelta(seconds=1):
            return self.gettext("now")
        return self._in_digits(format_timedelta(at - now, add_direction=True, locale=self.code))

    def duration(self, seconds: float) -> str:
        return self._in_digits(format_timedelta(timedelta(seconds=seconds), threshold=1.5, locale=self.code))

    def milliseconds(self, value: float) -> str:
        number = self.number(round(value, 1 if value < 10 else 0))
        return f"{number}{_NO_BREAK}{self.gettext('ms')}"

    def at(self, local: str) -> datetime:
        """Parse the value of a ``datetime-local`` input, which knows no time zone."""
        return datetime.fromisoformat(local).replace(tzinfo=self.zone)

    def local(self, at: datetime) -> str:
        """Format a time for a ``datetime-local`` input."""
        return at.astimezone(self.zone).strftime("%Y-%m-%dT%H:%M")

    def local_end(self, at: datetime) -> str:
        """Format an end for a ``datetime-local`` input, as the next whole minute: it knows no seconds."""
        return self.local(at + timedelta(seconds=59, microseconds=999_999))

    def _format_time(self, at: datetime, form: str) -> str:
        form = form.replace(",", "،") if self.code == "ar" else form
        return self._in_digits(format_datetime(at.astimezone(self.zone), form, locale=self.code))

    def _decimal(self, value: Number, form: str) -> str:
        return self._in_digits(_separated(value, form, self.digits))

    def _in_digits(self, text: str) -> str:
        return text.translate(_ARABIC_DIGITS) if self.digits == "arab" else text


@lru_cache(maxsize=10_000)
def _separated(value: Number, form: str, digits: str) -> str:
    """Cached: many pages show the same prices, and formatting takes longer than a lookup."""
    # Of the digits the numbering system gives the separators alone.
    return format_decimal(value, form, locale=_LOCALE_OF_DIGITS[digits], numbering_system=digits)


@lru_cache(maxsize=100)
def language_of(code: str, digits: str, zone: str) -> Language:
    return Language(code, digits, ZoneInfo(zone))


_LONGEST_ACCEPTED = 1000


def accepted_language(accepted: str) -> str:
    """Return the first language of an ``Accept-Language`` header that there is, or English."""
    parts = accepted[:_LONGEST_ACCEPTED].split(",")
    codes = (part.split(";")[0].strip().split("-")[0].lower() for part in parts)
    return next((code for code in codes if code in DIRECTIONS), "en")


# Texts in two languages: a project, a type or a description may be written in both, for buyers of either.

_MARKED = re.compile(r"(?<!\s)\s+\|\s+")
_PARTS = re.compile(rf"{_MARKED.pattern}|\n+")
_LEAST_SHARE = 4
"""One letter in so many, at least, is of the language that a text in lines has less of."""
_ARABIC = re.compile(r"[\u0600-\u06FF\u0750-\u077F\u08A0-\u08FF\uFB50-\uFDFF\uFE70-\uFEFF]")
_LATIN = re.compile(r"[A-Za-z\u00C0-\u024F]")


def in_language(text: str, code: str) -> str:
    """The parts of a text that are written as that language is; all of it where there are none.

    A bar stands between two languages, however short one of them is. Lines alone make no second language:
    the name of a brand may stand in one of its own.
    """
    texts = [part.strip() for part in _PARTS.split(text) if part.strip()]
    if len(texts) < 2:
        return text
    parts = [(part, _language(part)) for part in texts]
    is_marked = {"ar", "en"} <= {_language(part) for part in _MARKED.split(text)}
    letters = {"ar": 0, "en": 0}
    for part, written in parts:
        if written is not None:
            letters[written] += len(_ARABIC.findall(part)) + len(_LATIN.findall(part))
    is_shared = min(letters.values()) * _LEAST_SHARE >= sum(letters.values())
    own = [part for part, written in parts if written in (code, None)]
    has_own = any(written == code for _, written in parts)
    return "\n".join(own) if (is_marked or is_shared) and has_own and len(own) < len(parts) else text


def _language(part: str) -> str | None:
    """Return the language by the letters that it has more of; None for digits alone."""
    arabic, latin = len(_ARABIC.findall(part)), len(_LATIN.findall(part))
    if arabic == latin == 0:
        return None
    return "ar" if arabic > latin else "en"


# Messages of the domain in the person's language.
#
# The catalogue ``messages.po`` of a language has a text for each message id. A parameter that is a word (a
# status, an action) stands there too, with the parameter's name as its context.

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
# Codes and addresses are read from left to right, also in the midst of Arabic.
_ISOLATED = "\N{FIRST STRONG ISOLATE}{}\N{POP DIRECTIONAL ISOLATE}"


def translate(message: AnyMessage, language: Language) -> str:
    """Return the message in the language; one that the catalogue does not have stays English.

    Words that the API sets in backticks are plain text here.
    """
    text, values = (message.id, message.parameters) if isinstance(message, Message) else (message, {})
    plain = language.gettext(text).replace("`", "")
    if not values:
        return plain
    if language.code != SOURCE:
        values = {name: _value(name, str(value), language) for name, value in values.items()}
    return plain % values


def translate_error(error: DomainError, language: Language) -> str:
    """Return the message of an error; of invalid input the first faults, each with its place."""
    if language.code == SOURCE or not isinstance(error, InvalidInput):
        return translate(error.message, language)
    sentences = [Fault(at, translate(message, language)).sentence() for at, message in error.first_faults()]
    more = error.more_faults()
    return " ".join(sentences if more is None else [*sentences, translate(more, language)])


def _value(name: str, value: str, language: Language) -> str:
    word = translations(language.code).pgettext(name, value)
    if word != value:
        return str(word)
    if name == "moment":
        return language.date_time(datetime.fromisoformat(value))
    return language.plain(value) if _NUMBER.fullmatch(value) else _ISOLATED.format(value)
