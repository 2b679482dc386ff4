"""A layout of very many units: read, changed, and bounded."""

import json
from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk, project_url, succeeded
from tests.support.bodies import minimal
from tests.support.client import JSON, Project, put_lines
from tests.support.problems import problem

MIB = 1024 * 1024
UNITS = 15_000


def put(desk: Desk, project: Project, content: str) -> httpx.Response:
    headers = {"Content-Type": JSON}
    return desk.http.put(f"{project_url(project)}/layout", content=content, headers=headers)


@pytest.fixture
def large(http: httpx.Client, project: Project) -> Project:
    units = (minimal(code=f"T{at // 1000}-{at % 1000:03}") for at in range(UNITS))
    assert put_lines(http, project, units).json()["counts"]["created"] == UNITS
    return project


def test_of_a_large_layout_what_was_chosen_is_sent_and_the_rest_stands_where_its_code_says(
    desk: Desk, large: Project
) -> None:
    layout = desk.http.get(f"{project_url(large)}/layout").json()
    assert len(layout["units"]) == UNITS
    moved = layout["units"][7000] | {"building": "The Mall", "floor": 0}
    answer = succeeded(put(desk, large, json.dumps({"units": [moved]})))
    layout["units"][7000] = moved | {"guessed": False}
    assert {unit["code"]: unit for unit in answer["units"]} == {
        unit["code"]: unit for unit in layout["units"]
    }
    assert succeeded(desk.http.get(f"{project_url(large)}/layout")) == answer


def test_thousands_of_units_are_sent_back_as_they_were_read(desk: Desk, large: Project) -> None:
    layout: dict[str, Any] = desk.http.get(f"{project_url(large)}/layout").json()
    some = {"units": layout["units"][:9000]}
    assert succeeded(put(desk, large, json.dumps(some))) == layout


def test_of_many_unknown_codes_a_hundred_are_named_and_the_others_counted(
    desk: Desk, project: Project
) -> None:
    places = [{"code": f"A-{at}", "building": "A", "floor": 1, "position": 1} for at in range(9000)]
    errors = problem(put(desk, project, json.dumps({"units": places})), 422)["errors"]
    assert [error["pointer"] for error in errors[:-1]] == [f"/units/{at}/code" for at in range(100)]
    assert errors[-1]["message"] == "And 8900 more."


def test_of_very_many_wrong_places_ten_thousand_are_looked_for(desk: Desk, project: Project) -> None:
    errors = problem(put(desk, project, json.dumps({"units": [0] * 150_000})), 422)["errors"]
    assert [error["pointer"] for error in errors[:-1]] == [f"/units/{at}" for at in range(100)]
    assert errors[-1]["message"] == "And 9901 more."


def test_a_layout_that_is_too_large_is_refused(desk: Desk, project: Project) -> None:
    problem(put(desk, project, '{"units": []}'.ljust(MIB + 1)), 413)


def test_a_fault_of_syntax_comes_before_all_others(desk: Desk, project: Project) -> None:
    wrong = json.dumps({"projectSlug": "another-tower", "units": [0] * 20_000})
    problem(put(desk, project, wrong[:-2]), 400)
    problem(put(desk, project, wrong[:-1] + ', "units": []}'), 400)
    problem(put(desk, project, wrong + "x"), 400)


@pytest.mark.parametrize("slug", ["%00", "%FF", "Palm", "-"])
def test_a_layout_of_what_can_be_no_project_is_refused_before_it_is_looked_for(desk: Desk, slug: str) -> None:
    headers = {"Content-Type": JSON}
    for content in ('{"units": []}', '{"units": [{"code": "A-1"}]}'):
        answer = desk.http.put(f"/v1/backoffice/projects/{slug}/layout", content=content, headers=headers)
        assert problem(answer, 422)["errors"][0]["pointer"] == "/path/slug"
