"""Keys as JSON: issued, listed, revoked, and never more than the issuer has."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BACKOFFICE, Desk, succeeded, with_body
from tests.support.client import Project, integration_client
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

Asking = Callable[[Any], httpx.Response]


@pytest.fixture
def ask(admin: Desk) -> Asking:
    return lambda body: admin.http.post(KEYS, **with_body(body))


@pytest.fixture
def issue(ask: Asking) -> Callable[..., dict[str, Any]]:
    return lambda **body: succeeded(ask({"name": "a key of a test", **body}), 201)


@pytest.fixture
def limited_admin(server: InProcessApp, keys: Keys, project: Project) -> Iterator[Desk]:
    with using(server, keys.issue(scopes=["admin"], projects=[project.slug]).text) as http:
        yield Desk(http)


@contextmanager
def using(server: InProcessApp, key: str) -> Iterator[httpx.Client]:
    with integration_client(server.address, key) as http:
        yield http


def listed(http: httpx.Client) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        page = succeeded(http.get(KEYS, params={"limit": 1000, **({"cursor": cursor} if cursor else {})}))
        assert set(page) == {"keys", "nextCursor"}
        found += page["keys"]
        if (cursor := page["nextCursor"]) is None:
            return found


def test_a_new_key_is_told_once_and_opens_the_integration_api(
    ask: Asking, admin: Desk, server: InProcessApp
) -> None:
    response = ask({"name": "Nightly sync"})
    issued = succeeded(response, 201)
    assert response.headers["cache-control"] == "no-store"
    assert set(issued) == LISTED - {"revokedAt", "lastUsedAt"} | {"key"}
    assert (issued["scopes"], issued["projects"], issued["expiresAt"]) == (["integration"], None, None)
    assert issued["key"].startswith(issued["hint"])
    with using(server, issued["key"]) as http:
        assert http.get("/v1/integration/projects").status_code == 200
    (found,) = (key for key in listed(admin.http) if key["id"] == issued["id"])
    assert set(found) == LISTED
    assert issued["key"] not in str(found)


def test_scopes_projects_and_expiry_are_kept(issue: Callable[..., dict[str, Any]], project: Project) -> None:
    issued = issue(scopes=["admin", "payments"], projects=[project.slug], expiresInDays=30)
    assert issued["scopes"] == ["payments", "admin"]
    assert issued["projects"] == [project.slug]
    lasts = datetime.fromisoformat(issued["expiresAt"]) - datetime.fromisoformat(issued["createdAt"])
    assert abs(lasts - timedelta(days=30)) < timedelta(minutes=1)


def test_the_latest_stand_first_page_by_page(issue: Callable[..., dict[str, Any]], admin: Desk) -> None:
    own = [issue()["id"] for _ in range(3)]
    first = succeeded(admin.http.get(KEYS, params={"limit": 2}))
    rest = succeeded(admin.http.get(KEYS, params={"limit": 1, "cursor": first["nextCursor"]}))
    assert [key["id"] for key in [*first["keys"], *rest["keys"]]] == own[::-1]


def test_a_revoked_key_opens_nothing_and_is_listed_as_revoked(
    issue: Callable[..., dict[str, Any]], admin: Desk, server: InProcessApp
) -> None:
    issued = issue()
    answers = [admin.http.delete(f"{KEYS}/{issued['id']}") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [204, 204]
    with using(server, issued["key"]) as http:
        problem(http.get("/v1/integration/projects"), 401)
    (found,) = (key for key in listed(admin.http) if key["id"] == issued["id"])
    assert found["revokedAt"] is not None


def test_issue_and_revocation_are_noted_with_their_author_and_without_the_key(
    issue: Callable[..., dict[str, Any]], admin: Desk, sql: Sql
) -> None:
    issued = issue(scopes=["payments"])
    for _ in range(2):
        admin.http.delete(f"{KEYS}/{issued['id']}")
    entries = sql.rows(ENTRIES, issued["id"])
    assert [(entry["action"], entry["actor_kind"]) for entry in entries] == [
        ("create", "key"),
        ("revoke", "key"),
    ]
    assert '"scopes":["payments"]' in entries[0]["after"]
    assert issued["key"] not in str(entries)


def test_what_is_done_at_the_console_is_noted_too(keys: Keys, sql: Sql) -> None:
    key = keys.issue()
    keys.revoke(key)
    entries = sql.rows(ENTRIES, str(key.id))
    assert [(entry["action"], entry["actor_kind"]) for entry in entries] == [
        ("create", "command"),
        ("revoke", "command"),
    ]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/name"]),
        ({"name": ""}, ["/name"]),
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
def test_a_wrong_body_is_told_fault_by_fault(
    ask: Asking, admin: Desk, body: dict[str, Any], pointers: list[str]
) -> None:
    before = len(listed(admin.http))
    invalid(ask(body), *pointers)
    assert len(listed(admin.http)) == before


def test_an_unknown_project_or_key_is_404(ask: Asking, admin: Desk) -> None:
    assert problem(ask({"name": "x", "projects": ["no-such-project"]}), 404)["type"].endswith(
        "unknown-project"
    )
    assert problem(admin.http.delete(f"{KEYS}/{uuid4()}"), 404)["type"].endswith("unknown-key")
    invalid(admin.http.delete(f"{KEYS}/7"), "/path/id")


def test_only_an_admin_may(desk: Desk, payments: Desk, integration: Desk) -> None:
    for caller in (desk, payments, integration):
        answers = [
            caller.http.get(KEYS),
            caller.http.post(KEYS, **with_body({"name": "x"})),
            caller.http.delete(f"{KEYS}/{uuid4()}"),
            caller.http.put(KEYS),
        ]
        assert {problem(answer, 403)["type"] for answer in answers} == {"/problems/insufficient-scope"}


def test_a_limited_key_issues_within_its_projects(
    limited_admin: Desk, project: Project, new_project: Callable[[], Project]
) -> None:
    made = succeeded(limited_admin.http.post(KEYS, **with_body({"name": "x", "projects": None})), 201)
    assert made["projects"] == [project.slug]
    wider = {"name": "x", "projects": [project.slug, new_project().slug]}
    problem(limited_admin.http.post(KEYS, **with_body(wider)), 404)


def test_a_limited_key_sees_and_revokes_only_keys_within_its_projects(
    issue: Callable[..., dict[str, Any]], admin: Desk, limited_admin: Desk, project: Project,
    new_project: Callable[[], Project],
) -> None:  # fmt: skip
    own = issue(projects=[project.slug])["id"]
    beyond = [issue(projects=slugs)["id"] for slugs in (None, [project.slug, new_project().slug])]
    seen = {key["id"] for key in listed(limited_admin.http)}
    assert own in seen
    assert seen.isdisjoint(beyond)
    for key_id in beyond:
        problem(limited_admin.http.delete(f"{KEYS}/{key_id}"), 404)
    revoked = {key["id"]: key["revokedAt"] for key in listed(admin.http)}
    assert [revoked[key_id] for key_id in beyond] == [None, None]
    assert limited_admin.http.delete(f"{KEYS}/{own}").status_code == 204


def test_a_key_does_not_outlast_the_one_that_issues_it(server: InProcessApp, keys: Keys) -> None:
    with using(server, keys.issue(scopes=["admin"], expires_in_days=2).text) as http:
        made = succeeded(http.post(KEYS, **with_body({"name": "x"})), 201)
        assert made["expiresAt"] is not None
        shorter = succeeded(http.post(KEYS, **with_body({"name": "x", "expiresInDays": 1})), 201)
        assert shorter["expiresAt"] < made["expiresAt"]
        invalid(http.post(KEYS, **with_body({"name": "x", "expiresInDays": 3})), "/expiresInDays")
