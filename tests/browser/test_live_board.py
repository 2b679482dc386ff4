"""What one person does, others see: at once, and without loading anything anew."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Request, Route, expect

from tests.browser.conftest import Open
from tests.browser.journeys import board, cell, panel, press, unfold, unit_page
from tests.browser.office import Office, open_office
from tests.browser.windows import window
from tests.support.bodies import minimal
from tests.support.chromium import beside_playwright, opened_beside_playwright
from tests.support.client import Project
from tests.support.clusters import NEWEST, Cluster
from tests.support.ports import free_port
from tests.support.server import serving

OFF_SALE = re.compile(r"\bis-unavailable\b")
DIM = re.compile(r"\bdim\b")
HELD = re.compile(r"\bis-held\b")


def mark(page: Page) -> None:
    """A page that is loaded anew has lost its mark."""
    page.evaluate("() => { window.mark = true; }")


def is_marked(page: Page) -> bool:
    return bool(page.evaluate("() => window.mark === true"))


@pytest.mark.parametrize("view", ["board", pytest.param("table", marks=pytest.mark.slow)])
def test_two_browsers_see_each_others_changes(
    view: str, open_window: Open, office: Office, tower: Project
) -> None:
    one = open_window(office.people.add("sales")).page
    other = open_window(office.people.add("admin", language="ar", digits="arab")).page
    for page in (one, other):
        page.goto(f"/backoffice/projects/{tower.slug}?view={view}")
        mark(page)
    acting = open_window(office.people.add("sales")).page
    unit_page(acting, tower, "A-101")
    press(unfold(panel(acting), "Take off sale"), "Take off sale")
    for page in (one, other):
        shown = page.locator(".is-unavailable").filter(has_not=page.locator("input"))
        expect(shown if view == "table" else cell(page, "A-101").and_(shown)).to_have_count(1)
        assert is_marked(page)
    expect(one.locator('[data-count="unavailable"]')).to_have_text("1")
    expect(other.locator('[data-count="unavailable"]')).to_have_text("١")


def test_a_hold_of_a_buyer_appears_with_its_countdown(page: Page, office: Office, tower: Project) -> None:
    board(page, tower)
    mark(page)
    office.buyer.hold(office.unit(tower, "A-203"))
    expect(cell(page, "A-203")).to_have_class(HELD)
    expect(cell(page, "A-203").locator("[data-ends]")).to_have_text(re.compile(r"^\d+:\d\d$"))
    assert is_marked(page)


@pytest.mark.slow
def test_a_filtered_board_counts_on_while_units_change(page: Page, office: Office, tower: Project) -> None:
    page.goto(f"/backoffice/projects/{tower.slug}?status=available")
    matching = page.locator("[data-matching]")
    expect(matching).to_contain_text("6 of 6")
    office.desk.did(office.unit(tower, "A-203"), "take-off-sale")
    expect(matching).to_contain_text("5 of 6")
    expect(cell(page, "A-203")).to_have_class(DIM)
    office.desk.did(office.unit(tower, "A-203"), "put-on-sale")
    expect(matching).to_contain_text("6 of 6")
    expect(cell(page, "A-203")).not_to_have_class(DIM)


class Fetches:
    """What a page asks for to show everything anew. The first answer is read, and kept."""

    def __init__(self, page: Page, meanwhile: Callable[[], object]) -> None:
        self.kept: list[tuple[Route, APIResponse]] = []
        self._meanwhile = meanwhile
        page.route(is_board, self._fetch)

    def let_go(self) -> None:
        ((route, answer),) = self.kept
        route.fulfill(response=answer)

    def _fetch(self, route: Route) -> None:
        if self.kept or not is_for_everything(route.request):
            route.continue_()
            return
        self.kept.append((route, route.fetch(headers=route.request.all_headers())))
        self._meanwhile()


def is_board(address: str) -> bool:
    return re.search(r"/backoffice/projects/[^/]+$", address) is not None


def is_for_everything(request: Request) -> bool:
    return "hx-request" in request.headers


@pytest.mark.slow
def test_what_changes_while_everything_is_fetched_is_not_taken_back(
    page: Page, office: Office, tower: Project
) -> None:
    board(page, tower)
    mark(page)
    fetches = Fetches(page, lambda: office.desk.did(office.unit(tower, "A-101"), "take-off-sale"))
    office.unit(tower, "A-301").create(minimal())
    expect(cell(page, "A-101")).to_have_class(OFF_SALE)
    expect(cell(page, "A-301")).to_have_count(0)
    fetches.let_go()
    expect(cell(page, "A-301")).to_be_visible()
    expect(cell(page, "A-101")).to_have_class(OFF_SALE)
    assert is_marked(page)


@pytest.mark.slow
def test_what_is_new_while_everything_is_fetched_is_fetched_too(
    page: Page, office: Office, tower: Project
) -> None:
    board(page, tower)
    available = page.locator('[data-count="available"]')
    fetches = Fetches(page, lambda: office.unit(tower, "A-302").create(minimal()))
    office.unit(tower, "A-301").create(minimal())
    expect(available).to_have_text("8")
    fetches.let_go()
    for code in ("A-301", "A-302"):
        expect(cell(page, code)).to_be_visible()


@pytest.mark.slow
def test_everything_that_could_not_be_fetched_is_fetched_later(
    open_window: Open, office: Office, tower: Project
) -> None:
    seen = open_window(office.people.add("sales"))
    seen.watch.expect("ERR_FAILED")
    board(seen.page, tower)
    mark(seen.page)
    seen.page.route(is_board, lambda route: route.abort(), times=1)
    with seen.page.expect_event("requestfailed", is_for_everything):
        office.unit(tower, "A-301").create(minimal())
    expect(cell(seen.page, "A-301")).to_be_visible()
    assert is_marked(seen.page)


@pytest.mark.slow
def test_a_table_fetches_nothing_for_a_unit_of_another_page(page: Page, office: Office) -> None:
    codes = [f"A-{number}" for number in range(100, 201)]
    project = office.new_project("two-pages", "Two pages", [minimal(code=code) for code in codes])
    page.goto(f"/backoffice/projects/{project.slug}?view=table")
    fetched: list[Request] = []
    page.on("request", lambda request: fetched.append(request) if is_for_everything(request) else None)
    unavailable = page.locator('[data-count="unavailable"]')
    for number, code in enumerate(("A-200", "A-101"), start=1):
        office.desk.did(office.unit(project, code), "take-off-sale")
        expect(unavailable).to_have_text(str(number))
    expect(page.locator("tr .is-unavailable")).to_have_count(1)
    assert fetched == []
    office.unit(project, "A-1005").create(minimal())
    expect(page.locator('tr[data-code="A-1005"]')).to_be_visible()


@pytest.mark.slow
def test_the_page_of_a_unit_follows_too(page: Page, office: Office, tower: Project) -> None:
    unit_page(page, tower, "A-102")
    mark(page)
    office.buyer.hold(office.unit(tower, "A-102"))
    expect(panel(page)).to_contain_text("On hold")
    assert is_marked(page)


@pytest.fixture
def own_office(tmp_path: Path, cluster_of: Callable[[int], Cluster]) -> Iterator[tuple[Office, str]]:
    """One whose server may be stopped, at a port that it comes back to."""
    port = str(free_port())
    with beside_playwright():
        url = cluster_of(NEWEST).new_database()
    with opened_beside_playwright(open_office(tmp_path, url, "--port", port)) as office:
        yield office, port


@pytest.mark.slow
def test_a_board_says_when_it_is_stale_and_recovers(
    own_office: tuple[Office, str], tmp_path: Path, browser: Browser
) -> None:
    office, port = own_office
    tower = office.new_project("tower", "The Tower", [minimal(code="A-101")])
    with window(browser, office.address, office.people.add("sales")) as seen:
        seen.watch.expect(
            "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET"
        )
        board(seen.page, tower)
        stale = seen.page.get_by_text("Live updates paused")
        expect(seen.page.locator(".live.on")).to_be_attached()
        expect(stale).to_be_hidden()
        mark(seen.page)
        office.server.stop()
        expect(stale).to_be_visible()
        with serving(tmp_path, office.settings, "--port", port):
            office.desk.did(office.unit(tower, "A-101"), "take-off-sale")
            expect(stale).to_be_hidden()
            expect(cell(seen.page, "A-101")).to_have_class(OFF_SALE)
        assert is_marked(seen.page)
