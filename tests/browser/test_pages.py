"""Every page once in each language: it is accessible, and no wider than a desk or a phone."""

import pytest

from holdfast.web.pages.backoffice.base import StaffRequest
from holdfast.web.pages.storefront.base import BuyerRequest
from tests.browser.checks import Check, Look, structure, widths
from tests.browser.pages import NOT_PAGES, PAGES, BrowserPage, pages_of
from tests.browser.scene import Scene
from tests.browser.shop_pages import NOT_SHOP_PAGES, SHOP_PAGES
from tests.browser.shop_scene import ShopScene

# What axe finds in one language is mostly to be found in the other. The slow tests look at the colours, in
# Arabic.
LOOKS = pytest.mark.parametrize(
    ("language", "looks"), [("en", [structure, widths]), ("ar", [widths])], ids=["en", "ar"]
)


def test_the_tables_have_every_page_and_no_other() -> None:
    assert {page.route for page in PAGES if page.route} | NOT_PAGES == pages_of(StaffRequest)
    assert {page.route for page in SHOP_PAGES if page.route} | NOT_SHOP_PAGES == pages_of(BuyerRequest)
    for pages in (PAGES, SHOP_PAGES):
        assert len({page.name for page in pages}) == len(pages)


@LOOKS
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_staff_is_accessible_and_fits_a_phone(
    page: BrowserPage[Scene], language: str, looks: list[Look], check: Check
) -> None:
    check(page, language, *looks)


@LOOKS
@pytest.mark.parametrize("page", SHOP_PAGES, ids=lambda page: page.name)
def test_a_page_of_buyers_is_accessible_and_fits_a_phone(
    page: BrowserPage[ShopScene], language: str, looks: list[Look], check_shop: Check
) -> None:
    check_shop(page, language, *looks)
