"""The board of a project, the same as a table, and its figures, for browsers without scripts."""

import re
from collections.abc import Callable
from decimal import Decimal
from html import unescape

import httpx
import pytest

from holdfast.web.pages.backoffice.boards import CellWriter
from holdfast.web.pages.backoffice.reports import HEIGHT, WIDTH, areas, bars, round_up
from holdfast.web.pages.i18n import language_of
from tests.support.backoffice import Desk
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, put_array
from tests.support.staff_client import Person, missing

EVIL = '<img src=x onerror="alert(1)">'
CODES = ("A-101", "A-103", "A-201", "B-101")


@pytest.fixture(scope="module")
def stocked(http: httpx.Client, new_project: Callable[[], Project]) -> Project:
    """A project that no test changes."""
    made = new_project()
    units = [minimal(code=code, bedrooms=3) for code in CODES]
    odd = minimal(code=EVIL, type="villa", priceSar=5_000_000, status="unavailable")
    assert put_array(http, made, [*units, odd]).status_code == 200
    return made


def address(project: Project, query: str = "") -> str:
    return f"/backoffice/projects/{project.slug}{query}"


def cells(page: str) -> dict[str, str]:
    """The classes of each cell by its code, as they stand in the page."""
    found = re.findall(r'<a class="u ([^"]+)".*?<bdi>(.*?)</bdi>', page)
    return {unescape(code): classes for classes, code in found}


def bright(page: str) -> list[str]:
    return [code for code, classes in cells(page).items() if "dim" not in classes]


def rows(page: str) -> list[str]:
    return [unescape(code) for code in re.findall(r'<tr data-code="([^"]*)"', page)]


def test_a_board_shows_units_by_building_and_floor(viewer: Person, arab: Person, stocked: Project) -> None:
    page = viewer.see(address(stocked))
    assert list(cells(page))[:4] == ["A-201", "A-101", "A-103", "B-101"]
    assert cells(page)["A-101"] == "is-available"
    assert page.count('<i class="gap">') == 1
    link = f'href="/backoffice/projects/{stocked.slug}/units/A-101"'
    assert missing(page, "No floor", link, 'aria-label="A-101, Available"') == []
    assert 'aria-label="A-101, متاحة"' in arab.see(address(stocked))
    for query in ("", "?view=table"):
        page = viewer.see(address(stocked, query))
        assert "<img" not in page
        assert "&lt;img src=x onerror=" in page
        part = viewer.look(address(stocked, query), **{"hx-request": "true"}).text
        assert part.lstrip().startswith('<div id="board-part"')
        assert "A-101" in part


def test_a_type_is_read_in_ones_own_language(viewer: Person, http: httpx.Client, project: Project) -> None:
    Unit(http, project, "A-1").create(minimal(type="Studio | استوديو"))
    Unit(http, project, "A-2").create(minimal(type=EVIL))
    page = viewer.see(address(project, "?type=Studio+%7C+استوديو"))
    choice = '<option value="Studio | استوديو" selected>Studio</option>'
    assert missing(page, choice, "· Studio ·", '|Studio | استوديو"') == []
    assert "<img" not in page
    assert 'onerror="' not in page
    assert page.count("&lt;img src=x onerror=&#34;alert(1)&#34;&gt;") == 4, "in words, for filters, to choose"


def test_a_held_unit_shows_when_its_hold_ends(viewer: Person, stored: Unit, desk: Desk) -> None:
    desk.held(stored)
    page = viewer.see(address(stored.project))
    assert cells(page)["A-101"] == "is-held timed"
    assert re.search(r"<bdi>A-101</bdi><span data-ends=\"[\d.]+\">\d\d:\d\d</span>", page)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=available", list(CODES)),
        ("status=available&status=unavailable", [*CODES, EVIL]),
        ("type=villa", [EVIL]),
        ("priceFrom=1,000,000", [EVIL]),
        ("priceTo=١٬٠٠٠٬٠٠٠", list(CODES)),
        ("bedrooms=3", list(CODES)),
        ("sqmFrom=8000", [EVIL]),
        ("sqmTo=7883.82&priceFrom=&type=", list(CODES)),
        ("status=nonsense", [*CODES, EVIL]),
    ],
)
def test_filters_dim_cells_leave_rows_out_and_leave_the_counts_as_they_are(
    viewer: Person, stocked: Project, query: str, found: list[str]
) -> None:
    board, table = (viewer.see(address(stocked, f"?{view}{query}")) for view in ("", "view=table&"))
    assert set(bright(board)) == set(rows(table)) == set(found)
    counts = ('<strong data-count="available">4</strong>', '<strong data-count="unavailable">1</strong>')
    assert missing(board, *counts) == missing(table, *counts) == []


def test_a_wrong_filter_filters_nothing_and_what_was_typed_stays(viewer: Person, stocked: Project) -> None:
    told = ("priceFrom=dear", "sqmFrom=1e400", "bedrooms=3.5", "bedrooms=1234")
    untold = ("building=99999999999999999999", "building=-1", "after=%F0%9F%98%80", "view=nonsense")
    for query in (*told, *untold):
        for view in ("board", "table"):
            page = viewer.see(address(stocked, f"?view={view}&{query}"))
            assert ('aria-invalid="true"' in page) is (query in told), query
    page = viewer.see(address(stocked, "?priceFrom=1,000&status=sold&type=villa"))
    typed = 'name="priceFrom" type="text" value="1,000"'
    chosen = '<option value="villa" selected>villa</option>'
    assert missing(page, typed, 'value="sold" checked', chosen) == []


def test_a_long_table_goes_on_on_the_next_page(viewer: Person, http: httpx.Client, project: Project) -> None:
    codes = [f"A-{number}" for number in range(1001, 1151)]
    put_array(http, project, [minimal(code=code, type="villa") for code in codes])
    first, second = viewer.all_pages(address(project, "?view=table&type=villa"))
    assert len(rows(first)) == 100
    assert rows(first) + rows(second) == codes


def test_a_project_that_is_not_there_or_without_units_says_so(viewer: Person, project: Project) -> None:
    for path in ("", "?view=table", "/figures", "/live"):
        viewer.see(f"/backoffice/projects/no-such-project{path}", 404)
        viewer.see(f"/backoffice/projects/NO!{path}", 422)
    for view in ("", "?view=table"):
        assert "No units yet" in viewer.see(address(project, view))


@pytest.mark.parametrize(("code", "digits"), [("en", "latn"), ("en", "arab"), ("ar", "latn"), ("ar", "arab")])
def test_cells_write_amounts_as_all_pages_do(code: str, digits: str) -> None:
    language = language_of(code, digits, "Asia/Riyadh")
    writer = CellWriter(language, "palm-court")
    for amount in map(Decimal, ("0", "999", "1000", "1234567.5", "1000000.01", "999999999999.99")):
        assert writer.money(amount) == language.money(amount)
        assert writer.area(amount) == language.area(amount)


def test_what_happened_today_is_in_the_numbers(
    viewer: Person, arab: Person, new_unit: Callable[..., Unit], project: Project, desk: Desk
) -> None:
    units = [new_unit(code) for code in ("A-101", "A-102", "A-103")]
    desk.held(units[0])
    page = viewer.see(address(project, "/figures"))
    (latest,) = re.findall(r"<tbody><tr><th.*?</tr>", page, re.DOTALL)[:1]
    assert re.findall(r'<td class="number">(\d+)</td>', latest) == ["2", "1", "0", "0"]
    assert "Holds</span><strong>1</strong>" in page
    page = arab.see(address(project, "/figures"))
    assert "قيمة المبيعات" in page
    assert "Sales" not in page


def test_a_period_is_one_of_those_offered(viewer: Person, stocked: Project) -> None:
    for query, days, count in (
        ("?days=30", 30, 30),
        ("?days=365", 365, 53),
        ("", 90, 90),
        ("?days=x", 90, 90),
    ):
        page = viewer.see(address(stocked, f"/figures{query}"))
        assert f'href="?days={days}" aria-current="true"' in page
        assert page.split("<tbody>")[1].split("</tbody>")[0].count("<tr>") == count


def test_plots_are_within_their_picture() -> None:
    assert [round_up(highest) for highest in (0, 1, 2, 3, 5, 11, 41)] == [1, 1, 2, 4, 10, 20, 100]
    lower, upper = areas([("sold", [1, 1]), ("held", [0, 3])], 4)
    assert lower == ("sold", "M0 225L1000 225L1000 300L0 300Z")
    assert upper == ("held", "M0 225L1000 0L1000 225L0 225Z")
    (only,) = bars([0, 50], 100)
    assert (only.y, only.height) == (HEIGHT / 2, HEIGHT / 2)
    assert WIDTH / 2 < only.x < only.x + only.width < WIDTH
