"""PUT …/units: many units at once, each standing on its own."""

import json
from typing import Any

import httpx
import pytest

from tests.support import exact_json, states
from tests.support.bodies import full, minimal, without
from tests.support.client import NDJSON, Project, Send, Unit, outcomes, put_array, put_bulk
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import check_shape, problem
from tests.support.sql import Sql


def counts(response: httpx.Response) -> dict[str, int]:
    assert response.status_code == 200, response.text
    found: dict[str, int] = response.json()["counts"]
    return found


def listed(http: httpx.Client, project: Project) -> list[str]:
    units = http.get(project.units_url, params={"limit": 1000}).json()["units"]
    return sorted(unit["code"] for unit in units)


def test_units_are_created_replaced_and_left_alone(http: httpx.Client, project: Project, send: Send) -> None:
    send(http, project, [full(code="A-1"), full(code="A-2")])
    response = send(http, project, [full(code="A-2", priceSar=1), full(code="A-3"), full(code="A-1")])
    assert outcomes(response) == [("A-2", "replaced"), ("A-3", "created"), ("A-1", "unchanged")]
    assert counts(response) == {"created": 1, "replaced": 1, "unchanged": 1, "refused": 0}
    assert listed(http, project) == ["A-1", "A-2", "A-3"]


def test_each_unit_is_what_a_single_put_would_make(http: httpx.Client, project: Project, send: Send) -> None:
    send(http, project, [full(code="A-1", status="unavailable")])
    single = Unit(http, project, "A-2")
    single.create(full(status="unavailable"))
    own = ("id", "code", "ref", "createdAt", "updatedAt")
    assert without(Unit(http, project, "A-1").read(), *own) == without(single.read(), *own)


def test_a_repeated_call_changes_nothing(
    http: httpx.Client, project: Project, send: Send, feed: Feed
) -> None:
    items = [full(code=f"A-{number}") for number in range(5)]
    send(http, project, items)
    etag = Unit(http, project, "A-0").etag
    assert counts(send(http, project, items))["unchanged"] == 5
    assert (Unit(http, project, "A-0").etag, feed.of(project)) == (etag, [])


def test_omitted_fields_are_cleared(http: httpx.Client, project: Project) -> None:
    put_array(http, project, [full(code="A-1")])
    put_array(http, project, [minimal(code="A-1")])
    assert Unit(http, project, "A-1").read()["description"] is None


def test_no_units_are_fine(http: httpx.Client, project: Project) -> None:
    answer = put_array(http, project, []).json()
    assert answer["counts"] == {"created": 0, "replaced": 0, "unchanged": 0, "refused": 0}
    assert answer["results"] == []


def test_one_bad_unit_does_not_fail_its_neighbours(http: httpx.Client, project: Project, send: Send) -> None:
    items = [minimal(code="A-1"), minimal(code="A-2", priceSar=-1), minimal(code="A-3")]
    response = send(http, project, items)
    assert outcomes(response) == [("A-1", "created"), ("A-2", "refused"), ("A-3", "created")]
    assert [("problem" in result) for result in response.json()["results"]] == [False, True, False]
    assert listed(http, project) == ["A-1", "A-3"]


@pytest.mark.parametrize(
    "body",
    [
        minimal(priceSar=-1, areaSqm="x", colour=1),
        without(full(), "type", "areaSqm"),
        minimal(status="sold"),
        minimal(status=None),
        minimal(images=["nowhere"], files=[{}]),
        minimal(projectSlug="another"),
    ],
)
def test_the_problem_of_an_invalid_unit_is_that_of_a_single_put(unit: Unit, body: dict[str, Any]) -> None:
    single = problem(unit.put(body), 422)
    assert_same_problem(put_array(unit.http, unit.project, [body | {"code": unit.code}]), single)


@pytest.mark.parametrize("status", ["held", "reserved", "sold"])
def test_the_problem_of_a_locked_status_is_that_of_a_single_put(stored: Unit, sql: Sql, status: str) -> None:
    states.bring_to(sql, stored, status)
    body = full(status="available")
    single = problem(stored.put(body), 409)
    assert_same_problem(put_array(stored.http, stored.project, [body | {"code": stored.code}]), single)


def test_the_problem_of_locked_terms_is_that_of_a_single_put(stored: Unit, sql: Sql) -> None:
    states.hold(sql, stored)
    single = problem(stored.put(minimal()), 409)
    assert_same_problem(put_array(stored.http, stored.project, [minimal(code=stored.code)]), single)


def test_the_problem_of_an_archived_unit_is_that_of_a_single_put(stored: Unit, sql: Sql) -> None:
    states.archive(sql, stored)
    single = problem(stored.put(full(status="available")), 409)
    items = [full(code=stored.code, status="available")]
    assert_same_problem(put_array(stored.http, stored.project, items), single)


def assert_same_problem(response: httpx.Response, single: dict[str, Any]) -> None:
    (result,) = response.json()["results"]
    assert result["outcome"] == "refused"
    check_shape(result["problem"], single["status"])
    assert without(result["problem"], "requestId") == without(single, "requestId")


@pytest.mark.parametrize("code", ["", "x" * 51, " A", "A\n", "A\u200b", "e\u0301", None, 5, ["A"]])
def test_a_bad_code_refuses_its_unit_only(
    http: httpx.Client, project: Project, send: Send, code: object
) -> None:
    response = send(http, project, [minimal(code=code), minimal(code="A-1")])
    refused, created = response.json()["results"]
    assert (refused["outcome"], refused["problem"]["status"]) == ("refused", 422)
    assert [error["pointer"] for error in refused["problem"]["errors"]] == ["/code"]
    assert (created["outcome"], listed(http, project)) == ("created", ["A-1"])


def test_a_missing_code_refuses_its_unit_only(http: httpx.Client, project: Project, send: Send) -> None:
    response = send(http, project, [minimal(), minimal(code="A-1")])
    refused, created = response.json()["results"]
    assert [error["pointer"] for error in refused["problem"]["errors"]] == ["/code"]
    assert created["outcome"] == "created"


@pytest.mark.parametrize("item", [None, 5, "A-1", [], True])
def test_an_item_that_is_no_object_is_refused(
    http: httpx.Client, project: Project, send: Send, item: object
) -> None:
    response = send(http, project, [item, minimal(code="A-1")])
    refused, created = response.json()["results"]
    assert (refused["outcome"], refused["problem"]["status"]) == ("refused", 422)
    assert created["outcome"] == "created"


def test_a_code_named_twice_is_refused_the_second_time(
    http: httpx.Client, project: Project, send: Send
) -> None:
    items = [minimal(code="A-1", priceSar=1), minimal(code="A-2"), minimal(code="A-1", priceSar=2)]
    response = send(http, project, items)
    assert outcomes(response) == [("A-1", "created"), ("A-2", "created"), ("A-1", "refused")]
    check_shape(response.json()["results"][2]["problem"], response.json()["results"][2]["problem"]["status"])
    assert Unit(http, project, "A-1").read()["priceSar"] == 1


def test_thousands_of_units_keep_the_order_in_which_they_were_sent(
    http: httpx.Client, project: Project
) -> None:
    codes = [f"U-{number:05}" for number in range(2500, 0, -1)]
    items = [minimal(code=code) for code in codes]
    items[1200] = minimal(code=codes[1200], priceSar=-1)
    response = put_array(http, project, items)
    assert [code for code, _ in outcomes(response)] == codes
    assert counts(response) == {"created": 2499, "replaced": 0, "unchanged": 0, "refused": 1}


def test_status_changes_are_echoed_as_events(
    http: httpx.Client, project: Project, feed: Feed, send: Send
) -> None:
    items = [minimal(code=f"A-{number}") for number in range(3)]
    send(http, project, items)
    send(http, project, [item | {"status": "unavailable"} for item in items])
    send(http, project, [item | {"status": "available"} for item in items])
    for item in items:
        events = feed.of(Unit(http, project, item["code"]))
        assert [event["type"] for event in events] == ["unit.unavailable", "unit.available"]
        assert chain_is_unbroken(events)


def test_a_code_named_twice_is_noticed_across_transactions(http: httpx.Client, project: Project) -> None:
    items = [minimal(code=f"U-{number:05}") for number in range(2100)]
    items[2050] = minimal(code="U-00003", priceSar=7)
    response = put_array(http, project, items)
    assert [code for code, outcome in outcomes(response) if outcome == "refused"] == ["U-00003"]
    assert Unit(http, project, "U-00003").read()["priceSar"] == 950_000


def test_what_the_list_gives_can_be_put_back(http: httpx.Client, project: Project, send: Send) -> None:
    send(http, project, [full(code=f"A/{number}") for number in range(5)])
    units = http.get(project.units_url).json()["units"]
    answer = send(http, project, [without(unit, "status") for unit in units])
    assert counts(answer) == {"created": 0, "replaced": 0, "unchanged": 5, "refused": 0}


@pytest.mark.parametrize("gap", ["\r\n", "\n\n", "\n \n"])
def test_lines_may_end_in_these_ways(http: httpx.Client, project: Project, gap: str) -> None:
    lines = gap.join(exact_json.write(minimal(code=f"A-{number}")) for number in range(3))
    assert counts(put_bulk(http, project, lines, NDJSON))["created"] == 3


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
def test_a_line_ends_at_a_line_feed_and_nowhere_else(
    http: httpx.Client, project: Project, character: str
) -> None:
    line = json.dumps(
        {"code": "A-1", "type": f"a{character}b", "areaSqm": 1, "priceSar": 1}, ensure_ascii=False
    )
    assert counts(put_bulk(http, project, line + "\n", NDJSON))["created"] == 1
    assert Unit(http, project, "A-1").read()["type"] == f"a{character}b"


def test_what_the_database_alone_refuses_fails_none_of_its_neighbours(
    http: httpx.Client, project: Project, sql: Sql
) -> None:
    sql.execute("alter table unit add constraint refused_by_test check (type <> 'refused by test') not valid")
    try:
        items = [minimal(code=f"A-{number}") for number in range(6)]
        items[3] = minimal(code="A-3", type="refused by test")
        response = put_array(http, project, items)
    finally:
        sql.execute("alter table unit drop constraint refused_by_test")
    assert [outcome for _, outcome in outcomes(response)] == ["created"] * 3 + ["refused"] + ["created"] * 2
    assert listed(http, project) == ["A-0", "A-1", "A-2", "A-4", "A-5"]
