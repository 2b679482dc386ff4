"""Which column is which."""

import pytest

from holdfast.domain.imports import (
    COLUMN_HEADINGS,
    FIELDS,
    NOT_IMPORTED,
    find_field,
    guess_fields,
    is_heading_row,
)
from holdfast.domain.unit import UnitFields
from holdfast.domain.wire_format import camel_case

EVERY_NAME = [
    (field, name)
    for field, languages in COLUMN_HEADINGS.items()
    for names in languages.values()
    for name in names
]


def test_there_is_a_column_for_every_field_of_a_unit() -> None:
    assert set(FIELDS) == {*UnitFields._fields, "code", "status"}


@pytest.mark.parametrize(
    ("field", "name"), EVERY_NAME, ids=[f"{field}-{at}" for at, (field, _) in enumerate(EVERY_NAME)]
)
def test_every_name_of_a_column_is_known(field: str, name: str) -> None:
    assert [find_field(said) for said in (name, name.upper(), f"  {name}: ")] == [field] * 3


@pytest.mark.parametrize("field", FIELDS)
def test_the_names_of_the_wire_are_known(field: str) -> None:
    assert find_field(camel_case(field)) == field


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("Unit No.", "code"), ("رقم الوحده", "code"), ("الْمساحة", "area_sqm"), ("Area sqm", "area_sqm"),
        ("PRICE_SAR", "price_sar"), ("السعر بالريال", None), ("Colour", None), ("", None), ("ref", None),
    ],
)  # fmt: skip
def test_headings_are_known_however_they_are_spelled(heading: str, field: str | None) -> None:
    assert find_field(heading) == field


def test_what_is_not_imported_is_no_field() -> None:
    assert [find_field(name) for names in NOT_IMPORTED.values() for name in names.values()] == [None] * 4


def test_a_field_has_one_column() -> None:
    assert guess_fields(["Code", "Price", "Selling price", "Beds", "Unit"]) == [
        "code", "price_sar", None, "bedrooms", None,
    ]  # fmt: skip


def test_headings_name_the_code_and_something_else() -> None:
    assert is_heading_row(["Code", "Price"])
    assert not is_heading_row(["Code"])
    assert not is_heading_row(["Price list", "November"])
