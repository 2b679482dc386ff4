"""The audit trail as JSON: what everybody did, the latest first, sifted."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from holdfast.operations.audit import MAX_SCANNED
from tests.support.app import InProcessApp
from tests.support.backoffice import BACKOFFICE, Desk, succeeded, with_body
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Key, Keys
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.support.webhooks import Registrar

AUDIT = f"{BACKOFFICE}/audit"
FIELDS = {
    "at", "actor", "action", "subject", "projectSlug", "bookingReference", "before", "after", "requestId",
}  # fmt: skip
# Of a time that no other test makes entries in.
OF_LONG_AGO = """
    insert into audit_entry (subject_id, project_id, at, actor_kind, actor_id, action, after)
    select $1, $2, $3::timestamptz + number * interval '1 second', 'staff',
        case number % 5000 when 0 then $4 else 'somebody@else.example' end, 'change', '{}'
    from generate_series(1, $5::int) as number
"""


@pytest.fixture
def read(admin: Desk) -> Callable[..., dict[str, Any]]:
    return lambda **query: page_of(admin.http, **query)


def page_of(http: httpx.Client, **query: Any) -> dict[str, Any]:
    page = succeeded(http.get(AUDIT, params=query))
    assert set(page) == {"entries", "nextCursor"}
    assert all(set(entry) == FIELDS for entry in page["entries"])
    return page


def told(page: dict[str, Any]) -> list[str]:
    return [entry["action"] for entry in page["entries"]]


def test_an_entry_tells_who_did_what_to_what(
    desk: Desk, backoffice_key: Key, stored: Unit, read: Callable[..., dict[str, Any]]
) -> None:
    desk.did(stored, "archive")
    latest, *_ = read(project=stored.project.slug)["entries"]
    assert latest["actor"] == {"kind": "key", "id": str(backoffice_key.id), "name": "a key of the tests"}
    assert latest["action"] == "archive"
    assert latest["subject"] == {"kind": "unit", "id": stored.read()["id"], "name": stored.code}
    assert latest["projectSlug"] == stored.project.slug
    assert latest["before"] == {"status": "available", "archived": False}
    assert latest["after"] == {"status": "unavailable", "archived": True}


def test_projects_endpoints_and_keys_are_told_by_name(
    desk: Desk, admin: Desk, project: Project, registrar: Registrar, read: Callable[..., dict[str, Any]]
) -> None:
    desk.settle(project, holdSeconds=60)
    endpoint = registrar.add()
    key = succeeded(admin.http.post(f"{BACKOFFICE}/keys", **with_body({"name": "For the audit"})), 201)
    for subject_id, kind, name in (
        (project.id, "project", project.name),
        (endpoint["id"], "endpoint", endpoint["url"]),
        (key["id"], "key", "For the audit"),
    ):
        latest, *_ = read(subject=subject_id)["entries"]
        assert latest["subject"] == {"kind": kind, "id": str(subject_id), "name": name}


def test_what_a_removed_endpoint_was_is_still_told(
    registrar: Registrar, read: Callable[..., dict[str, Any]]
) -> None:
    endpoint = registrar.add()
    registrar.http.delete(f"{BACKOFFICE}/endpoints/{endpoint['id']}")
    page = read(subject=endpoint["id"])
    assert told(page) == ["remove", "create"]
    assert {entry["subject"]["name"] for entry in page["entries"]} == {endpoint["url"]}


def test_filters_sift_and_are_combined(
    desk: Desk, backoffice_key: Key, stored: Unit, read: Callable[..., dict[str, Any]]
) -> None:
    for action in ("take-off-sale", "put-on-sale", "take-off-sale"):
        desk.did(stored, action)
    of_project = {"project": stored.project.slug}
    assert told(read(**of_project)) == ["take-off-sale", "put-on-sale", "take-off-sale", "create"]
    assert told(read(**of_project, action="put-on-sale")) == ["put-on-sale"]
    assert (
        told(read(**of_project, actor=str(backoffice_key.id), action="take-off-sale"))
        == ["take-off-sale"] * 2
    )
    assert told(read(**of_project, actor="key")) == told(read(**of_project))
    assert told(read(**of_project, actor="clock")) == []
    assert told(read(subject=stored.read()["id"], action="create")) == ["create"]
    assert told(read(**of_project, actor="nobody@example.com")) == []


def test_times_bound_it_the_latter_excluded(
    desk: Desk, stored: Unit, read: Callable[..., dict[str, Any]]
) -> None:
    desk.did(stored, "take-off-sale")
    latest, first = read(project=stored.project.slug)["entries"]
    bounded = {"project": stored.project.slug, "since": first["at"], "until": latest["at"]}
    assert told(read(**bounded)) == ["create"]
    assert told(read(project=stored.project.slug, since=latest["at"])) == ["take-off-sale"]


def test_pages_follow_each_other_without_a_gap(
    desk: Desk, stored: Unit, read: Callable[..., dict[str, Any]]
) -> None:
    for action in ("take-off-sale", "put-on-sale") * 3:
        desk.did(stored, action)
    whole = read(project=stored.project.slug)["entries"]
    pages: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = read(project=stored.project.slug, limit=2, **cursor)
        pages += page["entries"]
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert pages == whole


def test_a_filter_that_fits_little_looks_at_so_many_entries_and_goes_on_with_the_cursor(
    read: Callable[..., dict[str, Any]], sql: Sql
) -> None:
    start, actor = datetime(2001, 1, 1, tzinfo=UTC), f"{uuid4().hex}@rare.example"
    count = MAX_SCANNED + 5000
    sql.execute(OF_LONG_AGO, uuid4(), uuid4(), start, actor, count)
    ended = {"until": (start + timedelta(days=1)).isoformat(), "actor": actor}
    first = read(**ended)
    assert len(first["entries"]) == 2
    assert first["nextCursor"] is not None
    rest = read(**ended, cursor=first["nextCursor"])
    assert (len(rest["entries"]), rest["nextCursor"]) == (1, None)


def test_a_key_of_some_projects_sees_nothing_of_the_rest(
    server: InProcessApp, keys: Keys, stored: Unit, new_project: Callable[[], Project],
    admin: Desk, read: Callable[..., dict[str, Any]],
) -> None:  # fmt: skip
    other = new_project()
    admin.settle(other, holdSeconds=60)
    key = succeeded(admin.http.post(f"{BACKOFFICE}/keys", **with_body({"name": "x"})), 201)
    with limited(server, keys, stored.project) as http:
        seen = page_of(http)
        assert told(seen) == ["create"]
        assert {entry["projectSlug"] for entry in seen["entries"]} == {stored.project.slug}
        problem(http.get(AUDIT, params={"project": other.slug}), 404)
        for hidden in (other.id, key["id"]):
            assert told(page_of(http, subject=hidden)) == []
            assert told(read(subject=hidden))


def limited(server: InProcessApp, keys: Keys, project: Project) -> httpx.Client:
    key = keys.issue(scopes=["admin"], projects=[project.slug])
    return integration_client(server.address, key.text)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"project": "Not A Slug"}, "/query/project"),
        ({"actor": ""}, "/query/actor"),
        ({"actor": "x" * 255}, "/query/actor"),
        ({"action": "a\u0000b"}, "/query/action"),
        ({"subject": "A-101"}, "/query/subject"),
        ({"since": "yesterday"}, "/query/since"),
        ({"until": "2026-02-30T00:00:00Z"}, "/query/until"),
        ({"cursor": "x"}, "/query/cursor"),
        ({"limit": "0"}, "/query/limit"),
        ({"user": "x"}, "/query/user"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_parameter_is_told(admin: Desk, query: dict[str, str], pointer: str) -> None:
    invalid(admin.http.get(AUDIT, params=query), pointer)


def test_it_is_for_keys_of_the_back_office(desk: Desk, payments: Desk, integration: Desk) -> None:
    assert succeeded(desk.http.get(AUDIT))["entries"]
    for caller in (payments, integration):
        problem(caller.http.get(AUDIT), 403)


def test_a_subject_that_nobody_knows_has_no_entries(read: Callable[..., dict[str, Any]]) -> None:
    assert told(read(subject=str(UUID(int=7)))) == []
