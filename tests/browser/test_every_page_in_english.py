"""axe-core finds nothing on any page, and none is wider than a phone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.page_checks import THEMES, Look, looker
from tests.browser.pages import PAGES, BrowserPage
from tests.browser.scene import Scene
from tests.browser.windows import Theme


@pytest.fixture(scope="module")
def look(browser: Browser, scene: Scene) -> Iterator[Look]:
    with looker(browser, scene, "en") as look:
        yield look


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_axe_finds_nothing_and_a_phone_is_wide_enough(page: BrowserPage, theme: Theme, look: Look) -> None:
    look(page, theme)
