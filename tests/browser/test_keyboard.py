"""Pages are used by somebody who has no mouse."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.buyers import OpenPhone, new_tower
from tests.browser.journeys import board, cell, panel
from tests.browser.office import Office
from tests.support.client import Project

MANY = 200
_FOCUSED = """() => {
    const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
    const isRinged = style.outlineStyle !== "none" || style.boxShadow !== "none";
    return { words: (one.getAttribute("aria-label") || one.innerText || "").trim(),
             isSeen: box.width > 0 && box.height > 0 && isRinged };
}"""


def tab_to(page: Page, words: str) -> None:
    """With the tabulator, as often as it takes; wherever it stops must be seen."""
    page.wait_for_load_state()
    for _ in range(MANY):
        page.keyboard.press("Tab")
        focused = page.evaluate(_FOCUSED)
        if focused["words"].startswith(words):
            assert focused["isSeen"], f"nobody sees that {words} has the focus"
            return
    raise AssertionError(f"the tabulator never comes to {words}")


@pytest.mark.slow
def test_the_first_stop_leads_past_the_menu(page: Page) -> None:
    page.goto("/backoffice/projects")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_unit_is_taken_off_sale_by_keys_alone(page: Page, office: Office, tower: Project) -> None:
    page.goto("/backoffice/projects")
    tab_to(page, tower.name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(tower.name)
    tab_to(page, "A-201")
    page.keyboard.press("ArrowDown")
    expect(cell(page, "A-101")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(cell(page, "A-102")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("A-102")
    tab_to(page, "Take off sale")
    page.keyboard.press("Enter")
    expect(page.locator("details.asks[open]")).to_contain_text("You can put it back on sale later.")
    tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    expect(page.locator("details.asks[open]")).to_have_count(0)
    expect(panel(page).locator("summary", has_text="Take off sale")).to_be_focused()
    assert office.unit(tower, "A-102").read()["status"] == "available"
    page.keyboard.press("Enter")
    tab_to(page, "Take off sale")
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text("Unavailable")
    assert office.unit(tower, "A-102").read()["status"] == "unavailable"


def test_every_building_of_the_picture_is_reached_and_an_amount_that_is_none_is_told(
    open_phone: OpenPhone, demo: Office
) -> None:
    tower = new_tower(demo, "A-101", "A-102", "A-201", "B-101", "B-102", "B-201")
    page = open_phone().page
    page.goto(f"/p/{tower.slug}")
    tab_to(page, "A-201")
    expect(page.locator("a.u[tabindex='0']")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("a.u[href$='/A-102']")).to_be_focused()
    tab_to(page, "B-201")
    page.keyboard.press("ArrowDown")
    expect(page.locator("a.u[href$='/B-101']")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.locator("a.u[href$='/A-102']")).to_be_focused()
    page.get_by_text("More filters").click()
    price = page.locator("[name=priceFrom]")
    price.fill("abc")
    expect(page.locator("#fault-price")).to_have_text("Enter a number. Until then this filter is not used.")
    expect(price).to_have_attribute("aria-invalid", "true")
    price.fill("1")
    expect(page.locator("#fault-price")).to_be_empty()
    expect(price).not_to_have_attribute("aria-invalid", "true")


@pytest.mark.slow
def test_a_question_is_taken_back_with_escape(page: Page, office: Office, tower: Project) -> None:
    office.buyer.hold(office.unit(tower, "A-103"))
    board(page, tower)
    cell(page, "A-103").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("A-103")
    tab_to(page, "Cancel the hold")
    page.keyboard.press("Enter")
    expect(page.locator("details.asks[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("details.asks[open]")).to_have_count(0)
    expect(panel(page).locator("summary", has_text="Cancel the hold")).to_be_focused()
    assert office.unit(tower, "A-103").read()["status"] == "held"
