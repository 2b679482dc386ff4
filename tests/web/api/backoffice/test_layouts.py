"""A project's layout: guessed from the codes, chosen by staff, sent back as it was read."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.backoffice import PROJECTS, Desk, project_url, succeeded, with_body
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, put_array
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

CODES = ["B-0203", "A-1203", "A-0101", "SHOP", "A-0102"]
ENTRIES = "select action, before::text, after::text from audit_entry where subject_id = $1::uuid order by id"


def place(code: str, building: object, floor: object, position: object, **more: object) -> dict[str, object]:
    return {"code": code, "building": building, "floor": floor, "position": position, **more}


GUESSED = [
    place("A-0101", "A", 1, 1, guessed=True),
    place("A-0102", "A", 1, 2, guessed=True),
    place("A-1203", "A", 12, 3, guessed=True),
    place("B-0203", "B", 2, 3, guessed=True),
    place("SHOP", None, None, None, guessed=True),
]


class Layout:
    def __init__(self, desk: Desk, project: Project) -> None:
        self._http = desk.http
        self._url = f"{project_url(project)}/layout"

    def read(self) -> dict[str, Any]:
        return succeeded(self._http.get(self._url))

    def put(self, body: object) -> httpx.Response:
        return self._http.put(self._url, **with_body(body))

    def arrange(self, *places: dict[str, object]) -> dict[str, Any]:
        return succeeded(self.put({"units": list(places)}))


@pytest.fixture
def layout(desk: Desk, http: httpx.Client, project: Project) -> Layout:
    assert put_array(http, project, [minimal(code=code) for code in CODES]).status_code == 200
    return Layout(desk, project)


def test_a_layout_is_guessed_from_the_codes(layout: Layout, project: Project) -> None:
    assert layout.read() == {"projectSlug": project.slug, "units": GUESSED}


def test_a_floor_of_the_unit_takes_the_place_of_the_guess_until_staff_choose(
    layout: Layout, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [minimal(code="A-0101", floor=-2), minimal(code="SHOP", floor=0)])
    placed = {unit["code"]: unit for unit in layout.read()["units"]}
    assert placed["A-0101"] == place("A-0101", "A", -2, 1, guessed=True)
    assert placed["SHOP"] == place("SHOP", None, 0, None, guessed=True)
    assert layout.arrange(*layout.read()["units"]) == layout.read()
    assert all(unit["guessed"] for unit in layout.read()["units"])
    layout.arrange(place("A-0101", "A", 5, 1))
    assert place("A-0101", "A", 5, 1, guessed=False) in layout.read()["units"]


def test_a_project_without_units_has_an_empty_layout(desk: Desk, project: Project) -> None:
    empty = Layout(desk, project)
    assert empty.read() == {"projectSlug": project.slug, "units": []}
    assert empty.arrange() == empty.read()


def test_what_staff_choose_stands_and_the_rest_is_guessed(layout: Layout) -> None:
    shop = place("SHOP", "A", 0, 1)
    answer = layout.arrange(shop)
    assert answer["units"] == [shop | {"guessed": False}, *GUESSED[:4]]
    assert layout.read() == answer


def test_a_unit_may_be_put_nowhere(layout: Layout) -> None:
    answer = layout.arrange(place("A-0101", None, None, None))
    assert place("A-0101", None, None, None, guessed=False) in answer["units"]


def test_part_of_a_place_may_be_unknown(layout: Layout) -> None:
    chosen = [place("SHOP", "The Mall", None, None), place("A-0101", None, -9, None)]
    answer = layout.arrange(*chosen)
    assert all(one | {"guessed": False} in answer["units"] for one in chosen)


def test_a_layout_can_be_sent_back_as_it_was_read(layout: Layout, project: Project, sql: Sql) -> None:
    layout.arrange(place("SHOP", "A", 0, 1))
    read, noted = layout.read(), sql.rows(ENTRIES, project.id)
    assert succeeded(layout.put(read)) == read
    assert layout.read() == read
    assert sql.rows(ENTRIES, project.id) == noted


def test_a_unit_that_comes_later_is_guessed(layout: Layout, http: httpx.Client, project: Project) -> None:
    layout.put(layout.read())
    Unit(http, project, "C-0304").create(minimal())
    assert place("C-0304", "C", 3, 4, guessed=True) in layout.read()["units"]


def test_an_empty_layout_goes_back_to_the_guesses(layout: Layout) -> None:
    layout.arrange(place("SHOP", "A", 0, 1), place("A-0101", "Z", 5, 5))
    assert layout.arrange()["units"] == GUESSED
    assert layout.read()["units"] == GUESSED


def test_a_layout_is_replaced_as_a_whole(layout: Layout) -> None:
    layout.arrange(place("SHOP", "A", 0, 1))
    answer = layout.arrange(place("A-0101", "Z", 5, 5))
    assert [unit["code"] for unit in answer["units"] if not unit["guessed"]] == ["A-0101"]


def test_a_unit_that_is_unknown_changes_nothing(layout: Layout) -> None:
    body = {"units": [place("A-0101", "Z", 5, 5), place("A-9999", "A", 99, 99)]}
    refusal = invalid(layout.put(body), "/units/1/code")
    assert "A-9999" in refusal["detail"]
    assert layout.read()["units"] == GUESSED


def test_a_unit_of_another_project_is_unknown(
    layout: Layout, http: httpx.Client, new_project: Callable[[], Project]
) -> None:
    Unit(http, new_project(), "X-0101").create(minimal())
    invalid(layout.put({"units": [place("X-0101", "A", 1, 1)]}), "/units/0/code")
    invalid(layout.put({"units": [place("X-0101", "X", 1, 1, guessed=True)]}), "/units/0/code")


def test_a_code_stands_once(layout: Layout) -> None:
    body = {"units": [place("SHOP", "A", 0, 1), place("SHOP", "B", 0, 1), place("SHOP", None, None, None)]}
    invalid(layout.put(body), "/units/1/code", "/units/2/code")
    assert layout.read()["units"] == GUESSED


def test_every_fault_of_the_codes_is_told_at_once(layout: Layout) -> None:
    units = [place("A-9999", "A", 9, 9), place("SHOP", "A", 0, 1), place("SHOP", "A", 0, 2)]
    body = {"units": units, "projectSlug": "another-tower"}
    invalid(layout.put(body), "/projectSlug", "/units/0/code", "/units/2/code")
    assert layout.read()["units"] == GUESSED


def test_a_wrong_place_hides_no_other_fault(layout: Layout) -> None:
    units = [
        place("SHOP", " A", 201, 1),
        place("SHOP", "A", 0, 1),
        place("A-9999", "A", "1", 1),
        "SHOP",
        place("", "A", 0, 1),
    ]
    body = {"units": units, "projectSlug": "another-tower", "colour": "red"}
    pointers = ["0/building", "0/floor", "1/code", "2/code", "2/floor", "3", "4/code"]
    invalid(layout.put(body), "/projectSlug", "/colour", *(f"/units/{pointer}" for pointer in pointers))
    assert layout.read()["units"] == GUESSED


def test_a_fault_is_told_before_the_project_is_missed(desk: Desk) -> None:
    url = f"{PROJECTS}/not-there-yet/layout"
    twice = {"units": [place("SHOP", "A", 0, 1), place("SHOP", "A", 0, 2)]}
    invalid(desk.http.put(url, **with_body(twice)), "/units/1/code")
    problem(desk.http.put(url, **with_body({"units": []})), 404)


def test_a_guess_that_comes_back_changed_is_a_choice(layout: Layout) -> None:
    read = layout.read()
    read["units"][0] |= {"floor": 7}
    answer = succeeded(layout.put(read))
    assert place("A-0101", "A", 7, 1, guessed=False) in answer["units"]
    assert [unit for unit in answer["units"] if unit["guessed"]] == GUESSED[1:]
    assert layout.read() == answer


@pytest.mark.parametrize(
    ("unit", "pointers"),
    [
        (place("SHOP", "", 201, 0), ["building", "floor", "position"]),
        (place("SHOP", "x" * 51, -10, 1000), ["building", "floor", "position"]),
        (place("SHOP", 1, "1", 1.5), ["building", "floor", "position"]),
        (place("SHOP", "a\u0000", 0.5, True), ["building", "floor", "position"]),
        (place("SHOP", " A", 0, 1), ["building"]),
        (place("SHOP", "A ", 0, 1), ["building"]),
        (place("SHOP", "A\nB", 0, 1), ["building"]),
        (place("SHOP", "A\u202eB", 0, 1), ["building"]),
        ({"code": "SHOP"}, ["building", "floor", "position"]),
        (place("", "A", 1, 1), ["code"]),
        (place("x" * 51, "A", 1, 1), ["code"]),
        (place("SHOP", "A", 1, 1, guessed=None, colour="red"), ["guessed", "colour"]),
    ],
)
def test_every_fault_of_a_place_is_told(layout: Layout, unit: dict[str, object], pointers: list[str]) -> None:
    invalid(layout.put({"units": [unit]}), *(f"/units/0/{name}" for name in pointers))
    assert layout.read()["units"] == GUESSED


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/units"]),
        ({"units": None}, ["/units"]),
        ({"units": {}}, ["/units"]),
        ({"units": ["SHOP"]}, ["/units/0"]),
        ({"units": [], "buildings": 2}, ["/buildings"]),
        ({"units": [], "projectSlug": "another-tower"}, ["/projectSlug"]),
        ([], [""]),
    ],
)
def test_what_is_no_layout_is_refused(layout: Layout, body: object, pointers: list[str]) -> None:
    invalid(layout.put(body), *pointers)


@pytest.mark.parametrize("code", ["a\u0000b", "\ud800", "%", "A-0101 ", "أ-١"])
def test_odd_codes_are_units_that_are_not_there(layout: Layout, code: str) -> None:
    assert layout.put({"units": [place(code, "A", 1, 1)]}).status_code == 422


def test_a_whole_number_may_be_written_with_a_point(layout: Layout) -> None:
    answer = succeeded(
        layout.put('{"units": [{"code": "SHOP", "building": "A", "floor": 2.0, "position": 1e1}]}')
    )
    assert place("SHOP", "A", 2, 10, guessed=False) in answer["units"]


def test_a_layout_changes_no_unit(layout: Layout, http: httpx.Client, project: Project) -> None:
    unit = Unit(http, project, "SHOP")
    etag = unit.etag
    layout.arrange(place("SHOP", "A", 0, 1))
    assert unit.etag == etag


def test_a_change_of_the_layout_is_an_entry_of_the_project(
    layout: Layout, project: Project, sql: Sql
) -> None:
    layout.arrange(place("SHOP", "A", 0, 1))
    (entry,) = sql.rows(ENTRIES, project.id)
    assert entry["action"] == "arrange"
    assert entry["before"] == '{"places":{"SHOP":null}}'
    assert entry["after"] == '{"places":{"SHOP":{"building":"A","floor":0,"position":1}}}'
