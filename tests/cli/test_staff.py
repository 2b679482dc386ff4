"""`holdfast staff`, as scripts and people use it."""

import json
import re
from typing import Any

import pytest

from holdfast.domain.permissions import Role
from tests.support.commands import finish, finish_process, refused, run, run_for_json, run_refused

PASSWORD = "a horse of lead"
EMAIL = "sami@example.com"
DOCUMENT = {
    "id", "email", "name", "role", "setUp", "secondFactor", "createdAt", "disabledAt", "lastSignedInAt",
}  # fmt: skip
LINK = re.compile(r"http://127\.0\.0\.1:\d+/backoffice/set-up/[\w-]{43}")


def listed(settings: dict[str, str], email: str = EMAIL) -> dict[str, Any]:
    (found,) = [one for one in run_for_json(settings, "staff", "list")["staff"] if one["email"] == email]
    return dict(found)


def test_somebody_is_added_once_and_gets_a_link(settings: dict[str, str]) -> None:
    for role in map(str, Role):
        email = f"{role}@example.com"
        added = run_for_json(settings, "staff", "add", email, "--role", role)
        assert set(added) == DOCUMENT | {"setupUrl"}
        assert (added["email"], added["role"], added["name"], added["setUp"]) == (email, role, role, False)
        assert LINK.fullmatch(added["setupUrl"])
        assert {name: added[name] for name in DOCUMENT} == listed(settings, email)
    assert "already" in run_refused(settings, 1, "staff", "add", "ADMIN@example.com", "--role", "sales")


def test_the_link_alone_is_on_stdout_and_at_the_public_address(settings: dict[str, str]) -> None:
    done = finish(settings, "staff", "add", EMAIL, "--role", "sales", "--name", "سامي")
    assert LINK.fullmatch(done.stdout.strip())
    assert "works once" in done.stderr
    assert listed(settings)["name"] == "سامي"
    public = {**settings, "HOLDFAST_PUBLIC_URL": "https://units.example.com"}
    reset = run_for_json(public, "staff", "reset", EMAIL)
    assert reset["setupUrl"].startswith("https://units.example.com/backoffice/set-up/")


@pytest.mark.parametrize("end", ["\n", "", "\r\n"], ids=["line", "bare", "crlf"])
def test_a_password_comes_from_stdin(settings: dict[str, str], end: str) -> None:
    command = ("staff", "add", EMAIL, "--role", "sales", "--password-stdin", "--json")
    runner = finish_process if end == "\n" else finish
    done = runner(settings, *command, stdin=f"{PASSWORD}{end}".encode())
    assert done.returncode == 0, done.stderr
    added = json.loads(done.stdout)
    assert set(added) == DOCUMENT
    assert added["setUp"] is True
    reset = run_for_json(settings, "staff", "reset", EMAIL)
    assert (reset["setUp"], bool(LINK.fullmatch(reset["setupUrl"]))) == (False, True)
    assert LINK.fullmatch(run(settings, "staff", "reset", EMAIL).strip())


@pytest.mark.parametrize(("password", "exit_code"), [(b"short\n", 1), (b"", 1), (b"\xff" * 20, 2)])
def test_a_bad_password_is_one_sentence(settings: dict[str, str], password: bytes, exit_code: int) -> None:
    command = ("staff", "add", EMAIL, "--role", "sales", "--password-stdin")
    assert "assword" in refused(finish(settings, *command, stdin=password), exit_code)


@pytest.mark.parametrize(("email", "name"), [("nobody", "X"), ("ok@x.example", "a\nb")])
def test_what_cannot_be_kept_is_refused(settings: dict[str, str], email: str, name: str) -> None:
    run_refused(settings, 1, "staff", "add", email, "--role", "sales", "--name", name)


def test_somebody_is_disabled_and_enabled_again_but_not_the_last_admin(settings: dict[str, str]) -> None:
    run(settings, "staff", "add", "boss@example.com", "--role", "admin")
    run(settings, "staff", "add", EMAIL, "--role", "viewer")
    disabled = run_for_json(settings, "staff", "disable", EMAIL.upper())
    assert disabled["disabledAt"] is not None
    assert disabled == run_for_json(settings, "staff", "disable", EMAIL) == listed(settings)
    assert "disabled" in run(settings, "staff", "list")
    assert run_for_json(settings, "staff", "enable", EMAIL)["disabledAt"] is None
    assert EMAIL in run(settings, "staff", "enable", EMAIL)
    assert "only admin" in run_refused(settings, 1, "staff", "disable", "boss@example.com")
    for command in ("disable", "enable", "reset"):
        assert "nobody@example.com" in run_refused(settings, 1, "staff", command, "nobody@example.com")
