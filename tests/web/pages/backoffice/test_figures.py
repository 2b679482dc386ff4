"""Figures: plots, with the numbers behind them."""

import re

import httpx
import pytest

from holdfast.web.pages.backoffice.reports import HEIGHT, WIDTH, areas, bars, round_up
from tests.support.bodies import minimal
from tests.support.buying import Buyer
from tests.support.client import Project, Unit
from tests.support.staff_client import Person


def address(project: Project, query: str = "") -> str:
    return f"/backoffice/projects/{project.slug}/figures{query}"


def test_what_happened_today_is_in_the_numbers(viewer: Person, http: httpx.Client, project: Project) -> None:
    for code in ("A-101", "A-102", "A-103"):
        Unit(http, project, code).create(minimal())
    Buyer(http).hold(Unit(http, project, "A-101"))
    page = viewer.see(address(project))
    (latest,) = re.findall(r"<tbody><tr><th.*?</tr>", page, re.DOTALL)[:1]
    assert re.findall(r'<td class="number">(\d+)</td>', latest) == ["2", "1", "0", "0"]
    assert re.search(r"Holds</span><strong>1</strong>", page)


@pytest.mark.parametrize(
    ("query", "days", "rows"),
    [("?days=30", 30, 30), ("?days=365", 365, 53), ("", 90, 90), ("?days=7", 90, 90), ("?days=x", 90, 90)],
)
def test_a_period_is_one_of_those_offered(
    viewer: Person, project: Project, query: str, days: int, rows: int
) -> None:
    page = viewer.see(address(project, query))
    assert re.search(rf'href="\?days={days}" aria-current="true"', page)
    statuses = page.split("<tbody>")[1].split("</tbody>")[0]
    assert statuses.count("<tr>") == rows


def test_figures_speak_arabic(arab: Person, project: Project) -> None:
    page = arab.see(address(project))
    assert "قيمة المبيعات" in page
    assert "Sales" not in page


@pytest.mark.parametrize(("highest", "top"), [(0, 1), (1, 1), (2, 2), (3, 4), (5, 10), (11, 20), (41, 100)])
def test_a_scale_ends_at_a_round_number(highest: int, top: int) -> None:
    assert round_up(highest) == top


def test_areas_stand_upon_each_other() -> None:
    lower, upper = areas([("sold", [1, 1]), ("held", [0, 3])], 4)
    assert lower == ("sold", "M0 225L1000 225L1000 300L0 300Z")
    assert upper == ("held", "M0 225L1000 0L1000 225L0 225Z")


def test_bars_are_within_the_picture_and_nothing_is_no_bar() -> None:
    (only,) = bars([0, 50], 100)
    assert (only.y, only.height) == (HEIGHT / 2, HEIGHT / 2)
    assert WIDTH / 2 < only.x < only.x + only.width < WIDTH
