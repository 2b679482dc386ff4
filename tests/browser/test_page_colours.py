"""What `test_pages` leaves out: colours in both themes, axe in Arabic, hostile names."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.checks import Check, all_rules, dark_colours
from tests.browser.hostile_names import IMAGE, hostile_scene
from tests.browser.office import Office
from tests.browser.pages import PAGES, BrowserPage
from tests.browser.scene import Scene
from tests.browser.shop_pages import SHOP_PAGES
from tests.browser.shop_scene import ShopScene
from tests.browser.windows import Window, window
from tests.support.webhooks import an_inbox

pytestmark = pytest.mark.slow
BEHIND_THE_SIGN_IN = [page for page in PAGES if page.role is not None and page.status == 200]
_MARKUP = "img[src=x], svg[onload], [onerror]"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_axe_finds_nothing_on_a_page_of_staff(page: BrowserPage[Scene], check: Check) -> None:
    check(page, "ar", all_rules, dark_colours)


@pytest.mark.parametrize("page", SHOP_PAGES, ids=lambda page: page.name)
def test_axe_finds_nothing_on_a_page_of_buyers(page: BrowserPage[ShopScene], check_shop: Check) -> None:
    check_shop(page, "ar", all_rules, dark_colours)


@pytest.fixture(scope="module")
def hostile(office: Office) -> Iterator[Scene]:
    with an_inbox() as inbox:
        yield hostile_scene(office, inbox)


@pytest.fixture(scope="module")
def admins_window(browser: Browser, hostile: Scene) -> Iterator[Window]:
    with window(browser, hostile.office.address, hostile.person("admin", "en")) as opened:
        yield opened


@pytest.mark.parametrize("page", BEHIND_THE_SIGN_IN, ids=lambda page: page.name)
def test_no_name_becomes_a_part_of_the_page(
    page: BrowserPage[Scene], admins_window: Window, hostile: Scene
) -> None:
    """Dialogs, requests and broken policies fail it as well: the window is watched."""
    shown = admins_window.page
    shown.goto(page.path(hostile))
    assert shown.locator(_MARKUP).count() == 0
    assert admins_window.watch.taken() == []


def test_the_names_are_there_to_be_read(admins_window: Window, hostile: Scene) -> None:
    shown = admins_window.page
    for path in (
        "/projects", "/bookings", "/projects/hostile", "/projects/hostile?view=table", "/audit",
        f"/bookings/{hostile.bookings['sold']}",
        f"/settings/api/webhooks/{hostile.endpoints['healthy']}",
        f"/deliveries/{hostile.deliveries['delivered']}",
    ):  # fmt: skip
        shown.goto(f"/backoffice{path}")
        assert IMAGE in shown.locator("main").inner_text(), path
