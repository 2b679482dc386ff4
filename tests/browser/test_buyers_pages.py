"""axe finds nothing on any page of buyers, none is wider than a phone, and the table has all of them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from holdfast.web.pages.routes import PagePath
from holdfast.web.pages.storefront.base import BuyerRequest
from tests.browser.office import Office
from tests.browser.page_checks import LookAtShop, shop_looker
from tests.browser.shop_pages import NOT_SHOP_PAGES, SHOP_PAGES, ShopPage
from tests.browser.shop_scene import set_up_shop
from tests.browser.windows import Theme
from tests.support.in_process import all_routes, app_with

LOOKS: tuple[tuple[str, Theme], ...] = (("en", "light"), ("en", "dark"), ("ar", "light"))
LOOKED_AT = {page.route for page in SHOP_PAGES if page.route is not None}


def routes() -> set[str]:
    pages = (route.endpoint for route in all_routes(app_with().routes))
    return {
        page.path
        for page in pages
        if isinstance(page, PagePath) and page.request_class is BuyerRequest and "GET" in page.pages
    }


def test_every_page_of_buyers_is_looked_at() -> None:
    assert routes() - NOT_SHOP_PAGES - LOOKED_AT == set()


def test_no_page_of_the_buyers_table_is_gone() -> None:
    assert (LOOKED_AT | NOT_SHOP_PAGES) - routes() == set()


@pytest.fixture(scope="module")
def look(browser: Browser, demo: Office) -> Iterator[LookAtShop]:
    with shop_looker(browser, set_up_shop(demo)) as look:
        yield look


@pytest.mark.parametrize(("language", "theme"), LOOKS)
@pytest.mark.parametrize("page", SHOP_PAGES, ids=lambda page: page.name)
def test_axe_finds_nothing_and_a_phone_is_wide_enough(
    page: ShopPage, language: str, theme: Theme, look: LookAtShop
) -> None:
    look(page, language, theme)
