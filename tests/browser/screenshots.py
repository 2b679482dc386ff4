"""Writes a picture of every page, in both directions and themes, into docs/screenshots."""

import base64
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize

from tests.browser.looking import LOCALES, THEMES
from tests.browser.pages import PAGES, BrowserPage
from tests.browser.past import put_back
from tests.browser.scene import Scene, opened_scene
from tests.browser.windows import DESKTOP, PHONE, Theme, window
from tests.support.chromium import beside_playwright, chromium
from tests.support.clusters import Cluster

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
QUALITY = 50
TALLEST = 1_100
_SEEN = "update staff set failures_seen_at = clock_timestamp()"
_HEIGHT = "() => document.scrollingElement.scrollHeight"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.webp"):
        old.unlink()
    with _scene() as scene, chromium() as browser:
        for language in LOCALES:
            for theme in THEMES:
                _draw(browser, scene, language, theme, DESKTOP, PAGES)
            _draw(browser, scene, language, "light", PHONE, [page for page in PAGES if page.on_phone])


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
    pages: Sequence[BrowserPage],
) -> None:
    """One person after the other looks at all that is theirs to see."""
    suffix = "-phone" if size is PHONE else ""
    for role in {page.role: None for page in pages}:
        person = None if role is None else scene.person(role, language)
        with beside_playwright():
            scene.office.sql.execute(_SEEN)
        with window(
            browser, scene.office.address, person, size=size, theme=theme, locale=LOCALES[language]
        ) as own:
            for page in pages:
                if page.role == role:
                    picture = _picture(own.page, page, scene, size)
                    (FOLDER / f"{page.name}-{language}-{theme}{suffix}.webp").write_bytes(picture)


def _picture(own: Page, page: BrowserPage, scene: Scene, size: ViewportSize) -> bytes:
    own.set_viewport_size(size)
    own.goto(page.path(scene))
    if page.then is not None:
        page.then(own, scene)
    own.evaluate("() => document.fonts.ready.then(() => null)")
    return _captured(own, size)


def _captured(page: Page, size: ViewportSize) -> bytes:
    """The page in full, unless it is very long. Playwright itself writes no WebP."""
    height = min(max(int(page.evaluate(_HEIGHT)), size["height"]), TALLEST)
    page.set_viewport_size({"width": size["width"], "height": height})
    session = page.context.new_cdp_session(page)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(answer["data"])


if __name__ == "__main__":
    main()
