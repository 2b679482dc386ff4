"""The audit trail as JSON: what everybody did, the latest first, sifted."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.operations.audit import MAX_SCANNED
from tests.support.backoffice import BACKOFFICE, Desk
from tests.support.client import Project, Unit, succeeded, with_body
from tests.support.keys import Key
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


Read = Callable[..., dict[str, Any]]


@pytest.fixture
def read(admin: Desk) -> Read:
    return lambda **query: page_of(admin, **query)


def page_of(desk: Desk, **query: Any) -> dict[str, Any]:
    page = succeeded(desk.http.get(AUDIT, params=query))
    assert set(page) == {"entries", "nextCursor"}
    assert all(set(entry) == FIELDS for entry in page["entries"])
    return page


def told(page: dict[str, Any]) -> list[str]:
    return [entry["action"] for entry in page["entries"]]


def test_an_entry_tells_who_did_what_to_what(
    desk: Desk, backoffice_key: Key, stored: Unit, read: Read
) -> None:
    desk.did(stored, "archive")
    latest, *_ = read(project=stored.project.slug)["entries"]
    assert latest["actor"] == {"kind": "key", "id": str(backoffice_key.id), "name": "a key of the tests"}
    assert latest["action"] == "archive"
    assert latest["subject"] == {"kind": "unit", "id": stored.read()["id"], "name": stored.code}
    assert latest["projectSlug"] == stored.project.slug
    assert latest["before"] == {"status": "available", "archived": False}
    assert latest["after"] == {"status": "unavailable", "archived": True}


def test_projects_keys_and_endpoints_are_told_by_name_even_when_they_are_gone(
    desk: Desk, admin: Desk, project: Project, registrar: Registrar, read: Read
) -> None:
    desk.settle(project, holdSeconds=60)
    endpoint = registrar.add()
    registrar.http.delete(f"{BACKOFFICE}/endpoints/{endpoint['id']}")
    key = succeeded(admin.http.post(f"{BACKOFFICE}/keys", **with_body({"name": "For the audit"})), 201)
    for subject_id, kind, name, actions in (
        (project.id, "project", project.name, ["settle"]),
        (endpoint["id"], "endpoint", endpoint["url"], ["remove", "create"]),
        (key["id"], "key", "For the audit", ["create"]),
    ):
        page = read(subject=subject_id)
        assert told(page) == actions
        for entry in page["entries"]:
            assert entry["subject"] == {"kind": kind, "id": str(subject_id), "name": name}
    assert told(read(subject=str(UUID(int=7)))) == []


def test_filters_are_combined_and_pages_follow_each_other_without_a_gap(
    desk: Desk, backoffice_key: Key, stored: Unit, read: Read
) -> None:
    for action in ("take-off-sale", "put-on-sale", "take-off-sale"):
        desk.did(stored, action)
    of_project = {"project": stored.project.slug}
    whole = read(**of_project)
    assert told(whole) == ["take-off-sale", "put-on-sale", "take-off-sale", "create"]
    assert told(read(**of_project, action="put-on-sale")) == ["put-on-sale"]
    twice = read(**of_project, actor=str(backoffice_key.id), action="take-off-sale")
    assert told(twice) == ["take-off-sale"] * 2
    assert told(read(**of_project, actor="key")) == told(whole)
    assert told(read(**of_project, actor="clock")) == []
    assert told(read(subject=stored.read()["id"], action="create")) == ["create"]
    assert told(read(**of_project, actor="nobody@example.com")) == []
    # The first moment is included, the last is not.
    latest, *_, first = whole["entries"]
    assert told(read(**of_project, since=first["at"], until=latest["at"])) == told(whole)[1:]
    assert told(read(**of_project, since=latest["at"])) == ["take-off-sale"]
    start = read(**of_project, limit=3)
    rest = read(**of_project, limit=3, cursor=start["nextCursor"])
    assert start["entries"] + rest["entries"] == whole["entries"]
    while rest["nextCursor"] is not None:  # The entries of other tests are looked at, and left out.
        rest = read(**of_project, limit=3, cursor=rest["nextCursor"])
        assert rest["entries"] == []


def test_a_filter_that_fits_little_looks_at_so_many_entries_and_goes_on_with_the_cursor(
    read: Read, sql: Sql
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
    stored: Unit, new_project: Callable[[], Project], admin: Desk, limited_admin: Desk, read: Read
) -> None:
    other = new_project()
    admin.settle(other, holdSeconds=60)
    key = succeeded(admin.http.post(f"{BACKOFFICE}/keys", **with_body({"name": "x"})), 201)
    seen = page_of(limited_admin)
    assert told(seen) == ["create"]
    assert {entry["projectSlug"] for entry in seen["entries"]} == {stored.project.slug}
    problem(limited_admin.http.get(AUDIT, params={"project": other.slug}), 404)
    for hidden in (other.id, key["id"]):
        assert told(page_of(limited_admin, subject=hidden)) == []
        assert told(read(subject=hidden))


def test_every_wrong_parameter_is_refused(admin: Desk) -> None:
    wrong = {
        "project": "Not A Slug", "actor": "x" * 255, "action": "a\u0000b", "subject": "A-101",
        "since": "yesterday", "until": "2026-02-30T00:00:00Z", "cursor": "x", "limit": "0", "user": "x",
    }  # fmt: skip
    invalid(admin.http.get(AUDIT, params=wrong), *(f"/query/{name}" for name in wrong))
    invalid(admin.http.get(AUDIT, params={"actor": ""}), "/query/actor")
