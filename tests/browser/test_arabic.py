"""Arabic from right to left, with its own digits, on whatever page one is."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.journeys import cell, panel, unit_page
from tests.browser.office import Office
from tests.browser.windows import PHONE
from tests.support.client import Project
from tests.support.webhooks import an_inbox, pinged


def test_a_person_chooses_arabic_and_the_pages_turn_round(open_window: Open, office: Office) -> None:
    page = open_window(office.people.add("sales")).page
    page.goto("/backoffice/account")
    page.get_by_label("Language").select_option("ar")
    page.get_by_label("Digits").select_option("arab")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.locator("html")).to_have_attribute("lang", "ar")
    expect(page.get_by_role("heading", level=1)).to_have_text("حسابك")
    page.wait_for_load_state()
    rail, content = page.locator("header.rail").bounding_box(), page.locator("main").bounding_box()
    assert rail is not None
    assert content is not None
    assert rail["x"] > content["x"], "the menu stands on the right"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("digits", "price", "others"), [("arab", "٩٥٠٬٠٠٠", "[0-9]"), ("latn", "950,000", "[٠-٩]")]
)
def test_prices_and_areas_have_the_digits_that_were_chosen(
    digits: str, price: str, others: str, open_window: Open, office: Office, tower: Project
) -> None:
    page = open_window(office.people.add("sales", language="ar", digits=digits)).page
    unit_page(page, tower, "A-101")
    expect(page.get_by_text(price).first).to_be_visible()
    facts = page.locator("dl.facts").first.inner_text()
    assert not re.search(others, facts), facts


@pytest.mark.slow
def test_codes_are_read_from_left_to_right(open_window: Open, office: Office, tower: Project) -> None:
    page = open_window(office.people.add("sales", language="ar", digits="arab")).page
    page.goto(f"/backoffice/projects/{tower.slug}")
    expect(cell(page, "A-101")).to_be_visible()
    first, last = cell(page, "A-101").bounding_box(), cell(page, "A-103").bounding_box()
    assert first is not None
    assert last is not None
    assert first["x"] > last["x"], "the first of a floor stands on the right"
    cell(page, "A-101").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A-101")


@pytest.mark.slow
def test_a_refusal_is_told_in_arabic(open_window: Open, office: Office, tower: Project) -> None:
    """Two people act on one unit, and the second is told that it has changed."""
    page = open_window(office.people.add("sales", language="ar"), scripts=False).page
    unit_page(page, tower, "A-102")
    office.desk.did(office.unit(tower, "A-102"), "take-off-sale")
    asked = panel(page).locator("details", has=page.locator("form[action$='/take-off-sale']"))
    asked.locator("summary").click()
    asked.locator("form button:not(.quiet)").click()
    told = page.get_by_role("alert")
    expect(told).to_be_visible()
    assert re.search("[\u0621-\u064a]", told.inner_text())
    assert not re.search("[A-Za-z]", told.inner_text())


@pytest.mark.slow
def test_the_button_to_copy_a_body_covers_none_of_it(
    open_window: Open, office: Office, tower: Project
) -> None:
    with an_inbox() as inbox:
        endpoint = office.registrar.add(inbox.url, projects=[tower.slug])
        ping = pinged(office.registrar, inbox, 200, endpoint["id"])
    page = open_window(office.people.add("viewer", language="ar"), size=PHONE).page
    page.goto(f"/backoffice/deliveries/{ping['id']}")
    block = page.locator(".copied-block").first
    button, text = block.get_by_role("button").bounding_box(), block.locator("code").bounding_box()
    assert button is not None
    assert text is not None
    assert button["y"] + button["height"] <= text["y"]
