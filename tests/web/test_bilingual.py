"""Texts in two languages: each reader gets the part that is written as their language is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.pages.i18n import in_language


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
        (
            "Four-bedroom duplex with a roof garden | دوبلكس",
            "Four-bedroom duplex with a roof garden",
            "دوبلكس",
        ),
        ("Corner | زاوية\nSea view | إطلالة", "Corner\nSea view", "زاوية\nإطلالة"),
    ],
)
def test_each_reader_gets_their_own_part(text: str, english: str, arabic: str) -> None:
    assert in_language(text, "en") == english
    assert in_language(text, "ar") == arabic


@pytest.mark.parametrize(
    "text",
    [
        "Narjis Heights",
        "مرتفعات النرجس",
        "",
        "Tower A | Tower B",
        "First line.\nSecond line.",
        "2028",
        "A|B",
        " | ",
        "120 m² | 3",
        "مطبخ مجهز بالكامل من الشركة الألمانية\nBosch\nوموقفان للسيارات في القبو",
        "A fitted kitchen and two parking spaces.\nالنرجس\nA storage room on the same floor.",
    ],
)
def test_a_text_in_one_language_is_for_everybody_as_it_is(text: str) -> None:
    assert in_language(text, "en") == in_language(text, "ar") == text


def test_figures_alone_are_anybodys() -> None:
    text = "Villa | فيلا | 2028"
    assert in_language(text, "en") == "Villa\n2028"
    assert in_language(text, "ar") == "فيلا\n2028"


@given(st.text(), st.sampled_from(["en", "ar"]))
def test_nothing_is_made_up_and_nobody_is_left_with_nothing(text: str, code: str) -> None:
    found = in_language(text, code)
    assert bool(found) == bool(text)
    assert all(part in text for part in found.split("\n"))
