"""A parsed body becomes values, or every fault that it has; a plain unit is read in a shorter way."""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Discriminator, Field, PlainValidator, StringConstraints, Tag, with_config
from typing_extensions import TypedDict

from holdfast.domain.errors import Fault, InvalidInput
from holdfast.web.api.bodies import BodyModel, BuyerDetails, no_fields, valid, validated
from holdfast.web.api.unit_bodies import UnitReplacement, UnitValues, check_unit, read_plain_unit
from holdfast.web.errors import MalformedBody
from holdfast.web.fields import NO_NUL, STRICT, WEB_ADDRESS, Bounds, check_text
from holdfast.web.json import count_names, item_at, parse_json, value_at

FLOORS = Bounds(Decimal(-5), Decimal(200), 0)


@with_config(STRICT)
class Picture(TypedDict):
    url: Annotated[str, StringConstraints(pattern=WEB_ADDRESS)]


class Body(BodyModel):
    buyer_name: Annotated[str, StringConstraints(min_length=1, max_length=5, pattern=NO_NUL)]
    floor: Annotated[Decimal, FLOORS] = Decimal(0)
    kind: Literal["flat", "villa"] = "flat"
    tags: Annotated[list[str], Field(min_length=1, max_length=2)] = Field(default_factory=list)
    place: Annotated[str, StringConstraints(min_length=3)] = ""
    phone: Annotated[str, StringConstraints(pattern=r"^[0-9]+$")] = ""
    note: Annotated[Any, PlainValidator(check_text)] = None
    picture: Annotated[
        Annotated[str, Tag("<text>")] | Annotated[Picture, Tag("<object>")],
        Discriminator(lambda value: "<object>" if isinstance(value, dict) else "<text>"),
    ] = ""


def faults_of(**body: Any) -> list[Fault]:
    found = validated(Body, {"buyerName": "Noura"} | body)
    assert isinstance(found, list)
    return found


def test_a_body_without_faults_has_the_names_of_the_domain() -> None:
    body = {"buyerName": "Noura", "floor": Decimal("3.0"), "kind": "villa"}
    assert valid(Body, body).sent() == {"buyer_name": "Noura", "floor": 3, "kind": "villa"}
    assert "buyerName" in Body.wire_names
    assert "buyer_name" not in Body.wire_names


@pytest.mark.parametrize("body", [[], "text", None, Decimal(1), True])
def test_what_is_no_object_is_one_fault(body: Any) -> None:
    assert validated(Body, body) == [Fault("", "The body must be a JSON object.")]
    assert no_fields(body) == [Fault("", "The body must be a JSON object.")]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("buyerName", None, "This field cannot be null."),
        ("buyerName", Decimal(1), "This must be text."),
        ("buyerName", "", "This must have at least 1 character."),
        ("place", "", "This must have at least 3 characters."),
        ("buyerName", "Nourah", "This must have at most 5 characters."),
        ("buyerName", "a\x00b", "This text contains the character U+0000, which cannot be stored."),
        ("buyerName", "a\ud800", "This text contains a lone surrogate, which is not a character."),
        ("note", "a\ud800", "This text contains a character that cannot be stored."),
        ("note", "\x00", "This text contains a character that cannot be stored."),
        ("phone", "none", "This text does not have the required format."),
        ("floor", "3", "This must be a number."),
        ("floor", Decimal("1.5"), "This must be a whole number."),
        ("floor", Decimal(-6), "This must be at least -5."),
        ("floor", Decimal(201), "This must be at most 200."),
        ("floor", Decimal("Infinity"), "This number is out of range."),
        ("kind", "castle", "This must be 'flat' or 'villa'."),
        ("kind", None, "This field cannot be null."),
        ("tags", {}, "This must be an array."),
        ("tags", [], "This must have at least 1 element."),
        ("tags", ["a", "b", "c"], "This must have at most 2 elements."),
        ("picture", None, "This field cannot be null."),
        ("unknown", None, "There is no field with this name."),
    ],
)
def test_each_fault_has_its_sentence(name: str, value: Any, message: str) -> None:
    (fault,) = faults_of(**{name: value})
    assert (fault.pointer, str(fault.message)) == (f"/{name}", message)


def test_the_form_of_a_value_is_no_part_of_its_place() -> None:
    not_http, no_field = "This must be an http or https URL.", "There is no field with this name."
    assert faults_of(picture={"url": "ftp://x"}) == [Fault("/picture/url", not_http)]
    assert faults_of(picture=Decimal(1)) == [Fault("/picture", "This must be text.")]
    named = {"url": "https://x.example", "<url>": 1}
    assert faults_of(picture=named) == [Fault("/picture/<url>", no_field)]
    assert faults_of(**{"<text>": 1}) == [Fault("/<text>", no_field)]


def test_unknown_names_are_escaped_in_pointers_and_told_beside_the_other_faults() -> None:
    places = [fault.pointer for fault in faults_of(**{"a/b": 1, "a~b": 1, "\ud800": 1})]
    assert places == ["/a~1b", "/a~0b", "/\\ud800"]
    unknown = {f"x{number}": 1 for number in range(100)}
    found = faults_of(**unknown, floor="3")
    assert {fault.pointer for fault in found} == {f"/{name}" for name in unknown} | {"/floor"}


def test_every_fault_is_raised_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        valid(Body, {"floor": "3", "color": "blue"})
    assert {fault.pointer for fault in refused.value.faults} == {"/buyerName", "/floor", "/color"}
    assert validated(Body, {}) == [Fault("/buyerName", "This field is required.")]


def test_where_no_body_is_needed_all_that_stands_in_it_is_a_fault() -> None:
    assert no_fields({}) == []
    assert no_fields({"a": 1, "b": 2}) == [
        Fault(f"/{name}", "There is no field with this name.") for name in "ab"
    ]


UNIT = {
    "type": "شقة", "areaSqm": 142.75, "priceSar": 1250000.5, "vatIncluded": False, "vatRate": 15,
    "depositPercent": 2.5, "bedrooms": 3, "bathrooms": 2, "deliveryYear": 2027, "floor": -1,
    "description": "A corner apartment: two balconies, a maid's room.",
    "images": ["https://cdn.example.com/units/A-1.jpg?w=800", "http://cdn.example.com"], "files": None,
    "status": "unavailable",
}  # fmt: skip
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
    unit = read_plain_unit(text, count_names(text))
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
    unit = read_plain_unit(text, count_names(text))
    assert unit is not None
    body = read_the_long_way(text, "A-1")
    assert unit == (json.loads(text).get("code"), body.replacement(), body.status)


def test_spaces_are_dropped_at_the_ends_in_one_pass_and_kept_inside() -> None:
    """In two nested ones, a million spaces would take hours."""
    inside = f"Sara{' ' * 1_000_000}Al-Harbi"
    assert faults_of_buyer(inside) == ["This must have at most 200 characters."]
    assert faults_of_buyer(f"\u2067{' ' * 1_000_000}Sara\u3000\u2069\n") == []


def faults_of_buyer(name: str) -> list[str]:
    found = validated(BuyerDetails, {**BuyerDetails.example, "buyerName": name})
    return [str(fault.message) for fault in found] if isinstance(found, list) else []
