"""Numbers are exact decimals from the wire to the column and back."""

from decimal import Decimal

import pytest

from tests.support.bodies import full, minimal
from tests.support.client import Unit, exact, number
from tests.support.problems import invalid
from tests.support.sql import Sql

COLUMNS = {
    "areaSqm": "area_sqm",
    "priceSar": "price_sar",
    "vatRate": "vat_rate",
    "depositPercent": "deposit_percent",
}


def with_number(name: str, text: str) -> str:
    """A whole body in which this number stands exactly so."""
    body = minimal(**{name: "@"})
    others = ", ".join(
        f'"{key}": "{value}"' if key == "type" else f'"{key}": {value}' for key, value in body.items()
    )
    return "{" + others.replace("@", text) + "}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("priceSar", "0"),
        ("priceSar", "0.1"),
        ("priceSar", "0.01"),
        ("priceSar", "1.50"),
        ("priceSar", "0.07"),
        ("priceSar", "1e2"),
        ("priceSar", "1.5E+3"),
        ("priceSar", "1E-2"),
        ("priceSar", "999999999999.99"),
        ("priceSar", "999999999999"),
        ("areaSqm", "0.0001"),
        ("areaSqm", "0.1"),
        ("areaSqm", "1e-4"),
        ("areaSqm", "9999999.9999"),
        ("vatRate", "0"),
        ("vatRate", "0.0001"),
        ("vatRate", "33.3333"),
        ("vatRate", "100"),
        ("vatRate", "100.0000"),
        ("depositPercent", "0"),
        ("depositPercent", "99.9999"),
        ("depositPercent", "100"),
    ],
)
def test_a_number_comes_back_exactly(unit: Unit, sql: Sql, name: str, text: str) -> None:
    created = unit.put(with_number(name, text))
    assert created.status_code == 201, created.text
    assert number(exact(created)[name]) == Decimal(text)
    assert number(unit.read()[name]) == Decimal(text)
    column = sql.value(f"select {COLUMNS[name]} from unit where id = $1", exact(created)["id"])
    assert column == Decimal(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("priceSar", "-0.01"),
        ("priceSar", "-1"),
        ("priceSar", "0.001"),
        ("priceSar", "100.555"),
        ("priceSar", "1e-3"),
        ("priceSar", "999999999999.991"),
        ("priceSar", "1000000000000"),
        ("priceSar", "999999999999.999"),
        ("priceSar", "1e12"),
        # A float would take these for 0.1 and for 999999999999.99.
        ("priceSar", "0.10000000000000000000001"),
        ("priceSar", "999999999999.99000000000001"),
        ("areaSqm", "0"),
        ("areaSqm", "0.0"),
        ("areaSqm", "-1"),
        ("areaSqm", "0.00001"),
        ("areaSqm", "10000000"),
        ("areaSqm", "9999999.99991"),
        ("areaSqm", "1e-400"),
        ("vatRate", "-0.0001"),
        ("vatRate", "100.0001"),
        ("vatRate", "100.00000000000000000001"),
        ("vatRate", "15.00001"),
        ("depositPercent", "-1"),
        ("depositPercent", "101"),
        ("depositPercent", "2.50001"),
    ],
)
def test_a_number_out_of_bounds_is_refused(unit: Unit, name: str, text: str) -> None:
    invalid(unit.put(with_number(name, text)), f"/{name}")
    assert not unit.exists


@pytest.mark.parametrize(
    "name", ["priceSar", "areaSqm", "vatRate", "depositPercent", "bedrooms", "deliveryYear", "floor"]
)
@pytest.mark.parametrize("text", ["1e400", "-1e400", "1e999999999", "1e-999999999", "1e99999999999999999999"])
def test_an_absurd_exponent_is_out_of_bounds(unit: Unit, name: str, text: str) -> None:
    invalid(unit.put(with_number(name, text)), f"/{name}")


@pytest.mark.parametrize(
    "name", ["priceSar", "areaSqm", "vatRate", "depositPercent", "bedrooms", "deliveryYear", "floor"]
)
@pytest.mark.parametrize("text", ['"100"', "true", "false", "[100]", '{"value": 100}', '""'])
def test_only_a_number_is_a_number(unit: Unit, name: str, text: str) -> None:
    invalid(unit.put(with_number(name, text)), f"/{name}")
    assert not unit.exists


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("bedrooms", "0", 0),
        ("bedrooms", "3.0", 3),
        ("bedrooms", "3e0", 3),
        ("bedrooms", "30e-1", 3),
        ("bedrooms", "999", 999),
        ("bathrooms", "2.000", 2),
        ("bathrooms", "999", 999),
        ("deliveryYear", "1900", 1900),
        ("deliveryYear", "2027.0", 2027),
        ("deliveryYear", "2.2e3", 2200),
        ("floor", "-9", -9),
        ("floor", "2e2", 200),
    ],
)
def test_a_whole_number_may_be_written_any_way(unit: Unit, name: str, text: str, value: int) -> None:
    created = unit.put(with_number(name, text))
    assert created.status_code == 201, created.text
    answer = exact(created)[name]
    assert isinstance(answer, int)
    assert answer == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bedrooms", "-1"),
        ("bedrooms", "3.5"),
        ("bedrooms", "1000"),
        ("bedrooms", "3.00000000000000000001"),
        ("bathrooms", "-1"),
        ("bathrooms", "0.5"),
        ("bathrooms", "1000"),
        ("deliveryYear", "1899"),
        ("deliveryYear", "2201"),
        ("deliveryYear", "2027.5"),
        ("floor", "-10"),
        ("floor", "201"),
        ("floor", "0.5"),
    ],
)
def test_a_whole_number_out_of_bounds_is_refused(unit: Unit, name: str, text: str) -> None:
    invalid(unit.put(with_number(name, text)), f"/{name}")


def test_negative_zero_is_zero(unit: Unit) -> None:
    created = unit.put(with_number("priceSar", "-0.0"))
    assert created.status_code == 201
    assert (
        not exact(created)["priceSar"].is_signed()
        if isinstance(exact(created)["priceSar"], Decimal)
        else True
    )
    assert '"priceSar":-' not in created.text.replace(" ", "")


@pytest.mark.parametrize(("once", "again"), [("1.50", "1.5"), ("100", "1e2"), ("0.10", "0.1"), ("7", "7.00")])
def test_the_same_value_written_differently_is_no_change(unit: Unit, once: str, again: str) -> None:
    first = unit.put(with_number("priceSar", once))
    second = unit.put(with_number("priceSar", again))
    assert second.headers["etag"] == first.headers["etag"]
    assert second.json()["updatedAt"] == first.json()["updatedAt"]


def test_a_patch_is_as_exact_as_a_put(stored: Unit) -> None:
    answer = exact(stored.patch('{"priceSar": 999999999999.99, "areaSqm": 0.0001}'))
    assert (answer["priceSar"], answer["areaSqm"]) == (Decimal("999999999999.99"), Decimal("0.0001"))


def test_a_float_in_python_survives_untouched(unit: Unit) -> None:
    created = unit.create(full(priceSar=Decimal("0.3"), areaSqm=Decimal("1.1")))
    assert (created["priceSar"], created["areaSqm"]) == (Decimal("0.3"), Decimal("1.1"))
