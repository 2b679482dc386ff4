"""The page of a unit: what it is, what it costs, and its button, which holds it or says why not."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.buying import offer_url
from tests.support.client import Project, Unit
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.staff_client import missing
from tests.web.api.storefront.limits import coming_from, new_address
from tests.web.pages.storefront.buyers import VISITOR, Buyer, project_page, reference_in, unit_page
from tests.web.pages.storefront.windows import cards, windows

NewUnit = Callable[..., Unit]
NewBuyer = Callable[..., Buyer]

CLIENTS = 200
HOLD = "POST {}/hold HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_it_tells_what_the_unit_is_and_what_it_costs(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(unit_page(stored))
    prices = [f"SAR\xa0{price}" for price in ("950,000", "142,500", "1,092,500", "27,312.50")]
    told = (
        "apartment", "A corner flat.", "Sea view.", "120.5", "Bathrooms", "2027", "Floor 4",
        'aria-current="page"', "Hold this unit for 5 minutes", "You do not pay anything now.",
        f'<form method="post" action="{unit_page(stored)}/hold">',
        'property="og:title" content="A-101 · apartment',
        'property="og:image" content="https://media.example/a.jpg"',
        'property="og:description" content="A corner flat. Sea view."',
    )  # fmt: skip
    assert missing(page, *prices, *told) == []
    assert windows(page) == {stored.code: "available"}
    part = buyer.look(unit_page(stored), **{"hx-request": "true"}).text
    assert 'id="state" data-look="available"' in part
    assert "<html" not in part


@pytest.mark.parametrize(("seconds", "length"), [(60, "1 minute"), (90, "90 seconds"), (600, "10 minutes")])
def test_the_button_names_exactly_the_length_of_a_hold(
    buyer: Buyer, stored: Unit, desk: Desk, seconds: float, length: str
) -> None:
    settings = f"/v1/backoffice/projects/{stored.project.slug}"
    assert desk.http.patch(settings, json={"holdSeconds": seconds}).status_code == 200
    assert f"Hold this unit for {length}<" in buyer.see(unit_page(stored))


def test_vat_that_is_in_the_price_is_told_as_a_part_of_it(buyer: Buyer, new_unit: NewUnit) -> None:
    page = buyer.see(unit_page(new_unit("A-101", priceSar=1_150_000, vatIncluded=True, depositPercent=None)))
    assert missing(page, "VAT 15%, included", "SAR\xa0150,000") == []
    assert "Deposit" not in page


def test_a_unit_with_hardly_any_facts_has_a_page(buyer: Buyer, unit: Unit) -> None:
    unit.create({"type": "Plot", "areaSqm": 1, "priceSar": 0})
    page = buyer.see(unit_page(unit))
    assert "No pictures yet. The drawing is not the floor plan." in page
    assert "VAT" not in page


def test_a_code_of_any_letters_has_a_page_and_can_be_held(buyer: Buyer, new_unit: NewUnit) -> None:
    units = [new_unit(code) for code in ("A/101", "شقة ١", "50%", "a?b#c", "..", "'")]
    for unit in units:
        page = unit_page(unit).replace("..", "%2E%2E")
        assert "/hold" in buyer.see(page), unit.code
        path = buyer.post_form(f"{page}/hold").headers["location"]
        assert buyer.post_form(f"{path}/cancel").status_code == 303
    assert len(windows(buyer.see(project_page(units[0].project)))) == 6


def test_a_unit_that_is_held_or_reserved_shows_the_holder_the_way_on_and_others_similar_ones(
    buyer: Buyer, new_buyer: NewBuyer, new_unit: NewUnit, desk: Desk
) -> None:
    unit, *alike = (new_unit(f"A-{floor}01") for floor in range(1, 6))
    booking = buyer.signed(unit)
    on = f'href="{booking}">Continue your booking</a>'
    assert missing(buyer.see(unit_page(unit)), on, "This unit is on hold for you.") == []
    page = new_buyer().see(unit_page(unit))
    assert "On hold for another buyer" in page
    assert re.search(r'data-ends="\d{13}" data-now="\d{13}"', page)
    assert "/hold" not in page
    desk.did_to_booking(reference_in(booking), "confirm-deposit")
    assert missing(buyer.see(unit_page(unit)), on, "This unit is reserved for you.") == []
    page = new_buyer().see(unit_page(unit))
    assert "Reserved for another buyer" in page
    assert len(cards(page)) == 3
    assert set(cards(page)) < {one.code for one in alike}


def test_our_own_pictures_have_no_host(buyer: Buyer, new_unit: NewUnit, server: InProcessApp) -> None:
    """And none is loaded over plain http from elsewhere, or without need told where one was seen."""
    images = [
        {"url": f"{server.address}/static/favicon.svg", "name": "Plan | المخطط"},
        f"{server.address}//elsewhere.example/x.svg",
        "http://elsewhere.example/plain.jpg",
        "https://elsewhere.example/a.jpg",
    ]
    page = buyer.see(unit_page(new_unit("A-101", images=images)))
    image = r'<img src="([^"]+)" alt="([^"]*)"[^>]*width="960"[^>]*referrerpolicy="no-referrer"'
    assert re.findall(image, page) == [
        ("/static/favicon.svg", "Plan"),
        ("/elsewhere.example/x.svg", "x.svg"),
        ("https://elsewhere.example/a.jpg", "a.jpg"),
    ]


def test_the_button_holds_the_unit_and_leads_to_the_booking(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    with ThreadPoolExecutor(4) as clicks:
        (path,) = set(clicks.map(buyer.hold, [stored] * 4))
    assert path.startswith(f"/p/{stored.project.slug}/bookings/")
    assert stored.read()["status"] == "held"
    told = (f"Unit <bdi>{stored.code}</bdi> is on hold for you", reference_in(path))
    assert missing(buyer.see(path), *told) == []
    buyer.sign(path)
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    assert buyer.hold(stored) == path, "it leads there later, too"


def test_nothing_but_a_form_of_our_own_holds_a_unit(buyer: Buyer, stored: Unit) -> None:
    path = f"{unit_page(stored)}/hold"
    for method in ("GET", "HEAD"):
        answer = buyer.request(method, path, headers=buyer.sent())
        assert answer.status_code == 200
        assert method == "HEAD" or "Opening this page holds nothing." in answer.text
    assert f'action="{path}"' in buyer.refused_hold(stored, 200, **{"sec-purpose": "prefetch;prerender"})
    forged: list[tuple[dict[str, str], str]] = [
        ({"csrf": ""}, "same-origin"), ({"csrf": "0" * 64}, "none"), ({}, "cross-site"),
    ]  # fmt: skip
    for fields, site in forged:
        assert buyer.post_form(path, fields, **{"sec-fetch-site": site}).status_code == 403
    assert buyer.post(path, data={"csrf": "0" * 64}).status_code == 403
    assert stored.read()["status"] == "available"


def test_a_unit_that_is_not_on_sale_is_no_unit_to_buyers(buyer: Buyer, off_sale: Unit) -> None:
    pages = ("/p/No_Such/units/A-1", "/p/no-such/units/A-1", "/p/x/units/%FF", unit_page(off_sale))
    for page in pages:
        answer = buyer.post_form(f"{page}/hold")
        if answer.status_code == 303:
            answer = buyer.look(answer.headers["location"])
        assert (answer.status_code, "Page not found" in answer.text) == (404, True)


def test_who_comes_too_late_is_told_who_has_it_and_shown_three_units_that_are_free(
    buyer: Buyer, new_buyer: NewBuyer, new_unit: NewUnit, desk: Desk
) -> None:
    wanted = new_unit("A-1", bedrooms=3)
    alike = [new_unit(f"A-{number}", bedrooms=3) for number in (2, 3, 4)]
    other = new_unit("A-9", bedrooms=1)
    reference = reference_in(new_buyer().signed(wanted))
    page = buyer.refused_hold(wanted)
    links = [f'href="{unit_page(unit)}"' for unit in alike]
    assert missing(page, "This unit has just been taken", *links) == []
    assert f'href="{unit_page(other)}"' not in page
    arabic = new_buyer(**{"accept-language": "ar"}).refused_hold(wanted)
    link = f"{unit_page(wanted)}/hold?lang="
    assert missing(arabic, "سبقك مشترٍ آخر إلى هذه الوحدة", '<html lang="ar"', link) == []
    for action, told in (("confirm-deposit", "reserved for another"), ("close-sale", "is sold")):
        desk.did_to_booking(reference, action)
        page = buyer.see(f"{unit_page(wanted)}/hold", 409)
        assert told in page
        assert reference not in page


def test_who_holds_three_units_is_shown_them_and_can_let_one_go(
    buyer: Buyer, new_unit: NewUnit, new_project: Callable[[], Project]
) -> None:
    wanted = new_unit("B-1")
    elsewhere = Unit(wanted.http, new_project(), "Z-1")
    elsewhere.create({"type": "villa", "areaSqm": 300, "priceSar": 2_000_000})
    paths = [buyer.hold(unit) for unit in (new_unit("A-1"), new_unit("A-2"), elsewhere)]
    page = buyer.refused_hold(wanted, 429)
    ways = [text for path in paths for text in (f'href="{path}"', f'action="{path}/cancel"')]
    assert missing(page, "ve reached the limit of 3 holds", *ways) == []
    gone = buyer.post_form(f"{paths[0]}/cancel", {"then": unit_page(wanted)})
    assert (gone.status_code, gone.headers["location"]) == (303, unit_page(wanted))
    page = buyer.see(f"{unit_page(wanted)}/hold")
    assert "Opening this page holds nothing." in page, "the refusal is over"
    assert wanted.read()["status"] == "available"
    booking = buyer.hold(wanted)
    assert buyer.look(f"{unit_page(wanted)}/hold").headers["location"] == booking


def test_holds_that_were_not_made_on_pages_cannot_be_let_go_there(buyer: Buyer, new_unit: NewUnit) -> None:
    elsewhere = coming_from(new_unit("B-1").http, cookie=f"{VISITOR}={buyer.cookies_kept[VISITOR]}")
    for number in range(3):
        elsewhere.hold(new_unit(f"A-{number}"))
    page = buyer.refused_hold(new_unit("B-2"), 429)
    assert "Your holds were not made on these pages" in page
    assert "Release one of your units" not in page


def test_a_network_holds_so_many_units(new_buyer: NewBuyer, strict: InProcessApp, new_unit: NewUnit) -> None:
    shared = {"x-forwarded-for": new_address()}
    for number in range(2):
        new_buyer(strict.address, **shared).hold(new_unit(f"A-{number}"))
    page = new_buyer(strict.address, **shared).refused_hold(new_unit("B-1"), 429)
    assert "Too many units are on hold from your network" in page


def test_after_a_lapse_the_same_buyer_waits_and_sees_for_how_long(
    limited_buyer: Buyer, new_buyer: NewBuyer, strict: InProcessApp, stored: Unit, sql: Sql
) -> None:
    path = limited_buyer.lapsed(stored, sql)
    told = ("The unit is still available", "other buyers have the first chance", "data-waits=")
    assert missing(limited_buyer.see(path), *told) == []
    assert missing(limited_buyer.refused_hold(stored, 429), "Please wait a moment", "data-waits=") == []
    assert stored.read()["status"] == "available"
    assert new_buyer(strict.address).hold(stored) != path


async def status_of_hold(address: httpx.URL, unit: Unit) -> int:
    """By a connection of its own; a client that does more would be what is waited for."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(HOLD.format(offer_url(unit)).encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(maxsplit=2)[1])


@pytest.mark.slow
async def test_a_crowd_at_one_unit_is_answered(real_server: RunningServer, stored: Unit) -> None:
    address = httpx.URL(real_server.address)
    async with httpx.AsyncClient(base_url=address, timeout=None) as visitor:
        crowd = [asyncio.create_task(status_of_hold(address, stored)) for _ in range(CLIENTS)]
        for page in (project_page(stored.project), unit_page(stored)):
            assert (await visitor.get(page)).status_code == 200
        answers = Counter(await asyncio.gather(*crowd))
    assert answers == {201: 1, 409: CLIENTS - 1}
