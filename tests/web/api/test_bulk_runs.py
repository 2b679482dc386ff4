"""Bulk calls that only try, and bulk calls that compare."""

import httpx

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.client import Project, Send, Unit, outcomes, put_array
from tests.support.feed import Feed
from tests.support.sql import Sql


def test_a_dry_run_decides_everything_and_stores_nothing(
    http: httpx.Client, stored: Unit, sql: Sql, feed: Feed, send: Send
) -> None:
    held = Unit(http, stored.project, "H-1")
    held.create(full())
    states.hold(sql, held)
    same = Unit(http, stored.project, "S-1")
    same.create(full())
    before, told = http.get(stored.project.units_url).text, feed.types_of(stored.project)
    items = [full(code=stored.code, status="unavailable"), full(code="H-1", priceSar=1), full(code="S-1")]
    items += [full(code="N-1"), minimal(code="N-2", priceSar=-1), full(code="N-1")]
    dry = send(http, stored.project, items, dryRun="true")
    assert [outcome for _, outcome in outcomes(dry)] == [
        "replaced",
        "refused",
        "unchanged",
        "created",
        "refused",
        "refused",
    ]
    assert (http.get(stored.project.units_url).text, feed.types_of(stored.project)) == (before, told)
    assert outcomes(send(http, stored.project, items, dryRun="false")) == outcomes(dry)


def test_a_dry_run_answers_as_the_run_itself(http: httpx.Client, project: Project) -> None:
    items = [minimal(code="A-1"), minimal(code="A-2", priceSar=-1)]
    dry = put_array(http, project, items, dryRun="true").json()
    wet = put_array(http, project, items).json()
    for answer in (dry, wet):
        answer["results"][1]["problem"].pop("requestId")
    assert dry["counts"] == wet["counts"]
    assert dry["results"] == wet["results"]


def test_reconciling_names_the_codes_that_the_body_did_not(
    http: httpx.Client, project: Project, send: Send
) -> None:
    send(http, project, [minimal(code=code) for code in ("A-1", "A-2", "A-3", "A/4")])
    items = [minimal(code="A-1"), minimal(code="A-2", priceSar=-1), minimal(code="B-1")]
    response = send(http, project, items, reconcile="true")
    assert sorted(response.json()["missing"]) == ["A-3", "A/4"]


def test_reconciling_changes_nothing_about_the_missing(http: httpx.Client, stored: Unit, feed: Feed) -> None:
    before = stored.get()
    put_array(http, stored.project, [], reconcile="true")
    assert (stored.get().text, feed.of(stored)) == (before.text, [])


def test_a_dry_run_reconciles_too(http: httpx.Client, stored: Unit) -> None:
    answer = put_array(http, stored.project, [minimal(code="N-1")], reconcile="true", dryRun="true")
    assert answer.json()["missing"] == [stored.code]


def test_missing_is_there_only_when_asked_for(http: httpx.Client, stored: Unit) -> None:
    assert set(put_array(http, stored.project, []).json()) == {"counts", "results"}
    assert put_array(http, stored.project, [full(code=stored.code)], reconcile="true").json()["missing"] == []
