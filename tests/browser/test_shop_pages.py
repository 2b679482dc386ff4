"""Every page of buyers once in each language: it is accessible, and no wider than a desk or a phone."""

import pytest

from holdfast.web.pages.storefront.base import BuyerRequest
from tests.browser.axe import Rules
from tests.browser.checks import Check
from tests.browser.pages import BrowserPage, pages_of
from tests.browser.shop_pages import NOT_SHOP_PAGES, SHOP_PAGES
from tests.browser.shop_scene import ShopScene


def test_the_table_has_every_page_of_buyers_and_no_other() -> None:
    assert {page.route for page in SHOP_PAGES if page.route} | NOT_SHOP_PAGES == pages_of(BuyerRequest)
    assert len({page.name for page in SHOP_PAGES}) == len(SHOP_PAGES)


@pytest.mark.parametrize(("language", "rules"), [("en", "structure"), ("ar", "none")])
@pytest.mark.parametrize("page", SHOP_PAGES, ids=lambda page: page.name)
def test_a_page_is_accessible_and_fits_a_phone(
    page: BrowserPage[ShopScene], language: str, rules: Rules, check_shop: Check
) -> None:
    check_shop(page, language, "light", rules)
