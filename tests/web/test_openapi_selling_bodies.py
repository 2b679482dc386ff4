"""What the description accepts of buyers and staff, the server accepts, and the other way round."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from holdfast.domain.project import name_fault
from holdfast.domain.refusals import InvalidInput
from holdfast.web import strict_json
from holdfast.web.backoffice.bodies import (
    EXTENSION,
    EXTENSION_NAMES,
    LAYOUT,
    LAYOUT_NAMES,
    NEW_PROJECT,
    NEW_PROJECT_NAMES,
    PROJECT,
    PROJECT_NAMES,
)
from holdfast.web.buyer_bodies import BUYER, BUYER_NAMES
from holdfast.web.checking import valid_body
from holdfast.web.openapi.selling_bodies import selling_bodies
from holdfast.web.openapi.selling_examples import buyer_details, extension, layout, new_project
from tests.web.reading import validator

Document = dict[str, Any]

BODIES: dict[str, tuple[TypeAdapter[Any], frozenset[str], dict[str, Any]]] = {
    "BuyerDetails": (BUYER, BUYER_NAMES, buyer_details()),
    "Extension": (EXTENSION, EXTENSION_NAMES, extension()),
    "NewProject": (NEW_PROJECT, NEW_PROJECT_NAMES, new_project()),
    "ProjectChange": (PROJECT, PROJECT_NAMES, {"name": "Marina Heights", "holdSeconds": 600}),
    "LayoutReplacement": (LAYOUT, LAYOUT_NAMES, layout()),
}
PLACE = {"code": "A-1203", "building": "A", "floor": 12, "position": 3}

FIELDS: list[tuple[str, str, Any]] = [
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


def accepts(schema: str, body: Any) -> bool:
    """Whether the server takes the body, as far as the body alone tells."""
    adapter, names, _ = BODIES[schema]
    try:
        valid_body(adapter, strict_json.parse(json.dumps(body)), names)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize(("schema", "field", "value"), FIELDS)
def test_description_and_server_agree_on(document: Document, schema: str, field: str, value: Any) -> None:
    body = BODIES[schema][2] | {field: value}
    described = validator(document, {"$ref": f"#/components/schemas/{schema}"})
    assert described.is_valid(body) == accepts(schema, body)


@pytest.mark.parametrize("schema", BODIES)
@pytest.mark.parametrize("body", [{}, [], None, "text", 1, {"color": "blue"}], ids=str)
def test_description_and_server_agree_on_the_whole_body(document: Document, schema: str, body: Any) -> None:
    described = validator(document, {"$ref": f"#/components/schemas/{schema}"})
    assert described.is_valid(body) == accepts(schema, body)


@pytest.mark.parametrize("schema", BODIES)
def test_a_required_field_is_required_by_both(document: Document, schema: str) -> None:
    body = BODIES[schema][2]
    described = validator(document, {"$ref": f"#/components/schemas/{schema}"})
    for missing in body:
        rest = {name: value for name, value in body.items() if name != missing}
        assert described.is_valid(rest) == accepts(schema, rest), missing


@pytest.mark.parametrize("schema", BODIES)
def test_every_name_that_the_server_takes_is_described(schema: str) -> None:
    assert set(selling_bodies()[schema]["properties"]) == BODIES[schema][1]


def test_a_layout_as_it_was_read_can_be_sent_back(document: Document) -> None:
    validator(document, {"$ref": "#/components/schemas/LayoutReplacement"}).validate(layout())
    assert accepts("LayoutReplacement", layout())


NAMES = {
    "buyerName": st.text(max_size=30),
    "buyerEmail": st.text(max_size=30),
    "buyerPhone": st.text(max_size=30),
}


@given(st.fixed_dictionaries(NAMES), st.text(max_size=10), st.from_regex(r"\A\+?[\d ()./-]{3,20}\Z"))
def test_every_buyer_that_the_server_accepts_is_described(
    document: Document, found: dict[str, str], host: str, phone: str
) -> None:
    """Patterns that all validators share let through a little too much, and never too little."""
    described = validator(document, {"$ref": "#/components/schemas/BuyerDetails"})
    likely = {"buyerEmail": f"{found['buyerEmail']}@{host}", "buyerPhone": phone}
    for name, value in [*found.items(), *likely.items()]:
        body = buyer_details() | {name: value}
        if accepts("BuyerDetails", body):
            described.validate(body)


@given(st.text(min_size=1, max_size=40))
def test_every_project_name_that_the_server_accepts_is_described(document: Document, name: str) -> None:
    is_accepted = accepts("ProjectChange", {"name": name})
    assert is_accepted == (name_fault(name) is None), "commands and the back office take the same names"
    if is_accepted:
        validator(document, {"$ref": "#/components/schemas/ProjectChange"}).validate({"name": name})
