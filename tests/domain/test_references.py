"""References never change, never meet, and do not survive a slip; names and times as they are written."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.references import NUMBERS, SYMBOLS, decode_reference, encode_reference
from holdfast.domain.wire_format import camel_case, format_timestamp, snake_case
from holdfast.web.json import time_text

FIRST, LAST = NUMBERS

# These stand in people's mails and contracts: never change them, change the code back.
FROZEN = {
    1: "Q39-4F6-4K6", 2: "4QX-RF7-R26", 3: "FX4-W76-2XQ", 1000: "Q76-338-7HF", 1001: "23R-726-6Y8",
    123_456_789: "RQ4-9Y8-QF7", 2**31: "WMW-Y9Y-4R3", LAST: "XFX-M9Y-HWX",
}  # fmt: skip


@pytest.mark.parametrize(("number", "reference"), FROZEN.items())
def test_references_given_out_once_stay_as_they_are(number: int, reference: str) -> None:
    assert encode_reference(number) == reference
    assert decode_reference(reference) == number


def slips(right: str) -> Iterator[str]:
    """Every wrong symbol, every swap of two, and every pair of equal ones that is misheard alike."""
    for at, symbol in enumerate(right):
        for wrong in SYMBOLS.replace(symbol, ""):
            yield right[:at] + wrong + right[at + 1 :]
            if right[at + 1 : at + 2] == symbol:
                yield right[:at] + wrong * 2 + right[at + 2 :]
    for one, other in combinations(range(len(right)), 2):
        if right[one] != right[other]:
            yield right[:one] + right[other] + right[one + 1 : other] + right[one] + right[other + 1 :]


@given(st.integers(FIRST, LAST))
@example(FIRST)
@example(LAST)
# Here two equal symbols stand side by side.
@example(1000)
@example(123_456_791)
def test_a_reference_is_nine_symbols_that_lead_to_its_number_and_every_slip_is_noticed(number: int) -> None:
    reference = encode_reference(number)
    assert decode_reference(reference) == number
    groups = reference.split("-")
    assert [len(group) for group in groups] == [3, 3, 3]
    assert set("".join(groups)) <= set(SYMBOLS)
    assert [slip for slip in slips("".join(groups)) if decode_reference(slip) is not None] == []


def test_no_two_numbers_share_a_reference_and_numbers_out_of_bounds_have_none() -> None:
    for number in (-1, 0, LAST + 1):
        with pytest.raises(ValueError, match="no reference"):
            encode_reference(number)
    neighbours = [encode_reference(number) for number in range(1, 10_001)]
    far = [encode_reference(number) for number in (*range(2**31, 2**31 + 5_000), *range(LAST - 4_999, LAST))]
    assert len({*neighbours, *far}) == len(neighbours) + len(far)
    # Neighbours look unrelated.
    symbols = [reference.replace("-", "")[:8] for reference in neighbours]
    alike = [sum(one == other for one, other in zip(*pair, strict=True)) for pair in pairwise(symbols)]
    assert max(alike) <= 5
    # Half a symbol of eight is what two references drawn by lot have in common.
    assert 0.45 < sum(alike) / len(alike) < 0.55


TYPED = ["q39-4f6-4k6", "Q394F64K6", "q394f64k6", "  Q39-4F6-4K6\n", "\u00a0Q39-4F64K6", "Q394F6-4k6"]


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-", "---", "Q39-4F6-4K", "Q39-4F6-4K66", "Q3-94F-64K6", "Q39--4F6-4K6", "-Q394F64K6",
        "Q39-4F6-4K6-", "Q39 4F6 4K6", "Q39-4F6-4K0", "Q39-4F6-4K\u0666", "Q39-4F6-4\u212a6",
        "Q39–4F6–4K6", "ｑ39-4f6-4k6", "شقة", "\x00", "\ud800", "Q39-4F6-4K6\x00", "2" * 100_000,
        # It would be the number zero.
        "Y3K-9F3-8KQ",
    ],
)  # fmt: skip
def test_other_text_is_no_reference(text: str) -> None:
    assert decode_reference(text) is None


def test_a_reference_is_read_however_it_is_typed_but_a_ligature_is_not_taken_for_its_letters() -> None:
    assert list(map(decode_reference, TYPED)) == [1] * len(TYPED)
    right = next(text for text in map(encode_reference, range(1, 1000)) if "FF" in text)
    assert right.replace("FF", "\N{LATIN SMALL LIGATURE FF}").upper() == right
    assert decode_reference(right.replace("FF", "\N{LATIN SMALL LIGATURE FF}")) is None


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    number = decode_reference(text)
    assert number is None or encode_reference(number).replace("-", "") in text.upper().replace("-", "")


# Names and times


def test_names_in_json_are_in_camel_case() -> None:
    names = {"status": "status", "price_sar": "priceSar", "hold_expires_at": "holdExpiresAt"}
    assert {name: camel_case(name) for name in names} == names
    assert {snake_case(spelled): spelled for spelled in names.values()} == names


def test_a_time_has_three_digits_of_a_second_even_where_they_are_zeros() -> None:
    assert format_timestamp(datetime(2026, 11, 14, 9, 30, tzinfo=UTC)) == "2026-11-14T09:30:00.000Z"
    assert format_timestamp(datetime(2026, 11, 14, 9, 30, 1, 7_000, UTC)) == "2026-11-14T09:30:01.007Z"


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 999))
def test_responses_have_times_as_everything_else(second: datetime, milliseconds: int) -> None:
    moment = second.replace(microsecond=0) + timedelta(milliseconds=milliseconds)
    assert time_text(moment) == format_timestamp(moment)
