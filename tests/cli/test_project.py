"""`holdfast project` and `holdfast key`, as scripts and people use them."""

import re
from uuid import UUID, uuid4

import pytest

from tests.support.commands import run, run_for_json, run_refused

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_a_project_is_added_once_and_listed(settings: dict[str, str]) -> None:
    assert run(settings, "project", "list") == "There are no projects yet.\n"
    added = run_for_json(settings, "project", "add", "the-tower", "--name", "The Tower أ")
    assert set(added) == {"id", "slug", "name", "createdAt"}
    assert (added["slug"], added["name"]) == ("the-tower", "The Tower أ")
    assert str(UUID(added["id"])) == added["id"]
    assert WIRE_TIME.fullmatch(added["createdAt"])
    assert run_for_json(settings, "project", "list") == {"projects": [added]}
    assert "the-tower" in run(settings, "project", "list")
    assert "the-tower" in run_refused(settings, 1, "project", "add", "the-tower", "--name", "Again")


@pytest.mark.parametrize("slug", ["x", "Upper", "two--hyphens", "-", "a" * 101])
def test_a_bad_slug_is_refused(settings: dict[str, str], slug: str) -> None:
    assert "slug" in run_refused(settings, 1, "project", "add", "--name", "x", "--", slug)


def test_a_key_is_shown_when_it_is_added_and_never_again(settings: dict[str, str]) -> None:
    added = run_for_json(settings, "key", "add", "--name", "sync")
    assert set(added) == {"id", "name", "key", "hint", "scopes", "projects", "createdAt", "expiresAt"}
    assert added["key"].startswith(added["hint"])
    assert (added["scopes"], added["projects"], added["expiresAt"]) == (["integration"], None, None)
    (shown,) = run_for_json(settings, "key", "list")["keys"]
    assert "key" not in shown
    assert (shown["revokedAt"], shown["lastUsedAt"]) == (None, None)
    assert added["key"] not in run(settings, "key", "list")
    assert re.fullmatch(r"hfk_\w+\n", run(settings, "key", "add", "--name", "by hand"))


def test_a_key_is_as_it_was_asked_for(settings: dict[str, str]) -> None:
    run(settings, "project", "add", "tower", "--name", "The Tower")
    command = ("key", "add", "--name", "x", "--scope", "admin", "--scope", "payments", "--expires", "0.5")
    added = run_for_json(settings, *command, "--project", "tower")
    assert (added["scopes"], added["projects"]) == (["payments", "admin"], ["tower"])
    assert WIRE_TIME.fullmatch(added["expiresAt"])
    assert "no-such" in run_refused(settings, 1, *command, "--project", "no-such")


def test_a_key_is_revoked_once(settings: dict[str, str]) -> None:
    added = run_for_json(settings, "key", "add", "--name", "short-lived")
    revoked = run_for_json(settings, "key", "revoke", added["id"])
    assert WIRE_TIME.fullmatch(revoked["revokedAt"])
    assert run_for_json(settings, "key", "list")["keys"] == [revoked]
    assert run_for_json(settings, "key", "revoke", added["id"]) == revoked
    run_refused(settings, 1, "key", "revoke", str(uuid4()))
