"""Staff as JSON: listed, added, changed, reset, by admins' keys alone."""

import secrets
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BACKOFFICE, Desk, succeeded, with_body
from tests.support.client import Project, integration_client
from tests.support.keys import Key, Keys
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

STAFF = f"{BACKOFFICE}/staff"
LISTED = {
    "id", "email", "name", "role", "setUp", "secondFactor", "createdAt", "disabledAt", "lastSignedInAt",
}  # fmt: skip

Adding = Callable[..., dict[str, Any]]


def new_email() -> str:
    return f"sara-{secrets.token_hex(4)}@example.com"


@pytest.fixture
def add(admin: Desk) -> Adding:
    def add(**body: Any) -> dict[str, Any]:
        sent = {"email": new_email(), "role": "sales", **body}
        return succeeded(admin.http.post(STAFF, **with_body(sent)), 201)

    return add


def listed(http: httpx.Client, limit: int = 1000) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        page = succeeded(http.get(STAFF, params={"limit": limit, **({"cursor": cursor} if cursor else {})}))
        assert set(page) == {"staff", "nextCursor"}
        found += page["staff"]
        if (cursor := page["nextCursor"]) is None:
            return found


def test_whoever_is_added_gets_a_link_that_is_told_once(admin: Desk, add: Adding) -> None:
    added = add(name="Sara")
    assert set(added) == LISTED | {"setupUrl"}
    assert (added["role"], added["setUp"], added["disabledAt"]) == ("sales", False, None)
    (found,) = [one for one in listed(admin.http) if one["id"] == added["id"]]
    assert found == {name: value for name, value in added.items() if name != "setupUrl"}


def test_the_link_is_a_page_of_this_server(server: InProcessApp, public: httpx.Client, add: Adding) -> None:
    link = add(name="Sara")["setupUrl"]
    assert link.startswith(f"{server.address}/backoffice/set-up/")
    assert "Welcome, Sara" in public.get(link).text


def test_the_answer_with_a_link_is_kept_by_nobody(admin: Desk) -> None:
    answer = admin.http.post(STAFF, **with_body({"email": new_email(), "role": "viewer"}))
    assert answer.headers["cache-control"] == "no-store"


def test_without_a_name_it_is_that_of_the_address(add: Adding) -> None:
    added = add()
    assert added["name"] == added["email"].partition("@")[0]


def test_an_address_that_is_there_already_is_refused(admin: Desk, add: Adding) -> None:
    body = {"email": add()["email"].upper(), "role": "viewer"}
    assert problem(admin.http.post(STAFF, **with_body(body)), 409)["type"] == "/problems/staff-exists"


def test_staff_are_listed_page_by_page(admin: Desk, add: Adding) -> None:
    added = [add()["id"] for _ in range(3)]
    found = [one["id"] for one in listed(admin.http, limit=2)]
    assert [one for one in found if one in added] == added


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/email", "/role"]),
        ({"email": "x", "role": "owner", "name": ""}, ["/email", "/role", "/name"]),
        ({"email": "a@b", "role": "sales", "password": "x"}, ["/password"]),
        ({"email": " a@b", "role": "sales"}, ["/email"]),
        ({"email": 5, "role": None}, ["/email", "/role"]),
        ([], [""]),
    ],
    ids=range(6),
)
def test_every_fault_is_told_and_nobody_added(admin: Desk, body: Any, pointers: list[str]) -> None:
    invalid(admin.http.post(STAFF, **with_body(body)), *pointers)


def test_a_person_is_changed_and_the_change_written_down(
    admin: Desk, admin_key: Key, add: Adding, sql: Sql
) -> None:
    path = f"{STAFF}/{(added := add())['id']}"
    changed = succeeded(admin.http.patch(path, **with_body({"role": "viewer", "name": "Sara A."})))
    assert (changed["role"], changed["name"]) == ("viewer", "Sara A.")
    disabled = succeeded(admin.http.patch(path, **with_body({"disabled": True})))
    assert disabled["disabledAt"] is not None
    assert succeeded(admin.http.patch(path, **with_body({"disabled": False})))["disabledAt"] is None
    assert succeeded(admin.http.patch(path, **with_body({}))) == {**changed, "disabledAt": None}
    entries = sql.rows(
        "select action, actor_kind, actor_id from audit_entry where subject_id = $1::uuid order by id",
        added["id"],
    )
    assert [entry["action"] for entry in entries] == ["create", "change", "change", "change"]
    assert {(entry["actor_kind"], entry["actor_id"]) for entry in entries} == {("key", str(admin_key.id))}


def test_a_reset_tells_a_new_link(admin: Desk, public: httpx.Client, add: Adding) -> None:
    added = add()
    reset = succeeded(admin.http.post(f"{STAFF}/{added['id']}/reset"))
    assert reset["setupUrl"] != added["setupUrl"]
    assert public.get(added["setupUrl"]).status_code == 404
    assert public.get(reset["setupUrl"]).status_code == 200


@pytest.mark.parametrize(
    "body", [{"role": None}, {"email": "a@b"}, {"disabled": "yes"}, {"name": " x"}], ids=str
)
def test_a_change_that_is_none_is_refused(admin: Desk, add: Adding, body: dict[str, Any]) -> None:
    (name,) = body
    invalid(admin.http.patch(f"{STAFF}/{add()['id']}", **with_body(body)), f"/{name}")


def test_nobody_is_found_under_another_id(admin: Desk) -> None:
    path = f"{STAFF}/{uuid4()}"
    assert (
        problem(admin.http.patch(path, **with_body({"role": "viewer"})), 404)["type"]
        == "/problems/unknown-staff"
    )
    assert problem(admin.http.post(f"{path}/reset"), 404)["type"] == "/problems/unknown-staff"
    invalid(admin.http.patch(f"{STAFF}/nobody", **with_body({"role": "viewer"})), "/path/id")


def test_a_key_that_is_limited_to_projects_has_no_access(
    server: InProcessApp, keys: Keys, project: Project
) -> None:
    limited = keys.issue(scopes=["admin"], projects=[project.slug])
    with integration_client(server.address, limited.text) as http:
        answer = http.get(STAFF)
        assert problem(answer, 403)["type"] == "/problems/insufficient-scope"
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
        body = {"email": new_email(), "role": "admin"}
        assert problem(http.post(STAFF, **with_body(body)), 403)["type"] == "/problems/insufficient-scope"


def test_a_key_that_expires_lists_staff_and_changes_none(
    server: InProcessApp, keys: Keys, add: Adding
) -> None:
    person = f"{STAFF}/{add()['id']}"
    expiring = keys.issue(scopes=["admin"], expires_in_days=1)
    with integration_client(server.address, expiring.text) as http:
        body = with_body({"email": new_email(), "role": "admin"})
        for answer in (
            http.post(STAFF, **body),
            http.patch(person, **with_body({"role": "admin"})),
            http.post(f"{person}/reset"),
        ):
            assert problem(answer, 403)["type"] == "/problems/insufficient-scope"
        assert http.get(STAFF).status_code == 200
