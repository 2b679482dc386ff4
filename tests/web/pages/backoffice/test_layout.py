"""Units are moved on a page that works without scripts."""

import re
from typing import Any

import httpx
import pytest

from tests.support.bodies import minimal
from tests.support.client import Project, Unit
from tests.support.staff_client import Person

CODES = ("A-101", "A-102", "Villa 9")


@pytest.fixture
def stocked(http: httpx.Client, project: Project) -> Project:
    for code in CODES:
        Unit(http, project, code).create(minimal())
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


def test_the_guess_is_shown(sales: Person, stocked: Project) -> None:
    assert places(sales, stocked) == {
        "A-101": ("A", "1", "1", "1"),
        "A-102": ("A", "1", "2", "1"),
        "Villa 9": ("", "", "", "1"),
    }


def test_what_is_changed_in_a_row_is_kept_and_nothing_else(sales: Person, stocked: Project) -> None:
    sent = form_of(sales.see(address(stocked)))
    other = {**sent, "do": "move", "pick": "A-102", "to-floor": "7"}
    sales.done(address(stocked), other)
    sent["building"][2], sent["floor"][2] = "Row 1", "٠"
    page = sales.done(address(stocked), {"do": "save", **sent})
    assert "1 unit was moved." in page
    assert places(sales, stocked) == {
        "A-101": ("A", "1", "1", "1"),
        "A-102": ("A", "7", "2", "0"),
        "Villa 9": ("Row 1", "0", "", "0"),
    }


def test_selected_units_are_moved_together_and_go_back_together(sales: Person, stocked: Project) -> None:
    sent = form_of(sales.see(address(stocked)))
    moved = {**sent, "do": "move", "pick": ["A-101", "Villa 9"], "to-building": "T", "to-floor": "-2"}
    assert "2 units were moved." in sales.done(address(stocked), moved)
    assert places(sales, stocked)["A-101"] == ("T", "-2", "1", "0")
    assert places(sales, stocked)["Villa 9"] == ("T", "-2", "", "0")
    back = {**form_of(sales.see(address(stocked))), "do": "reset", "pick": ["A-101", "A-102"]}
    assert "1 unit was moved." in sales.done(address(stocked), back)
    assert places(sales, stocked)["A-101"] == ("A", "1", "1", "1")


def test_a_form_that_is_sent_as_it_was_shown_changes_nothing(sales: Person, stocked: Project) -> None:
    page = sales.done(address(stocked), {"do": "save", **form_of(sales.see(address(stocked)))})
    assert "Nothing was changed." in page


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("floor", "201"),
        ("floor", "-10"),
        ("floor", "ground"),
        ("floor", "1.5"),
        ("floor", "--1"),
        ("position", "0"),
        ("position", "1000"),
        ("position", "9" * 5000),
        ("building", "x" * 51),
        ("building", "a\u202eb"),
    ],
)
def test_what_is_no_place_is_told_beside_its_field_and_changes_nothing(
    sales: Person, stocked: Project, part: str, value: str
) -> None:
    sent = form_of(sales.see(address(stocked)))
    sent[part][0], sent["floor"][1] = value, "9"
    answer = sales.submit(address(stocked), {"do": "save", **sent})
    assert answer.status_code == 422
    assert answer.text.count('aria-invalid="true"') == 1
    assert value in answer.text
    assert places(sales, stocked)["A-102"] == ("A", "1", "2", "1")
    moved: dict[str, Any] = {**form_of(sales.see(address(stocked))), "do": "move", "pick": "A-101"}
    if part != "position":
        assert sales.submit(address(stocked), {**moved, f"to-{part}": value}).status_code == 422


def test_a_unit_that_is_not_there_is_refused(sales: Person, stocked: Project) -> None:
    sent = {**form_of(sales.see(address(stocked))), "do": "reset", "pick": "nowhere"}
    answer = sales.submit(address(stocked), sent)
    assert answer.status_code == 422
    assert "not there" in answer.text


def test_a_form_with_something_missing_is_refused(sales: Person, stocked: Project) -> None:
    sent = form_of(sales.see(address(stocked)))
    sent["floor"].pop()
    assert sales.submit(address(stocked), {"do": "save", **sent}).status_code == 400


def test_units_are_found_by_a_part_of_their_code(sales: Person, stocked: Project) -> None:
    assert form_of(sales.see(address(stocked, "?code=vil")))["code"] == ["Villa 9"]
    assert "No unit matches" in sales.see(address(stocked, "?code=%25"))


def test_those_who_do_not_sell_may_not_move_units(viewer: Person, stocked: Project) -> None:
    assert viewer.look(address(stocked)).status_code == 403
    assert viewer.submit(address(stocked), {"do": "save"}).status_code == 403
