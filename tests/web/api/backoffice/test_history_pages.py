"""The history of a unit is read from its end, in pages."""

from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk, unit_url
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, put_array
from tests.support.problems import invalid, problem


def test_each_changed_unit_of_a_bulk_call_has_its_entry(
    http: httpx.Client, project: Project, desk: Desk
) -> None:
    units = [Unit(http, project, f"A-{number}") for number in range(3)]
    first = put_array(http, project, [minimal(code=unit.code) for unit in units])
    second = put_array(
        http, project, [minimal(code=unit.code, bedrooms=at or None) for at, unit in enumerate(units)]
    )
    ids = [first.headers["x-request-id"], second.headers["x-request-id"]]
    assert [entry["requestId"] for entry in desk.history(units[0])] == ids[:1]
    for at, unit in enumerate(units[1:], start=1):
        entries = desk.history(unit)
        assert [entry["requestId"] for entry in entries] == ids[::-1]
        assert [entry["action"] for entry in entries] == ["change", "create"]
        assert (entries[0]["before"], entries[0]["after"]) == ({"bedrooms": None}, {"bedrooms": at})


def test_a_dry_run_leaves_no_entry(http: httpx.Client, stored: Unit, desk: Desk) -> None:
    before = desk.history(stored)
    put_array(http, stored.project, [minimal(code=stored.code)], dryRun="true")
    assert desk.history(stored) == before


def test_an_unknown_unit_has_no_history(unit: Unit, desk: Desk) -> None:
    problem(desk.http.get(f"{unit_url(unit)}/history"), 404)
    unknown = Unit(unit.http, Project("", "no-such-tower", ""), "A-1")
    problem(desk.http.get(f"{unit_url(unknown)}/history"), 404)


def test_pages_follow_each_other_without_gap_or_repetition(stored: Unit, desk: Desk) -> None:
    for bedrooms in range(10, 19):
        assert stored.patch({"bedrooms": bedrooms}).status_code == 200
    whole = desk.history(stored)
    assert len(whole) == 10
    assert [entry["after"]["bedrooms"] for entry in whole[:3]] == [18, 17, 16]
    paged: list[dict[str, Any]] = []
    query: dict[str, str | int] = {"limit": 4}
    for size in (4, 4, 2):
        page = desk.history_page(stored, **query)
        assert len(page["entries"]) == size
        paged += page["entries"]
        query = {"limit": 4, "cursor": page["nextCursor"] or ""}
    assert query["cursor"] == ""
    assert paged == whole


def test_a_page_stays_where_it_is_while_the_unit_changes(stored: Unit, desk: Desk) -> None:
    assert stored.patch({"bedrooms": 9}).status_code == 200
    cursor = desk.history_page(stored, limit=1)["nextCursor"]
    assert stored.patch({"bedrooms": 10}).status_code == 200
    (entry,) = desk.history_page(stored, limit=1, cursor=cursor)["entries"]
    assert entry["action"] == "create"


def test_a_last_page_that_is_full_says_so(stored: Unit, desk: Desk) -> None:
    assert desk.history_page(stored, limit=1)["nextCursor"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", "0"), ("limit", "1001"), ("limit", "x"), ("cursor", "x"), ("cursor", ""), ("offset", "1")],
)
def test_a_bad_query_is_refused(stored: Unit, desk: Desk, name: str, value: str) -> None:
    invalid(desk.http.get(f"{unit_url(stored)}/history", params={name: value}), f"/query/{name}")
