"""A project's layout: guessed from the codes, chosen by staff, sent back as it was read."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.backoffice import PROJECTS, Desk, project_url
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, put_array, put_lines, succeeded, with_body
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

CODES = ["B-0203", "A-1203", "A-0101", "SHOP", "A-0102"]
MIB = 1024 * 1024
# So many are worked on in a thread.
MANY = 1200
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
NOWHERE = place("SHOP", None, None, None, guessed=False)


class Layout:
    def __init__(self, desk: Desk, project: Project) -> None:
        self._http = desk.http
        self._url = f"{project_url(project)}/layout"

    def read(self) -> dict[str, Any]:
        return succeeded(self._http.get(self._url))

    def put(self, body: object) -> httpx.Response:
        return self._http.put(self._url, **with_body(body))

    def arrange(self, *places: dict[str, object]) -> dict[str, Any]:
        answer = succeeded(self.put({"units": list(places)}))
        assert self.read() == answer
        return answer


@pytest.fixture
def empty(desk: Desk, project: Project) -> Layout:
    return Layout(desk, project)


@pytest.fixture
def layout(empty: Layout, http: httpx.Client, project: Project) -> Layout:
    assert put_array(http, project, [minimal(code=code) for code in CODES]).status_code == 200
    return empty


def test_a_layout_is_guessed_from_the_codes(layout: Layout, http: httpx.Client, project: Project) -> None:
    assert layout.read() == {"projectSlug": project.slug, "units": GUESSED}
    assert succeeded(layout.put(layout.read())) == layout.read()
    Unit(http, project, "C-0304").create(minimal())
    assert place("C-0304", "C", 3, 4, guessed=True) in layout.read()["units"]


def test_a_floor_of_the_unit_takes_the_place_of_the_guess_until_staff_choose(
    layout: Layout, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [minimal(code="A-0101", floor=-2), minimal(code="SHOP", floor=0)])
    placed = {unit["code"]: unit for unit in layout.read()["units"]}
    assert placed["A-0101"] == place("A-0101", "A", -2, 1, guessed=True)
    assert placed["SHOP"] == place("SHOP", None, 0, None, guessed=True)
    assert layout.arrange(*layout.read()["units"]) == layout.read()
    assert all(unit["guessed"] for unit in layout.read()["units"])
    answer = layout.arrange(place("A-0101", "A", 5, 1))
    assert place("A-0101", "A", 5, 1, guessed=False) in answer["units"]


def test_a_project_without_units_has_an_empty_layout(empty: Layout, project: Project) -> None:
    assert empty.arrange() == {"projectSlug": project.slug, "units": []}


def test_what_staff_choose_replaces_the_layout_and_the_rest_is_guessed(
    layout: Layout, http: httpx.Client, project: Project, sql: Sql
) -> None:
    unit = Unit(http, project, "SHOP")
    etag = unit.etag
    shop = place("SHOP", "A", 0, 1)
    answer = layout.arrange(shop)
    assert answer["units"] == [shop | {"guessed": False}, *GUESSED[:4]]
    assert unit.etag == etag
    (entry,) = sql.rows(ENTRIES, project.id)
    assert entry["action"] == "arrange"
    assert entry["before"] == '{"places":{"SHOP":null}}'
    assert entry["after"] == '{"places":{"SHOP":{"building":"A","floor":0,"position":1}}}'
    # Sent back as it was read, it is no change.
    assert succeeded(layout.put(answer)) == answer
    assert sql.rows(ENTRIES, project.id) == [entry]
    # Part of a place, and the whole of it, may be unknown.
    chosen = [place("A-1203", "The Mall", None, None), place("A-0101", None, -9, None), NOWHERE]
    replaced = layout.arrange(*chosen)["units"]
    assert [unit for unit in replaced if unit["guessed"]] == [GUESSED[1], GUESSED[3]]
    assert all(one | {"guessed": False} in replaced for one in chosen)
    assert layout.arrange()["units"] == GUESSED


def test_a_guess_that_comes_back_changed_is_a_choice(layout: Layout) -> None:
    read = layout.read()
    read["units"][0] |= {"floor": 7}
    answer = succeeded(layout.put(read))
    assert place("A-0101", "A", 7, 1, guessed=False) in answer["units"]
    assert [unit for unit in answer["units"] if unit["guessed"]] == GUESSED[1:]


def test_a_whole_number_may_be_written_with_a_point(layout: Layout) -> None:
    answer = layout.put('{"units": [{"code": "SHOP", "building": "A", "floor": 2.0, "position": 1e1}]}')
    assert place("SHOP", "A", 2, 10, guessed=False) in succeeded(answer)["units"]


# Faults


def test_unknown_and_repeated_codes_change_nothing(
    layout: Layout, http: httpx.Client, new_project: Callable[[], Project]
) -> None:
    Unit(http, new_project(), "X-0101").create(minimal())
    for guessed in (False, True):
        units = [place("A-0101", "Z", 5, 5), place("X-0101", "X", 1, 1, guessed=guessed)]
        assert "X-0101" in invalid(layout.put({"units": units}), "/units/1/code")["detail"]
    for code in ("a\u0000b", "\ud800", "%", "A-0101 ", "أ-١"):
        invalid(layout.put({"units": [place(code, "A", 1, 1)]}), "/units/0/code")
    twice = [place("SHOP", "A", 0, 1), place("SHOP", "B", 0, 1), NOWHERE]
    invalid(layout.put({"units": twice}), "/units/1/code", "/units/2/code")
    assert layout.read()["units"] == GUESSED


def test_every_fault_of_a_layout_is_told_at_once(layout: Layout) -> None:
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


@pytest.mark.parametrize(
    ("unit", "pointers"),
    [
        (place("SHOP", "", 201, 0), ["building", "floor", "position"]),
        (place("SHOP", "x" * 51, -10, 1000), ["building", "floor", "position"]),
        (place("SHOP", 1, "1", 1.5), ["building", "floor", "position"]),
        (place("SHOP", "a\u0000", 0.5, True), ["building", "floor", "position"]),
        (place("SHOP", "A ", 0, 1), ["building"]),
        (place("SHOP", "A\u202eB", 0, 1), ["building"]),
        ({"code": "SHOP"}, ["building", "floor", "position"]),
        (place("x" * 51, "A", 1, 1), ["code"]),
        (place("SHOP", "A", 1, 1, guessed=None, colour="red"), ["guessed", "colour"]),
    ],
)
def test_every_fault_of_a_place_is_told(empty: Layout, unit: dict[str, object], pointers: list[str]) -> None:
    named = [] if "code" in pointers else ["code"]
    invalid(empty.put({"units": [unit]}), *(f"/units/0/{name}" for name in (*pointers, *named)))


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/units"]),
        ({"units": None}, ["/units"]),
        ({"units": {}}, ["/units"]),
        ({"units": [], "buildings": 2}, ["/buildings"]),
        ({"units": [], "projectSlug": "another-tower"}, ["/projectSlug"]),
        ([], [""]),
    ],
)
def test_what_is_no_layout_is_refused(empty: Layout, body: object, pointers: list[str]) -> None:
    invalid(empty.put(body), *pointers)


def test_faults_are_told_before_the_project_is_missed(desk: Desk) -> None:
    url = f"{PROJECTS}/not-there-yet/layout"
    twice = {"units": [place("SHOP", "A", 0, 1), place("SHOP", "A", 0, 2)]}
    invalid(desk.http.put(url, **with_body(twice)), "/units/1/code")
    problem(desk.http.put(url, **with_body({"units": []})), 404)
    for slug in ("%00", "%FF", "Palm", "-"):
        for body in ('{"units": []}', '{"units": [{"code": "A-1"}]}'):
            answer = desk.http.put(f"{PROJECTS}/{slug}/layout", **with_body(body))
            assert problem(answer, 422)["errors"][0]["pointer"] == "/path/slug"


def test_of_very_many_faults_a_hundred_are_named_and_ten_thousand_looked_for(empty: Layout) -> None:
    unknown = [place(f"A-{at}", "A", 1, 1) for at in range(150)]
    errors = problem(empty.put({"units": unknown}), 422)["errors"]
    assert [error["pointer"] for error in errors[:-1]] == [f"/units/{at}/code" for at in range(100)]
    assert errors[-1]["message"] == "And 50 more."
    errors = problem(empty.put({"units": [0] * 10_100}), 422)["errors"]
    assert errors[-1]["message"] == "And 9901 more."


def test_size_and_syntax_come_before_all_other_faults(empty: Layout) -> None:
    problem(empty.put('{"units": []}'.ljust(MIB + 1)), 413)
    wrong = json.dumps({"projectSlug": "another-tower", "units": [0] * 1000})
    for text in (wrong[:-2], wrong[:-1] + ', "units": []}', wrong + "x"):
        problem(empty.put(text), 400)


def test_many_units_are_read_moved_and_sent_back(empty: Layout, http: httpx.Client, project: Project) -> None:
    units = (minimal(code=f"T{at // 1000}-{at % 1000:03}") for at in range(MANY))
    assert put_lines(http, project, units).json()["counts"]["created"] == MANY
    layout = empty.read()
    assert len(layout["units"]) == MANY
    assert succeeded(empty.put(layout)) == layout
    moved = layout["units"][700] | {"building": "The Mall", "floor": 0}
    answer = empty.arrange(moved)
    layout["units"][700] = moved | {"guessed": False}
    assert {unit["code"]: unit for unit in answer["units"]} == {
        unit["code"]: unit for unit in layout["units"]
    }
