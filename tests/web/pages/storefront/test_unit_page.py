"""The page of a unit: what it is, what it costs, and whether it can be had now."""

import re
from collections.abc import Callable

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.client import Project, Unit
from tests.web.pages.storefront.buyers import Buyer, project_page, unit_page
from tests.web.pages.storefront.windows import cards, windows


def test_it_tells_what_the_unit_is_and_what_it_costs(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(unit_page(stored))
    for told in ("apartment", "A corner flat.", "Sea view.", "120.5", "Bathrooms", "2027", "Floor 4"):
        assert told in page
    for price in ("950,000", "142,500", "1,092,500", "27,312.50"):
        assert f"SAR\N{NO-BREAK SPACE}{price}" in page
    assert windows(page) == {stored.code: "available"}
    assert 'aria-current="page"' in page


def test_vat_that_is_in_the_price_is_told_as_a_part_of_it(
    buyer: Buyer, new_unit: Callable[..., Unit]
) -> None:
    page = buyer.see(unit_page(new_unit("A-101", priceSar=1_150_000, vatIncluded=True, depositPercent=None)))
    assert "of which VAT 15%" in page
    assert "SAR\N{NO-BREAK SPACE}150,000" in page
    assert "Deposit" not in page


def test_a_unit_with_hardly_any_facts_has_a_page(buyer: Buyer, unit: Unit) -> None:
    unit.create({"type": "Plot", "areaSqm": 1, "priceSar": 0})
    page = buyer.see(unit_page(unit))
    assert "There is no picture of it yet" in page
    assert "VAT" not in page


@pytest.mark.parametrize("code", ["A/101", "50%", "عربي"])
def test_a_code_of_any_characters_has_a_page_and_can_be_held(
    buyer: Buyer, new_unit: Callable[..., Unit], code: str
) -> None:
    unit = new_unit(code)
    assert f'action="{unit_page(unit)}/hold"' in buyer.see(unit_page(unit))
    assert unit_page(unit) in buyer.see(buyer.hold(unit))


def test_a_free_unit_is_opened_by_a_form(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(unit_page(stored))
    assert f'<form method="post" action="{unit_page(stored)}/hold">' in page
    assert "Nothing to pay yet." in page


def test_the_holder_goes_on_and_others_wait(
    buyer: Buyer, new_buyer: Callable[..., Buyer], new_unit: Callable[..., Unit]
) -> None:
    unit, alike = new_unit("A-101"), new_unit("A-102")
    booking = buyer.hold(unit)
    mine, others = buyer.see(unit_page(unit)), new_buyer().see(unit_page(unit))
    assert f'href="{booking}">Continue your booking</a>' in mine
    assert "This unit is held for you." in mine
    assert "Somebody is looking at it right now" in others
    assert re.search(r'data-ends="\d{13}" data-now="\d{13}"', others)
    assert "/hold" not in others
    assert list(cards(others)) == [alike.code]


def test_a_reserved_unit_says_so_and_shows_similar_ones(
    buyer: Buyer, new_buyer: Callable[..., Buyer], new_unit: Callable[..., Unit], desk: Desk
) -> None:
    unit, *alike = (new_unit(f"A-{floor}01") for floor in range(1, 6))
    desk.did_to_booking(new_buyer().signed(unit).rpartition("/")[2], "confirm-deposit")
    page = buyer.see(unit_page(unit))
    assert "This unit is reserved" in page
    assert len(cards(page)) == 3
    assert set(cards(page)) < {one.code for one in alike}


def test_a_buyer_goes_on_with_a_unit_that_is_reserved_for_them(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    booking = buyer.signed(stored)
    desk.did_to_booking(booking.rpartition("/")[2], "confirm-deposit")
    page = buyer.see(unit_page(stored))
    assert f'href="{booking}">Continue your booking</a>' in page
    assert "This unit is reserved for you." in page
    assert windows(page) == {stored.code: "reserved"}


def test_a_script_asks_for_what_has_changed_alone(buyer: Buyer, stored: Unit) -> None:
    part = buyer.look(unit_page(stored), **{"hx-request": "true"}).text
    assert 'id="state" data-look="available"' in part
    assert "<html" not in part


def test_pictures_of_our_own_are_asked_of_whatever_host_is_looked_at(
    buyer: Buyer, new_unit: Callable[..., Unit], server: InProcessApp
) -> None:
    """And none is loaded over plain http from elsewhere, or without need told where one was seen."""
    images = [
        {"url": f"{server.address}/static/favicon.svg", "name": "Plan | المخطط"},
        f"{server.address}//elsewhere.example/x.svg",
        "http://elsewhere.example/plain.jpg",
        "https://elsewhere.example/a.jpg",
    ]
    page = buyer.see(unit_page(new_unit("A-101", images=images)))
    shown = re.findall(
        r'<img src="([^"]+)" alt="([^"]*)"[^>]*width="960"[^>]*referrerpolicy="no-referrer"', page
    )
    assert shown == [
        ("/static/favicon.svg", "Plan"),
        ("/elsewhere.example/x.svg", "x.svg"),
        ("https://elsewhere.example/a.jpg", "a.jpg"),
    ]


def test_a_link_has_a_preview(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(unit_page(stored))
    assert 'property="og:title" content="A-101 · apartment' in page
    assert 'property="og:image" content="https://media.example/a.jpg"' in page
    assert 'property="og:description" content="A corner flat. Sea view."' in page


def test_a_code_of_any_letters_has_a_page(buyer: Buyer, http: httpx.Client, project: Project) -> None:
    for code in ("A/101", "شقة ١", "100%", "a?b#c", "..", "'"):
        unit = Unit(http, project, code)
        unit.create({"type": "Flat", "areaSqm": 80, "priceSar": 1000})
        page = buyer.look(unit_page(unit).replace("..", "%2E%2E"))
        assert page.status_code == 200, code
    assert len(windows(buyer.see(project_page(project)))) == 6
