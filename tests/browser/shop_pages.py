"""Every page of buyers, and those that the demo adds. A test holds it against the routes."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from holdfast.demo.project import SLUG
from holdfast.domain.booking import BookingStatus
from tests.browser.pages import BrowserPage
from tests.browser.shop_scene import CODES, FREE, GONE, ShopScene

PROJECT = "/p/{slug}"
UNIT = PROJECT + "/units/{code}"
BOOKING = PROJECT + "/bookings/{reference}"
SHOP = f"/p/{SLUG}"
# A buyer's button, for a unit whose page may not have one any more.
_PRESS = """(path) => {
    const form = document.createElement("form");
    const csrf = document.createElement("input");
    [form.method, form.action] = ["post", path];
    [csrf.name, csrf.value] = ["csrf", document.querySelector("[name=csrf]").value];
    form.append(csrf);
    document.body.append(form);
    form.submit();
}"""


def _at(path: str) -> Callable[[ShopScene], str]:
    return lambda _: path


def _unit(code: str) -> Callable[[ShopScene], str]:
    return _at(f"{SHOP}/units/{code}")


def _booking(status: str) -> Callable[[ShopScene], str]:
    return lambda scene: scene.link(status)


def _hold(page: Page, code: str) -> None:
    with page.expect_navigation():
        page.evaluate(_PRESS, f"{SHOP}/units/{code}/hold")


def _come_second(page: Page, _: ShopScene) -> None:
    _hold(page, CODES["open"])


def _hold_too_many(page: Page, scene: ShopScene) -> None:
    """What this browser holds by then is let go in the end, for whoever looks next."""
    references = []
    for code in FREE:
        _hold(page, code)
        if "/bookings/" in page.url:
            references.append(page.url.rpartition("/")[2])
            page.goto(f"{SHOP}/units/{FREE[-1]}")
    expect(page.locator("form[action$='/cancel']").first).to_be_attached()
    for reference in references:
        scene.demo.desk.did_to_booking(reference, "cancel")


def _fail_to_sign(page: Page, _: ShopScene) -> None:
    page.locator("[name=buyerEmail]").fill("nora at home")
    page.locator("form[action$='/sign'] button").click()
    expect(page.locator("[aria-invalid]").first).to_be_visible()


def _ask_before_the_release(page: Page, _: ShopScene) -> None:
    page.locator("details", has=page.locator("form[action$='/cancel']")).locator("summary").click()
    expect(page.locator("form[action$='/cancel'] button").first).to_be_visible()


def _go_to_pay(page: Page, _: ShopScene) -> None:
    page.locator("form[action$='/pay'] button").click()
    page.wait_for_url("**/pay?*")


def _read(paper: str) -> Callable[[Page, ShopScene], None]:
    def read(page: Page, _: ShopScene) -> None:
        """In the reader's language, not in that of the signature."""
        page.goto(f"{page.url}/{paper}?lang={page.locator('html').get_attribute('lang')}")

    return read


def _come_back_from_paying(page: Page, _: ShopScene) -> None:
    page.goto(f"{page.url}?paid=1")
    expect(page.locator("#waiting")).to_be_visible()


SHOP_PAGES: tuple[BrowserPage[ShopScene], ...] = (
    BrowserPage("start", None, _at("/"), both_sizes=True),
    BrowserPage("start-receiver", None, lambda scene: scene.outside, both_sizes=True),
    BrowserPage("shop-projects", "/p", _at("/p"), both_sizes=True),
    BrowserPage("shop-no-projects", "/p", _at("/p?after=zz")),
    BrowserPage("shop", PROJECT, _at(SHOP), both_sizes=True),
    BrowserPage("shop-filtered", PROJECT, _at(f"{SHOP}?bedrooms=2&order=price")),
    BrowserPage("shop-unknown", PROJECT, _at("/p/no-such-project"), status=404),
    BrowserPage("shop-unit", UNIT, _unit("B-1103"), both_sizes=True),
    BrowserPage("shop-unit-held", UNIT, _unit(CODES["open"])),
    BrowserPage("shop-unit-sold", UNIT, _unit(GONE)),
    BrowserPage("shop-hold-by-button", UNIT + "/hold", _unit("B-1103/hold")),
    BrowserPage("shop-taken", UNIT + "/hold", _unit("B-1103"), then=_come_second),
    BrowserPage("shop-too-many", UNIT + "/hold", _unit("B-1103"), then=_hold_too_many),
    *(
        BrowserPage(f"buyer-{status}", BOOKING, _booking(status), both_sizes=status == "open")
        for status in BookingStatus
    ),
    BrowserPage("buyer-open-faults", BOOKING, _booking("open"), then=_fail_to_sign),
    BrowserPage("buyer-release", BOOKING, _booking("signed"), then=_ask_before_the_release),
    BrowserPage("buyer-payment", None, _booking("signed"), then=_go_to_pay),
    BrowserPage("buyer-payment-refused", None, lambda scene: f"{scene.outside}/pay?x=1", status=403),
    BrowserPage("buyer-waiting", BOOKING, _booking("signed"), then=_come_back_from_paying),
    BrowserPage("buyer-no-agreement", BOOKING + "/agreement", _booking("open"), then=_read("agreement")),
    BrowserPage("buyer-agreement", BOOKING + "/agreement", _booking("reserved"), then=_read("agreement")),
    BrowserPage("buyer-receipt", BOOKING + "/receipt", _booking("reserved"), then=_read("receipt")),
    BrowserPage(
        "buyer-no-entry", BOOKING + "/{token}", lambda scene: scene.link("open", "/hft_wrong"), status=404
    ),
)

# What answers GET with something else than a page: a stream, a file, JSON, or a way back to one.
NOT_SHOP_PAGES: frozenset[str] = frozenset(
    {
        PROJECT + "/live",
        *(f"{BOOKING}/{rest}" for rest in ("state", "sign", "pay", "cancel")),
        *(f"{BOOKING}/{paper}.pdf" for paper in ("agreement", "receipt")),
        "/p/logos/{token}",
    }
)
