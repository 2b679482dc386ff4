"""axe-core finds nothing on any page from right to left, and none is wider than a phone.

The colours are those of the pages in English.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.page_checks import Look, looker
from tests.browser.pages import PAGES, BrowserPage
from tests.browser.scene import Scene


@pytest.fixture(scope="module")
def look(browser: Browser, scene: Scene) -> Iterator[Look]:
    with looker(browser, scene, "ar") as look:
        yield look


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_axe_finds_nothing_and_a_phone_is_wide_enough(page: BrowserPage, look: Look) -> None:
    look(page, "light")
