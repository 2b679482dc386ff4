"""JSON as strictly as we read it, in one piece and in windows."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidInput
from holdfast.web.errors import ItemTooLarge, MalformedBody
from holdfast.web.json import array_items, line_items, parse_json

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def items(text: str) -> list[Any]:
    return [parse_json(text[start:end]) for start, end, _ in array_items(text)]


@given(st.lists(values, max_size=5), st.integers(0, 5000))
def test_an_array_is_read_item_by_item_as_it_is_read_whole(array: list[Any], padding: int) -> None:
    text = json.dumps(["x" * padding, *array])
    assert items(text) == parse_json(text)


@pytest.mark.parametrize("length", range(4070, 4110))
def test_an_item_is_whole_wherever_the_first_window_ends(length: int) -> None:
    unit = {"a": "x" * length, "b": [True, None, -12, "\u0041\n"]}
    assert items(json.dumps([unit, 7])) == [unit, 7]


def test_a_number_is_not_cut_where_a_window_ends() -> None:
    assert items(f"[{' ' * 10}{'1' * 900}, 2]") == [Decimal("1" * 900), 2]
    assert items(f"[{json.dumps('x' * 4080)}, 123456789]")[1] == 123456789


@pytest.mark.parametrize(
    "fault", ['{"a":x}', '{"a":1,}', "nul", '{"a" 1}', '{"a":1,"a":2}', "NaN", '{"a":"\\u12"}']
)
def test_a_fault_is_a_fault_however_much_follows_it(fault: str) -> None:
    with pytest.raises(MalformedBody):
        items(f"[{fault}, {'1, ' * 10_000}1]")


def test_an_item_larger_than_any_unit_may_be_is_refused() -> None:
    with pytest.raises(ItemTooLarge):
        items(json.dumps(["x" * 2 * 1024**2]))


def test_a_body_that_is_no_array_is_told_from_one_that_is_no_json() -> None:
    with pytest.raises(InvalidInput):
        items('{"a": 1}')
    with pytest.raises(MalformedBody):
        items('{"a": 1} x')


def test_lines_are_values_and_empty_ones_are_passed_over() -> None:
    text = '\n\r\n{"a":1}\n  \n {"a":2} \r\n3'
    found = [parse_json(text[start:end]) for start, end, _ in line_items(text)]
    assert found == [{"a": 1}, {"a": 2}, 3]


@pytest.mark.parametrize("text", ['{"a":1} {"a":2}', '{"a":\n1}', "[1]]"])
def test_a_line_that_is_not_one_value_is_refused(text: str) -> None:
    with pytest.raises(MalformedBody):
        list(line_items(text))


def test_an_exponent_beyond_all_measure_is_read_as_beyond_all_bounds() -> None:
    assert parse_json("[1e99999999999999999999, -1e99999999999999999999]") == [
        Decimal("Infinity"),
        Decimal("-Infinity"),
    ]
