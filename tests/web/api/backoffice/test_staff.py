"""Staff as JSON: listed, added, changed, reset, by admins' keys alone."""

import secrets
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BACKOFFICE, Desk
from tests.support.client import succeeded, with_body
from tests.support.keys import Key
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


def listed(desk: Desk, limit: int = 1000) -> list[dict[str, Any]]:
    return [one for page in desk.pages(STAFF, "staff", limit=limit) for one in page]


def test_whoever_is_added_gets_a_link_that_is_told_once(
    server: InProcessApp, admin: Desk, public: httpx.Client
) -> None:
    body = {"email": new_email(), "role": "sales", "name": "Sara"}
    answer = admin.http.post(STAFF, **with_body(body))
    assert answer.headers["cache-control"] == "no-store"
    added = succeeded(answer, 201)
    assert set(added) == LISTED | {"setupUrl"}
    assert (added["role"], added["setUp"], added["disabledAt"]) == ("sales", False, None)
    link = added.pop("setupUrl")
    assert link.startswith(f"{server.address}/backoffice/set-up/")
    assert "Welcome, Sara" in public.get(link).text
    assert added in listed(admin)
    body |= {"email": body["email"].upper()}
    taken = admin.http.post(STAFF, **with_body(body))
    assert problem(taken, 409)["type"] == "/problems/staff-exists"


def test_without_a_name_it_is_that_of_the_address_and_staff_are_listed_page_by_page(
    admin: Desk, add: Adding
) -> None:
    added = [add() for _ in range(3)]
    assert added[0]["name"] == added[0]["email"].partition("@")[0]
    ids = [one["id"] for one in added]
    assert [one["id"] for one in listed(admin, limit=2) if one["id"] in ids] == ids


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


def test_a_change_that_is_none_is_refused(admin: Desk, add: Adding) -> None:
    path = f"{STAFF}/{add()['id']}"
    for body in ({"role": None}, {"email": "a@b"}, {"disabled": "yes"}, {"name": " x"}):
        (name,) = body
        invalid(admin.http.patch(path, **with_body(body)), f"/{name}")


def test_nobody_is_found_under_another_id(admin: Desk) -> None:
    path, change = f"{STAFF}/{uuid4()}", with_body({"role": "viewer"})
    for answer in (admin.http.patch(path, **change), admin.http.post(f"{path}/reset")):
        assert problem(answer, 404)["type"] == "/problems/unknown-staff"
    invalid(admin.http.patch(f"{STAFF}/nobody", **change), "/path/id")


def test_a_key_that_is_limited_to_projects_has_no_access_and_one_that_expires_reads_only(
    limited_admin: Desk, desk_with: Callable[..., Desk], add: Adding
) -> None:
    expiring = desk_with("admin", expires_in_days=1)
    person = f"{STAFF}/{add()['id']}"
    for http in (limited_admin.http, expiring.http):
        for answer in (
            http.post(STAFF, **with_body({"email": new_email(), "role": "admin"})),
            http.patch(person, **with_body({"role": "admin"})),
            http.post(f"{person}/reset"),
        ):
            assert problem(answer, 403)["type"] == "/problems/insufficient-scope"
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert expiring.http.get(STAFF).status_code == 200
    problem(limited_admin.http.get(STAFF), 403)
