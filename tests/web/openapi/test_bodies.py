"""What the description accepts as a body, the server accepts, and the other way round."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.endpoint_url import InvalidEndpointUrl, parse_endpoint_url
from holdfast.domain.layout import LayoutUnit, Placement, arrange
from holdfast.domain.project import name_fault
from holdfast.domain.unit import code_fault
from holdfast.web.api import surfaces
from holdfast.web.api.backoffice import api_keys, deliveries, endpoints, layouts, projects, staff, units
from holdfast.web.api.bodies import BodyModel, BuyerDetails, component_name, validated
from holdfast.web.api.models import unit_document
from holdfast.web.api.unit_bodies import UnitPatch, UnitReplacement, UnitValues, check_unit
from holdfast.web.fields import PRINTABLE_PATTERN, UNPRINTABLE
from holdfast.web.json import parse_json
from holdfast.web.openapi.document import openapi_document
from holdfast.web.openapi.schemas import MEDIA_URL_PATTERN, PROJECT, UNIT, as_json
from tests.support.buying import BUYER
from tests.web.openapi_reading import Document, resolved, schema, validator

LEAST_UNIT = {"type": "villa", "areaSqm": 80, "priceSar": 0}
SENT_BACK = as_json(unit_document(UNIT, PROJECT))
LAYOUT = json.loads(
    layouts.encode_layout(
        "narjis-heights", arrange([LayoutUnit("A-0304"), LayoutUnit("GARDEN", Placement("A", 0, 1))])
    )
)
RIGHT: dict[type[BodyModel], dict[str, Any]] = {
    UnitReplacement: LEAST_UNIT,
    UnitPatch: LEAST_UNIT,
    BuyerDetails: BUYER,
    units.Extension: {"until": "2026-11-15T09:30:00.000Z"},
    projects.NewProject: {"slug": "marina-heights", "name": "Marina Heights"},
    projects.ProjectChange: {"name": "Marina Heights", "holdSeconds": 600},
    layouts.LayoutReplacement: LAYOUT,
    endpoints.NewEndpoint: {"url": "https://erp.example.com/hooks"},
    endpoints.EndpointChange: {"paused": True, "projects": None},
    deliveries.Recovery: {"since": "2026-11-14T09:30:00.000Z", "events": ["unit.sold"]},
    api_keys.NewKey: {"name": "Nightly sync"},
    staff.NewStaff: {"email": "sara@example.com", "role": "sales"},
    staff.StaffChanges: {"role": "sales"},
}
BODIES = {model.__name__: (model, right) for model, right in RIGHT.items()}
PLACE = {"code": "A-1203", "building": "A", "floor": 12, "position": 3}
UNITS = ("UnitReplacement", "UnitPatch")
# Members that a unit is read with: they may be sent back, and are ignored or compared with the unit.
READ_ONLY = (
    "id", "projectId", "projectSlug", "code", "holdExpiresAt", "createdAt", "updatedAt", "projectName", "ref",
)  # fmt: skip
# What every field is tried with, and each element of an array.
VALUES: list[Any] = [
    None, True, False, 0, 1, 5, -1, 0.5, 1.0, 1.5, [], {},
    "", "A", " A", "A ", "true", "1", "A\nB", "A\tB", "A B", "a\x00b", "A\u00a0B", "A\u3000B", "A\u200bB",
    "A\u200cB", "A\u200dB", "\u200cB", "\u200f\u202bN\n", "\u200f",
    "a@b", "@", "a@", "@b", "a@b@c", "a b@c", "نورة@مثال.السعودية", " a@b\u200e", "A@B.example",
    "050", "05", "5550101", "0" * 15, "٠٠" + "5" * 15, "00" + "5" * 16, "ن", "نو", "7" * 6,
    "+966 (50) 123.45/67-8", "٠٥٠١٢٣٤٥٦٧", "++5 5", "5+5", "abc", "050x", "0 5\t0",
    "\u202a+966 50\u202c ", "2026-11-14T09:30:00.000Z", "2026-11-14T12:30:00+03:00", "2026-11-14", "soon",
    "ab", "a-b", "A-b", "a--b", "-a", "unit.sold", "unit.gone", "ping", "available", "free", "admin", "root",
    "https://a.example", "HTTPS://a.example:8443/hooks?tenant=7", "http://[2001:db8::1]/hooks", "https://",
    "https:///hooks", "ftp://a.example/1.jpg", "https://عربي.example/خطاف", "https://a.example/a b",
    "https://user:password@a.example", "https://a.example/#fragment", "https://a.example/a\\b",
]  # fmt: skip


def values_for(described: Document) -> Iterator[Any]:
    """Those, and what stands at the limits that the description has."""
    described = resolved(openapi_document(), described)
    yield from VALUES
    for limit in ("minimum", "exclusiveMinimum", "maximum"):
        if limit in described:
            yield from (described[limit] + step for step in (-1, 0, 1))
    for length in range(described.get("maxLength", 0), described.get("maxLength", -1) + 2):
        yield from (one.ljust(length, "5") for one in ("x", "5", "https://a.example/"))
        yield "@b".rjust(length, "x")
    for option in described.get("anyOf", ()):
        yield from values_for(option)
    if "items" in described:
        values = list(values_for(described["items"]))
        yield from ([value] for value in values)
        most = described.get("maxItems", 2)
        yield from (
            [value] * length for value in ("a-b", "https://a.example") for length in (2, most, most + 1)
        )
    right = {"url": "https://a.example"} if "url" in described.get("properties", {}) else PLACE
    yield from objects_for(described, right)


def objects_for(described: Document, right: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The right object with each value for each member, without each member, and with one that is unknown."""
    for name, member in described.get("properties", {}).items():
        yield from (right | {name: value} for value in values_for(member))
        yield {other: value for other, value in right.items() if other != name}
    if "properties" in described:
        yield right | {"color": "blue"}


def says_what_is_read_only(body: Any) -> bool:
    return isinstance(body, dict) and any(isinstance(body.get(name), str) for name in READ_ONLY)


def accepts(name: str, body: Any) -> bool:
    """Whether the server takes the body, as far as the body alone tells."""
    model, _ = BODIES[name]
    parsed = parse_json(json.dumps(body))
    if issubclass(model, UnitReplacement | UnitPatch):
        return isinstance(check_unit(model, parsed, PROJECT.slug, UNIT.code), UnitValues)
    found = validated(model, parsed)
    if isinstance(found, endpoints.NewEndpoint | endpoints.EndpointChange) and "url" in body:
        with suppress(InvalidEndpointUrl):
            return bool(parse_endpoint_url(body["url"]))
        return False
    return isinstance(found, model)


@cache
def body_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return validator(openapi_document(), {"$ref": f"#/components/schemas/{name}"})


@pytest.mark.parametrize("name", BODIES)
def test_description_and_server_take_the_same_bodies(document: Document, name: str) -> None:
    tried = [*VALUES, *objects_for(schema(document, name), BODIES[name][1])]
    if name in UNITS:
        tried = [body for body in tried if not says_what_is_read_only(body)]
    taken = [body for body in tried if accepts(name, body)]
    assert [body for body in tried if body_validator(name).is_valid(body)] == taken
    assert 0 < len(taken) < len(tried)


def test_every_name_that_the_server_takes_is_described(document: Document) -> None:
    operations = [operation for group in surfaces.ALL for operation in group.operations]
    models = {one.body.model for one in operations if one.body and one.body.model}
    assert len(models) > len(BODIES)
    for model in models:
        assert set(schema(document, component_name(model.__name__))["properties"]) == model.wire_names


def test_a_unit_and_a_layout_as_they_were_read_can_be_sent_back() -> None:
    unit = {name: value for name, value in SENT_BACK.items() if name not in ("status", "id", "projectId")}
    for name, body in (*((name, unit) for name in UNITS), ("LayoutReplacement", LAYOUT)):
        body_validator(name).validate(body)
        assert accepts(name, body)


def test_hyphens_are_no_digits_of_a_phone_number() -> None:
    """A sign that could be either would also take validators that backtrack a very long time."""
    body = BUYER | {"buyerPhone": "\u2013" * 8}
    assert not body_validator("BuyerDetails").is_valid(body)


TEXT_FIELDS = {
    ("BuyerDetails", "buyerName"): st.text(max_size=30),
    ("BuyerDetails", "buyerEmail"): st.builds("{}@{}".format, st.text(max_size=20), st.text(max_size=10)),
    ("BuyerDetails", "buyerPhone"): st.from_regex("\\A\\+?[\\d ()./\u00a0\u2011\u2013-]{3,20}\\Z"),
    ("ProjectChange", "name"): st.text(min_size=1, max_size=40),
    ("Recovery", "unitCode"): st.text(min_size=1, max_size=50),
    ("NewEndpoint", "url"): st.builds("https://{}/{}".format, st.text(max_size=20), st.text(max_size=20)),
}


@pytest.mark.parametrize(("name", "field"), TEXT_FIELDS)
@given(st.data())
def test_every_text_that_the_server_accepts_is_described(name: str, field: str, data: st.DataObject) -> None:
    """Patterns that all validators share let through a little too much, and never too little."""
    text = data.draw(TEXT_FIELDS[name, field])
    body = BODIES[name][1] | {field: text}
    if accepts(name, body):
        body_validator(name).validate(body)
    if name == "ProjectChange":
        assert accepts(name, body) == (name_fault(text) is None), "commands take the same names"
    if name == "Recovery":
        assert accepts(name, body) == (code_fault(text) is None)
        assert not accepts(name, body) or re.fullmatch(PRINTABLE_PATTERN, text)


@given(st.text(max_size=20), st.text(max_size=20))
def test_every_url_of_an_image_that_the_server_accepts_is_described(host: str, rest: str) -> None:
    url = f"https://{host}/{rest}"
    if accepts("UnitPatch", {"images": [url]}):
        assert re.fullmatch(MEDIA_URL_PATTERN, url)


def test_the_pattern_of_a_code_refuses_nothing_printable() -> None:
    for character in re.findall(f"[{UNPRINTABLE}]", "".join(map(chr, range(sys.maxunicode)))):
        assert not character.isprintable()


def test_bounds_of_numbers_are_exact_and_decimals_are_described_in_words(document: Document) -> None:
    """``multipleOf`` would refuse 19.99 in validators that divide binary fractions, and they are many."""
    properties = schema(document, "UnitReplacement")["properties"]
    assert Decimal(str(properties["priceSar"]["maximum"])) == Decimal("999999999999.99")
    assert Decimal(str(properties["areaSqm"]["maximum"])) == Decimal("9999999.9999")
    assert "at most 2 decimals" in properties["priceSar"]["description"]
    assert all("multipleOf" not in described for described in properties.values())
