"""How one person is spoken to: words, digits, the direction of writing, their time zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from babel.dates import format_datetime, format_timedelta
from babel.numbers import format_decimal

from holdfast.web.html.words import words

Number = int | float | Decimal

DIRECTIONS = {"en": "ltr", "ar": "rtl"}
NAMES = {"en": "English", "ar": "العربية"}
"""Each in its own writing, for those who cannot read the other."""
DIGITS = ("latn", "arab")

_LOCALE_OF_DIGITS = {"latn": "en", "arab": "ar"}
_ARABIC_DIGITS = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_NO_BREAK = "\N{NO-BREAK SPACE}"


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
        found = words(self.code).gettext(text)
        return found % values if values else found

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        found = words(self.code).ngettext(one, many, num)
        return found % {"num": self.number(num), **values}

    def number(self, value: Number) -> str:
        """With as many decimals as it has, at most four."""
        return self._decimal(value, "#,##0.####")

    def plain(self, value: object) -> str:
        """A name in digits (a year, a floor): no separators, but the person's digits."""
        return self._in_digits(str(value))

    def money(self, value: Number) -> str:
        amount = self._decimal(value, "#,##0" if value == int(value) else "#,##0.00")
        return f"{amount}{_NO_BREAK}ر.س" if self.code == "ar" else f"SAR{_NO_BREAK}{amount}"

    def short_money(self, value: Number) -> str:
        """For where there is little room: 1.3 M."""
        steps = ((1_000_000, 1_000_000, self.gettext("M")), (10_000, 1000, self.gettext("K")))
        for limit, divisor, sign in steps:
            if value >= limit:
                return f"{self._decimal(Decimal(value) / divisor, '#,##0.##')}{_NO_BREAK}{sign}"
        return self._decimal(value, "#,##0")

    def area(self, value: Number) -> str:
        return f"{self.number(value)}{_NO_BREAK}{self.gettext('m²')}"

    def percent(self, value: Number) -> str:
        """Of a hundred: 15 is 15 %."""
        return f"{self.number(value)}{'٪' if self.digits == 'arab' else '%'}"

    def moment(self, at: datetime) -> str:
        return self._written(at, f"d MMM y{self._comma} HH:mm")

    def moment_in_full(self, at: datetime) -> str:
        return self._written(at, f"d MMM y{self._comma} HH:mm:ss.SSS zzz")

    def date(self, at: datetime) -> str:
        return self._written(at, "d MMM y")

    def time(self, at: datetime) -> str:
        return self._written(at, "HH:mm:ss")

    def ago(self, at: datetime, now: datetime) -> str:
        """As in: 3 minutes ago, in 2 hours."""
        text = format_timedelta(at - now, add_direction=True, locale=self.code)
        return self._in_digits(text)

    def duration(self, seconds: float) -> str:
        return self._in_digits(format_timedelta(timedelta(seconds=seconds), threshold=1.5, locale=self.code))

    def milliseconds(self, value: float) -> str:
        shown = self.number(round(value, 1 if value < 10 else 0))
        return f"{shown}{_NO_BREAK}{self.gettext('ms')}"

    def at(self, local: str) -> datetime:
        """What a ``datetime-local`` input says, which knows no time zone."""
        return datetime.fromisoformat(local).replace(tzinfo=self.zone)

    def local(self, at: datetime) -> str:
        """For the value of a ``datetime-local`` input."""
        return self._here(at).strftime("%Y-%m-%dT%H:%M")

    @property
    def _comma(self) -> str:
        return "،" if self.code == "ar" else ","

    def _written(self, at: datetime, form: str) -> str:
        return self._in_digits(format_datetime(self._here(at), form, locale=self.code))

    def _here(self, at: datetime) -> datetime:
        return at.astimezone(self.zone)

    def _decimal(self, value: Number, form: str) -> str:
        return self._in_digits(_separated(value, form, self.digits))

    def _in_digits(self, text: str) -> str:
        return text.translate(_ARABIC_DIGITS) if self.digits == "arab" else text


@lru_cache(maxsize=10_000)
def _separated(value: Number, form: str, digits: str) -> str:
    """Remembered: many pages say the same prices, and to write one takes longer than to look it up."""
    # Of the digits the numbering system gives the separators alone.
    return format_decimal(value, form, locale=_LOCALE_OF_DIGITS[digits], numbering_system=digits)


@lru_cache(maxsize=100)
def language_of(code: str, digits: str, zone: str) -> Language:
    return Language(code, digits, ZoneInfo(zone))


def preferred(accepted: str) -> str:
    """The first language of an ``Accept-Language`` that we speak."""
    wanted = (part.split(";")[0].strip().split("-")[0].lower() for part in accepted.split(","))
    return next((code for code in wanted if code in DIRECTIONS), "en")
