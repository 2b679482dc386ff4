"""The board of a project and the same as a table, for browsers without scripts."""

import re
from decimal import Decimal

import httpx
import pytest

from holdfast.web.pages.backoffice.boards import CellWriter
from holdfast.web.pages.i18n import language_of
from tests.support.bodies import minimal
from tests.support.buying import Buyer
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.support.staff_client import Person

NAUGHTY = '<img src=x onerror="alert(1)">'
CODES = ("A-101", "A-103", "A-201", "B-101")


@pytest.fixture
def stocked(http: httpx.Client, project: Project) -> Project:
    for code in CODES:
        Unit(http, project, code).create(minimal(bedrooms=3))
    Unit(http, project, NAUGHTY).create(minimal(type="villa", priceSar=5_000_000, status="unavailable"))
    return project


def address(project: Project, query: str = "") -> str:
    return f"/backoffice/projects/{project.slug}{query}"


def cells(page: str) -> dict[str, str]:
    """The classes of each cell by its code, as they stand in the page."""
    return {code: classes for classes, code in re.findall(r'<a class="u ([^"]+)".*?<bdi>(.*?)</bdi>', page)}


def bright(page: str) -> list[str]:
    return [code for code, classes in cells(page).items() if "dim" not in classes]


def rows(page: str) -> list[str]:
    return re.findall(r'<tr data-code="([^"]*)"', page)


def test_a_board_shows_units_by_building_and_floor_from_the_top(viewer: Person, stocked: Project) -> None:
    page = viewer.see(address(stocked))
    assert list(cells(page))[:4] == ["A-201", "A-101", "A-103", "B-101"]
    assert cells(page)["A-101"] == "is-available"
    assert page.count('<i class="gap">') == 1
    assert "No floor" in page
    assert f'href="/backoffice/projects/{stocked.slug}/units/A-101"' in page


def test_a_cell_tells_its_status_in_words_too(viewer: Person, arab: Person, stocked: Project) -> None:
    assert 'aria-label="A-101, Available"' in viewer.see(address(stocked))
    assert 'aria-label="A-101, متاحة"' in arab.see(address(stocked))


@pytest.mark.parametrize("view", ["", "?view=table"])
def test_a_unit_with_a_naughty_name_is_just_a_name(viewer: Person, stocked: Project, view: str) -> None:
    page = viewer.see(address(stocked, view))
    assert "<img" not in page
    assert "&lt;img src=x onerror=" in page


def test_a_type_is_just_a_name_too(viewer: Person, http: httpx.Client, project: Project) -> None:
    Unit(http, project, "A-1").create(minimal(type=NAUGHTY))
    page = viewer.see(address(project))
    assert "<img" not in page
    assert 'onerror="' not in page
    assert page.count("&lt;img src=x onerror=&#34;alert(1)&#34;&gt;") == 4, "in words, for filters, to choose"


def test_a_type_in_two_languages_is_read_in_ones_own_and_sought_as_it_is_kept(
    viewer: Person, http: httpx.Client, project: Project
) -> None:
    Unit(http, project, "A-1").create(minimal(type="Studio | استوديو"))
    page = viewer.see(address(project, "?type=Studio+%7C+استوديو"))
    assert '<option value="Studio | استوديو" selected>Studio</option>' in page
    assert "· Studio ·" in page
    assert '|Studio | استوديو"' in page


def test_a_held_unit_shows_when_its_hold_ends(viewer: Person, http: httpx.Client, stocked: Project) -> None:
    Buyer(http).hold(Unit(http, stocked, "A-101"))
    page = viewer.see(address(stocked))
    assert cells(page)["A-101"] == "is-held timed"
    assert re.search(r"<bdi>A-101</bdi><span data-ends=\"[\d.]+\">\d\d:\d\d</span>", page)


def test_the_counts_are_those_of_the_project_whatever_is_filtered(viewer: Person, stocked: Project) -> None:
    for query in ("", "?status=sold", "?view=table&status=sold"):
        page = viewer.see(address(stocked, query))
        assert '<strong data-count="available">4</strong>' in page
        assert '<strong data-count="unavailable">1</strong>' in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=available", list(CODES)),
        ("status=unavailable", [NAUGHTY]),
        ("status=available&status=unavailable", [*CODES, NAUGHTY]),
        ("type=villa", [NAUGHTY]),
        ("priceFrom=1,000,000", [NAUGHTY]),
        ("priceTo=١٬٠٠٠٬٠٠٠", list(CODES)),
        ("bedrooms=3", list(CODES)),
        ("sqmFrom=8000", [NAUGHTY]),
        ("sqmTo=7883.82&priceFrom=&type=", list(CODES)),
        ("status=nonsense", [*CODES, NAUGHTY]),
    ],
)
def test_filters_dim_cells_and_leave_rows_out(
    viewer: Person, stocked: Project, query: str, found: list[str]
) -> None:
    def shown(codes: list[str]) -> set[str]:
        return {code.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"') for code in codes}

    assert shown(bright(viewer.see(address(stocked, f"?{query}")))) == set(found)
    assert shown(rows(viewer.see(address(stocked, f"?view=table&{query}")))) == set(found)


@pytest.mark.parametrize(
    "query",
    [
        "priceFrom=dear",
        "priceTo=-1",
        "sqmFrom=1e400",
        "sqmTo=NaN",
        "bedrooms=3.5",
        "bedrooms=1234",
        "building=99999999999999999999",
        "building=-1",
        "after=%F0%9F%98%80",
        "view=nonsense",
    ],
)
@pytest.mark.parametrize("view", ["board", "table"])
def test_a_wrong_filter_filters_nothing(viewer: Person, stocked: Project, query: str, view: str) -> None:
    page = viewer.see(address(stocked, f"?view={view}&{query}"))
    is_a_fault = query.split("=")[0] in ("priceFrom", "priceTo", "sqmFrom", "sqmTo", "bedrooms")
    assert ('aria-invalid="true"' in page) is is_a_fault


def test_what_was_typed_stays_in_the_form(viewer: Person, stocked: Project) -> None:
    page = viewer.see(address(stocked, "?priceFrom=1,000&status=sold&type=villa"))
    assert 'name="priceFrom" type="text" value="1,000"' in page
    assert 'value="sold" checked' in page
    assert '<option value="villa" selected>villa</option>' in page


def test_a_long_table_goes_on_on_the_next_page(viewer: Person, project: Project, sql: Sql) -> None:
    sql.execute(
        """
        insert into unit (id, project_id, code, type, area_sqm, price_sar, images, files, status, version,
            created_at, updated_at)
        select gen_random_uuid(), $1, 'A-' || 1000 + number, 'villa', 100, 1, '[]', '[]', 'available', 1,
            now(), now()
        from generate_series(1, 150) as number
        """,
        project.id,
    )
    first = viewer.see(address(project, "?view=table&type=villa"))
    (following,) = re.findall(r'href="([^"]*after=[^"]*)" rel="next"', first)
    second = viewer.see(following.replace("&amp;", "&"))
    assert len(rows(first)) == 100
    assert rows(first) + rows(second) == [f"A-{1000 + number}" for number in range(1, 151)]
    assert 'rel="next"' not in second


def test_a_script_may_ask_for_the_picture_alone(viewer: Person, stocked: Project) -> None:
    for query in ("", "?view=table"):
        part = viewer.look(address(stocked, query), **{"hx-request": "true"}).text
        assert part.lstrip().startswith('<div id="board-part"')
        assert "A-101" in part


@pytest.mark.parametrize("path", ["", "?view=table", "/figures", "/live"])
def test_a_project_that_is_not_there_is_not_found(viewer: Person, path: str) -> None:
    assert viewer.look(f"/backoffice/projects/no-such-project{path}").status_code == 404
    assert viewer.look(f"/backoffice/projects/NO!{path}").status_code == 422


@pytest.mark.parametrize("view", ["", "?view=table", "/figures"])
def test_a_project_without_units_says_so(viewer: Person, project: Project, view: str) -> None:
    assert ("No units yet" in viewer.see(address(project, view))) is (view != "/figures")


@pytest.mark.parametrize(("code", "digits"), [("en", "latn"), ("en", "arab"), ("ar", "latn"), ("ar", "arab")])
@pytest.mark.parametrize("amount", ["0", "999", "1000", "1234567.5", "1000000.01", "999999999999.99"])
def test_cells_write_amounts_as_all_pages_do(code: str, digits: str, amount: str) -> None:
    language = language_of(code, digits, "Asia/Riyadh")
    writer = CellWriter(language, "palm-court")
    assert writer.money(Decimal(amount)) == language.money(Decimal(amount))
    assert writer.area(Decimal(amount)) == language.area(Decimal(amount))
