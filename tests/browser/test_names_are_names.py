"""A unit called `<img onerror>` is just a name, on every page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.hostile_names import IMAGE, hostile_scene
from tests.browser.office import Office
from tests.browser.pages import PAGES, BrowserPage
from tests.browser.scene import Scene
from tests.browser.windows import Window, window
from tests.support.webhooks import an_inbox

BEHIND_THE_SIGN_IN = [page for page in PAGES if page.role is not None and page.status == 200]
_HATCHED = "img[src=x], svg[onload], [onerror]"


@pytest.fixture(scope="module")
def hostile(office: Office) -> Iterator[Scene]:
    with an_inbox() as inbox:
        yield hostile_scene(office, inbox)


@pytest.fixture(scope="module")
def admins_window(browser: Browser, hostile: Scene) -> Iterator[Window]:
    with window(browser, hostile.office.address, hostile.person("admin", "en")) as opened:
        yield opened


@pytest.mark.parametrize("page", BEHIND_THE_SIGN_IN, ids=lambda page: page.name)
def test_no_name_becomes_a_part_of_the_page(page: BrowserPage, admins_window: Window, hostile: Scene) -> None:
    """Dialogs, requests and broken policies fail it as well: the window is watched."""
    shown = admins_window.page
    shown.goto(page.path(hostile))
    assert shown.locator(_HATCHED).count() == 0
    assert admins_window.watch.taken() == []


def test_the_names_are_there_to_be_read(admins_window: Window, hostile: Scene) -> None:
    shown = admins_window.page
    for path in (
        "/backoffice/projects",
        "/backoffice/bookings",
        "/backoffice/projects/hostile",
        "/backoffice/projects/hostile?view=table",
        f"/backoffice/bookings/{hostile.bookings['sold']}",
        f"/backoffice/settings/api/webhooks/{hostile.endpoints['healthy']}",
        f"/backoffice/deliveries/{hostile.deliveries['delivered']}",
        "/backoffice/audit",
    ):
        shown.goto(path)
        assert IMAGE in shown.locator("main").inner_text(), path
