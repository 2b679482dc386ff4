"""`holdfast project` and `holdfast key`, as scripts and people use them."""

import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.cli.refused import run_refused
from tests.support.commands import run, run_for_json

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(scope="module")
def settings(module_postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": module_postgres_url}


@pytest.fixture
def slug(settings: dict[str, str]) -> str:
    slug = f"p-{uuid4().hex[:12]}"
    run(settings, "project", "add", slug, "--name", "A project")
    return slug


def listed_key(settings: dict[str, str], key_id: str) -> dict[str, Any]:
    (found,) = (key for key in run_for_json(settings, "key", "list")["keys"] if key["id"] == key_id)
    return dict(found)


def test_project_add_answers_with_the_project(settings: dict[str, str]) -> None:
    added = run_for_json(settings, "project", "add", "the-tower", "--name", "The Tower أ")
    assert set(added) == {"id", "slug", "name", "createdAt"}
    assert (added["slug"], added["name"]) == ("the-tower", "The Tower أ")
    assert str(UUID(added["id"])) == added["id"]
    assert WIRE_TIME.fullmatch(added["createdAt"])
    assert added in run_for_json(settings, "project", "list")["projects"]
    assert "the-tower" in run(settings, "project", "list")


@pytest.mark.parametrize("slug", ["x", "Upper", "two--hyphens", "-", "a" * 101])
def test_a_bad_slug_is_refused(settings: dict[str, str], slug: str) -> None:
    assert "slug" in run_refused(settings, 1, "project", "add", "--name", "x", "--", slug)


def test_a_project_is_added_once(settings: dict[str, str], slug: str) -> None:
    assert slug in run_refused(settings, 1, "project", "add", slug, "--name", "Again")


def test_key_add_shows_the_key_and_key_list_never_does(settings: dict[str, str]) -> None:
    added = run_for_json(settings, "key", "add", "--name", "sync")
    assert set(added) == {"id", "name", "key", "hint", "scopes", "projects", "createdAt", "expiresAt"}
    assert added["key"].startswith(added["hint"])
    assert added["scopes"] == ["integration"]
    assert added["projects"] is None
    assert added["expiresAt"] is None
    shown = listed_key(settings, added["id"])
    assert "key" not in shown
    assert (shown["revokedAt"], shown["lastUsedAt"]) == (None, None)
    assert added["key"] not in run(settings, "key", "list")


def test_key_add_takes_scopes_projects_and_a_time(settings: dict[str, str], slug: str) -> None:
    scopes = ("--scope", "admin", "--scope", "payments")
    added = run_for_json(
        settings, "key", "add", "--name", "x", *scopes, "--project", slug, "--expires", "0.5"
    )
    assert added["scopes"] == ["payments", "admin"]
    assert added["projects"] == [slug]
    assert WIRE_TIME.fullmatch(added["expiresAt"])


def test_the_key_alone_is_on_stdout_for_people(settings: dict[str, str]) -> None:
    printed = run(settings, "key", "add", "--name", "by hand")
    assert re.fullmatch(r"hfk_\w+\n", printed)


def test_key_revoke_answers_with_the_revoked_key(settings: dict[str, str]) -> None:
    added = run_for_json(settings, "key", "add", "--name", "short-lived")
    revoked = run_for_json(settings, "key", "revoke", added["id"])
    assert WIRE_TIME.fullmatch(revoked["revokedAt"])
    assert revoked == listed_key(settings, added["id"])
    assert run_for_json(settings, "key", "revoke", added["id"]) == revoked


def test_what_does_not_exist_is_refused(settings: dict[str, str]) -> None:
    run_refused(settings, 1, "key", "revoke", str(uuid4()))
    run_refused(settings, 1, "key", "add", "--name", "x", "--project", "no-such")


@pytest.mark.parametrize(
    "arguments",
    [
        ("key", "add"),
        ("key", "add", "--name", "x", "--scope", "everything"),
        ("key", "add", "--name", "x", "--expires", "0"),
        ("key", "add", "--name", "x", "--expires", "-1"),
        ("key", "add", "--name", "x", "--expires", "soon"),
        ("key", "add", "--name", "x", "--project", "\udcff"),
        ("key", "revoke", "not-an-id"),
        ("key", "forget"),
        ("project", "add", "no-name"),
        ("unknown",),
        ("serve", "--port", "65536"),
        ("serve", "--processes", "0"),
        ("serve", "--host", "\udcff"),
    ],
)
def test_wrong_usage_exits_2(settings: dict[str, str], arguments: tuple[str, ...]) -> None:
    run_refused(settings, 2, *arguments)
