"""Every page of staff once in each language: it is accessible, and no wider than a desk or a phone."""

import pytest

from holdfast.web.pages.backoffice.base import StaffRequest
from tests.browser.axe import Rules
from tests.browser.checks import Check
from tests.browser.pages import NOT_PAGES, PAGES, BrowserPage, pages_of
from tests.browser.scene import Scene


def test_the_table_has_every_page_of_staff_and_no_other() -> None:
    assert {page.route for page in PAGES if page.route} | NOT_PAGES == pages_of(StaffRequest)
    assert len({page.name for page in PAGES}) == len(PAGES)


# What axe finds in one language is mostly to be found in the other: the slow tests run it in both.
@pytest.mark.parametrize(("language", "rules"), [("en", "structure"), ("ar", "none")])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_accessible_and_fits_a_phone(
    page: BrowserPage[Scene], language: str, rules: Rules, check: Check
) -> None:
    check(page, language, "light", rules)
