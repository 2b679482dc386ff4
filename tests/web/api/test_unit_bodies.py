"""Bodies of PUT and PATCH, read without a server: the bounds of every field, exact numbers, strict JSON."""

import json
from decimal import Decimal
from typing import Any

import pytest

from holdfast.domain.wire_format import snake_case
from holdfast.web.api.unit_bodies import UnitPatch, UnitReplacement, UnitValues, check_unit, read_plain_unit
from holdfast.web.errors import MalformedBody
from holdfast.web.json import count_names, decode_body, parse_json

LEAST = {"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}
LEAST_TEXT = json.dumps(LEAST)
URL = "https://media.example/a.jpg"
DECIMALS = ("priceSar", "areaSqm", "vatRate", "depositPercent")
WHOLE_NUMBERS = ("bedrooms", "bathrooms", "deliveryYear", "floor")

# As they are written in JSON.
GOOD_NUMBERS: dict[str, list[str]] = {
    "priceSar": ["0", "0.1", "0.01", "1.50", "1e2", "1.5E+3", "1E-2", "999999999999.99", "999999999999"],
    "areaSqm": ["0.0001", "1e-4", "9999999.9999"],
    "vatRate": ["0", "0.0001", "33.3333", "100.0000"],
    "depositPercent": ["0", "99.9999", "100"],
    "bedrooms": ["0", "3.0", "30e-1", "999"],
    "bathrooms": ["2.000", "999"],
    "deliveryYear": ["1900", "2027.0", "2.2e3"],
    "floor": ["-9", "2e2"],
}
BAD_NUMBERS: dict[str, list[str]] = {
    # A float would take the last two for 0.1 and for 999999999999.99.
    "priceSar": ["-0.01", "0.001", "1e-3", "1e12", "999999999999.991", "0.10000000000000000000001",
                 "999999999999.99000000000001"],
    "areaSqm": ["0", "0.0", "-1", "0.00001", "10000000", "9999999.99991", "1e-400"],
    "vatRate": ["-0.0001", "100.0001", "100.00000000000000000001", "15.00001"],
    "depositPercent": ["-1", "101", "2.50001"],
    "bedrooms": ["-1", "3.5", "1000", "3.00000000000000000001"],
    "bathrooms": ["-1", "0.5", "1000"],
    "deliveryYear": ["1899", "2201", "2027.5"],
    "floor": ["-10", "201", "0.5"],
}  # fmt: skip
NO_NUMBERS = [
    "1e400", "-1e400", "1e999999999", "1e-999999999", "1e99999999999999999999",
    '"100"', "true", "false", "[100]", '{"value": 100}', '""',
]  # fmt: skip
GOOD_VALUES: dict[str, list[Any]] = {
    "type": ["x", "x" * 100, "😀" * 100, "شقة", ' "quoted" \\ and spaced '],
    "description": ["", "x" * 10_000, "😀" * 10_000, "line\nbreak\ttab\r\n"],
    "vatIncluded": [True, False],
    "images": [
        [], [URL] * 100, ["HTTPS://MEDIA.EXAMPLE/A.JPG"], ["http://localhost:8080/a?b=c#d"],
        ["https://[2001:db8::1]/a"], ["https://media.example/" + "a" * 2000],
        ["https://مثال.example/صورة.jpg"],
    ],
    "files": [[{"url": URL, "name": "Plan"}] * 100, [URL, {"url": URL}, {"url": URL, "name": "مخطط"}]],
}  # fmt: skip
BAD_VALUES: dict[str, list[tuple[Any, str]]] = {
    "type": [("", ""), ("x" * 101, ""), (5, ""), (["x"], ""), (None, ""), ("a\0b", ""), ("\ud800", "")],
    "description": [("x" * 10_001, ""), (5, ""), ("a\0b", ""), ("\udc00\ud800", "")],
    "vatIncluded": [(1, ""), (0, ""), ("true", "")],
    "status": [(None, ""), ("", ""), ("Available", ""), ("archived", ""), (1, ""), (True, ""), ([], "")],
    "images": [
        (URL, ""), ({"url": URL}, ""), ([URL] * 101, ""), ([None], "/0"), ([5], "/0"), ([URL, [URL]], "/1"),
        *(([address], "/0") for address in (
            "", "media.example/a.jpg", "//media.example/a.jpg", "ftp://media.example/a.jpg",
            "javascript:alert(1)", "data:text/html,x", "https://", "https:///a.jpg", "http://[::1",
            "https://media.example:port/a", "https://exa mple/a", "https://media.example/a\nb",
            " https://media.example/a", "https://media.example/a ", "http:media.example", "https://?a",
            "https://#a", "https://:80/", "https://user@/", f"{URL}\0", f"{URL}\ud800",
        )),
    ],
    "files": [
        ([URL] * 101, ""), ([{"url": "ftp://media.example/a"}], "/0/url"), ([{"name": "Plan"}], "/0/url"),
        ([{"url": URL}, {"url": 5}], "/1/url"), ([{"url": URL, "name": 5}], "/0/name"),
        ([{"url": URL, "size": 5}], "/0/size"),
    ],
    **{name: [(1, "")] for name in ("price", "Type", "pricesar", "price_sar", "version", "archived", "")},
}  # fmt: skip
NOT_JSON = {
    "empty": b"", "blank": b"  \n", "cut off": LEAST_TEXT[:-1], "trailing text": LEAST_TEXT + " x",
    "trailing object": LEAST_TEXT + "{}", "trailing nul": LEAST_TEXT + "\0",
    "comment": "/* hello */" + LEAST_TEXT, "single quotes": "{'type': 'x'}",
    "bom": b"\xef\xbb\xbf" + LEAST_TEXT.encode(), "utf-16": LEAST_TEXT.encode("utf-16"),
    "utf-16 without bom": LEAST_TEXT.encode("utf-16-le"), "utf-32": LEAST_TEXT.encode("utf-32"),
    "form": b"type=apartment&areaSqm=120.5", "nested alone": b"[" * 100_000 + b"]" * 100_000,
    **{f"with {part[:40]}": LEAST_TEXT[:-1] + f", {part}}}" for part in (
        "", '"type": "villa"', '"type": "apartment"', r'"\u0074ype": "villa"', '"colour": 1, "colour": 2',
        f'"images": [{{"url": "{URL}", "url": "{URL}"}}]', '"vatRate": NaN', '"vatRate": Infinity',
        '"vatRate": -Infinity', '"vatRate": 0.' + "1" * 5000, '"vatRate": 1e' + "9" * 5000,
        '"vatRate": ' + "9" * 5000, '"vatRate": 015', '"vatRate": 0x10', '"vatRate": +1', '"vatRate": 1.',
        '"images": ' + "[" * 100_000 + "]" * 100_000, '"images": ' + "[" * 100_000,
        '"images": ' + '{"a":' * 100_000 + "1" + "}" * 100_000, '"description": "a\1b"',
        '"description": "a\0b"', '"description": "a\nb"', r'"description": "\x41"',
    )},
    **{f"with {part!r}": LEAST_TEXT.encode().replace(b"apartment", part)
        for part in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82")},
}  # fmt: skip


def with_number(name: str, number: str) -> str:
    """A whole body in which this number stands exactly so."""
    return json.dumps({**LEAST, name: "@"}).replace('"@"', number)


def values_of(text: str, model: type[UnitReplacement | UnitPatch] = UnitReplacement) -> UnitValues:
    values = check_unit(model, parse_json(text), "a-tower", "A-101")
    assert isinstance(values, UnitValues), values
    return values


def assert_faults(text: str, *pointers: str) -> None:
    """Neither reader takes it, and these are all the places that are wrong."""
    assert read_plain_unit(text, count_names(text)) is None
    faults = check_unit(UnitReplacement, parse_json(text), "a-tower", "A-101")
    assert isinstance(faults, list), text
    assert sorted({fault.pointer for fault in faults}) == sorted(pointers), text


@pytest.mark.parametrize("name", [*DECIMALS, *WHOLE_NUMBERS])
def test_a_number_is_read_exactly_and_only_within_its_bounds(name: str) -> None:
    for number in GOOD_NUMBERS[name]:
        for model in (UnitReplacement, UnitPatch):
            assert values_of(with_number(name, number), model).fields[snake_case(name)] == Decimal(number)
    for number in (*BAD_NUMBERS[name], *NO_NUMBERS):
        assert_faults(with_number(name, number), f"/{name}")


@pytest.mark.parametrize("name", GOOD_VALUES)
def test_a_value_within_bounds_is_read_as_sent(name: str) -> None:
    for value in GOOD_VALUES[name]:
        found = values_of(json.dumps({**LEAST, name: value})).fields[snake_case(name)]
        assert found == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_value_out_of_bounds_is_a_fault_at_its_place(name: str) -> None:
    for value, place in BAD_VALUES[name]:
        assert_faults(json.dumps({**LEAST, name: value}), f"/{name}{place}")


def test_every_fault_is_found_at_once_and_pointers_are_escaped() -> None:
    body = {
        "areaSqm": 0, "priceSar": "100", "bedrooms": 3.5, "vatIncluded": "no", "images": [URL, "nowhere"],
        "files": [{"name": 7}], "a/b~c": "red", "status": None,
    }  # fmt: skip
    pointers = ["/type", "/areaSqm", "/priceSar", "/bedrooms", "/vatIncluded", "/images/1"]
    assert_faults(json.dumps(body), *pointers, "/files/0/url", "/files/0/name", "/a~1b~0c", "/status")
    for text in ("[]", "null", "5", '"text"', "true", "[{}]"):
        assert_faults(text, "")


def test_negative_zero_is_zero_and_a_surrogate_pair_is_one_character() -> None:
    assert not values_of(with_number("priceSar", "-0.0")).fields["price_sar"].is_signed()
    body = LEAST_TEXT[:-1] + r', "description": "\ud83d\ude00"}'
    assert values_of(body).fields["description"] == "😀"


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_strict_json_is_taken_by_no_reader(content: str | bytes) -> None:
    with pytest.raises(MalformedBody):
        read_strictly(content if isinstance(content, bytes) else content.encode())


def read_strictly(content: bytes) -> None:
    text = decode_body(content)
    assert read_plain_unit(text, count_names(text)) is None
    parse_json(text)


def test_a_name_twice_among_very_many_is_found() -> None:
    """A reader that counts each name anew would not come to an end."""
    names = [f"n{number}" for number in range(60_000)]
    with pytest.raises(MalformedBody):
        parse_json("{" + ",".join(f'"{name}":0' for name in [*names, names[-1]]) + "}")
