"""Take a screenshot of every page, in both languages and themes, into dist/screenshots.

Those that a document shows, which are the files in docs/screenshots, are copied there.
"""

import base64
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize

from tests.browser.backdating import put_back
from tests.browser.checks import shop_window
from tests.browser.office import open_office
from tests.browser.pages import PAGES, AnyScene, BrowserPage
from tests.browser.scene import Scene, opened_scene
from tests.browser.shop_pages import SHOP_PAGES
from tests.browser.shop_scene import ShopScene, set_up_shop
from tests.browser.windows import DESKTOP, LOCALES, PHONE, Theme, window
from tests.support.chromium import beside_playwright, chromium
from tests.support.clusters import Cluster

THEMES: tuple[Theme, ...] = ("light", "dark")
_ROOT = Path(__file__).parents[2]
FOLDER = _ROOT / "dist" / "screenshots"
SHOWN_FOLDER = _ROOT / "docs" / "screenshots"
QUALITY = 50
TALLEST = 1_100
_SEEN = "update staff set failures_seen_at = clock_timestamp()"
_HEIGHT = "() => document.scrollingElement.scrollHeight"


def main() -> None:
    """All of them, or those of the `office` or of `buyers`."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    which = sys.argv[1:] or ["office", "buyers"]
    if "buyers" in which:
        _draw_buyers()
    if "office" in which:
        _draw_office()
    for shown in SHOWN_FOLDER.glob("*.webp"):
        if (drawn := FOLDER / shown.name).exists():
            shutil.copy(drawn, shown)


def _draw_buyers() -> None:
    with _shop() as scene, chromium() as browser:
        for page in SHOP_PAGES:
            looks: list[tuple[str, Theme, ViewportSize]] = [("en", "light", PHONE), ("ar", "light", PHONE)]
            if page.both_sizes:
                looks += [("en", "light", DESKTOP), ("ar", "light", DESKTOP), ("en", "dark", PHONE)]
            for language, theme, size in looks:
                with shop_window(browser, scene, language, theme) as own:
                    _draw_page(own.page, page, scene, language, theme, size)


def _draw_office() -> None:
    with _scene() as scene, chromium() as browser:
        for language in LOCALES:
            for theme in THEMES:
                _draw(browser, scene, language, theme, DESKTOP, PAGES)
            _draw(browser, scene, language, "light", PHONE, [page for page in PAGES if page.both_sizes])


@contextmanager
def _shop() -> Iterator[ShopScene]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder) / "postgres") as cluster,
        open_office(Path(folder) / "server", cluster.new_database(), "--demo") as demo,
    ):
        yield set_up_shop(demo)


@contextmanager
def _scene() -> Iterator[Scene]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder) / "postgres") as cluster,
        opened_scene(Path(folder) / "server", cluster.new_database()) as scene,
    ):
        put_back(scene.office, scene.project)
        yield scene


def _draw(
    browser: Browser,
    scene: Scene,
    language: str,
    theme: Theme,
    size: ViewportSize,
    pages: Sequence[BrowserPage[Scene]],
) -> None:
    """One person after the other looks at all that is theirs to see."""
    for role in {page.role: None for page in pages}:
        person = None if role is None else scene.person(role, language)
        with beside_playwright():
            scene.office.sql.execute(_SEEN)
        with window(browser, scene.office.address, person, theme=theme, locale=LOCALES[language]) as own:
            for page in pages:
                if page.role == role:
                    _draw_page(own.page, page, scene, language, theme, size)


def _draw_page(
    own: Page,
    page: BrowserPage[AnyScene],
    scene: AnyScene,
    language: str,
    theme: Theme,
    size: ViewportSize,
) -> None:
    own.set_viewport_size(size)
    own.goto(page.path(scene))
    if page.then is not None:
        page.then(own, scene)
    own.evaluate("() => document.fonts.ready.then(() => null)")
    suffix = "-phone" if size is PHONE else ""
    (FOLDER / f"{page.name}-{language}-{theme}{suffix}.webp").write_bytes(_captured(own, size))


def _captured(page: Page, size: ViewportSize) -> bytes:
    """The page in full, unless it is very long. Playwright itself writes no WebP."""
    height = min(max(int(page.evaluate(_HEIGHT)), size["height"]), TALLEST)
    page.set_viewport_size({"width": size["width"], "height": height})
    session = page.context.new_cdp_session(page)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(answer["data"])


if __name__ == "__main__":
    main()
