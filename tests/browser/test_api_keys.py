"""A key is made in the browser and used by another system."""

from contextlib import suppress

import httpx
import pytest
from playwright.sync_api import Error, Page, expect

from tests.browser.conftest import Open
from tests.browser.journeys import press
from tests.browser.office import Office
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.server import wait_until

KEYS = "/backoffice/settings/api/keys"


def made_key(page: Page, name: str, only: Project | None = None) -> str:
    page.goto(KEYS)
    page.get_by_role("link", name="New key").click()
    page.get_by_label("Name", exact=True).fill(name)
    if only is not None:
        page.get_by_label("Selected projects").check()
        page.get_by_label(only.name).check()
    press(page, "Create key")
    return page.locator(".once code").inner_text()


def test_a_key_is_made_used_and_revoked(page: Page, office: Office, tower: Project) -> None:
    text = made_key(page, "Nightly sync", only=tower)
    with integration_client(office.address, text) as http:
        Unit(http, tower, "B-101").create(minimal())
        page.goto(KEYS)
        row = page.get_by_role("row").filter(has_text="Nightly sync").filter(has_text=tower.slug)
        expect(row).to_be_visible()
        assert text not in page.content()
        row.locator("summary", has_text="Revoke").click()
        press(row, "Revoke")
        expect(page.get_by_role("status")).to_be_visible()
        expect(row).to_have_count(0)
        # Within a second: a process keeps a key for a moment.
        wait_until(lambda: Unit(http, tower, "B-101").get().status_code == httpx.codes.UNAUTHORIZED)


@pytest.mark.slow
def test_the_key_is_copied_by_a_button(open_window: Open, office: Office) -> None:
    window = open_window(office.people.add("integrator"))
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = made_key(window.page, "To be copied")
    copy = window.page.locator(".once").get_by_role("button")
    copy.click()
    expect(copy).to_have_text("Copied")
    assert window.page.evaluate("() => navigator.clipboard.readText()") == text


@pytest.mark.slow
def test_the_answer_with_the_key_is_nowhere_kept(page: Page) -> None:
    """Going back leads to a question of the browser, since the answer to a form is kept nowhere."""
    text = made_key(page, "Seen once")
    page.goto(KEYS)
    with suppress(Error):
        page.go_back()
    expect(page.locator(".once")).to_have_count(0)
    expect(page.get_by_text(text)).to_have_count(0)
