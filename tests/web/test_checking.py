"""A parsed body becomes values, or every fault that it has."""

from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    TypeAdapter,
    with_config,
)
from typing_extensions import TypedDict

from holdfast.domain.refusals import Fault, InvalidInput
from holdfast.web.checking import checked, names_of, no_fields, refuse_faults, valid_body
from holdfast.web.fields import NO_NUL, STRICT, WEB_ADDRESS, Bounds, check_text, whole, within

FLOORS = Bounds(Decimal(-5), Decimal(200), 0)


@with_config(STRICT)
class Picture(TypedDict):
    url: Annotated[str, StringConstraints(pattern=WEB_ADDRESS)]


@with_config(STRICT)
class Body(TypedDict):
    buyer_name: Annotated[str, StringConstraints(min_length=1, max_length=5, pattern=NO_NUL)]
    floor: NotRequired[Annotated[Decimal, within(FLOORS), AfterValidator(whole)]]
    kind: NotRequired[Literal["flat", "villa"]]
    tags: NotRequired[Annotated[list[str], Field(min_length=1, max_length=2)]]
    place: NotRequired[Annotated[str, StringConstraints(min_length=3)]]
    phone: NotRequired[Annotated[str, StringConstraints(pattern=r"^[0-9]+$")]]
    note: NotRequired[Annotated[Any, PlainValidator(check_text)]]
    picture: NotRequired[
        Annotated[
            Annotated[str, Tag("<text>")] | Annotated[Picture, Tag("<object>")],
            Discriminator(lambda value: "<object>" if isinstance(value, dict) else "<text>"),
        ]
    ]


ADAPTER: TypeAdapter[Any] = TypeAdapter(Body)
NAMES = names_of(Body)


def faults_of(**body: Any) -> list[Fault]:
    found = checked(ADAPTER, {"buyerName": "Noura"} | body, NAMES)
    assert isinstance(found, list)
    return found


def test_a_body_without_faults_has_the_names_of_the_domain() -> None:
    body = {"buyerName": "Noura", "floor": Decimal("3.0"), "kind": "villa"}
    assert checked(ADAPTER, body, NAMES) == {"buyer_name": "Noura", "floor": 3, "kind": "villa"}


def test_names_are_those_of_the_wire() -> None:
    assert names_of(Picture) == {"url"}
    assert "buyerName" in NAMES


@pytest.mark.parametrize("body", [[], "text", None, Decimal(1), True])
def test_what_is_no_object_is_one_fault(body: Any) -> None:
    assert checked(ADAPTER, body, NAMES) == [Fault("", "The body must be a JSON object.")]
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
    assert checked(ADAPTER, {}, NAMES) == [Fault("/buyerName", "This field is required.")]


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


def test_a_valid_body_is_refused_for_the_faults_of_the_rest() -> None:
    elsewhere = Fault("/path/slug", "This is no slug.")
    with pytest.raises(InvalidInput) as refused:
        valid_body(ADAPTER, {"buyerName": "Noura"}, NAMES, [elsewhere])
    assert refused.value.faults == (elsewhere,)


def test_the_faults_of_a_body_are_told_with_those_of_the_rest() -> None:
    with pytest.raises(InvalidInput) as refused:
        valid_body(ADAPTER, {}, NAMES, [Fault("/path/slug", "This is no slug.")])
    assert [fault.pointer for fault in refused.value.faults] == ["/path/slug", "/buyerName"]


def test_a_request_without_faults_is_not_refused() -> None:
    refuse_faults([])
    assert valid_body(ADAPTER, {"buyerName": "Noura"}, NAMES) == {"buyer_name": "Noura"}


def test_where_no_body_is_needed_all_that_stands_in_it_is_a_fault() -> None:
    assert no_fields({}) == []
    assert no_fields({"a": 1, "b": 2}) == [
        Fault("/a", "There is no field of this name."),
        Fault("/b", "There is no field of this name."),
    ]
