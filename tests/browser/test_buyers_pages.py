"""axe finds nothing on any page of buyers, none is wider than a phone, and the table has all of them."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from playwright.sync_api import Browser

from holdfast.web.parts import Parts
from holdfast.web.storefront.pages.door import BuyerPage
from holdfast.web.storefront.pages.routes import storefront_page_places
from tests.browser.looking import LookAtShop, shop_looker
from tests.browser.office import Office
from tests.browser.shop_pages import NOT_SHOP_PAGES, SHOP_PAGES, ShopPage
from tests.browser.shop_scene import set_up_shop
from tests.browser.windows import Theme

LOOKS: tuple[tuple[str, Theme], ...] = (("en", "light"), ("en", "dark"), ("ar", "light"))
LOOKED_AT = {page.route for page in SHOP_PAGES if page.route is not None}


def routes() -> set[str]:
    """Nothing is asked of the parts until somebody comes."""
    nothing = cast(Any, None)
    parts = Parts(**dict.fromkeys(Parts._fields, nothing))
    places = storefront_page_places(parts, nothing)
    return {place.path for place in places if isinstance(place, BuyerPage) and "GET" in place.methods}


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
