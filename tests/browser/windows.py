"""A person's browser window. Whatever it complains of fails the test, unless the test expects it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    ViewportSize,
)

from tests.browser.staff import Person

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
TABLET: ViewportSize = {"width": 820, "height": 1180}
PHONE: ViewportSize = {"width": 390, "height": 844}
LOCALES = {"en": "en-GB", "ar": "ar-SA"}
PATIENCE_MS = 60_000
COOKIE = "__Host-holdfast_session"

Theme = Literal["light", "dark"]


@dataclass
class Watch:
    """What went wrong in a window that nobody would see by looking at it."""

    addresses: tuple[str, ...]
    """Of the house: the server's, and of what else a window may ask."""
    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    refused_pages: set[str] = field(default_factory=set)

    def expect(self, pattern: str) -> None:
        """A complaint that is part of the story."""
        self.expected.append(pattern)

    def over(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def unexpected(self) -> list[str]:
        return [
            fault for fault in self.faults if not any(re.search(pattern, fault) for pattern in self.expected)
        ]

    def taken(self) -> list[str]:
        """What was unexpected up to now; whoever takes it deals with it."""
        found = self.unexpected()
        self.faults.clear()
        return found

    def _console(self, message: ConsoleMessage) -> None:
        """Of a policy that was broken, too. That a page came with 4xx is for the test to say."""
        if message.type in ("error", "warning") and message.location["url"] not in self.refused_pages:
            self.faults.append(f"console: {message.text} ({message.location['url']})")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((*self.addresses, "data:", "blob:")):
            self.faults.append(f"a request leaves the house: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.faults.append(f"{response.status}: {response.url}")
        elif response.status >= 400 and response.request.resource_type in ("document", "fetch", "xhr"):
            self.refused_pages.add(response.url)


@dataclass
class Window:
    page: Page
    context: BrowserContext
    watch: Watch

    def another(self) -> Page:
        """A second tab of the same person."""
        page = self.context.new_page()
        self.watch.over(page)
        return page


@contextmanager
def window(
    browser: Browser,
    address: str,
    person: Person | None = None,
    *,
    size: ViewportSize = DESKTOP,
    theme: Theme = "light",
    locale: str = "en-GB",
    scripts: bool = True,
    beside: Sequence[str] = (),
) -> Iterator[Window]:
    """Of somebody who is signed in, or of a stranger. ``beside``: other addresses that it may go to."""
    context = browser.new_context(
        base_url=address,
        viewport=size,
        color_scheme=theme,
        locale=locale,
        java_script_enabled=scripts,
        reduced_motion="reduce",
        timezone_id="Asia/Riyadh",
    )
    context.set_default_timeout(PATIENCE_MS)
    if person is not None:
        sign_in(context, address, person)
    page, watch = context.new_page(), Watch((address, *beside))
    watch.over(page)
    try:
        yield Window(page, context, watch)
    finally:
        context.close()
    assert watch.unexpected() == []


def sign_in(context: BrowserContext, address: str, person: Person) -> None:
    """As if by the form; the name of the cookie has it that it is only taken for https."""
    secure = address.replace("http:", "https:", 1)
    context.add_cookies(
        [
            {
                "name": COOKIE,
                "value": person.token,
                "url": secure,
                "secure": True,
                "httpOnly": True,
                "sameSite": "Lax",
            }
        ]
    )
