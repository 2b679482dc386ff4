"""A parsed body becomes values, or every fault that it has."""

from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    with_config,
)
from typing_extensions import TypedDict

from holdfast.domain.errors import Fault, InvalidInput, raise_faults
from holdfast.web.api.bodies import BodyModel, no_fields, valid, validated
from holdfast.web.fields import NO_NUL, STRICT, WEB_ADDRESS, Bounds, check_text

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


def test_names_are_those_of_the_wire() -> None:
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
        ("buyerName", "a\x00b", "This text holds the character U+0000, which cannot be stored."),
        ("buyerName", "a\ud800", "This text holds a lone surrogate, which is not a character."),
        ("note", "a\ud800", "This text holds a character that cannot be stored."),
        ("note", "\x00", "This text holds a character that cannot be stored."),
        ("phone", "none", "This text does not have the form that is asked for."),
        ("floor", "3", "This must be a number."),
        ("floor", Decimal("1.5"), "This must be a whole number."),
        ("floor", Decimal(-6), "This must be at least -5."),
        ("floor", Decimal(201), "This must be at most 200."),
        ("floor", Decimal("Infinity"), "This number is beyond all bounds."),
        ("kind", "castle", "This must be 'flat' or 'villa'."),
        ("kind", None, "This field cannot be null."),
        ("tags", {}, "This must be an array."),
        ("tags", [], "This must have at least 1 element."),
        ("tags", ["a", "b", "c"], "This must have at most 2 elements."),
        ("picture", None, "This field cannot be null."),
        ("unknown", None, "There is no field of this name."),
    ],
)
def test_each_fault_has_its_sentence(name: str, value: Any, message: str) -> None:
    (fault,) = faults_of(**{name: value})
    assert (fault.pointer, str(fault.message)) == (f"/{name}", message)


def test_a_field_that_is_missing_is_named() -> None:
    assert validated(Body, {}) == [Fault("/buyerName", "This field is required.")]


def test_the_form_of_a_value_is_no_part_of_its_place() -> None:
    assert faults_of(picture={"url": "ftp://x"}) == [
        Fault("/picture/url", "This must be an http or https URL.")
    ]
    assert faults_of(picture=Decimal(1)) == [Fault("/picture", "This must be text.")]


def test_a_name_that_looks_like_a_form_is_still_named() -> None:
    body = {"url": "https://x.example", "<url>": 1}
    assert faults_of(picture=body) == [Fault("/picture/<url>", "There is no field of this name.")]
    assert faults_of(**{"<text>": 1}) == [Fault("/<text>", "There is no field of this name.")]


def test_names_are_escaped_in_pointers() -> None:
    places = [fault.pointer for fault in faults_of(**{"a/b": 1, "a~b": 1, "\ud800": 1})]
    assert places == ["/a~1b", "/a~0b", "/\\ud800"]


def test_many_unknown_names_are_told_beside_the_other_faults() -> None:
    unknown = {f"x{number}": 1 for number in range(100)}
    found = faults_of(**unknown, floor="3")
    assert {fault.pointer for fault in found} == {f"/{name}" for name in unknown} | {"/floor"}


def test_every_fault_is_raised_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        valid(Body, {"floor": "3", "color": "blue"})
    assert {fault.pointer for fault in refused.value.faults} == {"/buyerName", "/floor", "/color"}


def test_a_request_without_faults_is_not_refused() -> None:
    raise_faults([])
    assert valid(Body, {"buyerName": "Noura"}).buyer_name == "Noura"


def test_where_no_body_is_needed_all_that_stands_in_it_is_a_fault() -> None:
    assert no_fields({}) == []
    assert no_fields({"a": 1, "b": 2}) == [
        Fault("/a", "There is no field of this name."),
        Fault("/b", "There is no field of this name."),
    ]
