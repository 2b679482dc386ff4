"""References never change, never meet, and do not survive a slip; names and times as they are written."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.references import SYMBOLS, encode_reference, read_reference
from holdfast.domain.wire_format import camel_case, format_timestamp, snake_case
from holdfast.web.json import time_text

FIRST, LAST = 1, 2**32 - 1

SECRET, OTHER_SECRET = bytes(range(32)), bytes(32)

# These stand in people's mails and contracts: never change them, change the code back.
FROZEN = {
    1: "W82-W8X-6F3", 2: "272-6KM-4KX", 3: "32F-R9X-KW3", 1000: "YYR-W93-MR8",
    123_456_789: "R24-9YW-92X", 2**31: "WKF-FQ3-MW4", LAST: "YR9-YFW-3X3",
}  # fmt: skip


def made(number: int) -> str:
    return encode_reference(number, SECRET)


@pytest.mark.parametrize(("number", "reference"), FROZEN.items())
def test_references_given_out_once_stay_as_they_are(number: int, reference: str) -> None:
    assert made(number) == reference


def test_a_reference_tells_nothing_of_its_number_without_the_secret() -> None:
    """Neither the first ones of an installation nor their order are those of another."""
    mine, theirs = [
        [encode_reference(number, secret) for number in range(1, 1001)] for secret in (SECRET, OTHER_SECRET)
    ]
    assert set(mine).isdisjoint(theirs)
    rank = {reference: place for place, reference in enumerate(sorted(mine))}
    alike = sum(rank[one] < rank[next_one] for one, next_one in pairwise(mine))
    assert 400 < alike < 600


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
def test_a_reference_is_nine_symbols_and_every_slip_is_noticed(number: int) -> None:
    reference = made(number)
    assert read_reference(reference) == reference
    groups = reference.split("-")
    assert [len(group) for group in groups] == [3, 3, 3]
    assert set("".join(groups)) <= set(SYMBOLS)
    assert [slip for slip in slips("".join(groups)) if read_reference(slip) is not None] == []


def test_no_two_numbers_share_a_reference() -> None:
    neighbours = [made(number) for number in range(1, 10_001)]
    far = [made(number) for number in (*range(2**31, 2**31 + 5_000), *range(LAST - 4_999, LAST))]
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
    ],
)  # fmt: skip
def test_other_text_is_no_reference(text: str) -> None:
    assert read_reference(text) is None


def test_a_reference_is_read_however_it_is_typed_but_a_ligature_is_not_taken_for_its_letters() -> None:
    assert list(map(read_reference, TYPED)) == ["Q39-4F6-4K6"] * len(TYPED)
    right = next(text for text in map(made, range(1, 1000)) if "FF" in text)
    assert right.replace("FF", "\N{LATIN SMALL LIGATURE FF}").upper() == right
    assert read_reference(right.replace("FF", "\N{LATIN SMALL LIGATURE FF}")) is None


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    read = read_reference(text)
    assert read is None or read.replace("-", "") in text.upper().replace("-", "")


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
