"""A layout of very many units: read, sent back, and bounded."""

import json
from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk, project_url, succeeded
from tests.support.bodies import minimal
from tests.support.client import JSON, Project, put_lines
from tests.support.problems import invalid, problem

MIB = 1024 * 1024
UNITS = 15_000


def put(desk: Desk, project: Project, content: str) -> httpx.Response:
    headers = {"Content-Type": JSON}
    return desk.http.put(f"{project_url(project)}/layout", content=content, headers=headers)


def places(count: int) -> list[dict[str, Any]]:
    return [{"code": f"A-{at}", "building": "A", "floor": 1, "position": 1} for at in range(count)]


@pytest.fixture
def large(http: httpx.Client, project: Project) -> Project:
    units = (minimal(code=f"T{at // 1000}-{at % 1000:03}") for at in range(UNITS))
    assert put_lines(http, project, units).json()["counts"]["created"] == UNITS
    return project


def test_a_large_layout_can_be_sent_back_as_it_was_read(desk: Desk, large: Project) -> None:
    url = f"{project_url(large)}/layout"
    read = desk.http.get(url).text
    assert len(read) > MIB
    assert put(desk, large, read).text == read


def test_a_change_in_a_large_layout_is_kept(desk: Desk, large: Project) -> None:
    layout = desk.http.get(f"{project_url(large)}/layout").json()
    layout["units"][7000] |= {"building": "The Mall", "floor": 0}
    answer = succeeded(put(desk, large, json.dumps(layout)))
    moved = layout["units"][7000] | {"guessed": False}
    assert [unit for unit in answer["units"] if not unit["guessed"]] == [moved]
    assert succeeded(desk.http.get(f"{project_url(large)}/layout")) == answer


def test_every_unknown_code_of_a_large_layout_is_told(desk: Desk, project: Project) -> None:
    answer = put(desk, project, json.dumps({"units": places(20_000)}))
    invalid(answer, *(f"/units/{at}/code" for at in range(20_000)))


def test_of_very_many_wrong_places_the_first_ten_thousand_faults_are_told(
    desk: Desk, project: Project
) -> None:
    answer = put(desk, project, json.dumps({"units": [0] * 150_000}))
    assert [error["pointer"] for error in problem(answer, 422)["errors"]][:2] == ["/units/0", "/units/1"]
    assert 10_000 <= len(answer.json()["errors"]) < 10_100


def test_a_layout_names_no_more_than_two_hundred_thousand_units(desk: Desk, project: Project) -> None:
    refusal = problem(put(desk, project, json.dumps({"units": [0] * 200_001})), 413)
    assert "200000" in refusal["detail"]


@pytest.mark.parametrize(
    "content",
    [
        '{"units": []}'.ljust(32 * MIB + 1),
        json.dumps({"units": [], "projectSlug": "x" * MIB}),
        json.dumps({"units": [{"code": "x" * MIB}]}),
        json.dumps([0] * MIB),
    ],
    ids=["whole", "beside its units", "one unit", "no object"],
)
def test_a_layout_that_is_too_large_is_refused(desk: Desk, project: Project, content: str) -> None:
    problem(put(desk, project, content), 413)


def test_a_fault_of_syntax_comes_before_all_others(desk: Desk, project: Project) -> None:
    wrong = json.dumps({"projectSlug": "another-tower", "units": [0] * 20_000})
    problem(put(desk, project, wrong[:-2]), 400)
    problem(put(desk, project, wrong[:-1] + ', "units": []}'), 400)
    problem(put(desk, project, wrong + "x"), 400)
