"""Checks of a page: axe's rules, and the layout on a phone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

from tests.browser.axe import axe_faults
from tests.browser.pages import BrowserPage
from tests.browser.scene import Scene
from tests.browser.shop_pages import ShopPage
from tests.browser.shop_scene import ShopScene
from tests.browser.windows import DESKTOP, LOCALES, PHONE, Theme, Window, window

THEMES: tuple[Theme, ...] = ("light", "dark")
# What sticks out of the page, if it can be scrolled sideways for it.
_TOO_WIDE = """() => {
    const room = document.documentElement.clientWidth;
    if (document.scrollingElement.scrollWidth <= room) return [];
    const out = [...document.querySelectorAll("body *")].filter(one => {
        const box = one.getBoundingClientRect();
        return box.width && (box.right > room + 0.5 || box.left < -0.5);
    });
    return out.slice(0, 5).map(one => one.cloneNode().outerHTML.slice(0, 100)).concat("…");
}"""

Look = Callable[[BrowserPage, Theme], None]
LookAtShop = Callable[[ShopPage, str, Theme], None]


@contextmanager
def looker(browser: Browser, scene: Scene, language: str) -> Iterator[Look]:
    """One window for each role and theme, in which one page follows the other."""
    with ExitStack() as windows:
        opened: dict[tuple[str | None, Theme], Window] = {}

        def window_of(role: str | None, theme: Theme) -> Window:
            if (role, theme) not in opened:
                person = None if role is None else scene.person(role, language)
                own = window(browser, scene.office.address, person, theme=theme, locale=LOCALES[language])
                opened[role, theme] = windows.enter_context(own)
            return opened[role, theme]

        yield lambda page, theme: _look(window_of(page.role, theme), page, scene, language, theme)


@contextmanager
def shop_looker(browser: Browser, scene: ShopScene) -> Iterator[LookAtShop]:
    """Buyers have no name: each page is looked at in a window of its own."""

    def look(page: ShopPage, language: str, theme: Theme) -> None:
        with window(
            browser,
            scene.demo.address,
            size=PHONE,
            theme=theme,
            locale=LOCALES[language],
            beside=(scene.outside,),
        ) as seen:
            faults = list(_faults(seen.page, page, scene, language, theme))
        assert not faults, "\n".join(faults)

    yield look


def _look(seen: Window, looked_at: BrowserPage, scene: Scene, language: str, theme: Theme) -> None:
    faults = list(_faults(seen.page, looked_at, scene, language, theme)) + seen.watch.taken()
    assert not faults, "\n".join(faults)


def _faults(
    page: Page, looked_at: BrowserPage | ShopPage, scene: Any, language: str, theme: Theme
) -> Iterator[str]:
    """``scene``: the one that the page is of."""
    page.set_viewport_size(DESKTOP)
    answer = page.goto(looked_at.path(scene))
    if answer is None or answer.status != looked_at.status:
        yield f"answered {answer and answer.status}"
        return
    if looked_at.then is not None:
        looked_at.then(page, scene)
    if page.locator("html").get_attribute("lang") != language:
        yield "it speaks another language"
    # The same page in other colours has nothing else that could be wrong.
    yield from axe_faults(page, only_colours=theme == "dark")
    if theme == "light":
        yield from _too_wide(page)


def _too_wide(page: Page) -> Iterator[str]:
    for name, size in (("desk", DESKTOP), ("phone", PHONE)):
        page.set_viewport_size(size)
        sticking_out = page.evaluate(_TOO_WIDE)
        if sticking_out:
            yield f"too wide on a {name}: {sticking_out}"
