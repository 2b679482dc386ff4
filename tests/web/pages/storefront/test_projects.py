"""The page of a project: what buyers see of it, how they look for units, and what is told at once."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.browser.hostile_names import IMAGE, QUOTED, SCRIPT
from tests.support.backoffice import Desk
from tests.support.buying import offer_url
from tests.support.client import Project, Unit, exact
from tests.support.page_weight import MOST_BYTES, fonts_in, loaded_with, weight
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.staff_client import missing, next_page
from tests.web.pages.live_stream import watching
from tests.web.pages.storefront.buyers import Buyer, project_page, reference_in, unit_page
from tests.web.pages.storefront.windows import cards, fill, labels, lit, windows

NewBuyer = Callable[..., Buyer]

VAT = (
    {"vatIncluded": False, "vatRate": 15},
    {"vatIncluded": True, "vatRate": 15},
    {"vatIncluded": None, "vatRate": None},
)
ODD = (
    "bedrooms=-1", "bedrooms=99999999999999999999", "bedrooms=٣", "floor=-10", "floor=1.5",
    "priceFrom=1e400", "priceTo=NaN", "priceFrom=999999999999999.9999", "areaTo=abc", "order=colour",
    "after=nonsense", "after=", "after=AAAAAA", "type=" + "x" * 5000, "building=-1",
    "building=18446744073709551616", "free=&free=1", "priceFrom=%F0%9F%8F%A0", "a[]=1", "%FF=1", "type=%00",
    "lang=xx", "lang=ar&lang=en", "&&&=",
)  # fmt: skip
UNREADABLE = {"%FF=1", "type=%00"}
KINDS = ("3-bedroom apartment | شقة بثلاث غرف نوم", "Studio | استوديو")
FONTS = {"en": ("inter-basic", "instrument-serif"), "ar": ("inter-basic", "holdfast-sans-arabic")}
"""Which a browser loads for the letters of that page."""


def test_the_units_on_sale_are_a_picture_and_a_list(buyer: Buyer, stored: Unit) -> None:
    for path in (project_page(stored.project), unit_page(stored)):
        answer = buyer.request("HEAD", path, headers=buyer.sent())
        assert (answer.status_code, answer.content) == (200, b"")
    page = buyer.see(project_page(stored.project))
    assert windows(page) == cards(page) == {stored.code: "available"}
    assert labels(page) == {f"{stored.code}, Available"}
    # 950,000 and 15 % of it.
    assert missing(page, 'aria-label="Floor 4"', "SAR\xa01,092,500", "including 15% VAT") == []
    for query in ODD:
        answer = buyer.look(f"{project_page(stored.project)}?{query}")
        assert answer.status_code == (400 if query in UNREADABLE else 200), query
        assert "<h1" in answer.text
        assert query not in UNREADABLE or "?lang=ar" in answer.text
        assert buyer.look(f"{unit_page(stored)}?{query}").status_code == 200, query
    assert stored.read()["status"] == "available", "a look never holds"


def test_what_is_not_on_sale_is_not_shown_at_all(buyer: Buyer, off_sale: Unit) -> None:
    page = buyer.see(project_page(off_sale.project))
    assert off_sale.code not in page
    assert "No units are on sale yet" in page
    buyer.see(unit_page(off_sale), 404)


def test_taken_units_are_shown_as_taken_and_ones_own_with_the_way_back(
    buyer: Buyer, new_buyer: NewBuyer, new_unit: Callable[..., Unit], desk: Desk
) -> None:
    held, reserved, sold, free = (new_unit(code) for code in ("A-101", "A-102", "A-201", "A-202"))
    path = buyer.hold(held)
    references = [reference_in(new_buyer().signed(unit)) for unit in (reserved, sold)]
    for reference in references:
        desk.did_to_booking(reference, "confirm-deposit")
    desk.did_to_booking(references[1], "close-sale")
    mine, others = (one.see(project_page(free.project)) for one in (buyer, new_buyer()))
    shown = {"A-101": "held", "A-102": "reserved", "A-201": "sold", "A-202": "available"}
    assert windows(others) == cards(others) == shown
    counts = '<span data-count="available">1</span> <small>of <span data-count="all">4</span>'
    assert counts in others
    assert 'id="holds"' not in others
    assert windows(mine) == cards(mine) == {**shown, "A-101": "mine"}
    assert missing(mine, f'href="{path}" data-own="A-101"', "data-ends=") == []
    page = buyer.see(f"{project_page(free.project)}?free=1")
    assert list(cards(page)) == ["A-202"]
    assert windows(page) == windows(mine)
    assert lit(page) == {"A-202"}


def test_an_unknown_project_is_told_in_the_language_of_the_reader(buyer: Buyer) -> None:
    for path in ("/p/nowhere", "/p/NO%20SLUG", "/p/%FF"):
        assert "Page not found" in buyer.see(path, 404)
    assert "الصفحة غير موجودة" in buyer.see("/p/nowhere?lang=ar", 404)
    buyer.see("/p/nowhere/live", 404)


def test_names_are_names(buyer: Buyer, http: httpx.Client, project: Project, sql: Sql) -> None:
    sql.execute("update project set name = $2 where slug = $1", project.slug, IMAGE)
    image = {"url": "https://a.example/", "name": QUOTED}
    hostile = {"type": SCRIPT, "description": QUOTED, "images": [image]}
    (unit,) = fill(http, project, {"code": f"A{IMAGE}", **hostile})
    names = [IMAGE, SCRIPT, QUOTED]
    for path in (project_page(project), unit_page(unit)):
        assert missing(buyer.see(path), *names) == names


def test_a_text_is_in_one_language(buyer: Buyer, new_unit: Callable[..., Unit], project: Project) -> None:
    unit = new_unit("A-101", type="Studio flat | استوديو صغير")
    english, arabic = (buyer.see(f"{project_page(project)}?lang={code}") for code in ("en", "ar"))
    words = [f'<span dir="auto">{word}</span>' for word in ("Studio flat", "استوديو صغير")]
    assert missing(english, *words) == words[1:]
    assert missing(arabic, *words, '<html lang="ar" dir="rtl">') == words[:1]
    assert '<html lang="ar" dir="rtl">' in buyer.see(unit_page(unit)), "chosen once, it stays"
    for path in (project_page(project), unit_page(unit)):
        page = buyer.see(f"{path}?order=price&lang=en")
        links = [f'{path}">', f'{path}?lang=en">', f'{path}?lang=ar">', 'hreflang="ar" href="http']
        assert missing(page, 'rel="canonical" href="http', *links) == []
        assert "noindex" not in page


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_first_view_of_a_project_is_under_100_kb(
    buyer: Buyer, http: httpx.Client, project: Project, language: str
) -> None:
    """On a phone, before any picture is loaded."""
    places = [(name, floor, at) for name in "AB" for floor in range(1, 13) for at in range(1, 6)]
    units = [{"code": f"{name}-{floor:02}{at:02}", "type": KINDS[at % 2]} for name, floor, at in places]
    fill(http, project, *units)
    page = buyer.look(f"{project_page(project)}?lang={language}")
    assert len(windows(page.text)) == 120
    loaded = loaded_with(buyer.look, page)
    fonts = fonts_in(loaded, FONTS[language])
    assert len(fonts) == len(FONTS[language]) + (language == "ar")
    everything = [page, *loaded.values(), *(buyer.look(font) for font in fonts)]
    assert weight(everything) < MOST_BYTES


def a_unit(number: int) -> dict[str, Any]:
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


UNITS = [a_unit(number) for number in range(24)]


@pytest.fixture(scope="module")
def street(http: httpx.Client, new_project: Callable[[], Project]) -> Project:
    """Units of every kind, which no test changes."""
    made = new_project()
    fill(http, made, *UNITS)
    return made


def total(unit: dict[str, Any]) -> Decimal:
    rate = 15 if unit["vatIncluded"] is False else 0
    return Decimal(unit["priceSar"] * (100 + rate) / 100).quantize(Decimal("0.01"))


def floor_of(unit: dict[str, Any]) -> int:
    return int(unit["code"][2]) if unit["floor"] is None else int(unit["floor"])


def listed(buyer: Buyer, path: str) -> list[str]:
    return [code for page in buyer.all_pages(path) for code in cards(page)]


FILTERS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("bedrooms=2", lambda unit: unit["bedrooms"] == 2),
    ("bedrooms=0", lambda unit: unit["bedrooms"] == 0),
    ("type=" + quote('Duplex "über"'), lambda unit: unit["type"].startswith("Duplex")),
    ("priceFrom=900,000", lambda unit: total(unit) >= 900_000),
    ("priceTo=٩٠٠٬٠٠٠", lambda unit: total(unit) <= 900_000),
    ("areaFrom=60&areaTo=85.25", lambda unit: 60 <= unit["areaSqm"] <= Decimal("85.25")),
    ("bedrooms=1&priceTo=800000", lambda unit: unit["bedrooms"] == 1 and total(unit) <= 800_000),
    ("floor=2", lambda unit: floor_of(unit) == 2),
    ("floor=6", lambda unit: floor_of(unit) == 6),
    ("floor=-1&order=price", lambda unit: floor_of(unit) == -1),
    ("floor=99", lambda _: False),
    ("priceFrom=900000&priceTo=1", lambda _: False),
]


@pytest.mark.parametrize(("query", "wanted"), FILTERS, ids=[query for query, _ in FILTERS])
def test_the_list_has_what_fits_and_the_picture_dims_the_rest(
    buyer: Buyer, street: Project, query: str, wanted: Callable[[dict[str, Any]], bool]
) -> None:
    path = f"{project_page(street)}?{query}"
    found = {unit["code"] for unit in UNITS if wanted(unit)}
    assert set(listed(buyer, path)) == lit(buyer.see(path)) == found


def test_an_amount_that_filters_nothing_is_explained_beside_its_field(buyer: Buyer, street: Project) -> None:
    path, two_bedrooms = project_page(street), {unit["code"] for unit in UNITS if unit["bedrooms"] == 2}
    query = f"{path}?bedrooms=2&priceFrom=abc&priceTo=1e9&areaTo=x"
    page, part = buyer.see(query), buyer.look(query, **{"hx-request": "true"}).text
    for name, fields in (("price", "priceFrom priceTo"), ("area", "areaTo")):
        fault = f'id="fault-{name}" role="status" data-wrong="{fields}">Enter a number.'
        assert missing(page, fault, f'aria-describedby="fault-{name}" aria-invalid="true"') == []
        assert missing(part, fault, f'<a href="{path}#units" data-clear>') == []
    assert lit(page) == lit(part) == two_bedrooms
    assert "aria-invalid" not in buyer.see(f"{path}?priceFrom=1&priceTo=1")


def test_filters_are_kept_by_languages_and_scripts_and_cleared(buyer: Buyer, street: Project) -> None:
    path = project_page(street)
    page = buyer.see(f"{path}?bedrooms=77")
    assert missing(page, "No units match your filters", f'<a href="{path}#units" data-clear>') == []
    page = buyer.see(f"{path}?lang=en&type=a%26b&bedrooms=1")
    assert f'href="{path}?type=a%26b&amp;bedrooms=1&amp;lang=ar"' in page
    whole = buyer.see(f"{path}?bedrooms=1")
    part = buyer.look(f"{path}?bedrooms=1", **{"hx-request": "true"}).text
    assert (windows(part), cards(part)) == (windows(whole), cards(whole))
    assert "<html" not in part


@pytest.mark.parametrize(
    ("order", "value"), [("price", total), ("area", lambda unit: unit["areaSqm"]), ("floor", floor_of)]
)
def test_every_order_shows_every_unit_once_as_it_says(
    buyer: Buyer, street: Project, order: str, value: Callable[[dict[str, Any]], Any]
) -> None:
    by_code = {unit["code"]: unit for unit in UNITS}
    for name, is_reversed in ((order, False), (f"{order}-down", True)):
        found = listed(buyer, f"{project_page(street)}?order={name}")
        assert sorted(found) == sorted(by_code)
        values = [value(by_code[code]) for code in found]
        assert values == sorted(values, reverse=is_reversed)


def test_the_total_looked_for_is_that_of_the_terms(
    buyer: Buyer, http: httpx.Client, project: Project
) -> None:
    """The database reckons it for the filter, the domain for the page: down to the last halala."""
    prices = [Decimal(price) for price in ("0.01", "0.03", "999.99", "333333.33", "999999999999.99")]
    vat = [(False, Decimal(15)), (False, Decimal("12.3456")), (False, None), (True, Decimal(5)), (None, 5)]
    terms = [(price, *taxed) for price in prices for taxed in vat]
    made = [
        {"code": f"A-1{at:02}", "priceSar": price, "vatIncluded": included, "vatRate": rate}
        for at, (price, included, rate) in enumerate(terms)
    ]
    for unit in fill(http, project, *made):
        told = exact(http.get(offer_url(unit)))["totalSar"]
        page = buyer.see(f"{project_page(project)}?priceFrom={told}&priceTo={told}&order=price")
        assert unit.code in lit(page)
        assert lit(page) >= set(cards(page))
        assert next_page(page) is not None or set(cards(page)) == lit(page)


def test_pages_neither_skip_nor_repeat_units(buyer: Buyer, http: httpx.Client, project: Project) -> None:
    units = [{"code": f"A-{floor}01", "priceSar": floor * 1000} for floor in range(1, 21)]
    made = fill(http, project, *units)
    first = buyer.see(f"{project_page(project)}?order=price")
    made[0].patch({"status": "unavailable"})
    Unit(http, project, "A-2101").create({"type": "Flat", "areaSqm": 80, "priceSar": 500})
    assert [*cards(first), *listed(buyer, next_page(first) or "")] == [unit.code for unit in made]


def test_a_large_project_is_shown_by_building(buyer: Buyer, http: httpx.Client, project: Project) -> None:
    places = [(name, floor, at) for name in "ABC" for floor in range(1, 15) for at in range(1, 11)]
    fill(http, project, *({"code": f"{name}-{floor}{at:02}"} for name, floor, at in places))
    page, other = (buyer.see(f"{project_page(project)}?building={at}") for at in (0, 2))
    assert {code[0] for code in windows(page)} == {"A"}
    assert {code[0] for code in windows(other)} == {"C"}
    assert '<option value="2" selected>Building C</option>' in other
    assert " data-whole" not in page, "what changes in another building is no reason to look at everything"
    assert {code[0] for code in listed(buyer, f"{project_page(project)}?floor=1")} == set("ABC")


def test_what_is_taken_is_told(new_buyer: NewBuyer, stored: Unit, real_server: RunningServer) -> None:
    watcher, page = new_buyer(real_server.address), project_page(stored.project)
    answer = watcher.request("HEAD", f"{page}/live", headers=watcher.sent())
    assert (answer.status_code, answer.content) == (200, b"")
    with watching(watcher, page) as stream:
        other = new_buyer()
        path = other.hold(stored)
        told = stream.change_of(stored.code)
        assert told["status"] == "held"
        assert isinstance(told["endsAt"], int)
        assert told["counts"] == {"available": 0, "held": 1, "reserved": 0, "sold": 0}
        other.post_form(f"{path}/cancel")
        stream.change_of(stored.code, version=3)
        stored.patch({"status": "unavailable"})
        assert stored.code not in json.dumps(stream.next("anew"))
        assert stream.next("units")["units"] == []
