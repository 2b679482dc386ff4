"""What a phone transfers for the page of a project: all of its fonts, scripts and pictures."""

import pytest
from playwright.sync_api import Browser

from tests.browser.buyers import NO_MEDIA, phone
from tests.browser.office import Office
from tests.support.bodies import full
from tests.support.page_weight import MOST_BYTES

DEMO, LARGE = "narjis-heights", "large-tower"
FONTS = {
    "en": {"inter-basic-latin-400-700.woff2", "instrument-serif-basic-latin-400.woff2"},
    "ar": {
        "inter-basic-latin-400-700.woff2",
        "holdfast-sans-arabic-400.woff2",
        "holdfast-sans-arabic-600.woff2",
    },
}
"""Of all weights on the page."""


@pytest.fixture(scope="module")
def large_project(demo: Office) -> str:
    """2,000 units in four buildings."""
    places = (
        (building, floor, unit) for building in "ABCD" for floor in range(1, 26) for unit in range(1, 21)
    )
    codes = [f"{building}-{floor:02}{unit:02}" for building, floor, unit in places]
    units = [full(code=code, floor=None) | NO_MEDIA for code in codes]
    return demo.new_project(LARGE, "Large Tower | البرج الكبير", units).slug


@pytest.mark.slow
@pytest.mark.usefixtures("large_project")
@pytest.mark.parametrize("slug", [DEMO, LARGE])
@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_page_of_a_project_is_at_most_100_kb(
    browser: Browser, demo: Office, slug: str, language: str
) -> None:
    with phone(browser, demo, language) as visitor:
        session = visitor.own.context.new_cdp_session(visitor.page)
        loaded: dict[str, float] = {}
        addresses: dict[str, str] = {}
        session.on(
            "Network.requestWillBeSent",
            lambda sent: addresses.update({sent["requestId"]: sent["request"]["url"]}),
        )
        session.on(
            "Network.loadingFinished",
            lambda ended: loaded.update({ended["requestId"]: ended["encodedDataLength"]}),
        )
        session.send("Network.enable")
        visitor.page.goto(f"/p/{slug}", wait_until="networkidle")
        visitor.page.locator("a.u").first.focus()
        visitor.page.evaluate("() => { for (const one of document.images) one.loading = 'eager'; }")
        visitor.page.wait_for_function("() => [...document.images].every((one) => one.complete)")
        visitor.page.locator(".tip").wait_for(state="attached")
        visitor.page.evaluate("() => document.fonts.ready.then(() => null)")
    by_address = {addresses[request]: size for request, size in loaded.items()}
    fonts = {address.rpartition("/")[2] for address in by_address if address.endswith(".woff2")}
    assert fonts == FONTS[language]
    assert any("windows.js" in address for address in by_address)
    assert sum(by_address.values()) <= MOST_BYTES, by_address
