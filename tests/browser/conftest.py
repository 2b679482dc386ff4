"""A browser for all the tests of this folder, and an installation that they look at."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.buyers import OpenPhone, phone
from tests.browser.checks import Check, checking_office, checking_shop
from tests.browser.office import Office, open_office
from tests.browser.scene import Scene, set_up
from tests.browser.shop_scene import ShopScene, set_up_shop
from tests.browser.windows import PATIENCE_MS, Window, window
from tests.support import chromium
from tests.support.bodies import full
from tests.support.chromium import beside_playwright, opened_beside_playwright
from tests.support.client import Project
from tests.support.clusters import NEWEST, Cluster
from tests.support.webhooks import an_inbox

Open = Callable[..., Window]
# A window that asks another host for a picture fails its test.
NO_MEDIA: dict[str, object] = {"images": [], "files": []}


# Of the package, not of the session: while Playwright is there, no test of another folder can run its loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with chromium.chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def office(
    tmp_path_factory: pytest.TempPathFactory, cluster_of: Callable[[int], Cluster]
) -> Iterator[Office]:
    """Shared: look only at what your own test has made."""
    with beside_playwright():
        url = cluster_of(NEWEST).new_database()
    with opened_beside_playwright(open_office(tmp_path_factory.mktemp("office"), url)) as office:
        yield office


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, cluster_of: Callable[[int], Cluster]) -> Iterator[Office]:
    """`serve --demo`: an office with a payment page and a receiver outside. Shared likewise."""
    with beside_playwright():
        url = cluster_of(NEWEST).new_database()
    with opened_beside_playwright(open_office(tmp_path_factory.mktemp("demo"), url, "--demo")) as demo:
        yield demo


@pytest.fixture
def open_phone(browser: Browser, demo: Office) -> Iterator[OpenPhone]:
    """The phones of buyers, each with a browser of its own."""
    with ExitStack() as phones:
        yield lambda language="en", **look: phones.enter_context(phone(browser, demo, language, **look))


@pytest.fixture(scope="session")
def scene(office: Office) -> Iterator[Scene]:
    with an_inbox() as inbox, an_inbox() as refusing:
        yield set_up(office, inbox, refusing)


@pytest.fixture(scope="module")
def check(browser: Browser, scene: Scene) -> Iterator[Check]:
    with checking_office(browser, scene) as check:
        yield check


@pytest.fixture(scope="package")
def shop_scene(demo: Office) -> ShopScene:
    return set_up_shop(demo)


@pytest.fixture(scope="module")
def check_shop(browser: Browser, shop_scene: ShopScene) -> Iterator[Check]:
    with checking_shop(browser, shop_scene) as check:
        yield check


@pytest.fixture
def tower(office: Office) -> Project:
    """A project of this test alone: two floors of three units, all on sale."""
    codes = [f"A-{floor}0{position}" for floor in (1, 2) for position in (1, 2, 3)]
    slug = f"tower-{uuid4().hex[:8]}"
    return office.new_project(slug, f"The {slug}", [full(code=code, floor=None) | NO_MEDIA for code in codes])


@pytest.fixture
def open_window(browser: Browser, office: Office) -> Iterator[Open]:
    """Windows of several people, or none at all: what one complains of fails the test in the end."""
    with ExitStack() as windows:
        yield lambda *who, **look: windows.enter_context(_window(browser, office)(*who, **look))


def _window(browser: Browser, office: Office) -> Callable[..., AbstractContextManager[Window]]:
    return partial(window, browser, office.address)


@pytest.fixture
def page(open_window: Open, office: Office) -> Page:
    """Of an admin who reads English, at a desk."""
    return open_window(office.people.add("admin")).page
