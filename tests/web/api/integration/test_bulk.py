"""PUT …/units: many units at once, each standing on its own; dry runs, and what is missing."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support import exact_json
from tests.support.backoffice import Desk
from tests.support.bodies import full, minimal, without
from tests.support.client import JSON, NDJSON, Project, Send, Unit, outcomes, put_array, put_bulk, put_lines
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import check_shape, invalid, problem
from tests.support.sql import Sql

GOOD = exact_json.write(minimal(code="A-1"))
LIMIT = 32 * 1024 * 1024


@pytest.fixture(params=[put_array, put_lines], ids=["array", "ndjson"])
def send(request: pytest.FixtureRequest) -> Send:
    sender: Send = request.param
    return sender


@pytest.fixture
def untouched(http: httpx.Client, project: Project) -> Iterator[Project]:
    """A project in which nothing may have been stored by the end of the test."""
    yield project
    assert http.get(project.units_url).json()["units"] == []


def counts(response: httpx.Response) -> dict[str, int]:
    assert response.status_code == 200, response.text
    found: dict[str, int] = response.json()["counts"]
    return found


def listed(http: httpx.Client, project: Project) -> list[str]:
    units = http.get(project.units_url, params={"limit": 1000}).json()["units"]
    return sorted(unit["code"] for unit in units)


def test_units_are_created_replaced_and_left_alone(http: httpx.Client, project: Project, send: Send) -> None:
    send(http, project, [full(code="A-1"), full(code="A-2")])
    response = send(http, project, [full(code="A-2", priceSar=1), minimal(code="A/3"), full(code="A-1")])
    assert outcomes(response) == [("A-2", "replaced"), ("A/3", "created"), ("A-1", "unchanged")]
    assert counts(response) == {"created": 1, "replaced": 1, "unchanged": 1, "refused": 0}
    assert set(response.json()) == {"counts", "results"}
    units = http.get(project.units_url).json()["units"]
    assert [unit["code"] for unit in units] == ["A-1", "A-2", "A/3"]
    answer = send(http, project, [without(unit, "status") for unit in units])
    assert counts(answer) == {"created": 0, "replaced": 0, "unchanged": 3, "refused": 0}
    assert counts(put_array(http, project, [])) == dict.fromkeys(counts(answer), 0)


def test_each_unit_is_what_a_single_put_would_make(http: httpx.Client, project: Project, send: Send) -> None:
    single = Unit(http, project, "A-2")
    for body in (full(status="unavailable"), minimal()):
        send(http, project, [{**body, "code": "A-1"}])
        single.put(body)
        own = ("id", "code", "ref", "createdAt", "updatedAt")
        assert without(Unit(http, project, "A-1").read(), *own) == without(single.read(), *own)


def test_status_changes_are_told_as_events_and_a_repeated_call_tells_nothing(
    http: httpx.Client, project: Project, feed: Feed, send: Send
) -> None:
    items = [minimal(code=f"A-{number}") for number in range(3)]
    send(http, project, items)
    for status in ("unavailable", "available"):
        changed = [item | {"status": status} for item in items]
        assert counts(send(http, project, changed))["replaced"] == 3
        etag = Unit(http, project, "A-0").etag
        assert counts(send(http, project, changed))["unchanged"] == 3
        assert Unit(http, project, "A-0").etag == etag
    for item in items:
        events = feed.of(Unit(http, project, item["code"]))
        assert [event["type"] for event in events] == ["unit.unavailable", "unit.available"]
        assert chain_is_unbroken(events)


BAD_CODES = ["", "x" * 51, " A", "A\n", "A\u200b", "e\u0301", None, 5, ["A"]]


def test_a_bad_unit_is_refused_and_fails_none_of_its_neighbours(
    http: httpx.Client, project: Project, send: Send
) -> None:
    bad = [minimal(), *(minimal(code=code) for code in BAD_CODES)]
    no_objects: list[Any] = [None, 5, "A-1", [], True]
    items = [minimal(code="A-1"), minimal(code="A-2", priceSar=-1), *bad, *no_objects, minimal(code="A-3")]
    response = send(http, project, items)
    first, *refused, last = response.json()["results"]
    assert [first, last] == [{"code": "A-1", "outcome": "created"}, {"code": "A-3", "outcome": "created"}]
    assert {(one["outcome"], one["problem"]["status"]) for one in refused} == {("refused", 422)}
    pointers = [[error["pointer"] for error in one["problem"]["errors"]] for one in refused]
    assert pointers == [["/priceSar"]] + [["/code"]] * len(bad) + [[""]] * len(no_objects)
    assert listed(http, project) == ["A-1", "A-3"]


def test_a_code_named_twice_is_refused_the_second_time(
    http: httpx.Client, project: Project, send: Send
) -> None:
    items = [minimal(code="A-1", priceSar=1), minimal(code="A-2"), minimal(code="A-1", priceSar=2)]
    response = send(http, project, items)
    assert outcomes(response) == [("A-1", "created"), ("A-2", "created"), ("A-1", "refused")]
    refused = response.json()["results"][2]["problem"]
    check_shape(refused, refused["status"])
    assert Unit(http, project, "A-1").read()["priceSar"] == 1


def test_thousands_of_units_keep_their_order_and_a_code_named_twice_is_noticed_across_transactions(
    http: httpx.Client, project: Project
) -> None:
    codes = [f"U-{number:05}" for number in range(2500, 0, -1)]
    items = [minimal(code=code) for code in codes]
    items[1200] = minimal(code=codes[1200], priceSar=-1)
    items[2450] = minimal(code=codes[3], priceSar=7)
    response = put_array(http, project, items)
    assert [code for code, _ in outcomes(response)] == [item["code"] for item in items]
    assert counts(response) == {"created": 2498, "replaced": 0, "unchanged": 0, "refused": 2}
    assert Unit(http, project, codes[3]).read()["priceSar"] == 950_000


@pytest.mark.parametrize(
    ("state", "body"),
    [
        ("available", minimal(priceSar=-1, areaSqm="x", colour=1, status=None)),
        ("available", minimal(images=["nowhere"], files=[{}], projectSlug="another", status="sold")),
        ("held", full(status="available")),
        ("sold", full(status="available")),
        ("held", minimal()),
        ("archived", full(status="available")),
    ],
)
def test_the_problem_of_a_unit_is_that_of_a_single_put(
    stored: Unit, desk: Desk, state: str, body: dict[str, Any]
) -> None:
    desk.bring(stored, state)
    single = problem(stored.put(body), 422 if state == "available" else 409)
    response = put_array(stored.http, stored.project, [body | {"code": stored.code}])
    (result,) = response.json()["results"]
    assert result["outcome"] == "refused"
    check_shape(result["problem"], single["status"])
    assert without(result["problem"], "requestId") == without(single, "requestId")


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


def test_a_dry_run_decides_everything_and_stores_nothing(
    http: httpx.Client, stored: Unit, desk: Desk, feed: Feed, send: Send
) -> None:
    held, same = Unit(http, stored.project, "H-1"), Unit(http, stored.project, "S-1")
    held.create(full())
    desk.held(held)
    same.create(full())
    before, told = http.get(stored.project.units_url).text, feed.types_of(stored.project)
    items = [full(code=stored.code, status="unavailable"), full(code="H-1", priceSar=1), full(code="S-1")]
    items += [full(code="N-1"), minimal(code="N-2", priceSar=-1), full(code="N-1")]
    dry = send(http, stored.project, items, dryRun="true").json()
    assert (http.get(stored.project.units_url).text, feed.types_of(stored.project)) == (before, told)
    wet = send(http, stored.project, items, dryRun="false").json()
    expected = ["replaced", "refused", "unchanged", "created", "refused", "refused"]
    assert [result["outcome"] for result in dry["results"]] == expected
    for result in (*dry["results"], *wet["results"]):
        if "problem" in result:
            result["problem"].pop("requestId")
    assert dry == wet


def test_reconciling_names_the_codes_that_the_body_did_not_and_leaves_them_alone(
    http: httpx.Client, project: Project, send: Send, feed: Feed
) -> None:
    send(http, project, [minimal(code=code) for code in ("A-1", "A-2", "A-3", "A/4")])
    before = Unit(http, project, "A-3").get().text
    items = [minimal(code="A-1"), minimal(code="A-2", priceSar=-1), minimal(code="B-1")]
    for dry_run in ("true", "false"):
        response = send(http, project, items, reconcile="true", dryRun=dry_run)
        assert sorted(response.json()["missing"]) == ["A-3", "A/4"]
    assert (Unit(http, project, "A-3").get().text, feed.of(project)) == (before, [])
    everything = [minimal(code=code) for code in listed(http, project)]
    assert send(http, project, everything, reconcile="true").json()["missing"] == []


FAULTS = {
    "not json": "nonsense",
    "cut off": GOOD[:-5],
    "duplicate key": '{"code": "A-2", "code": "A-3"}',
    "nan": '{"code": "A-2", "priceSar": NaN}',
    "long number": '{"code": "A-2", "priceSar": ' + "9" * 5000 + "}",
    "deep": '{"code": "A-2", "images": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "raw nul": '{"code": "A\x00"}',
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_syntax_fault_anywhere_stores_nothing(http: httpx.Client, untouched: Project, fault: str) -> None:
    for items in ([fault, GOOD], [GOOD, fault, GOOD], [GOOD] * 3 + [fault]):
        problem(put_bulk(http, untouched, "[" + ",".join(items) + "]", JSON), 400)
        problem(put_bulk(http, untouched, "\n".join(items) + "\n", NDJSON), 400)


def test_a_body_that_is_not_json_stores_nothing(http: httpx.Client, untouched: Project) -> None:
    wrong: list[str | bytes] = [
        b"",
        f"[{GOOD}",
        f"[{GOOD},]",
        f"[{GOOD}] x",
        f"[{GOOD}][]",
        f"[{GOOD}]".encode("utf-16"),
    ]
    wrong += [f"\ufeff[{GOOD}]", f"[{GOOD}".encode() + b',"\xff"]']
    for content in wrong:
        problem(put_bulk(http, untouched, content, JSON), 400)
    for content in (f"\ufeff{GOOD}", GOOD.encode() + b'\n{"type": "\xff"}\n', f"{GOOD} {GOOD}\n"):
        problem(put_bulk(http, untouched, content, NDJSON), 400)
    for content in ("{}", "null", "5", '"text"', GOOD):
        invalid(put_bulk(http, untouched, content, JSON), "")


def test_another_content_type_is_refused(http: httpx.Client, untouched: Project) -> None:
    for content_type in ("text/plain", "application/ndjson", f"{JSON}; charset=latin-1"):
        problem(put_bulk(http, untouched, f"[{GOOD}]", content_type), 415)
    problem(put_bulk(http, untouched, GOOD, f"{NDJSON}; charset=utf-16"), 415)
    problem(http.put(f"{untouched.units_url}/A-1", content=GOOD, headers={"Content-Type": NDJSON}), 415)


def test_faults_of_the_query_and_of_the_path_are_reported(http: httpx.Client, untouched: Project) -> None:
    response = put_array(http, untouched, [minimal(code="A-1")], dryRun="perhaps", reconcile="1")
    invalid(response, "/query/dryRun", "/query/reconcile")
    problem(put_array(http, Project("", "no-such-tower", ""), [minimal(code="A-1")]), 404)
    invalid(put_array(http, Project("", "No_Such", ""), [minimal(code="A-1")]), "/path/slug")


def test_one_byte_more_than_32_mib_is_too_much(http: httpx.Client, untouched: Project) -> None:
    content = f"[{GOOD}]".encode().ljust(LIMIT + 1)
    problem(put_bulk(http, untouched, content, JSON), 413)
    chunks = (content[start : start + 2**20] for start in range(0, len(content), 2**20))
    problem(http.put(untouched.units_url, content=chunks, headers={"Content-Type": JSON}), 413)
    assert counts(put_bulk(http, untouched, content[:LIMIT], JSON, dryRun="true"))["created"] == 1


@pytest.mark.parametrize(
    "gap", ["\r\n", "\n\n", "\n \n", "\n" * 50_000, "\n" + " " * 50_000, "\r\n" * 50_000]
)
def test_lines_may_be_far_apart(http: httpx.Client, project: Project, gap: str) -> None:
    """A reader that goes over the rest again for each empty line would not come to an end."""
    lines = gap.join(["", GOOD, exact_json.write(minimal(code="A-2"))])
    assert counts(put_bulk(http, project, lines, NDJSON))["created"] == 2


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
def test_a_line_ends_at_a_line_feed_and_nowhere_else(
    http: httpx.Client, project: Project, character: str
) -> None:
    item = {"code": "A-1", "type": f"a{character}b", "areaSqm": 1, "priceSar": 1}
    line = json.dumps(item, ensure_ascii=False) + "\n"
    assert counts(put_bulk(http, project, line, NDJSON))["created"] == 1
    assert Unit(http, project, "A-1").read()["type"] == f"a{character}b"
