"""What one person reads: numbers, times and texts, and messages of the domain, in their language."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import Fault, InvalidInput, Message, TransitionNotAllowed, UnknownUnit
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller, transition
from holdfast.web.pages.i18n import accepted_language, in_language, language_of, translate, translate_error

ENGLISH = language_of("en", "latn", "Asia/Riyadh")
ARABIC = language_of("ar", "arab", "Asia/Riyadh")
ARABIC_WITH_LATIN_DIGITS = language_of("ar", "latn", "Asia/Riyadh")
AT = datetime(2026, 11, 16, 22, 5, 7, 123000, tzinfo=UTC)


def test_numbers_and_prices_are_written_in_the_digits_of_the_person() -> None:
    price = Decimal(1_299_000)
    assert ENGLISH.money(price) == "SAR\xa01,299,000"
    assert ARABIC.money(price) == "١٬٢٩٩٬٠٠٠\xa0ر.س"
    assert ARABIC_WITH_LATIN_DIGITS.money(price) == "1,299,000\xa0ر.س"
    assert ENGLISH.money(Decimal("10.5")) == "SAR\xa010.50"
    assert ENGLISH.short_money(1_250_000) == "1.25\xa0M"
    assert ENGLISH.short_money(9_999) == "9,999"
    assert ENGLISH.number(Decimal("1148.6000")) == "1,148.6"
    assert ARABIC.number(Decimal("1148.6")) == "١٬١٤٨٫٦"


def test_times_are_those_of_the_time_zone() -> None:
    assert ENGLISH.date_time(AT) == "17 Nov 2026, 01:05"
    assert ARABIC.date_time(AT) == "١٧ نوفمبر ٢٠٢٦، ٠١:٠٥"
    assert ENGLISH.time(AT) == "01:05:07"
    # An offset is read from left to right, also in the midst of Arabic.
    assert ENGLISH.full_date_time(AT) == "17 Nov 2026, 01:05:07.123 \u2066UTC+03:00\u2069"
    assert ARABIC.full_date_time(AT) == "١٧ نوفمبر ٢٠٢٦، ٠١:٠٥:٠٧.١٢٣ \u2066UTC+٠٣:٠٠\u2069"
    assert ENGLISH.at(ENGLISH.local(AT)) == AT.replace(second=0, microsecond=0)
    assert ENGLISH.ago(AT - timedelta(minutes=3), AT) == "3 minutes ago"
    assert ENGLISH.ago(AT + timedelta(hours=2), AT) == "in 2 hours"
    assert ENGLISH.ago(AT + timedelta(milliseconds=400), AT) == "now"


def test_a_text_stands_for_itself_until_it_is_translated() -> None:
    assert ENGLISH.gettext("Copy: %(what)s", what="a") == "Copy: a"
    assert ARABIC.gettext("Copy: %(what)s", what="a") == "نسخ: a"


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("ar-SA,ar;q=0.9,en;q=0.8", "ar"),
        ("de,en;q=0.5", "en"),
        ("", "en"),
        ("fr", "en"),
        ("*", "en"),
        ("x," * 500 + "ar", "en"),
    ],
)
def test_a_stranger_is_spoken_to_in_a_language_that_their_browser_names(accepted: str, code: str) -> None:
    assert accepted_language(accepted) == code


@pytest.mark.parametrize(
    ("text", "english", "arabic"),
    [
        ("Narjis Heights | مرتفعات النرجس", "Narjis Heights", "مرتفعات النرجس"),
        ("مرتفعات النرجس | Narjis Heights", "Narjis Heights", "مرتفعات النرجس"),
        ("Narjis Heights\nمرتفعات النرجس", "Narjis Heights", "مرتفعات النرجس"),
        ("  Narjis Heights  \n\n مرتفعات النرجس \n", "Narjis Heights", "مرتفعات النرجس"),
        ("Villa B2 | فيلا B2", "Villa B2", "فيلا B2"),
        ("Corner.\nSea view.\nزاوية.\nإطلالة.", "Corner.\nSea view.", "زاوية.\nإطلالة."),
        ("Résidence | إقامة", "Résidence", "إقامة"),
        ("Four-bedroom duplex, roof garden | دوبلكس", "Four-bedroom duplex, roof garden", "دوبلكس"),
        ("Corner | زاوية\nSea view | إطلالة", "Corner\nSea view", "زاوية\nإطلالة"),
        ("Villa | فيلا | 2028", "Villa\n2028", "فيلا\n2028"),
    ],
)
def test_each_reader_gets_their_own_part_of_a_text_in_two_languages(
    text: str, english: str, arabic: str
) -> None:
    assert in_language(text, "en") == english
    assert in_language(text, "ar") == arabic


@pytest.mark.parametrize(
    "text",
    [
        "Narjis Heights", "مرتفعات النرجس", "", "Tower A | Tower B", "First line.\nSecond line.", "2028",
        "A|B", " | ", "120 m² | 3", "مطبخ مجهز بالكامل من الشركة الألمانية\nBosch\nوموقفان للسيارات في القبو",
        "A fitted kitchen and two parking spaces.\nالنرجس\nA storage room on the same floor.",
    ],
)  # fmt: skip
def test_a_text_in_one_language_is_for_everybody_as_it_is(text: str) -> None:
    assert in_language(text, "en") == in_language(text, "ar") == text


@given(st.text(), st.sampled_from(["en", "ar"]))
def test_nothing_is_made_up_and_nobody_is_left_with_nothing(text: str, code: str) -> None:
    found = in_language(text, code)
    assert bool(found) == bool(text)
    assert all(part in text for part in found.split("\n"))


def test_in_english_a_message_stands_as_it_is_but_for_the_marks_of_code() -> None:
    refusal = UnknownUnit("palm-court", "A-101")
    assert translate_error(refusal, ENGLISH) == "The project palm-court has no unit A-101."
    invalid = InvalidInput.at("/url", "The URL must not have a fragment (#…).")
    assert translate_error(invalid, ENGLISH) == "url: The URL must not have a fragment (#…)."


@pytest.mark.parametrize("action", Action)
def test_actions_and_statuses_are_told_in_arabic(action: Action) -> None:
    caller = Caller.BUYER if action in (Action.PUT_ON_SALE, Action.TAKE_OFF_SALE) else Caller.API
    for status in Status:
        with pytest.raises(TransitionNotAllowed) as refused:
            transition(action, caller, status, archived=False)
        text = translate_error(refused.value, ARABIC)
        assert action not in text
        assert status not in text


def test_names_stay_as_they_are_and_apart_from_the_arabic() -> None:
    text = translate_error(UnknownUnit("palm-court", "A/101"), ARABIC)
    for name in ("palm-court", "A/101"):
        assert f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}" in text
    like_a_place = UnknownUnit("palm-court", "%(slug)s")
    assert "%(slug)s" in translate_error(like_a_place, ARABIC)
    assert "%(slug)s" in str(like_a_place)


def test_numbers_and_times_in_messages_are_written_for_the_person() -> None:
    message = Message("This must have at most %(max_length)s characters.", {"max_length": 100})
    assert "100" in translate(message, ARABIC_WITH_LATIN_DIGITS)
    assert "١٠٠" in translate(message, ARABIC)
    parameters = {"moment": "2026-11-16T22:05:07.123Z"}
    message = Message("The buyer has not signed yet; the hold ends at %(moment)s.", parameters)
    assert ARABIC.date_time(AT) in translate(message, ARABIC)


def test_of_many_faults_three_are_told_with_their_places() -> None:
    faults = [Fault(f"/units/{at}", "This field is required.") for at in range(5)]
    text = translate_error(InvalidInput(faults), ARABIC)
    assert [f"units/{at}:" in text for at in range(5)] == [True, True, True, False, False]
    assert translate(Message("And %(count)s more.", {"count": 2}), ARABIC) in text


def test_what_the_catalogue_does_not_have_is_left_as_it_is() -> None:
    for text in ("Something quite new.", "The receiver answered 503."):
        assert translate(text, ARABIC) == text


@pytest.mark.parametrize("space", [" ", "\n", "\t", " \n"])
def test_a_text_is_split_in_one_pass_however_many_spaces_it_has(space: str) -> None:
    """In two nested ones, a million spaces would take hours."""
    text = f"Villa{space * 500_000}| فيلا"
    assert in_language(text, "en") == "Villa"
    assert in_language(text.replace("|", "-"), "en")
