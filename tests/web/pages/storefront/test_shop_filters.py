"""Units are looked for: by what they are, in some order, page by page."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.buying import offer_url
from tests.support.client import Project, Unit, exact
from tests.web.api.conftest import new_project  # noqa: F401 - for the whole module
from tests.web.pages.storefront.buyers import Buyer, project_page
from tests.web.pages.storefront.windows import cards, fill, lit, next_page, windows

ORDERS = ("price", "price-down", "area", "area-down", "floor", "floor-down")
VAT = (
    {"vatIncluded": False, "vatRate": 15},
    {"vatIncluded": True, "vatRate": 15},
    {"vatIncluded": None, "vatRate": None},
)


def _unit(number: int) -> dict[str, Any]:
    """Twenty-four of them, in two buildings, no two alike."""
    floor, position = divmod(number, 4)
    return {
        "code": f"{'AB'[position % 2]}-{floor + 1}{position + 1:02}",
        "type": ("Flat | شقة", "Studio | استوديو", 'Duplex "über"')[number % 3],
        "bedrooms": None if number % 5 == 4 else number % 5,
        "floor": -1 if number == 23 else None,
        "areaSqm": Decimal("40.25") + number * 7 % 24 * 5,
        "priceSar": Decimal("400000.33") + number * 5 % 24 * 50_000,
        **VAT[number % 3],
    }


UNITS = [_unit(number) for number in range(24)]


@pytest.fixture(scope="module")
def street(http: httpx.Client, new_project: Callable[[], Project]) -> Project:  # noqa: F811
    """Units of every kind, which no test changes."""
    made = new_project()
    fill(http, made, *UNITS)
    return made


def total(unit: dict[str, Any]) -> Decimal:
    rate = 15 if unit["vatIncluded"] is False else 0
    return Decimal(unit["priceSar"] * (100 + rate) / 100).quantize(Decimal("0.01"))


def codes_of(wanted: Callable[[dict[str, Any]], bool]) -> set[str]:
    return {unit["code"] for unit in UNITS if wanted(unit)}


def all_pages(buyer: Buyer, path: str) -> list[str]:
    found: list[str] = []
    at: str | None = path
    while at is not None:
        page = buyer.see(at)
        found += cards(page)
        at = next_page(page)
    return found


FILTERS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("bedrooms=2", lambda unit: unit["bedrooms"] == 2),
    ("bedrooms=0", lambda unit: unit["bedrooms"] == 0),
    ("type=" + quote('Duplex "über"'), lambda unit: unit["type"].startswith("Duplex")),
    ("priceFrom=900,000", lambda unit: total(unit) >= 900_000),
    ("priceTo=٩٠٠٬٠٠٠", lambda unit: total(unit) <= 900_000),
    ("areaFrom=60&areaTo=85.25", lambda unit: 60 <= unit["areaSqm"] <= Decimal("85.25")),
    ("bedrooms=1&priceTo=800000", lambda unit: unit["bedrooms"] == 1 and total(unit) <= 800_000),
    ("floor=2", lambda unit: unit["code"][2:].startswith("2")),
    ("floor=6", lambda unit: unit["code"][2:].startswith("6") and unit["floor"] is None),
    ("floor=-1&order=price", lambda unit: unit["floor"] == -1),
    ("floor=99", lambda _: False),
    ("priceFrom=900000&priceTo=1", lambda _: False),
]


@pytest.mark.parametrize(("query", "wanted"), FILTERS, ids=[query for query, _ in FILTERS])
def test_the_list_has_what_fits_and_the_picture_dims_the_rest(
    buyer: Buyer, street: Project, query: str, wanted: Callable[[dict[str, Any]], bool]
) -> None:
    path = f"{project_page(street)}?{query}"
    assert set(all_pages(buyer, path)) == lit(buyer.see(path)) == codes_of(wanted)


def test_nothing_that_fits_is_told_with_a_way_out(buyer: Buyer, street: Project) -> None:
    page = buyer.see(f"{project_page(street)}?bedrooms=77")
    assert "No unit is like that" in page
    assert f'<a href="{project_page(street)}#units" data-clear>' in page


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_shows_every_unit_once(buyer: Buyer, street: Project, order: str) -> None:
    found = all_pages(buyer, f"{project_page(street)}?order={order}")
    assert sorted(found) == sorted(unit["code"] for unit in UNITS)


def test_orders_are_what_they_say(buyer: Buyer, street: Project) -> None:
    by_code = {unit["code"]: unit for unit in UNITS}

    def shown(order: str, value: Callable[[dict[str, Any]], Any]) -> list[Any]:
        return [value(by_code[code]) for code in all_pages(buyer, f"{project_page(street)}?order={order}")]

    for name, value in (
        ("price", total),
        ("area", lambda unit: unit["areaSqm"]),
        ("floor", lambda unit: int(unit["code"][2]) if unit["floor"] is None else unit["floor"]),
    ):
        assert shown(name, value) == sorted(map(value, UNITS))
        assert shown(f"{name}-down", value) == sorted(map(value, UNITS), reverse=True)


def test_the_total_that_is_looked_for_is_the_total_of_the_terms(
    buyer: Buyer, http: httpx.Client, project: Project
) -> None:
    """The database reckons it for the filter, the domain for the page: down to the last halala."""
    prices = [
        Decimal("0.01"),
        Decimal("0.03"),
        Decimal("999.99"),
        Decimal("333333.33"),
        Decimal("999999999999.99"),
    ]
    made = [
        {"code": f"A-1{at:02}", "priceSar": price, "vatIncluded": included, "vatRate": rate}
        for at, (price, (included, rate)) in enumerate(
            (price, vat)
            for price in prices
            for vat in (
                (False, Decimal(15)),
                (False, Decimal("12.3456")),
                (False, None),
                (True, Decimal(5)),
                (None, Decimal(5)),
            )
        )
    ]
    for unit in fill(http, project, *made):
        sum_told = exact(http.get(offer_url(unit)))["totalSar"]
        page = buyer.see(f"{project_page(project)}?priceFrom={sum_told}&priceTo={sum_told}&order=price")
        assert unit.code in lit(page)
        assert lit(page) >= set(cards(page))
        assert next_page(page) is not None or set(cards(page)) == lit(page)


def test_pages_neither_skip_nor_repeat_when_units_change_between_them(
    buyer: Buyer, http: httpx.Client, project: Project
) -> None:
    made = fill(
        http, project, *({"code": f"A-{floor}01", "priceSar": floor * 1000} for floor in range(1, 21))
    )
    first = buyer.see(f"{project_page(project)}?order=price")
    made[0].patch({"status": "unavailable"})
    Unit(http, project, "A-2101").create({"type": "Flat", "areaSqm": 80, "priceSar": 500})
    later = all_pages(buyer, next_page(first) or "")
    assert [*cards(first), *later] == [unit.code for unit in made]


def test_only_free_units_are_listed_where_that_is_asked(
    buyer: Buyer, new_buyer: Callable[..., Buyer], new_unit: Callable[..., Unit]
) -> None:
    taken, free = new_unit("A-101"), new_unit("A-102")
    new_buyer().hold(taken)
    page = buyer.see(f"{project_page(free.project)}?free=1")
    assert list(cards(page)) == ["A-102"]
    assert windows(page) == {"A-101": "held", "A-102": "available"}
    assert lit(page) == {"A-102"}


def test_a_part_of_the_page_is_the_same_as_the_page(buyer: Buyer, street: Project) -> None:
    path = f"{project_page(street)}?bedrooms=1"
    whole, part = buyer.see(path), buyer.look(path, **{"hx-request": "true"}).text
    assert windows(part) == windows(whole)
    assert cards(part) == cards(whole)
    assert "<html" not in part


def test_the_other_language_keeps_the_filters(buyer: Buyer, street: Project) -> None:
    page = buyer.see(f"{project_page(street)}?lang=en&type=a%26b&bedrooms=1")
    assert f'href="{project_page(street)}?type=a%26b&amp;bedrooms=1&amp;lang=ar"' in page


def test_an_address_that_cannot_be_read_is_told_on_a_page(buyer: Buyer, street: Project) -> None:
    answer = buyer.look(f"{project_page(street)}?bedrooms=%00")
    assert answer.status_code == 400
    assert f'href="{project_page(street)}?lang=ar"' in answer.text


def test_a_large_project_is_shown_one_building_at_a_time(
    buyer: Buyer, http: httpx.Client, project: Project
) -> None:
    fill(
        http,
        project,
        *(
            {"code": f"{name}-{floor}{at:02}", "priceSar": 1000}
            for name in "ABC"
            for floor in range(1, 15)
            for at in range(1, 11)
        ),
    )
    page, other = (buyer.see(f"{project_page(project)}?building={at}") for at in (0, 2))
    assert {code[0] for code in windows(page)} == {"A"}
    assert {code[0] for code in windows(other)} == {"C"}
    assert '<option value="2" selected>Building C</option>' in other
    # What changes in another building is no reason to look at everything anew.
    assert " data-whole" not in page
    # The list goes by the whole project.
    assert {code[0] for code in all_pages(buyer, f"{project_page(project)}?order=floor")} == set("ABC")
