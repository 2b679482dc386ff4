"""Projects as staff keep them: added, listed, and named."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import PROJECTS, Desk, project_url, succeeded, with_body
from tests.support.client import Project, Unit, exact, integration_client
from tests.support.keys import Key
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

FIELDS = {"id", "slug", "name", "createdAt", "holdSeconds", "reservationDays"}
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


def test_a_project_is_added(desk: Desk, http: httpx.Client) -> None:
    slug = new_slug()
    added = succeeded(add(desk, {"slug": slug, "name": "Palm Court نخيل"}), 201)
    assert set(added) == FIELDS
    assert (added["slug"], added["name"]) == (slug, "Palm Court نخيل")
    assert (added["holdSeconds"], added["reservationDays"]) == (None, None)
    assert str(UUID(added["id"])) == added["id"]
    assert WIRE_TIME.fullmatch(added["createdAt"])
    project = Project(added["id"], slug, added["name"])
    assert read(desk, project) == added
    assert http.get(project.units_url).status_code == 200


def test_a_slug_is_taken_once(desk: Desk, project: Project) -> None:
    before = read(desk, project)
    refusal = problem(add(desk, {"slug": project.slug, "name": "Another"}), 409)
    assert project.slug in refusal["detail"]
    assert read(desk, project) == before


def test_of_many_who_add_one_slug_one_does(server: InProcessApp, backoffice_key: Key, desk: Desk) -> None:
    slug = new_slug()

    def add_it(number: int) -> int:
        with integration_client(server.address, backoffice_key.text) as http:
            return add(Desk(http), {"slug": slug, "name": f"Number {number}"}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(add_it, range(8))) == [201] + [409] * 7
    assert read(desk, Project("", slug, ""))["slug"] == slug


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/slug", "/name"]),
        ([], [""]),
        ("null", [""]),
        ({"slug": "x", "name": ""}, ["/slug", "/name"]),
        ({"slug": "Upper", "name": "x"}, ["/slug"]),
        ({"slug": "two--hyphens", "name": "x"}, ["/slug"]),
        ({"slug": "line\n", "name": "x"}, ["/slug"]),
        ({"slug": "a" * 101, "name": "x" * 201}, ["/slug", "/name"]),
        ({"slug": 12, "name": None}, ["/slug", "/name"]),
        ({"slug": "good", "name": "x", "holdSeconds": 5, "id": "1"}, ["/holdSeconds", "/id"]),
        ({"slug": "good", "name": "a\u0000b"}, ["/name"]),
        ({"slug": "good", "name": "\ud800"}, ["/name"]),
        ({"slug": "good", "name": " x"}, ["/name"]),
        ({"slug": "good", "name": "two\nlines"}, ["/name"]),
        ({"slug": "X", "name": " x"}, ["/slug", "/name"]),
    ],
)
def test_a_project_with_faults_is_not_added(desk: Desk, body: object, pointers: list[str]) -> None:
    invalid(add(desk, body), *pointers)


def test_the_list_has_every_project_in_the_order_of_slugs(desk: Desk, project: Project) -> None:
    found: list[dict[str, Any]] = []
    query: dict[str, str | int] = {"limit": 1000}
    while True:
        page = succeeded(desk.http.get(PROJECTS, params=query))
        assert set(page) == {"projects", "nextCursor"}
        found += page["projects"]
        if page["nextCursor"] is None:
            break
        query = {"limit": 1000, "cursor": page["nextCursor"]}
    slugs = [item["slug"] for item in found]
    assert slugs == sorted(slugs)
    assert [item for item in found if item["slug"] == project.slug] == [read(desk, project)]


def test_the_list_has_pages(desk: Desk, project: Project, new_project: Callable[[], Project]) -> None:
    new_project()
    first = succeeded(desk.http.get(PROJECTS, params={"limit": 1}))
    assert len(first["projects"]) == 1
    second = succeeded(desk.http.get(PROJECTS, params={"limit": 1, "cursor": first["nextCursor"]}))
    assert second["projects"][0]["slug"] > first["projects"][0]["slug"]


@pytest.mark.parametrize(("name", "value"), [("limit", "0"), ("cursor", "x"), ("slug", "x")])
def test_a_bad_query_is_refused(desk: Desk, name: str, value: str) -> None:
    invalid(desk.http.get(PROJECTS, params={name: value}), f"/query/{name}")


def test_an_unknown_project_is_not_found(desk: Desk) -> None:
    unknown = Project("", "no-such-tower", "")
    url = project_url(unknown)
    answers = [
        desk.http.get(url),
        patch(desk, unknown, {"name": "x"}),
        desk.http.get(f"{url}/layout"),
        desk.http.put(f"{url}/layout", json={"units": []}),
    ]
    for answer in answers:
        problem(answer, 404)


def test_settings_are_changed_one_by_one(desk: Desk, project: Project) -> None:
    before = read(desk, project)
    assert desk.settle(project, holdSeconds=90) == before | {"holdSeconds": 90}
    changed = before | {"holdSeconds": 90, "reservationDays": Decimal("2.5")}
    assert desk.settle(project, reservationDays=2.5) == changed
    assert desk.settle(project, name="The New Name") == changed | {"name": "The New Name"}
    assert read(desk, project) == changed | {"name": "The New Name"}


def test_null_gives_a_period_back_to_the_server(desk: Desk, project: Project) -> None:
    before = read(desk, project)
    desk.settle(project, holdSeconds=1, reservationDays=1)
    assert desk.settle(project, holdSeconds=None, reservationDays=None) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("holdSeconds", Decimal("0.001")),
        ("holdSeconds", 604_800),
        ("holdSeconds", Decimal("59.999")),
        ("reservationDays", Decimal("0.00001")),
        ("reservationDays", 3650),
        ("reservationDays", Decimal("0.123456")),
    ],
)
def test_a_period_within_its_bounds_is_kept_exactly(
    desk: Desk, project: Project, name: str, value: object
) -> None:
    assert desk.settle(project, **{name: value})[name] == value
    assert read(desk, project)[name] == value


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"holdSeconds": 0, "reservationDays": 0}, ["/holdSeconds", "/reservationDays"]),
        ({"holdSeconds": -1, "reservationDays": -1}, ["/holdSeconds", "/reservationDays"]),
        (
            {"holdSeconds": Decimal("604800.001"), "reservationDays": Decimal("3650.000001")},
            ["/holdSeconds", "/reservationDays"],
        ),
        (
            {"holdSeconds": Decimal("0.0001"), "reservationDays": Decimal("0.0000001")},
            ["/holdSeconds", "/reservationDays"],
        ),
        (
            {"holdSeconds": Decimal("1.0001"), "reservationDays": Decimal("1.0000001")},
            ["/holdSeconds", "/reservationDays"],
        ),
        ({"holdSeconds": "300", "reservationDays": True}, ["/holdSeconds", "/reservationDays"]),
        ('{"holdSeconds": 1e400, "reservationDays": 1e-400}', ["/holdSeconds", "/reservationDays"]),
        ({"name": None}, ["/name"]),
        ({"name": ""}, ["/name"]),
        ({"name": "a\u0000b"}, ["/name"]),
        ({"name": "trailing "}, ["/name"]),
        ({"name": " x", "holdSeconds": -1}, ["/name", "/holdSeconds"]),
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


def test_one_bad_setting_keeps_the_good_one_out(desk: Desk, project: Project) -> None:
    before = read(desk, project)
    invalid(patch(desk, project, {"name": "Good", "holdSeconds": 0}), "/holdSeconds")
    assert read(desk, project) == before


def test_a_name_is_part_of_every_units_representation(desk: Desk, stored: Unit) -> None:
    before = stored.get()
    desk.settle(stored.project, name="The Renamed Tower")
    after = stored.get()
    assert exact(after)["projectName"] == "The Renamed Tower"
    assert after.headers["etag"] != before.headers["etag"]
    assert exact(after)["updatedAt"] == exact(before)["updatedAt"]


@pytest.mark.parametrize("body", [{}, {"holdSeconds": 60}, {"name": "Same", "holdSeconds": 60.0}])
def test_what_is_the_same_changes_nothing(desk: Desk, stored: Unit, sql: Sql, body: dict[str, Any]) -> None:
    desk.settle(stored.project, name="Same", holdSeconds=60)
    etag, noted = stored.etag, len(sql.rows(ENTRIES, stored.project.id))
    assert patch(desk, stored.project, body).status_code == 200
    assert stored.etag == etag
    assert len(sql.rows(ENTRIES, stored.project.id)) == noted


def test_each_change_is_put_down_to_the_key(
    desk: Desk, project: Project, sql: Sql, backoffice_key: Key
) -> None:
    response = patch(desk, project, {"holdSeconds": 60})
    (entry,) = sql.rows(ENTRIES, project.id)
    assert (entry["action"], entry["actor_kind"]) == ("settle", "key")
    assert entry["actor_id"] == str(backoffice_key.id)
    assert entry["request_id"] == response.headers["x-request-id"]
    before, after = (json.loads(entry[side]) for side in ("before", "after"))
    assert (before, after) == ({"holdSeconds": None}, {"holdSeconds": 60})
