"""References never change, never meet, and do not survive a slip of the tongue."""

from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.references import NUMBERS, SYMBOLS, decode_reference, encode_reference

FIRST, LAST = NUMBERS
numbers = st.integers(FIRST, LAST)

# These stand in people's mails and contracts: never change them, change the code back.
FROZEN = {
    1: "Q39-4F6-4K6",
    2: "4QX-RF7-R26",
    3: "FX4-W76-2XQ",
    1000: "Q76-338-7HF",
    1001: "23R-726-6Y8",
    123_456_789: "RQ4-9Y8-QF7",
    2**31: "WMW-Y9Y-4R3",
    LAST: "XFX-M9Y-HWX",
}


@pytest.mark.parametrize(("number", "reference"), FROZEN.items())
def test_references_given_out_once_stay_as_they_are(number: int, reference: str) -> None:
    assert encode_reference(number) == reference
    assert decode_reference(reference) == number


@given(numbers)
@example(FIRST)
@example(LAST)
def test_a_reference_leads_back_to_its_number(number: int) -> None:
    assert decode_reference(encode_reference(number)) == number


@given(numbers)
def test_a_reference_is_three_groups_of_three_symbols(number: int) -> None:
    groups = encode_reference(number).split("-")
    assert [len(group) for group in groups] == [3, 3, 3]
    assert set("".join(groups)) <= set(SYMBOLS)


def test_no_two_numbers_share_a_reference() -> None:
    samples = [*range(1, 50_001), *range(2**31, 2**31 + 10_000), *range(LAST - 10_000, LAST + 1)]
    assert len({encode_reference(number) for number in samples}) == len(samples)


def test_neighbours_look_unrelated() -> None:
    references = [encode_reference(number).replace("-", "")[:8] for number in range(1, 20_001)]
    alike = [sum(one == other for one, other in zip(*pair, strict=True)) for pair in pairwise(references)]
    assert max(alike) <= 5
    # Half a symbol of eight is what two references drawn by lot have in common.
    assert 0.45 < sum(alike) / len(alike) < 0.55


@given(numbers)
def test_every_wrong_symbol_is_noticed(number: int) -> None:
    right = encode_reference(number).replace("-", "")
    wrong = [
        right[:at] + symbol + right[at + 1 :]
        for at in range(len(right))
        for symbol in SYMBOLS
        if symbol != right[at]
    ]
    assert [text for text in wrong if decode_reference(text) is not None] == []


@given(numbers)
def test_every_swap_of_two_symbols_is_noticed(number: int) -> None:
    right = encode_reference(number).replace("-", "")
    swapped = [_swapped(right, *pair) for pair in combinations(range(len(right)), 2)]
    assert [text for text in swapped if text != right and decode_reference(text) is not None] == []


def test_every_double_symbol_misheard_is_noticed() -> None:
    doubles = [
        (right, at)
        for right in (encode_reference(number).replace("-", "") for number in range(1, 2001))
        for at in range(len(right) - 1)
        if right[at] == right[at + 1]
    ]
    misheard = [
        right[:at] + symbol * 2 + right[at + 2 :]
        for right, at in doubles
        for symbol in SYMBOLS
        if symbol != right[at]
    ]
    assert len(doubles) > 500
    assert [text for text in misheard if decode_reference(text) is not None] == []


@pytest.mark.parametrize(
    "written", ["q39-4f6-4k6", "Q394F64K6", "q394f64k6", "  Q39-4F6-4K6\n", "\u00a0Q39-4F64K6", "Q394F6-4k6"]
)
def test_a_reference_is_read_however_it_is_typed(written: str) -> None:
    assert decode_reference(written) == 1


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-", "---", "Q39-4F6-4K", "Q39-4F6-4K66", "Q3-94F-64K6", "Q39--4F6-4K6", "-Q394F64K6",
        "Q39-4F6-4K6-", "Q39 4F6 4K6", "Q39-4F6-4K0", "Q39-4F6-4K\u0666", "Q39-4F6-4\u212a6",
        "Q39–4F6–4K6", "ｑ39-4f6-4k6", "شقة", "\x00", "\ud800", "Q39-4F6-4K6\x00", "2" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_reference_is_none(text: str) -> None:
    assert decode_reference(text) is None


def test_a_ligature_is_not_taken_for_its_letters() -> None:
    right = next(text for text in map(encode_reference, range(1, 1000)) if "FF" in text)
    assert right.replace("FF", "\N{LATIN SMALL LIGATURE FF}").upper() == right
    assert decode_reference(right.replace("FF", "\N{LATIN SMALL LIGATURE FF}")) is None


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    number = decode_reference(text)
    assert number is None or encode_reference(number).replace("-", "") in text.upper().replace("-", "")


def test_the_one_text_that_would_be_number_zero_is_none() -> None:
    assert decode_reference("Y3K-9F3-8KQ") is None


@pytest.mark.parametrize("number", [-1, 0, LAST + 1])
def test_numbers_out_of_bounds_have_no_reference(number: int) -> None:
    with pytest.raises(ValueError, match="no reference"):
        encode_reference(number)


def _swapped(text: str, one: int, other: int) -> str:
    symbols = list(text)
    symbols[one], symbols[other] = symbols[other], symbols[one]
    return "".join(symbols)
