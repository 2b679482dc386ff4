"""Holding a unit by its button: it is held once, or the page says why not and what else there is."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.backoffice import Desk
from tests.support.client import Project, Unit
from tests.support.server import RunningServer
from tests.web.api.storefront.limits import coming_from
from tests.web.pages.storefront.buyers import VISITOR, Buyer, reference_in, unit_page

NewUnit = Callable[..., Unit]
NewBuyer = Callable[..., Buyer]


def is_free(unit: Unit) -> bool:
    return bool(unit.read()["status"] == "available")


def test_the_button_holds_the_unit_and_leads_to_the_booking(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    assert path.startswith(f"/p/{stored.project.slug}/bookings/")
    assert stored.read()["status"] == "held"
    page = buyer.see(path)
    assert f"Unit <bdi>{stored.code}</bdi> is held for you" in page
    assert reference_in(path) in page


def test_a_second_click_leads_to_the_same_booking(buyer: Buyer, stored: Unit) -> None:
    assert buyer.hold(stored) == buyer.hold(stored)


def test_two_clicks_at_the_same_time_lead_to_the_same_booking(buyer: Buyer, new_unit: NewUnit) -> None:
    for number in range(3):
        unit = new_unit(f"A-{number}")
        with ThreadPoolExecutor(4) as clicks:
            paths = set(clicks.map(buyer.hold, [unit] * 4))
        assert len(paths) == 1
        assert buyer.post_form(f"{paths.pop()}/cancel").status_code == 303


def test_the_button_of_a_unit_of_ones_own_leads_to_its_booking_later_too(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    path = buyer.signed(stored)
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    assert buyer.hold(stored) == path


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_opening_the_address_holds_nothing(buyer: Buyer, stored: Unit, method: str) -> None:
    answer = buyer.request(method, f"{unit_page(stored)}/hold", headers=buyer.sent())
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert is_free(stored)
    if method == "GET":
        assert f'href="{unit_page(stored)}"' in answer.text


def test_a_browser_that_looks_ahead_holds_nothing(buyer: Buyer, stored: Unit) -> None:
    answer = buyer.try_to_hold(stored, **{"sec-purpose": "prefetch;prerender"})
    assert answer.status_code == 405
    assert is_free(stored)


@pytest.mark.parametrize(
    ("fields", "site"), [({"csrf": ""}, "same-origin"), ({"csrf": "0" * 64}, "none"), ({}, "cross-site")]
)
def test_a_form_of_another_site_holds_nothing(
    buyer: Buyer, stored: Unit, fields: dict[str, str], site: str
) -> None:
    answer = buyer.post_form(f"{unit_page(stored)}/hold", fields, **{"sec-fetch-site": site})
    assert answer.status_code == 403
    assert is_free(stored)


def test_a_form_without_a_cookie_holds_nothing(buyer: Buyer, stored: Unit) -> None:
    answer = buyer.post(f"{unit_page(stored)}/hold", data={"csrf": "0" * 64})
    assert answer.status_code == 403
    assert is_free(stored)


# Somebody else has it


def test_who_comes_too_late_is_shown_three_units_that_are_free(
    buyer: Buyer, new_buyer: NewBuyer, new_unit: NewUnit
) -> None:
    wanted = new_unit("A-1", bedrooms=3)
    alike = [new_unit(f"A-{number}", bedrooms=3) for number in (2, 3, 4)]
    other = new_unit("A-9", bedrooms=1)
    new_buyer().hold(wanted)
    answer = buyer.try_to_hold(wanted)
    assert answer.status_code == 409
    assert int(answer.headers["retry-after"]) > 0
    assert "Somebody was faster" in answer.text
    for unit in alike:
        assert f'href="{unit_page(unit)}"' in answer.text
    assert f'href="{unit_page(other)}"' not in answer.text


@pytest.mark.parametrize(("action", "told"), [("reserve", "reserved for another"), ("sell", "is sold")])
def test_a_unit_that_is_another_buyers_is_told_to_be_so(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, desk: Desk, action: str, told: str
) -> None:
    reference = reference_in(new_buyer().signed(stored))
    desk.did_to_booking(reference, "confirm-deposit")
    if action == "sell":
        desk.did_to_booking(reference, "close-sale")
    answer = buyer.try_to_hold(stored)
    assert answer.status_code == 409
    assert told in answer.text
    assert reference not in answer.text


def test_a_unit_that_is_not_on_sale_is_no_unit_to_buyers(buyer: Buyer, off_sale: Unit) -> None:
    answer = buyer.try_to_hold(off_sale)
    assert answer.status_code == 404
    assert "There is nothing here" in answer.text


@pytest.mark.parametrize("place", ["No_Such/units/A-1", "no-such/units/A-1", "x/units/%FF"])
def test_an_address_of_nothing_is_told_on_a_page(buyer: Buyer, place: str) -> None:
    answer = buyer.post_form(f"/p/{place}/hold")
    assert answer.status_code == 404
    assert "<html" in answer.text


# Fairness


def test_who_holds_three_units_is_shown_them_and_can_let_one_go(buyer: Buyer, new_unit: NewUnit) -> None:
    paths = [buyer.hold(new_unit(f"A-{number}")) for number in range(3)]
    wanted = new_unit("B-1")
    answer = buyer.try_to_hold(wanted)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert "You hold as many units as you can" in answer.text
    for path in paths:
        assert f'href="{path}"' in answer.text
        assert f'action="{path}/cancel"' in answer.text
    gone = buyer.post_form(f"{paths[0]}/cancel", {"then": unit_page(wanted)})
    assert (gone.status_code, gone.headers["location"]) == (303, unit_page(wanted))
    assert buyer.hold(wanted)


def test_the_holds_of_other_projects_count_and_are_shown(
    buyer: Buyer, new_unit: NewUnit, new_project: Callable[[], Project]
) -> None:
    elsewhere = new_project()
    wanted = new_unit("A-1")
    paths = []
    for number in range(3):
        unit = Unit(wanted.http, elsewhere, f"Z-{number}")
        unit.create({"type": "villa", "areaSqm": 300, "priceSar": 2_000_000})
        paths.append(buyer.hold(unit))
    answer = buyer.try_to_hold(wanted)
    assert answer.status_code == 429
    assert all(path in answer.text for path in paths)


def test_holds_that_were_not_made_on_pages_cannot_be_let_go_there(buyer: Buyer, new_unit: NewUnit) -> None:
    elsewhere = coming_from(new_unit("B-1").http, cookie=f"{VISITOR}={buyer.visitor}")
    for number in range(3):
        elsewhere.hold(new_unit(f"A-{number}"))
    answer = buyer.try_to_hold(new_unit("B-2"))
    assert answer.status_code == 429
    assert "Yours were not made on these pages" in answer.text
    assert "Let one go" not in answer.text


def test_a_form_leads_nowhere_but_to_a_unit(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    answer = buyer.post_form(f"{path}/cancel", {"then": "https://evil.example/p/x/units/y"})
    assert answer.headers["location"] == path


def test_too_many_holds_of_a_shared_network_are_explained(
    new_buyer: NewBuyer, strict: RunningServer, new_unit: NewUnit
) -> None:
    shared = {"x-forwarded-for": "203.0.113.7"}
    for number in range(2):
        new_buyer(strict.address, **shared).hold(new_unit(f"A-{number}"))
    answer = new_buyer(strict.address, **shared).try_to_hold(new_unit("B-1"))
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert "Too many units are held from your network" in answer.text


def test_after_a_lapse_the_same_buyer_waits_and_sees_for_how_long(
    limited_buyer: Buyer, new_buyer: NewBuyer, strict: RunningServer, stored: Unit, desk: Desk
) -> None:
    desk.settle(stored.project, holdSeconds=0.05)
    path = limited_buyer.hold(stored)
    limited_buyer.wait_for(path, "lapsed")
    page = limited_buyer.see(path)
    assert "The unit is still free" in page
    assert "others have their chance first" in page
    assert "data-waits=" in page
    answer = limited_buyer.try_to_hold(stored)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert "One moment, please" in answer.text
    assert "data-waits=" in answer.text
    assert new_buyer(strict.address).hold(stored) != path


@pytest.mark.parametrize("language", ["en", "ar"])
def test_refusals_are_told_in_the_language_of_the_buyer(
    new_buyer: NewBuyer, stored: Unit, language: str
) -> None:
    new_buyer().hold(stored)
    answer = new_buyer(**{"accept-language": language}).try_to_hold(stored)
    told = {"en": "Somebody was faster", "ar": "سبقك غيرك إليها"}[language]
    assert told in answer.text
    assert f'<html lang="{language}"' in answer.text
    assert f'href="{unit_page(stored)}?lang=' in answer.text
