"""Agreement and receipt in a real browser: accessible, fitting a phone, and printed without their bar."""

import pytest
from playwright.sync_api import Page

from tests.browser.axe import axe_faults
from tests.browser.conftest import Open
from tests.browser.pages import BOOKING
from tests.browser.scene import Scene
from tests.browser.windows import DESKTOP, PHONE

STATES = {"agreement": ("signed", "reserved", "refund-due"), "receipt": ("reserved", "refund-due", "signed")}
_PRINTS = "() => { window.print = () => { document.body.dataset.printed = 'yes' } }"


def looked_at(page: Page, scene: Scene, paper: str, status: str, language: str) -> Page:
    page.goto(f"{BOOKING.format(reference=scene.bookings[status])}/{paper}?lang={language}")
    assert page.locator("html").get_attribute("lang") == language
    return page


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("paper", STATES)
def test_a_paper_is_for_everybody(open_window: Open, scene: Scene, paper: str, language: str) -> None:
    page = open_window(scene.person("admin", language)).page
    for status in STATES[paper]:
        looked_at(page, scene, paper, status, language)
        assert axe_faults(page) == []
        for size in (DESKTOP, PHONE):
            page.set_viewport_size(size)
            assert page.evaluate("document.scrollingElement.scrollWidth") <= size["width"]


def test_a_paper_is_printed_by_a_button_and_without_its_bar(open_window: Open, scene: Scene) -> None:
    page = open_window(scene.person("admin", "en")).page
    looked_at(page, scene, "agreement", "reserved", "en")
    page.evaluate(_PRINTS)
    page.get_by_role("button", name="Print").click()
    assert page.locator("body").get_attribute("data-printed") == "yes"
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible()
    assert page.locator("h1").is_visible()


def test_without_scripts_no_button_promises_to_print(open_window: Open, scene: Scene) -> None:
    page = open_window(scene.person("admin", "en"), scripts=False).page
    looked_at(page, scene, "agreement", "reserved", "en")
    assert not page.locator("[data-print]").is_visible()
    assert page.get_by_role("link", name="Save as PDF").is_visible()
