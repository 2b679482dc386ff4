"""Units are put on and off sale and sold at the desk."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.journeys import board, cell, panel, press, unfold, unit_page
from tests.browser.office import Office
from tests.support.buying import BUYER
from tests.support.client import Project


@pytest.mark.slow
def test_a_unit_is_taken_off_sale_and_put_on_sale_again(page: Page, office: Office, tower: Project) -> None:
    board(page, tower)
    cell(page, "A-101").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A-101")
    press(unfold(panel(page), "Take off sale"), "Take off sale")
    expect(page.get_by_role("status")).to_contain_text("off sale")
    expect(panel(page)).to_contain_text("Unavailable")
    assert office.unit(tower, "A-101").read()["status"] == "unavailable"
    press(unfold(panel(page), "Put on sale"), "Put on sale")
    expect(panel(page)).to_contain_text("Available")
    assert office.unit(tower, "A-101").read()["status"] == "available"
    history = page.locator(".timeline").first
    expect(history).to_contain_text("Taken off sale")
    expect(history).to_contain_text("Put back on sale")


def test_a_walk_in_buyer_buys_a_unit(page: Page, office: Office, tower: Project) -> None:
    unit_page(page, tower, "A-102")
    form = unfold(panel(page), "Sell to a walk-in buyer")
    form.get_by_label("Buyer's name").fill("Nora Al-Harbi")
    form.get_by_label("E-mail address").fill("nora@example.com")
    form.get_by_label("Phone number").fill("+966 50 123 4567")
    press(form, "Sell to a walk-in buyer")
    expect(panel(page)).to_contain_text("Sold")
    panel(page).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Booking")
    expect(page.locator("main")).to_contain_text("Nora Al-Harbi")
    assert office.unit(tower, "A-102").read()["status"] == "sold"


@pytest.mark.slow
def test_what_a_walk_in_form_lacks_is_told_beside_its_field(
    open_window: Open, office: Office, tower: Project
) -> None:
    """Without a script, and past the browser's own checks, as a form of ours may come from anywhere."""
    page = open_window(office.people.add("sales"), scripts=False).page
    unit_page(page, tower, "A-103")
    form = unfold(panel(page), "Sell to a walk-in buyer")
    form.get_by_label("Buyer's name").fill("Nora Al-Harbi")
    form.get_by_label("E-mail address").fill("nora@example.com")
    form.get_by_label("Phone number").fill("no number")
    press(form, "Sell to a walk-in buyer")
    wrong = page.get_by_label("Phone number")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_have_value("no number")
    expect(page.get_by_label("Buyer's name")).to_have_value("Nora Al-Harbi")
    assert office.unit(tower, "A-103").read()["status"] == "available"


@pytest.mark.slow
def test_whoever_ends_a_hold_is_told_whom_it_hits_and_asked_once(
    page: Page, office: Office, tower: Project
) -> None:
    hold = office.buyer.hold(office.unit(tower, "A-201"))
    hold.sign()
    unit_page(page, tower, "A-201")
    form = unfold(panel(page), "Cancel the hold")
    expect(form).to_contain_text(f"This will end the hold of {BUYER['buyerName']}.")
    press(form, "Cancel")
    expect(form).not_to_be_visible()
    assert office.unit(tower, "A-201").read()["status"] == "held"
    press(unfold(panel(page), "Cancel the hold"), "Cancel the hold")
    expect(panel(page)).to_contain_text(re.compile("Available"))


def test_a_deposit_is_confirmed_and_the_sale_closed(page: Page, office: Office, tower: Project) -> None:
    hold = office.buyer.hold(office.unit(tower, "A-202"))
    hold.sign()
    page.goto(f"/backoffice/bookings/{hold.reference}")
    press(unfold(page, "Confirm the deposit"), "Confirm the deposit")
    expect(page.locator("main")).to_contain_text("Waiting for the sale to be closed")
    press(unfold(page, "Close the sale"), "Close the sale")
    expect(page.locator("ol.way")).to_contain_text("Sale closed")
    assert office.unit(tower, "A-202").read()["status"] == "sold"
