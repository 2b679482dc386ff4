"""Checks of a page in a window: its language, axe's rules, and its width on desks, tablets and phones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from playwright.sync_api import Browser, Page

from tests.browser.axe import axe_faults
from tests.browser.pages import AnyScene, BrowserPage
from tests.browser.scene import Scene
from tests.browser.shop_scene import ShopScene
from tests.browser.windows import DESKTOP, LOCALES, PHONE, TABLET, Theme, Window, window

# The tables that have to be scrolled sideways, or what sticks out of a page that can be.
_TOO_WIDE = """() => {
    const room = document.documentElement.clientWidth;
    if (document.scrollingElement.scrollWidth <= room) {
        const tables = [...document.querySelectorAll(".table:not(.scrolls)")];
        return tables.filter(one => one.scrollWidth > one.clientWidth).map(one => one.className);
    }
    const out = [...document.querySelectorAll("body *")].filter(one => {
        const box = one.getBoundingClientRect();
        return box.width && (box.right > room + 0.5 || box.left < -0.5);
    });
    return out.slice(0, 5).map(one => one.cloneNode().outerHTML.slice(0, 100)).concat("…");
}"""

Look = Callable[[Page], Iterable[str]]
"""Tells what is wrong with what a window shows."""
Check = Callable[..., None]
"""Called with a page, a language and the looks."""


def checking_office(browser: Browser, scene: Scene) -> AbstractContextManager[Check]:
    def open_window(role: str | None, language: str) -> AbstractContextManager[Window]:
        person = None if role is None else scene.person(role, language)
        return window(browser, scene.office.address, person, locale=LOCALES[language])

    return _checking(scene, open_window)


def checking_shop(browser: Browser, scene: ShopScene) -> AbstractContextManager[Check]:
    """Each page is seen by a buyer who has not been there before."""
    return _checking(scene, lambda _, language: shop_window(browser, scene, language), forget=True)


@contextmanager
def _checking(
    scene: AnyScene, open_window: Callable[..., AbstractContextManager[Window]], *, forget: bool = False
) -> Iterator[Check]:
    """One window for each role and language, in which one page follows the other."""
    with ExitStack() as windows:
        opened: dict[tuple[str | None, str], Window] = {}

        def check(page: BrowserPage[AnyScene], language: str, *looks: Look) -> None:
            reader = page.role, language
            if reader not in opened:
                opened[reader] = windows.enter_context(open_window(*reader))
                opened[reader].page.set_viewport_size(DESKTOP)
            seen = opened[reader]
            try:
                faults = [*_faults(seen.page, page, scene, language, looks)]
            except Exception:
                # The next page gets a window of its own, whatever this one shows now.
                del opened[reader]
                raise
            if forget:
                # The page is left before its cookies go: its scripts must not ask without them.
                seen.page.mouse.move(0, 0)
                seen.page.goto("about:blank")
                seen.context.clear_cookies()
            faults += seen.watch.taken()
            assert not faults, "\n".join(faults)

        yield check


@contextmanager
def shop_window(
    browser: Browser, scene: ShopScene, language: str, theme: Theme = "light"
) -> Iterator[Window]:
    locale, beside = LOCALES[language], (scene.outside,)
    with window(browser, scene.demo.address, size=PHONE, theme=theme, locale=locale, beside=beside) as own:
        yield own


def _faults(
    page: Page, looked_at: BrowserPage[AnyScene], scene: AnyScene, language: str, looks: Iterable[Look]
) -> Iterator[str]:
    answer = page.goto(looked_at.path(scene))
    if answer is None or answer.status != looked_at.status:
        yield f"answered {answer and answer.status}"
        return
    if looked_at.then is not None:
        looked_at.then(page, scene)
        page.wait_for_load_state()
    if page.locator("html").get_attribute("lang") != language:
        yield "it speaks another language"
    for look in looks:
        yield from look(page)


def structure(page: Page) -> Iterable[str]:
    return axe_faults(page, "structure")


def all_rules(page: Page) -> Iterable[str]:
    return axe_faults(page, "all")


def dark_colours(page: Page) -> Iterable[str]:
    page.emulate_media(color_scheme="dark")
    try:
        return axe_faults(page, "colours")
    finally:
        page.emulate_media(color_scheme="light")


def widths(page: Page) -> Iterable[str]:
    for name, size in (("phone", PHONE), ("tablet", TABLET), ("desk", DESKTOP)):
        page.set_viewport_size(size)
        sticking_out = page.evaluate(_TOO_WIDE)
        if sticking_out:
            yield f"too wide on a {name}: {sticking_out}"
