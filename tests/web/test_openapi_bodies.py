"""What the description accepts as a body, the server accepts, and the other way round."""

import json
import re
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.unit import code_fault
from holdfast.web import strict_json
from holdfast.web.openapi.examples import full_body, least_body, unit
from holdfast.web.openapi.forms import CODE, UNPRINTABLE, URL_PATTERN
from holdfast.web.unit_bodies import PATCH, REPLACE, CheckedBody, check
from tests.web.reading import validator

Document = dict[str, Any]

SCHEMAS = {"UnitReplacement": REPLACE, "UnitPatch": PATCH}

FIELDS: list[tuple[str, Any]] = [
    ("type", ""), ("type", "x" * 100), ("type", "x" * 101), ("type", "a\x00b"), ("type", None), ("type", 5),
    ("areaSqm", 0), ("areaSqm", 0.0001), ("areaSqm", 9999999.9999), ("areaSqm", 10000000), ("areaSqm", "100"),
    ("priceSar", 0), ("priceSar", -1), ("priceSar", 999999999999.99), ("priceSar", 1e12), ("priceSar", True),
    ("priceSar", None),
    ("vatIncluded", None), ("vatIncluded", True), ("vatIncluded", 1), ("vatIncluded", "true"),
    ("vatRate", None), ("vatRate", 0), ("vatRate", 100), ("vatRate", 100.1), ("vatRate", -0.5),
    ("depositPercent", None), ("depositPercent", 12.5), ("depositPercent", "10"),
    ("bedrooms", None), ("bedrooms", 3.0), ("bedrooms", 3.5), ("bedrooms", 0), ("bedrooms", 999),
    ("bedrooms", 1000),
    ("bathrooms", -1), ("bathrooms", False),
    ("deliveryYear", 1899), ("deliveryYear", 1900), ("deliveryYear", 2200), ("deliveryYear", 2201),
    ("description", None), ("description", ""), ("description", "x" * 10_000), ("description", "x" * 10_001),
    ("images", None), ("images", []), ("images", {}), ("images", "https://a.example/1.jpg"),
    ("images", ["https://a.example/1.jpg"] * 100), ("images", ["https://a.example/1.jpg"] * 101),
    ("images", ["ftp://a.example/1.jpg"]), ("images", ["https://"]), ("images", ["HTTP://a.example"]),
    ("images", ["https://a.example/a b"]), ("images", ["https://a.example/وحدة"]), ("images", [None]),
    ("images", [7]),
    ("files", [{"url": "https://a.example/p.pdf"}]),
    ("files", [{"url": "https://a.example/p.pdf", "name": None}]),
    ("files", [{"url": "https://a.example/p.pdf", "name": "Plan"}]), ("files", [{"name": "Plan"}]),
    ("files", [{"url": "https://a.example/p.pdf", "size": 1}]),
    ("files", [{"url": "https://a.example", "name": 1}]),
    ("files", [{"url": "https://a.example/p.pdf", "name": "x" * 501}]),
    ("files", [{"url": "https://a.example/p.pdf", "name": "a\x00b"}]),
    ("files", ["https://a.example/" + "x" * 2048]),
    ("status", "available"), ("status", "unavailable"), ("status", "free"), ("status", None), ("status", 1),
    ("holdExpiresAt", None), ("holdExpiresAt", "x"), ("createdAt", 5), ("projectName", None), ("ref", []),
    ("id", None), ("id", 5), ("code", None), ("projectSlug", 1), ("projectId", None),
    ("color", "blue"), ("version", 1),
]  # fmt: skip


def accepts(schema: str, body: Any) -> bool:
    parsed = strict_json.parse(json.dumps(body))
    return isinstance(check(SCHEMAS[schema], parsed, "narjis-heights", "A-0304"), CheckedBody)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_description_and_server_agree_on(document: Document, schema: str, field: str, value: Any) -> None:
    body = least_body() | {field: value}
    described = validator(document, {"$ref": f"#/components/schemas/{schema}"})
    assert described.is_valid(body) == accepts(schema, body)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(
    "body", [{}, [], None, "unit", 1, least_body(), full_body(), {"type": "villa"}], ids=str
)
def test_description_and_server_agree_on_the_whole_body(document: Document, schema: str, body: Any) -> None:
    described = validator(document, {"$ref": f"#/components/schemas/{schema}"})
    assert described.is_valid(body) == accepts(schema, body)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_unit_as_it_was_read_can_be_sent_back(document: Document, schema: str) -> None:
    body = {name: value for name, value in unit().items() if name != "status"}
    validator(document, {"$ref": f"#/components/schemas/{schema}"}).validate(body)
    assert accepts(schema, body)


def test_decimals_are_described_in_words(document: Document) -> None:
    """``multipleOf`` would refuse 19.99 in validators that divide binary fractions, and they are many."""
    properties = document["components"]["schemas"]["UnitReplacement"]["properties"]
    assert "at most 2 decimals" in properties["priceSar"]["description"]
    assert all("multipleOf" not in schema for schema in properties.values())


@given(st.text(min_size=1, max_size=50))
def test_every_code_that_the_server_accepts_is_described(code: str) -> None:
    if code_fault(code) is None:
        assert re.fullmatch(CODE["pattern"], code)


@given(st.text(max_size=20), st.text(max_size=20))
def test_every_url_that_the_server_accepts_is_described(host: str, rest: str) -> None:
    url = f"https://{host}/{rest}"
    if accepts("UnitPatch", {"images": [url]}):
        assert re.fullmatch(URL_PATTERN, url)


@pytest.mark.parametrize("code", [" A", "A ", "A\tB", "A\u200bB", "A\u00a0B", "\u2028", "A\x00"])
def test_codes_with_what_nobody_sees_are_not_described(code: str) -> None:
    assert not re.fullmatch(CODE["pattern"], code)
    assert code_fault(code) is not None


def test_the_pattern_of_a_code_refuses_nothing_printable() -> None:
    for character in re.findall(f"[{UNPRINTABLE}]", "".join(map(chr, range(sys.maxunicode)))):
        assert not character.isprintable()


def test_bounds_of_numbers_are_exact(document: Document) -> None:
    properties = document["components"]["schemas"]["UnitReplacement"]["properties"]
    assert Decimal(str(properties["priceSar"]["maximum"])) == Decimal("999999999999.99")
    assert Decimal(str(properties["areaSqm"]["maximum"])) == Decimal("9999999.9999")
