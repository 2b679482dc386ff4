"""Buyers with a phone in their hand, in the words of their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from playwright.sync_api import Browser, Locator, Page, expect

from holdfast.web.pages.i18n import translations
from tests.browser.office import Office
from tests.browser.windows import LOCALES, PHONE, Window, window
from tests.support.bodies import full
from tests.support.chromium import beside_playwright
from tests.support.client import Project, Unit
from tests.support.unit_rows import end_now

OpenPhone = Callable[..., "Phone"]

NAMES = {"en": "Nora Al-Harbi", "ar": "نورة الحربي"}
EMAIL, NUMBER = "nora@example.com", "+966 50 123 4567"
NO_MEDIA: dict[str, object] = {"images": [], "files": []}


@dataclass
class Phone:
    own: Window
    language: str

    @property
    def page(self) -> Page:
        return self.own.page

    def say(self, text: str) -> str:
        """In the buyer's language."""
        return translations(self.language).gettext(text)

    def count_taps(self) -> list[str]:
        """What the buyer taps from the next page on. Taps into fields belong to typing, and are none here."""
        taps: list[str] = []
        self.page.expose_function("tapped", lambda tapped: taps.append(tapped))
        self.page.add_init_script(
            "addEventListener('click', (tap) => { if (tap.isTrusted) tapped(tap.target.outerHTML); }, true);"
        )
        return taps

    def look_at(self, unit: Unit) -> None:
        self.page.goto(unit_path(unit))

    def press(self, text: str) -> None:
        self.page.get_by_role("button", name=self.say(text), exact=True).click()

    def press_hold(self) -> None:
        """The button's words depend on the period of a hold."""
        self.page.locator("#open-unit").click()

    def open(self, unit: Unit) -> str:
        """Holds the unit; the reference of the booking."""
        self.look_at(unit)
        self.press_hold()
        self.page.wait_for_url("**/bookings/*")
        return self.page.url.rpartition("/")[2]

    def sign(self) -> None:
        fields = {"Full name": NAMES[self.language], "E-mail address": EMAIL, "Phone number": NUMBER}
        for label, value in fields.items():
            self.page.get_by_label(self.say(label)).fill(value)
        self.page.get_by_role("checkbox").check()
        self.press("Sign the agreement")
        expect(self.heading).to_have_text(self.say("Agreement signed. Next: the deposit"))

    def go_to_pay(self) -> None:
        self.press("Pay the deposit")
        self.page.wait_for_url("**/pay?*")

    def pay(self) -> None:
        self.go_to_pay()
        self.press("Pay now")
        self.page.wait_for_url("**/bookings/*")
        self.expect_status("reserved")

    def expect_status(self, status: str) -> None:
        """Of the booking that the page shows, sooner or later."""
        expect(self.page.locator("[data-booking]")).to_have_attribute("data-status", status)

    @property
    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)


@contextmanager
def phone(browser: Browser, demo: Office, language: str, *, scripts: bool = True) -> Iterator[Phone]:
    with window(
        browser,
        demo.address,
        size=PHONE,
        locale=LOCALES[language],
        scripts=scripts,
        beside=(outside(demo),),
    ) as own:
        yield Phone(own, language)


def outside(demo: Office) -> str:
    """Where the demo's receiver and its payment page are."""
    endpoints = demo.http.get("/v1/backoffice/endpoints").json()["endpoints"]
    (own,) = (one["url"] for one in endpoints if one["url"].endswith("/hook"))
    return str(own).removesuffix("/hook")


def new_tower(demo: Office, *codes: str, **settings: float) -> Project:
    """A project of one test alone."""
    units = [full(code=code, floor=None) | NO_MEDIA for code in codes]
    project = demo.new_project(f"tower-{uuid4().hex[:8]}", "Palm Court | ساحة النخيل", units)
    if settings:
        demo.desk.settle(project, **settings)
    return project


def let_lapse(demo: Office, reference: str) -> None:
    """The hold is over now, as if its time had passed."""
    with beside_playwright():
        end_now(demo.sql, reference)


def unit_path(unit: Unit) -> str:
    return f"/p/{unit.project.slug}/units/{unit.code}"
