"""What people do again and again, in the words of the pages."""

import re
import time

from playwright.sync_api import Locator, Page

from tests.browser.windows import PATIENCE_MS
from tests.support.client import Project


def board(page: Page, project: Project) -> None:
    page.goto(f"/backoffice/projects/{project.slug}")


def cell(page: Page, code: str) -> Locator:
    """Of the board."""
    return page.locator("a.u").filter(has=page.locator("bdi", has_text=re.compile(f"^{re.escape(code)}$")))


def unit_page(page: Page, project: Project, code: str) -> None:
    page.goto(f"/backoffice/projects/{project.slug}/units/{code}")


def panel(page: Page) -> Locator:
    """The status of a unit, and what can be done."""
    return page.locator("#unit-panel")


def load_until_seen(page: Page, wanted: Locator) -> None:
    """For what a page tells once it is loaded anew, a moment later."""
    until = time.monotonic() + PATIENCE_MS / 1000
    while not wanted.count():
        assert time.monotonic() < until, "it never appears"
        page.reload()


def press(page: Page | Locator, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def unfold(page: Page | Locator, name: str) -> Locator:
    """A question that asks once; the form in it."""
    summary = page.locator("details.asks > summary").filter(has_text=re.compile(f"^\\s*{name}\\s*$"))
    summary.click()
    return summary.locator("xpath=following-sibling::form")
