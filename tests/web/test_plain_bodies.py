"""The short way to read a unit takes nothing that the long way refuses, and reads the same in it."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.web.api.unit_bodies import PlainUnit, UnitReplacement, UnitValues, check_unit, read_plain_unit
from holdfast.web.errors import MalformedBody
from holdfast.web.json import count_names, item_at, parse_json, value_at

UNIT = {
    "type": "شقة",
    "areaSqm": 142.75,
    "priceSar": 1250000.5,
    "vatIncluded": False,
    "vatRate": 15,
    "depositPercent": 2.5,
    "bedrooms": 3,
    "bathrooms": 2,
    "deliveryYear": 2027,
    "floor": -1,
    "description": "A corner apartment: two balconies, a maid's room.",
    "images": ["https://cdn.example.com/units/A-1.jpg?w=800", "http://cdn.example.com"],
    "files": None,
    "status": "unavailable",
}

NUMBERS = [
    "0", "-0", "-0.0", "1", "15", "100", "100.0", "1e2", "1E+2", "12e-1", "1.50", "2.25001", "0.0001",
    "0.00001", "999", "999.0", "1000", "1899", "2200", "9999999.9999", "10000000", "999999999999.99",
    "999999999999.990", "1e12", "-1", "1e400", "1e-400", "1e99999999999999999999", "9" * 5000,
    "1." + "0" * 40, "1." + "0" * 1000, "0." + "0" * 40 + "1", "0." + "3" * 40,
    "123456789012345678901234567890.5", "01", "1.", ".5", "+1", "NaN", "Infinity", "null", "true",
    '"1"', "[1]", "{}",
]  # fmt: skip
TEXTS = [
    '""', '"villa"', '"a\\u0000b"', '"\\ud800"', '"\\udc00x"', '"\\ud83d\\ude00"', '"\\u0634"', '"\\":"',
    '"a\\": b"', '"a :b"', '"\t"', '"\x00"', '"\\/"', '"\\x"', '"a', "7", "null", "true", "[]",
    f'"{"x" * 100}"', f'"{"😀" * 101}"', f'"{"x" * 10_001}"', "'a'",
]  # fmt: skip
LINKS = [
    "null", "[]", "{}", '"https://a.example"', '["https://a.example"]', '["https://a.example/1.jpg","x"]',
    '["https://"]', '["HTTPS://a.example"]', '["https://u@a.example"]', '["https://a.example:99999/"]',
    '["https://a.example:123456/"]', '["https://a.example/وحدة"]', '["https://a.example/a b"]',
    '["https://a.example\\n"]', '["https://a.example/\\u0000"]', "[7]", "[null]",
    '[{"url":"https://a.example"}]', '[{"url":"https://a.example","url":"https://b.example"}]',
    json.dumps(["https://a.example"] * 100), json.dumps(["https://a.example"] * 101),
    json.dumps(["https://a.example/" + "x" * 2048]),
]  # fmt: skip
VALUES = {
    "type": TEXTS, "areaSqm": NUMBERS, "priceSar": NUMBERS,
    "vatIncluded": ["true", "false", "null", "1", '"true"'], "vatRate": NUMBERS,
    "depositPercent": NUMBERS, "bedrooms": NUMBERS, "bathrooms": NUMBERS, "deliveryYear": NUMBERS,
    "floor": NUMBERS,
    "description": TEXTS, "images": LINKS, "files": LINKS,
    "status": ['"available"', '"unavailable"', '"held"', '"free"', "null", "1"],
    "code": TEXTS, "id": ['"x"', "null"], "ref": TEXTS, "color": TEXTS, "ty\\u0070e": TEXTS,
}  # fmt: skip
RIGHT = {
    "type": TEXTS[1:2] + TEXTS[6:7], "areaSqm": NUMBERS[3:11], "priceSar": NUMBERS[:11],
    "vatIncluded": ["true", "false", "null"], "vatRate": NUMBERS[:11], "depositPercent": NUMBERS[:11],
    "bedrooms": NUMBERS[3:7], "description": TEXTS[:2] + TEXTS[6:7], "images": LINKS[:2] + LINKS[4:5],
    "status": ['"available"', '"unavailable"'], "code": ['"A-1"'],
}  # fmt: skip
REQUIRED = ("type", "areaSqm", "priceSar")
SPACES = [*[""] * 20, " ", "\n  ", "\t", "\r", "\x0b", "\ufeff"]
CHARACTERS = '"\\:,{}[] \n0a\x00é'

right = st.fixed_dictionaries(
    {name: st.sampled_from(RIGHT[name]) for name in REQUIRED},
    optional={name: st.sampled_from(values) for name, values in RIGHT.items() if name not in REQUIRED},
)
odd = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(VALUES[name]))
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Objects that are right, nearly right and wrong, down to single characters."""
    members = [*draw(right).items(), *draw(st.just([]) | st.lists(odd, max_size=2))]
    spaces = [draw(st.sampled_from(SPACES)) for _ in range(3)]
    inside = f",{spaces[0]}".join(f'"{name}"{spaces[1]}:{spaces[2]}{value}' for name, value in members)
    text = f"{{{inside}}}"
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(CHARACTERS)) + text[place + draw(st.integers(0, 1)) :]
    return text


def read_the_short_way(text: str) -> PlainUnit | None:
    return read_plain_unit(text, count_names(text))


def read_the_long_way(text: str, code: str) -> UnitValues:
    body = check_unit(UnitReplacement, parse_json(text), "narjis-heights", code)
    assert isinstance(body, UnitValues), body
    return body


@given(bodies())
@example('{"type":"a","areaSqm":1,"priceSar":2,"type" :"b"}')
@example('{"type":"a","areaSqm":1,"priceSar":2,"type"\n:"b"}')
@example('{"type":"a","areaSqm":1,"priceSar":2,"ty\\u0070e":"b"}')
@example('{"type":"a","areaSqm":1,"priceSar":2,"color":[{"x":1}]}')
@example('{"type":"a","areaSqm":1,"priceSar":2,"images":["https://a.example"],"images":null}')
@example('{"type":"a","areaSqm":"1","priceSar":2}')
@example(f'{{"type":"a","areaSqm":1.{"0" * 1000},"priceSar":2}}')
def test_what_the_short_way_takes_the_long_way_reads_alike(text: str) -> None:
    unit = read_the_short_way(text)
    if unit is not None:
        body = read_the_long_way(text, "A-1" if unit.code is None else unit.code)
        assert (unit.status, body.claimed_id, body.claimed_project_id) == (body.status, None, None)
        # The texts too: equal numbers may differ in their form, and so may the answer.
        assert repr(unit.fields) == repr(body.replacement())


@given(bodies(), st.sampled_from(["", ",", "]", " {}", "}"]))
def test_an_item_ends_where_the_strict_reader_ends_it(text: str, rest: str) -> None:
    try:
        expected: Any = value_at(text + rest, 0)[1]
    except MalformedBody:
        expected = MalformedBody
    try:
        found: Any = item_at(text + rest, 0).end
    except MalformedBody:
        found = MalformedBody
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(UNIT),
        json.dumps(UNIT, separators=(",", ":")),
        json.dumps(UNIT, ensure_ascii=False, indent=2),
        json.dumps(UNIT | {"code": "A-1"}),
        '{"type":"villa","areaSqm":80,"priceSar":0}',
    ],
)
def test_an_ordinary_unit_goes_the_short_way(text: str) -> None:
    unit = read_the_short_way(text)
    assert unit is not None
    body = read_the_long_way(text, "A-1")
    assert unit == (json.loads(text).get("code"), body.replacement(), body.status)
