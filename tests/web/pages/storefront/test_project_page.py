"""The page of a project: what buyers see of it, and what they do not."""

from collections.abc import Callable

import httpx

from tests.browser.hostile_names import IMAGE, QUOTED, SCRIPT
from tests.support.backoffice import Desk
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.web.pages.storefront.buyers import Buyer, project_page, unit_page
from tests.web.pages.storefront.windows import cards, fill, labels, windows


def test_the_units_on_sale_are_a_picture_and_a_list(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(project_page(stored.project))
    assert windows(page) == cards(page) == {stored.code: "available"}
    assert labels(page) == {f"{stored.code}, Available"}
    assert 'aria-label="Floor 4"' in page
    # 950,000 and 15 % of it.
    assert "SAR\N{NO-BREAK SPACE}1,092,500" in page
    assert "with 15% VAT" in page


def test_what_is_not_on_sale_is_not_shown_at_all(buyer: Buyer, off_sale: Unit) -> None:
    page = buyer.see(project_page(off_sale.project))
    assert off_sale.code not in page
    assert "Nothing is on sale here yet" in page
    assert buyer.look(unit_page(off_sale)).status_code == 404


def test_taken_units_are_shown_as_taken(
    buyer: Buyer, new_buyer: Callable[..., Buyer], new_unit: Callable[..., Unit], desk: Desk
) -> None:
    held, reserved, sold, free = (new_unit(code) for code in ("A-101", "A-102", "A-201", "A-202"))
    for unit in (held, reserved, sold):
        path = new_buyer().signed(unit)
        if unit is not held:
            desk.did_to_booking(path.rpartition("/")[2], "confirm-deposit")
    desk.did_to_booking(path.rpartition("/")[2], "close-sale")
    page = buyer.see(project_page(free.project))
    shown = {"A-101": "held", "A-102": "reserved", "A-201": "sold", "A-202": "available"}
    assert windows(page) == shown
    assert cards(page) == shown
    assert '<span data-count="available">1</span> <small>/ <span data-count="all">4</span>' in page


def test_the_holder_sees_the_unit_as_theirs_and_finds_back(
    buyer: Buyer, new_buyer: Callable[..., Buyer], stored: Unit
) -> None:
    path = buyer.hold(stored)
    mine, others = (one.see(project_page(stored.project)) for one in (buyer, new_buyer()))
    assert windows(mine) == cards(mine) == {stored.code: "mine"}
    assert f'href="{path}" data-own="{stored.code}"' in mine
    assert "data-ends=" in mine
    assert windows(others) == {stored.code: "held"}
    assert 'id="holds"' not in others


def test_a_look_never_holds(buyer: Buyer, stored: Unit) -> None:
    for path in (project_page(stored.project), unit_page(stored)):
        answer = buyer.request("HEAD", path, headers=buyer.sent())
        assert answer.status_code == 200
        assert answer.content == b""
        buyer.see(path)
    assert stored.read()["status"] == "available"


def test_an_unknown_project_is_told_in_the_language_of_the_reader(buyer: Buyer) -> None:
    for path in ("/p/nowhere", "/p/NO%20SLUG", "/p/%FF"):
        assert "There is nothing here" in buyer.see(path, 404)
    assert "لا يوجد شيء هنا" in buyer.see("/p/nowhere?lang=ar", 404)


def test_names_are_names(buyer: Buyer, http: httpx.Client, project: Project, sql: Sql) -> None:
    sql.execute(f"update project set name = $${IMAGE}$$ where slug = '{project.slug}'")
    hostile = {
        "type": SCRIPT,
        "description": QUOTED,
        "images": [{"url": "https://a.example/", "name": QUOTED}],
    }
    (unit,) = fill(http, project, {"code": f"A{IMAGE}", **hostile})
    for path in (project_page(project), unit_page(unit)):
        page = buyer.see(path)
        assert not any(text in page for text in (IMAGE, SCRIPT, QUOTED)), path


def test_a_text_in_two_languages_is_shown_in_one(
    buyer: Buyer, new_unit: Callable[..., Unit], project: Project
) -> None:
    unit = new_unit("A-101", type="Studio flat | استوديو صغير")
    english, arabic = (buyer.see(f"{project_page(project)}?lang={code}") for code in ("en", "ar"))
    for page, own, other in (
        (english, "Studio flat", "استوديو صغير"),
        (arabic, "استوديو صغير", "Studio flat"),
    ):
        assert f'<span dir="auto">{own}</span>' in page
        assert f'<span dir="auto">{other}</span>' not in page
    assert '<html lang="ar" dir="rtl">' in arabic
    # Chosen once, it stays.
    assert '<html lang="ar" dir="rtl">' in buyer.see(unit_page(unit))


def test_search_engines_find_one_page_in_both_languages(buyer: Buyer, stored: Unit) -> None:
    for path in (project_page(stored.project), unit_page(stored)):
        page = buyer.see(f"{path}?order=price&lang=en")
        assert 'rel="canonical" href="http' in page
        assert f'{path}">' in page
        for code in ("en", "ar"):
            assert f'hreflang="{code}" href="http' in page
            assert f'{path}?lang={code}">' in page
        assert "noindex" not in page


ODD = (
    "bedrooms=-1", "bedrooms=99999999999999999999", "bedrooms=٣", "floor=-10", "floor=1.5",
    "floor=9999999999",
    "priceFrom=1e400", "priceTo=NaN",
    "priceFrom=999999999999999.9999", "areaTo=abc", "order=colour", "after=nonsense", "after=",
    "type=" + "x" * 5000,
    "building=-1", "building=99999999", "building=18446744073709551616", "free=&free=1", "after=AAAAAA",
    "priceFrom=%F0%9F%8F%A0", "a[]=1", "%FF=1", "type=%00", "lang=xx", "lang=ar&lang=en", "&&&=",
)  # fmt: skip


UNREADABLE = {"%FF=1", "type=%00"}


def test_odd_questions_have_an_answer(buyer: Buyer, stored: Unit) -> None:
    for query in ODD:
        answer = buyer.look(f"{project_page(stored.project)}?{query}")
        assert answer.status_code == (400 if query in UNREADABLE else 200), query
        assert "<h1" in answer.text
        assert buyer.look(f"{unit_page(stored)}?{query}").status_code == 200, query
