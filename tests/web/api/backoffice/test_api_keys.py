"""Keys as JSON: issued, listed, revoked, and never more than the issuer has."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BACKOFFICE, Desk
from tests.support.client import Project, integration_client, succeeded, with_body
from tests.support.keys import Keys
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

KEYS = f"{BACKOFFICE}/keys"
LISTED = {
    "id", "name", "hint", "scopes", "projects", "createdAt", "expiresAt", "revokedAt", "lastUsedAt",
}  # fmt: skip
ENTRIES = """
    select action, actor_kind, actor_id, before::text, after::text from audit_entry
    where subject_id = $1::uuid order by id
"""

Issue = Callable[..., dict[str, Any]]


def ask(desk: Desk, **body: object) -> httpx.Response:
    return desk.http.post(KEYS, **with_body(body))


@pytest.fixture
def issue(admin: Desk) -> Issue:
    return lambda **body: succeeded(ask(admin, **{"name": "a key of a test", **body}), 201)


def get_projects(server: InProcessApp, key: str) -> httpx.Response:
    with integration_client(server.address, key) as http:
        return http.get("/v1/integration/projects")


def listed(desk: Desk) -> dict[str, dict[str, Any]]:
    """By id."""
    return {key["id"]: key for page in desk.pages(KEYS, "keys", limit=1000) for key in page}


def test_a_new_key_is_told_once_and_opens_the_integration_api(admin: Desk, server: InProcessApp) -> None:
    response = ask(admin, name="Nightly sync")
    issued = succeeded(response, 201)
    assert response.headers["cache-control"] == "no-store"
    assert set(issued) == LISTED - {"revokedAt", "lastUsedAt"} | {"key"}
    assert (issued["scopes"], issued["projects"], issued["expiresAt"]) == (["integration"], None, None)
    assert issued["key"].startswith(issued["hint"])
    assert get_projects(server, issued["key"]).status_code == 200
    found = listed(admin)[issued["id"]]
    assert set(found) == LISTED
    assert issued["key"] not in str(found)


def test_a_repeated_request_issues_one_key_and_never_tells_it_again(
    admin: Desk, desk_with: Callable[..., Desk]
) -> None:
    headers = {"Idempotency-Key": uuid4().hex}

    def ask_again(desk: Desk) -> httpx.Response:
        return desk.http.post(KEYS, json={"name": "Nightly sync"}, headers=headers)

    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(lambda _: ask_again(admin), range(6)), key=lambda one: one.status_code)
    assert [answer.status_code for answer in answers] == [201] + [409] * 5
    issued = answers[0].json()
    for answer in answers[1:]:
        assert problem(answer, 409)["reason"] == "idempotency-key-used"
        assert (answer.json()["id"], issued["key"] in answer.text) == (issued["id"], False)
    # Another key that administers has requests of its own.
    assert ask_again(desk_with("admin")).json()["id"] != issued["id"]


def test_a_revoked_key_opens_nothing_and_is_noted_with_its_author_and_without_its_text(
    admin: Desk, issue: Issue, server: InProcessApp, sql: Sql
) -> None:
    issued = issue(scopes=["integration"])
    for _ in range(2):
        assert admin.http.delete(f"{KEYS}/{issued['id']}").status_code == 204
    problem(get_projects(server, issued["key"]), 401)
    assert listed(admin)[issued["id"]]["revokedAt"] is not None
    entries = sql.rows(ENTRIES, issued["id"])
    noted = [(entry["action"], entry["actor_kind"]) for entry in entries]
    assert noted == [("create", "key"), ("revoke", "key")]
    assert '"scopes":["integration"]' in entries[0]["after"]
    assert issued["key"] not in str(entries)


def test_what_is_done_at_the_console_is_noted_too(keys: Keys, sql: Sql) -> None:
    key = keys.issue()
    keys.revoke(key)
    noted = [(entry["action"], entry["actor_kind"]) for entry in sql.rows(ENTRIES, str(key.id))]
    assert noted == [("create", "command"), ("revoke", "command")]


def test_scopes_projects_and_expiry_are_kept(issue: Issue, project: Project) -> None:
    issued = issue(scopes=["admin", "payments"], projects=[project.slug], expiresInDays=30)
    assert issued["scopes"] == ["payments", "admin"]
    assert issued["projects"] == [project.slug]
    lasts = datetime.fromisoformat(issued["expiresAt"]) - datetime.fromisoformat(issued["createdAt"])
    assert abs(lasts - timedelta(days=30)) < timedelta(hours=1)


def test_the_latest_stand_first_page_by_page(issue: Issue, admin: Desk) -> None:
    own = [issue()["id"] for _ in range(3)]
    first = succeeded(admin.http.get(KEYS, params={"limit": 2}))
    rest = succeeded(admin.http.get(KEYS, params={"limit": 1, "cursor": first["nextCursor"]}))
    assert [key["id"] for key in [*first["keys"], *rest["keys"]]] == own[::-1]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/name"]),
        ({"name": " x"}, ["/name"]),
        ({"name": "x" * 201}, ["/name"]),
        ({"name": "a\u0000b"}, ["/name"]),
        ({"name": None, "scopes": []}, ["/name", "/scopes"]),
        ({"name": "x", "scopes": ["root"]}, ["/scopes/0"]),
        ({"name": "x", "scopes": ["admin", "admin"]}, ["/scopes"]),
        ({"name": "x", "scopes": "admin"}, ["/scopes"]),
        ({"name": "x", "projects": []}, ["/projects"]),
        ({"name": "x", "projects": ["Not A Slug"]}, ["/projects/0"]),
        ({"name": "x", "expiresInDays": 0}, ["/expiresInDays"]),
        ({"name": "x", "expiresInDays": 36_501}, ["/expiresInDays"]),
        ({"name": "x", "expiresInDays": "30"}, ["/expiresInDays"]),
        ({"name": "x", "key": "hfk_mine", "id": 1}, ["/key", "/id"]),
    ],
)
def test_a_wrong_body_issues_no_key(admin: Desk, body: dict[str, object], pointers: list[str]) -> None:
    latest = succeeded(admin.http.get(KEYS, params={"limit": 1}))
    invalid(ask(admin, **body), *pointers)
    assert succeeded(admin.http.get(KEYS, params={"limit": 1})) == latest


def test_an_unknown_project_or_key_is_404(admin: Desk) -> None:
    unknown = ask(admin, name="x", projects=["no-such-project"])
    assert problem(unknown, 404)["type"].endswith("unknown-project")
    assert problem(admin.http.delete(f"{KEYS}/{uuid4()}"), 404)["type"].endswith("unknown-key")
    invalid(admin.http.delete(f"{KEYS}/7"), "/path/id")


def test_a_limited_key_issues_sees_and_revokes_only_keys_within_its_projects(
    issue: Issue, admin: Desk, limited_admin: Desk, project: Project, new_project: Callable[[], Project]
) -> None:
    wider = [project.slug, new_project().slug]
    assert succeeded(ask(limited_admin, name="x", projects=None), 201)["projects"] == [project.slug]
    problem(ask(limited_admin, name="x", projects=wider), 404)
    own = issue(projects=[project.slug])["id"]
    beyond = [issue(projects=slugs)["id"] for slugs in (None, wider)]
    seen = listed(limited_admin)
    assert own in seen
    assert seen.keys().isdisjoint(beyond)
    for key_id in beyond:
        problem(limited_admin.http.delete(f"{KEYS}/{key_id}"), 404)
        assert listed(admin)[key_id]["revokedAt"] is None
    assert limited_admin.http.delete(f"{KEYS}/{own}").status_code == 204


def test_a_key_does_not_outlast_the_one_that_issues_it(desk_with: Callable[..., Desk]) -> None:
    expiring = desk_with("admin", expires_in_days=2)
    made = succeeded(ask(expiring, name="x"), 201)
    assert made["expiresAt"] is not None
    shorter = succeeded(ask(expiring, name="x", expiresInDays=1), 201)
    assert shorter["expiresAt"] < made["expiresAt"]
    invalid(ask(expiring, name="x", expiresInDays=3), "/expiresInDays")
