"""Keys: their form, and what they open."""

from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.api_key import is_well_formed, key_hash, key_hint, new_key_text
from holdfast.domain.project import slug_fault


def test_a_new_key_is_well_formed_and_never_the_same_twice() -> None:
    keys = {new_key_text() for _ in range(100)}
    assert len(keys) == 100
    assert all(map(is_well_formed, keys))
    assert len({key_hash(key) for key in keys}) == 100


@given(st.integers(0, 45), st.sampled_from(ascii_letters + digits))
def test_a_mistyped_key_is_told_from_a_real_one_by_itself(place: int, typed: str) -> None:
    key = new_key_text()
    mistyped = key[:place] + typed + key[place + 1 :]
    assert is_well_formed(mistyped) == (mistyped == key)


@given(st.text(max_size=60))
def test_any_other_text_is_no_key(text: str) -> None:
    assert not is_well_formed(text)


def test_the_hint_gives_four_characters_away() -> None:
    key = new_key_text()
    assert key.startswith(key_hint(key))
    assert len(key_hint(key)) == len("hfk_") + 4


@pytest.mark.parametrize("slug", ["ab", "a" * 100, "palm-court-2", "0-0"])
def test_a_slug_within_its_bounds_is_fine(slug: str) -> None:
    assert slug_fault(slug) is None


@pytest.mark.parametrize(
    "slug", ["", "a", "a" * 101, "Palm", "palm_court", "-palm", "palm-", "a--b", "ab\n", "نخلة"]
)
def test_a_slug_beyond_its_bounds_is_a_fault(slug: str) -> None:
    assert slug_fault(slug) is not None
