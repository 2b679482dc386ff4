"""A real Chromium, driven by Playwright: Debian's own, never one that Playwright would download."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

from playwright.sync_api import Browser, sync_playwright

from tests.support.programs import installed

Opened = TypeVar("Opened")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Containers lack what the sandbox is made of, and nothing here is to talk to anybody but our own server.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    path = installed(*_NAMES)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def beside_playwright() -> Iterator[None]:
    """Playwright's event loop counts as running for as long as the browser is open, and while one runs no
    other can in the same thread. Whatever brings its own, as our SQL connections do, runs in here."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(running)


@contextmanager
def opened_beside_playwright(opening: AbstractContextManager[Opened]) -> Iterator[Opened]:
    """For what brings its own loop when it is opened and closed."""
    stack = ExitStack()
    with beside_playwright():
        opened = stack.enter_context(opening)
    try:
        yield opened
    finally:
        with beside_playwright():
            stack.close()
