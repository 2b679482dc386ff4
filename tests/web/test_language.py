"""How numbers, prices and times are written for one person."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from holdfast.web.pages.i18n import Language, accepted_language, language_of

ENGLISH = language_of("en", "latn", "Asia/Riyadh")
ARABIC = language_of("ar", "arab", "Asia/Riyadh")
ARABIC_WITH_LATIN_DIGITS = language_of("ar", "latn", "Asia/Riyadh")
AT = datetime(2026, 11, 16, 22, 5, 7, 123000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        (ENGLISH, "SAR\xa01,299,000"),
        (ARABIC, "١٬٢٩٩٬٠٠٠\xa0ر.س"),
        (ARABIC_WITH_LATIN_DIGITS, "1,299,000\xa0ر.س"),
    ],
    ids=["english", "arabic", "arabic with latin digits"],
)
def test_a_price_is_written_in_the_digits_of_the_person(language: Language, shown: str) -> None:
    assert language.money(Decimal(1_299_000)) == shown


def test_halalas_are_shown_where_there_are_any() -> None:
    assert ENGLISH.money(Decimal("10.5")) == "SAR\xa010.50"


def test_a_large_price_is_shortened_where_there_is_little_room() -> None:
    assert ENGLISH.short_money(1_250_000) == "1.25\xa0M"
    assert ENGLISH.short_money(9_999) == "9,999"


def test_a_number_has_the_decimals_that_it_has() -> None:
    assert ENGLISH.number(Decimal("1148.6000")) == "1,148.6"
    assert ARABIC.number(Decimal("1148.6")) == "١٬١٤٨٫٦"


def test_times_are_those_of_the_time_zone() -> None:
    assert ENGLISH.date_time(AT) == "17 Nov 2026, 01:05"
    assert ARABIC.date_time(AT) == "١٧ نوفمبر ٢٠٢٦، ٠١:٠٥"
    assert ENGLISH.time(AT) == "01:05:07"


def test_a_time_that_is_typed_is_one_of_the_time_zone() -> None:
    assert ENGLISH.at(ENGLISH.local(AT)) == AT.replace(second=0, microsecond=0)


def test_the_past_and_the_future_are_told_apart() -> None:
    assert ENGLISH.ago(AT - timedelta(minutes=3), AT) == "3 minutes ago"
    assert ENGLISH.ago(AT + timedelta(hours=2), AT) == "in 2 hours"


def test_a_text_stands_for_itself_until_it_is_translated() -> None:
    assert ENGLISH.gettext("Copy: %(what)s", what="a") == "Copy: a"
    assert ARABIC.gettext("Copy: %(what)s", what="a") == "نسخ: a"


@pytest.mark.parametrize(
    ("accepted", "code"),
    [("ar-SA,ar;q=0.9,en;q=0.8", "ar"), ("de,en;q=0.5", "en"), ("", "en"), ("fr", "en"), ("*", "en")],
)
def test_a_stranger_is_spoken_to_in_a_language_that_their_browser_names(accepted: str, code: str) -> None:
    assert accepted_language(accepted) == code
