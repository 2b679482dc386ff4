"""Units are moved on a page that works without scripts."""

import re

import httpx
import pytest

from tests.support.bodies import minimal
from tests.support.client import Project, put_array
from tests.support.staff_client import Person

GUESSED = {"A-101": ("A", "1", "1", "1"), "A-102": ("A", "1", "2", "1"), "Villa 9": ("", "", "", "1")}


@pytest.fixture
def stocked(http: httpx.Client, project: Project) -> Project:
    assert put_array(http, project, [minimal(code=code) for code in GUESSED]).status_code == 200
    return project


def address(project: Project, query: str = "") -> str:
    return f"/backoffice/projects/{project.slug}/layout{query}"


def form_of(page: str) -> dict[str, list[str]]:
    """What a browser sends of the form that moves units, as it was shown."""
    form = page.split('<form class="layout"')[1]
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name is not None and value is not None and 'type="checkbox"' not in tag and name[1] != "csrf":
            found.setdefault(name[1], []).append(value[1])
    return found


def places(person: Person, project: Project) -> dict[str, tuple[str, ...]]:
    sent = form_of(person.see(address(project)))
    columns = (sent["building"], sent["floor"], sent["position"], sent["guessed"])
    return dict(zip(sent["code"], zip(*columns, strict=True), strict=True))


def test_the_guess_is_shown_and_a_changed_row_is_kept(sales: Person, stocked: Project) -> None:
    assert places(sales, stocked) == GUESSED
    sent = form_of(sales.see(address(stocked)))
    assert "Nothing was changed." in sales.done(address(stocked), {"do": "save", **sent})
    sales.done(address(stocked), {**sent, "do": "move", "pick": "A-102", "to-floor": "7"})
    sent["building"][2], sent["floor"][2] = "Row 1", "٠"
    assert "1 unit was moved." in sales.done(address(stocked), {"do": "save", **sent})
    moved = {"A-102": ("A", "7", "2", "0"), "Villa 9": ("Row 1", "0", "", "0")}
    assert places(sales, stocked) == {**GUESSED, **moved}


def test_selected_units_are_moved_together_and_go_back_together(sales: Person, stocked: Project) -> None:
    sent = form_of(sales.see(address(stocked)))
    moved = {**sent, "do": "move", "pick": ["A-101", "Villa 9"], "to-building": "T", "to-floor": "-2"}
    assert "2 units were moved." in sales.done(address(stocked), moved)
    assert places(sales, stocked)["A-101"] == ("T", "-2", "1", "0")
    assert places(sales, stocked)["Villa 9"] == ("T", "-2", "", "0")
    back = {**form_of(sales.see(address(stocked))), "do": "reset", "pick": ["A-101", "A-102"]}
    assert "1 unit was moved." in sales.done(address(stocked), back)
    assert places(sales, stocked)["A-101"] == GUESSED["A-101"]


def test_what_is_no_place_is_told_and_changes_nothing(sales: Person, stocked: Project) -> None:
    shown = sales.see(address(stocked))
    for part, value in (
        ("floor", "201"),
        ("floor", "-10"),
        ("floor", "1.5"),
        ("floor", "--1"),
        ("position", "0"),
        ("position", "9" * 5000),
        ("building", "x" * 51),
        ("building", "a\u202eb"),
    ):
        sent = form_of(shown)
        sent[part][0], sent["floor"][1] = value, "9"
        page = sales.refused(address(stocked), {"do": "save", **sent})
        assert page.count('aria-invalid="true"') == 1
        assert value in page
        if part != "position":
            moved = {**form_of(shown), "do": "move", "pick": "A-101", f"to-{part}": value}
            sales.refused(address(stocked), moved)
    unknown = {**form_of(shown), "do": "reset", "pick": "nowhere"}
    assert "Some of these units do not exist" in sales.refused(address(stocked), unknown)
    sent = form_of(shown)
    sent["floor"].pop()
    sales.refused(address(stocked), {"do": "save", **sent}, 400)
    assert places(sales, stocked) == GUESSED


def test_units_are_found_by_a_part_of_their_code(sales: Person, stocked: Project) -> None:
    assert form_of(sales.see(address(stocked, "?code=vil")))["code"] == ["Villa 9"]
    assert "No units match your filters" in sales.see(address(stocked, "?code=%25"))
