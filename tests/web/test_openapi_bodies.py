"""What the description accepts as a body, the server accepts, and the other way round."""

import json
import re
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.event import EventName
from holdfast.domain.layout import LayoutUnit, Placement, arrange
from holdfast.domain.project import name_fault
from holdfast.domain.unit import code_fault
from holdfast.web.api import surfaces
from holdfast.web.api.backoffice.api_keys import NewKey
from holdfast.web.api.backoffice.deliveries import Recovery
from holdfast.web.api.backoffice.endpoints import EndpointChange, NewEndpoint
from holdfast.web.api.backoffice.layouts import LayoutReplacement, encode_layout
from holdfast.web.api.backoffice.projects import NewProject, ProjectChange
from holdfast.web.api.backoffice.staff import NewStaff, StaffChanges
from holdfast.web.api.backoffice.units import Extension
from holdfast.web.api.bodies import BodyModel, BuyerDetails, component_name, validated
from holdfast.web.api.models import unit_document
from holdfast.web.api.unit_bodies import UnitPatch, UnitReplacement, UnitValues, check_unit
from holdfast.web.fields import PRINTABLE_PATTERN, UNPRINTABLE
from holdfast.web.json import parse_json
from holdfast.web.openapi.schemas import MEDIA_URL_PATTERN, PROJECT, UNIT, as_json
from tests.web.openapi_reading import schema, validator

Document = dict[str, Any]

LEAST_UNIT = {"type": "villa", "areaSqm": 80, "priceSar": 0}
SENT_BACK = as_json(unit_document(UNIT, PROJECT))
BUYER = {"buyerName": "Noura Al-Harbi", "buyerEmail": "noura@example.com", "buyerPhone": "+966 50 123 4567"}
LAYOUT = json.loads(
    encode_layout(
        "narjis-heights", arrange([LayoutUnit("A-0304"), LayoutUnit("GARDEN", Placement("A", 0, 1))])
    )
)
BODIES: dict[str, tuple[type[BodyModel], dict[str, Any]]] = {
    "UnitReplacement": (UnitReplacement, LEAST_UNIT),
    "UnitPatch": (UnitPatch, LEAST_UNIT),
    "BuyerDetails": (BuyerDetails, BUYER),
    "Extension": (Extension, {"until": "2026-11-15T09:30:00.000Z"}),
    "NewProject": (NewProject, {"slug": "marina-heights", "name": "Marina Heights"}),
    "ProjectChange": (ProjectChange, {"name": "Marina Heights", "holdSeconds": 600}),
    "LayoutReplacement": (LayoutReplacement, LAYOUT),
    "NewEndpoint": (NewEndpoint, {"url": "https://erp.example.com/hooks"}),
    "EndpointChange": (EndpointChange, {"paused": True, "projects": None}),
    "Recovery": (Recovery, {"since": "2026-11-14T09:30:00.000Z", "events": ["unit.sold"]}),
    "NewKey": (NewKey, {"name": "Nightly sync"}),
    "NewStaff": (NewStaff, {"email": "sara@example.com", "role": "sales"}),
    "StaffChanges": (StaffChanges, {"role": "sales"}),
}
UNITS = ("UnitReplacement", "UnitPatch")
WHOLE_BODIES: list[Any] = [{}, [], None, "text", 1, {"color": "blue"}, {"type": "villa"}]

UNIT_FIELDS: list[tuple[str, Any]] = [
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
    ("floor", None), ("floor", -10), ("floor", -9), ("floor", 200), ("floor", 201), ("floor", "1"),
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
PLACE = {"code": "A-1203", "building": "A", "floor": 12, "position": 3}

SALES_FIELDS: list[tuple[str, str, Any]] = [
    *(("BuyerDetails", "buyerName", value) for value in (
        "N", "", " N", "N ", "نورة", "A\u00a0B", "A\u3000B", "A\tB", "A\u200bB", "A\u200cB",
        "A\u200dB", "\u200cB", "\u200f\u202bN\n", "\u200f", "x" * 200, "x" * 201, None, 1,
    )),
    *(("BuyerDetails", "buyerEmail", value) for value in (
        "a@b", "a", "@", "a@", "@b", "a@b@c", "a b@c", "نورة@مثال.السعودية", "x" * 252 + "@b",
        "x" * 253 + "@b", " a@b\u200e", None,
    )),
    *(("BuyerDetails", "buyerPhone", value) for value in (
        "050", "+966 (50) 123.45/67-8", "٠٥٠١٢٣٤٥٦٧", "05", "5" * 50, "5" * 51, "++5 5", "5+5", "abc", "050x",
        "0 5\t0", "\u202a+966 50\u202c ", None, 966501234567,
    )),
    *(("Extension", "until", value) for value in (
        "2026-11-14T09:30:00.000Z", "2026-11-14T12:30:00+03:00", "soon", "", "2026-11-14", 1794648600, None,
    )),
    *(("NewProject", "slug", value) for value in (
        "ab", "a", "a-b", "A-b", "a--b", "-a", "x" * 100, "x" * 101,
    )),
    *(("NewProject", "name", value) for value in (
        "M", "", "x" * 200, "x" * 201, " M", "M ", "A\nB", "A\u00a0B", "أبراج", "a\x00b", None, 5,
    )),
    *(("ProjectChange", "name", value) for value in ("M", "", " M", "a\x00b", None)),
    *(("ProjectChange", "holdSeconds", value) for value in (
        None, 0, 0.5, 1, 604800, 604801, -1, "300", True,
    )),
    *(("ProjectChange", "reservationDays", value) for value in (None, 0, 0.25, 14, 3650, 3651, "14")),
    ("LayoutReplacement", "projectSlug", "narjis-heights"), ("LayoutReplacement", "projectSlug", 5),
    ("LayoutReplacement", "units", []), ("LayoutReplacement", "units", None),
    ("LayoutReplacement", "units", {}), ("LayoutReplacement", "units", [5]),
    *(("LayoutReplacement", "units", [PLACE | {name: value}]) for name, value in (
        ("guessed", True), ("guessed", None), ("building", None), ("building", ""), ("building", "x" * 51),
        ("building", "a\x00b"), ("building", " A"), ("building", "A\nB"), ("building", "A B"),
        ("floor", None), ("floor", -9), ("floor", -10), ("floor", 200),
        ("floor", 201), ("floor", 1.5), ("floor", 1.0), ("position", 0), ("position", 999),
        ("position", 1000), ("color", 1), ("code", ""), ("code", "x" * 51), ("code", None),
    )),
    *(
        ("LayoutReplacement", "units", [{name: PLACE[name] for name in PLACE if name != missing}])
        for missing in PLACE
    ),
]  # fmt: skip
OF_AN_ENDPOINT: dict[str, list[Any]] = {
    "url": ["https://a.example", "", f"https://a.example/{'x' * 2000}", "a\x00b", None, 5],
    "description": ["", "x" * 500, "x" * 501, None, 5],
    "events": [
        [*EventName], ["unit.sold"], [], ["unit.sold", "unit.sold"], ["ping"], ["unit.gone"], [5], None, {},
    ],
    "projects": [None, ["a-b"], ["a-b", "c-d"], ["a-b", "a-b"], [], ["A"], [5], "a-b"],
    "paused": [True, False, None, "true", 1],
    "ordered": [True, None],
    "maxInFlight": [1, 256, 0, 257, 1.0, 1.5, "1", None, True],
}  # fmt: skip
OF_A_RECOVERY: dict[str, list[Any]] = {
    "since": ["2026-11-14T09:30:00.000Z", "2026-11-14", "", None, 5],
    "until": [None, "2026-11-14T09:30:00Z", "soon"],
    "events": [None, ["ping", "unit.sold"], [], ["unit.gone"], ["ping", "ping"]],
    "unitCode": [None, "A-101", "", " A", "x" * 50, "x" * 51, "a\x00b", 5],
    "dryRun": [True, False, None, "true"],
}
EMAILS = [
    "a@b",
    "A@B.example",
    "سارة@مثال.السعودية",
    "",
    "a",
    "a b@c",
    " a@b",
    "a@b@c",
    "x" * 254 + "@b",
    None,
    5,
]
NAMES = ["A", "سارة", "", " A", "A ", "x" * 200, "x" * 201, None, 5]
ROLES = ["admin", "viewer", "owner", "", None, 5]
OF_A_KEY: dict[str, list[Any]] = {
    "name": ["A", "", " A", "A ", "x" * 200, "x" * 201, None, 5],
    "scopes": [["integration"], ["admin", "payments"], [], ["root"], ["admin", "admin"], None, "admin"],
    "projects": [None, ["a-b"], [], ["A"], ["a-b", "a-b"], "a-b"],
    "expiresInDays": [None, 1, 0.5, 36_500, 0, -1, 36_501, "30", True],
    "key": ["hfk_mine"],
}
OF_STAFF_CHANGES: dict[str, list[Any]] = {
    "role": ["sales", None],
    "disabled": [True, 1],
    "name": ["", "A"],
    "email": ["a@b"],
}
OF_NEW_STAFF: dict[str, list[Any]] = {"email": EMAILS, "name": NAMES, "role": ROLES, "password": ["x"]}
FIELDS: list[tuple[str, str, Any]] = [
    *((name, field, value) for name in UNITS for field, value in UNIT_FIELDS),
    *SALES_FIELDS,
    *(
        (name, field, value)
        for name, values in (
            ("NewEndpoint", OF_AN_ENDPOINT),
            ("EndpointChange", OF_AN_ENDPOINT),
            ("Recovery", OF_A_RECOVERY),
            ("NewKey", OF_A_KEY),
            ("NewStaff", OF_NEW_STAFF),
            ("StaffChanges", OF_STAFF_CHANGES),
        )
        for field, cases in values.items()
        for value in cases
    ),
]


def accepts(name: str, body: Any) -> bool:
    """Whether the server takes the body, as far as the body alone tells."""
    model, _ = BODIES[name]
    parsed = parse_json(json.dumps(body))
    if issubclass(model, UnitReplacement | UnitPatch):
        return isinstance(check_unit(model, parsed, PROJECT.slug, UNIT.code), UnitValues)
    return isinstance(validated(model, parsed), model)


@pytest.mark.parametrize(("name", "field", "value"), FIELDS, ids=lambda value: ascii(value)[:30])
def test_description_and_server_agree_on(document: Document, name: str, field: str, value: Any) -> None:
    body = BODIES[name][1] | {field: value}
    described = validator(document, {"$ref": f"#/components/schemas/{name}"})
    assert described.is_valid(body) == accepts(name, body)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("body", WHOLE_BODIES, ids=str)
def test_description_and_server_agree_on_the_whole_body(document: Document, name: str, body: Any) -> None:
    described = validator(document, {"$ref": f"#/components/schemas/{name}"})
    assert described.is_valid(body) == accepts(name, body)


@pytest.mark.parametrize("name", BODIES)
def test_a_required_field_is_required_by_both(document: Document, name: str) -> None:
    body = BODIES[name][1]
    described = validator(document, {"$ref": f"#/components/schemas/{name}"})
    for missing in body:
        rest = {member: value for member, value in body.items() if member != missing}
        assert described.is_valid(rest) == accepts(name, rest), missing


def test_every_name_that_the_server_takes_is_described(document: Document) -> None:
    operations = [operation for group in surfaces.ALL for operation in group.operations]
    models = {one.body.model for one in operations if one.body and one.body.model}
    assert len(models) > len(BODIES)
    for model in models:
        assert set(schema(document, component_name(model.__name__))["properties"]) == model.wire_names


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_as_it_was_read_can_be_sent_back(document: Document, name: str) -> None:
    body = {
        member: value for member, value in SENT_BACK.items() if member not in ("status", "id", "projectId")
    }
    validator(document, {"$ref": f"#/components/schemas/{name}"}).validate(body)
    assert accepts(name, body)


@pytest.mark.parametrize(
    ("url", "is_valid"),
    [
        ("https://erp.example.com", True),
        ("HTTPS://erp.example.com:8443/hooks?tenant=7", True),
        ("http://[2001:db8::1]/hooks", True),
        ("https://عربي.example/خطاف", True),
        ("erp.example.com", False),
        ("ftp://erp.example.com", False),
        ("https://", False),
        ("https:///hooks", False),
        ("https://user:password@erp.example.com", False),
        ("https://erp.example.com/#fragment", False),
        ("https://erp.example.com/a b", False),
        ("https://erp.example.com/a\\b", False),
    ],
)
def test_the_url_of_an_endpoint_has_a_pattern(document: Document, url: str, is_valid: bool) -> None:
    described = validator(document, {"$ref": "#/components/schemas/NewEndpoint"})
    assert described.is_valid({"url": url}) is is_valid


def test_a_layout_as_it_was_read_can_be_sent_back(document: Document) -> None:
    validator(document, {"$ref": "#/components/schemas/LayoutReplacement"}).validate(LAYOUT)
    assert accepts("LayoutReplacement", LAYOUT)


BUYER_TEXTS = {
    "buyerName": st.text(max_size=30),
    "buyerEmail": st.text(max_size=30),
    "buyerPhone": st.text(max_size=30),
}


@given(st.fixed_dictionaries(BUYER_TEXTS), st.text(max_size=10), st.from_regex(r"\A\+?[\d ()./-]{3,20}\Z"))
def test_every_buyer_that_the_server_accepts_is_described(
    document: Document, found: dict[str, str], host: str, phone: str
) -> None:
    """Patterns that all validators share let through a little too much, and never too little."""
    described = validator(document, {"$ref": "#/components/schemas/BuyerDetails"})
    likely = {"buyerEmail": f"{found['buyerEmail']}@{host}", "buyerPhone": phone}
    for name, value in [*found.items(), *likely.items()]:
        body = BUYER | {name: value}
        if accepts("BuyerDetails", body):
            described.validate(body)


@given(st.text(min_size=1, max_size=40))
def test_every_project_name_that_the_server_accepts_is_described(document: Document, name: str) -> None:
    is_accepted = accepts("ProjectChange", {"name": name})
    assert is_accepted == (name_fault(name) is None), "commands and the back office take the same names"
    if is_accepted:
        validator(document, {"$ref": "#/components/schemas/ProjectChange"}).validate({"name": name})


def test_decimals_are_described_in_words(document: Document) -> None:
    """``multipleOf`` would refuse 19.99 in validators that divide binary fractions, and they are many."""
    properties = document["components"]["schemas"]["UnitReplacement"]["properties"]
    assert "at most 2 decimals" in properties["priceSar"]["description"]
    assert all("multipleOf" not in schema for schema in properties.values())


@given(st.text(min_size=1, max_size=50))
def test_every_code_that_the_server_accepts_is_described(code: str) -> None:
    if code_fault(code) is None:
        assert re.fullmatch(PRINTABLE_PATTERN, code)


@given(st.text(max_size=20), st.text(max_size=20))
def test_every_url_that_the_server_accepts_is_described(host: str, rest: str) -> None:
    url = f"https://{host}/{rest}"
    if accepts("UnitPatch", {"images": [url]}):
        assert re.fullmatch(MEDIA_URL_PATTERN, url)


@pytest.mark.parametrize("code", [" A", "A ", "A\tB", "A\u200bB", "A\u00a0B", "\u2028", "A\x00"])
def test_codes_with_what_nobody_sees_are_not_described(code: str) -> None:
    assert not re.fullmatch(PRINTABLE_PATTERN, code)
    assert code_fault(code) is not None


def test_the_pattern_of_a_code_refuses_nothing_printable() -> None:
    for character in re.findall(f"[{UNPRINTABLE}]", "".join(map(chr, range(sys.maxunicode)))):
        assert not character.isprintable()


def test_bounds_of_numbers_are_exact(document: Document) -> None:
    properties = document["components"]["schemas"]["UnitReplacement"]["properties"]
    assert Decimal(str(properties["priceSar"]["maximum"])) == Decimal("999999999999.99")
    assert Decimal(str(properties["areaSqm"]["maximum"])) == Decimal("9999999.9999")
