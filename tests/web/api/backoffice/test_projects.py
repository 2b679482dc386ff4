"""Projects as staff keep them: added, listed, named, with periods of their own."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.support.app import running_app
from tests.support.backoffice import PROJECTS, Desk, project_url
from tests.support.buying import Buyer
from tests.support.client import Project, Unit, exact, integration_client, succeeded, with_body
from tests.support.keys import Key
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

FIELDS = {"id", "slug", "name", "createdAt", "listed", "holdSeconds", "reservationDays"}
BOTH_PERIODS = ["/holdSeconds", "/reservationDays"]
WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ENTRIES = """
    select action, actor_kind, actor_id, request_id, before::text, after::text
    from audit_entry where subject_id = $1::uuid order by id
"""


def new_slug() -> str:
    return f"court-{uuid4().hex[:12]}"


def add(desk: Desk, body: object) -> httpx.Response:
    return desk.http.post(PROJECTS, **with_body(body))


def patch(desk: Desk, project: Project, body: object) -> httpx.Response:
    return desk.http.patch(project_url(project), **with_body(body))


def read(desk: Desk, project: Project) -> dict[str, Any]:
    return succeeded(desk.http.get(project_url(project)))


def test_a_project_is_added_and_its_slug_taken_once(desk: Desk, http: httpx.Client) -> None:
    slug = new_slug()
    added = succeeded(add(desk, {"slug": slug, "name": "Palm Court نخيل"}), 201)
    assert set(added) == FIELDS
    assert (added["slug"], added["name"]) == (slug, "Palm Court نخيل")
    assert (added["holdSeconds"], added["reservationDays"]) == (None, None)
    assert str(UUID(added["id"])) == added["id"]
    assert WIRE_TIME.fullmatch(added["createdAt"])
    project = Project(added["id"], slug, added["name"])
    assert http.get(project.units_url).status_code == 200
    assert slug in problem(add(desk, {"slug": slug, "name": "Another"}), 409)["detail"]
    assert read(desk, project) == added


def test_of_many_who_add_one_slug_one_does(desk: Desk) -> None:
    slug = new_slug()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda at: add(desk, {"slug": slug, "name": f"Number {at}"}), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert read(desk, Project("", slug, ""))["slug"] == slug


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/slug", "/name"]),
        ([], [""]),
        ("null", [""]),
        ({"slug": "Upper", "name": ""}, ["/slug", "/name"]),
        ({"slug": "two--hyphens", "name": " x"}, ["/slug", "/name"]),
        ({"slug": "line\n", "name": "two\nlines"}, ["/slug", "/name"]),
        ({"slug": "a" * 101, "name": "x" * 201}, ["/slug", "/name"]),
        ({"slug": 12, "name": None}, ["/slug", "/name"]),
        ({"slug": "x", "name": "a\u0000b"}, ["/slug", "/name"]),
        ({"slug": "good", "name": "\ud800"}, ["/name"]),
        ({"slug": "good", "name": "x", "holdSeconds": 5, "id": "1"}, ["/holdSeconds", "/id"]),
    ],
)
def test_a_project_with_faults_is_not_added(desk: Desk, body: object, pointers: list[str]) -> None:
    invalid(add(desk, body), *pointers)


def test_projects_are_listed_page_by_page_in_the_order_of_slugs(
    desk: Desk, project: Project, new_project: Callable[[], Project]
) -> None:
    new_project()
    first, second = islice(desk.pages(PROJECTS, "projects", limit=1), 2)
    found = [item for page in desk.pages(PROJECTS, "projects", limit=1000) for item in page]
    assert found[:2] == first + second
    slugs = [item["slug"] for item in found]
    assert slugs == sorted(set(slugs))
    assert [item for item in found if item["slug"] == project.slug] == [read(desk, project)]
    for name, value in (("limit", "0"), ("cursor", "x"), ("slug", "x")):
        invalid(desk.http.get(PROJECTS, params={name: value}), f"/query/{name}")


def test_an_unknown_project_is_not_found(desk: Desk) -> None:
    unknown = Project("", "no-such-tower", "")
    problem(desk.http.get(project_url(unknown)), 404)
    problem(patch(desk, unknown, {"name": "x"}), 404)
    problem(desk.http.get(f"{project_url(unknown)}/layout"), 404)


# Settings


def test_settings_are_changed_one_by_one_and_null_gives_a_period_back(desk: Desk, project: Project) -> None:
    before = read(desk, project)
    assert desk.settle(project, holdSeconds=90) == before | {"holdSeconds": 90}
    changed = before | {"holdSeconds": 90, "reservationDays": Decimal("2.5")}
    assert desk.settle(project, reservationDays=2.5) == changed
    assert desk.settle(project, name="The New Name") == changed | {"name": "The New Name"}
    assert read(desk, project) == changed | {"name": "The New Name"}
    given_back = desk.settle(project, name=before["name"], holdSeconds=None, reservationDays=None)
    assert given_back == before


@pytest.mark.parametrize(
    ("seconds", "days"),
    [
        (Decimal("0.001"), Decimal("0.00001")),
        (604_800, 3650),
        (Decimal("59.999"), Decimal("0.123456")),
    ],
)
def test_a_period_within_its_bounds_is_kept_exactly(
    desk: Desk, project: Project, seconds: object, days: object
) -> None:
    settled = desk.settle(project, holdSeconds=seconds, reservationDays=days)
    assert (settled["holdSeconds"], settled["reservationDays"]) == (seconds, days)
    assert read(desk, project) == settled


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"holdSeconds": 0, "reservationDays": 0}, BOTH_PERIODS),
        ({"holdSeconds": -1, "reservationDays": -1}, BOTH_PERIODS),
        ('{"holdSeconds": 604800.001, "reservationDays": 3650.000001}', BOTH_PERIODS),
        ('{"holdSeconds": 0.0001, "reservationDays": 0.0000001}', BOTH_PERIODS),
        ('{"holdSeconds": 1.0001, "reservationDays": 1.0000001}', BOTH_PERIODS),
        ({"holdSeconds": "300", "reservationDays": True}, BOTH_PERIODS),
        ('{"holdSeconds": 1e400, "reservationDays": 1e-400}', BOTH_PERIODS),
        ({"name": None}, ["/name"]),
        ({"name": ""}, ["/name"]),
        ({"name": " x", "holdSeconds": -1}, ["/name", "/holdSeconds"]),
        ({"name": "Good", "holdSeconds": 0}, ["/holdSeconds"]),
        ({"slug": "another", "id": "x"}, ["/slug", "/id"]),
        ([], [""]),
    ],
)
def test_settings_out_of_bounds_change_nothing(
    desk: Desk, project: Project, body: object, pointers: list[str]
) -> None:
    before = read(desk, project)
    invalid(patch(desk, project, body), *pointers)
    assert read(desk, project) == before


def test_a_change_is_noted_once_and_a_name_is_part_of_every_unit(
    desk: Desk, stored: Unit, sql: Sql, backoffice_key: Key
) -> None:
    project, before = stored.project, stored.get()
    response = patch(desk, project, {"name": "The Renamed Tower", "holdSeconds": 60})
    after = stored.get()
    assert exact(after) == exact(before) | {"projectName": "The Renamed Tower"}
    assert after.headers["etag"] != before.headers["etag"]
    (entry,) = sql.rows(ENTRIES, project.id)
    assert (entry["action"], entry["actor_kind"]) == ("settle", "key")
    assert entry["actor_id"] == str(backoffice_key.id)
    assert entry["request_id"] == response.headers["x-request-id"]
    assert json.loads(entry["before"]) == {"name": project.name, "holdSeconds": None}
    assert json.loads(entry["after"]) == {"name": "The Renamed Tower", "holdSeconds": 60}
    for same in ({}, {"holdSeconds": 60}, {"name": "The Renamed Tower", "holdSeconds": 60.0}):
        assert patch(desk, project, same).status_code == 200
    assert stored.etag == after.headers["etag"]
    assert sql.rows(ENTRIES, project.id) == [entry]


# Periods


def seconds_between(first: str, last: str) -> Decimal:
    difference = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    return Decimal(round(difference.total_seconds() * 1000)) / 1000


def test_holds_and_reservations_last_as_long_as_the_project_says(desk: Desk, stored: Unit) -> None:
    for seconds, days in (
        (Decimal("1234.567"), Decimal("0.001")),
        (604_800, 3650),
        # The server's own.
        (None, None),
    ):
        desk.settle(stored.project, holdSeconds=seconds, reservationDays=days)
        opened = desk.did(stored, "open")
        lasts = 300 if seconds is None else seconds
        assert seconds_between(opened["updatedAt"], opened["holdExpiresAt"]) == lasts
        desk.did(stored, "cancel-hold")
        held = desk.held(stored)
        entry = desk.last_entry(stored)
        end = entry["after"]["holdExpiresAt"]
        assert seconds_between(entry["at"], end) == lasts
        # A hold that runs keeps its end.
        desk.settle(stored.project, holdSeconds=50)
        assert desk.booking(held.reference)["holdExpiresAt"] == end
        held.sign()
        booking = desk.did_to_booking(held.reference, "confirm-deposit")
        lasts = (14 if days is None else days) * 86_400
        assert seconds_between(booking["depositConfirmedAt"], booking["reservedUntil"]) == lasts
        desk.did(stored, "cancel-reservation")


def test_every_process_knows_a_new_period_at_once(desk: Desk, stored: Unit, database_url: str) -> None:
    """The first hold makes the project known there; the second must not go by what was known."""
    with (
        running_app({"HOLDFAST_DATABASE_URL": database_url}, background_work=False) as another,
        integration_client(another.address, None) as http,
    ):
        for seconds in (100, 200):
            desk.settle(stored.project, holdSeconds=seconds)
            Buyer(http).hold(stored)
            opened = desk.last_entry(stored)
            assert seconds_between(opened["at"], opened["after"]["holdExpiresAt"]) == seconds
            desk.did(stored, "cancel-hold")
