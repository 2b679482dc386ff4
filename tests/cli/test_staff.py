"""`holdfast staff`, and the link for the first admin that `serve` prints."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast.domain.permissions import Role
from tests.cli.refused import run_refused
from tests.support import server as servers
from tests.support.commands import COMMAND_SECONDS, finish, run, run_for_json
from tests.support.server import HOLDFAST, environment
from tests.support.staff_client import Person

PASSWORD = "a horse of lead"
DOCUMENT = {
    "id", "email", "name", "role", "setUp", "secondFactor", "createdAt", "disabledAt", "lastSignedInAt",
}  # fmt: skip
LINK = re.compile(r"http://127\.0\.0\.1:\d+/backoffice/set-up/[\w-]{43}")


@pytest.fixture(scope="module")
def settings(module_postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": module_postgres_url}


@pytest.fixture(scope="module", autouse=True)
def first_admin(settings: dict[str, str]) -> str:
    run_for_json(settings, "staff", "add", "boss@example.com", "--role", "admin")
    return "boss@example.com"


@pytest.fixture
def email() -> str:
    return f"sami-{uuid4().hex[:12]}@example.com"


def typed(settings: dict[str, str], password: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [HOLDFAST, "staff", *arguments, "--password-stdin"],
        env=environment(settings),
        input=password,
        capture_output=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def listed(settings: dict[str, str], email: str) -> dict[str, Any]:
    (found,) = [one for one in run_for_json(settings, "staff", "list")["staff"] if one["email"] == email]
    return dict(found)


@pytest.mark.parametrize("role", Role)
def test_add_answers_with_the_person_and_a_link(settings: dict[str, str], email: str, role: Role) -> None:
    added = run_for_json(settings, "staff", "add", email, "--role", role)
    assert set(added) == DOCUMENT | {"setupUrl"}
    assert (added["email"], added["role"], added["setUp"]) == (email, role, False)
    assert added["name"] == email.partition("@")[0]
    assert LINK.fullmatch(added["setupUrl"])
    assert {name: added[name] for name in DOCUMENT} == listed(settings, email)


def test_the_link_alone_is_on_stdout_for_people(settings: dict[str, str], email: str) -> None:
    done = finish(settings, "staff", "add", email, "--role", "sales", "--name", "سامي")
    assert LINK.fullmatch(done.stdout.strip())
    assert "works once" in done.stderr
    assert listed(settings, email)["name"] == "سامي"


def test_the_link_is_at_the_public_address_if_there_is_one(settings: dict[str, str], email: str) -> None:
    public = {**settings, "HOLDFAST_PUBLIC_URL": "https://units.example.com"}
    added = run_for_json(public, "staff", "add", email, "--role", "sales")
    assert added["setupUrl"].startswith("https://units.example.com/backoffice/set-up/")


@pytest.mark.parametrize("line", [f"{PASSWORD}\n", PASSWORD, f"{PASSWORD}\r\n"], ids=["line", "bare", "crlf"])
def test_a_password_comes_from_stdin(settings: dict[str, str], email: str, line: str) -> None:
    done = typed(settings, line.encode(), "add", email, "--role", "sales", "--json")
    assert done.returncode == 0, done.stderr
    added = json.loads(done.stdout)
    assert set(added) == DOCUMENT
    assert added["setUp"] is True


@pytest.mark.parametrize(
    ("password", "exit_code"),
    [(b"short\n", 1), (b"", 1), (b"password1234", 1), (b"\xff" * 20, 2)],
    ids=range(4),
)
def test_a_bad_password_is_one_sentence(
    settings: dict[str, str], email: str, password: bytes, exit_code: int
) -> None:
    done = typed(settings, password, "add", email, "--role", "sales")
    assert done.returncode == exit_code
    assert b"assword" in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


def test_an_address_is_added_once(settings: dict[str, str], first_admin: str) -> None:
    told = run_refused(settings, 1, "staff", "add", first_admin.upper(), "--role", "sales")
    assert "already" in told


def test_disabled_and_enabled_again(settings: dict[str, str], email: str) -> None:
    run(settings, "staff", "add", email, "--role", "viewer")
    disabled = run_for_json(settings, "staff", "disable", email.upper())
    assert disabled["disabledAt"] is not None
    assert disabled == run_for_json(settings, "staff", "disable", email) == listed(settings, email)
    assert "disabled" in run(settings, "staff", "list")
    assert run_for_json(settings, "staff", "enable", email)["disabledAt"] is None
    assert email in run(settings, "staff", "enable", email)


def test_reset_answers_with_a_new_link(settings: dict[str, str], email: str) -> None:
    typed(settings, PASSWORD.encode(), "add", email, "--role", "viewer")
    reset = run_for_json(settings, "staff", "reset", email)
    assert (reset["setUp"], bool(LINK.fullmatch(reset["setupUrl"]))) == (False, True)
    assert LINK.fullmatch(run(settings, "staff", "reset", email).strip())


def test_the_last_admin_is_not_disabled(settings: dict[str, str], first_admin: str) -> None:
    others = [
        one["email"]
        for one in run_for_json(settings, "staff", "list")["staff"]
        if one["role"] == "admin" and one["email"] != first_admin
    ]
    for other in others:
        run(settings, "staff", "disable", other)
    assert "only admin" in run_refused(settings, 1, "staff", "disable", first_admin)


@pytest.mark.parametrize("command", ["disable", "enable", "reset"])
def test_nobody_is_found_under_another_address(settings: dict[str, str], command: str) -> None:
    assert "nobody@example.com" in run_refused(settings, 1, "staff", command, "nobody@example.com")


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "a@b.example"),
        ("add", "a@b.example", "--role", "owner"),
        ("add", "--role", "sales"),
        ("add", "\udcff", "--role", "sales"),
        ("add", "a@b.example", "--role", "sales", "--name", "\udcff"),
        ("disable",),
        ("forget", "a@b.example"),
    ],
    ids=range(7),
)
def test_wrong_usage_exits_2(settings: dict[str, str], arguments: tuple[str, ...]) -> None:
    run_refused(settings, 2, "staff", *arguments)


@pytest.mark.parametrize(
    ("email", "name"), [("nobody", "X"), ("a b@c", "X"), ("ok@x.example", " "), ("ok@x.example", "a\nb")]
)
def test_what_cannot_be_kept_is_refused(settings: dict[str, str], email: str, name: str) -> None:
    run_refused(settings, 1, "staff", "add", email, "--role", "sales", "--name", name)


@contextmanager
def started(folder: Path, url: str, *arguments: str) -> Iterator[Iterator[str]]:
    """The lines that `serve` prints."""
    with (folder / "serve.log").open("a") as log:
        process = subprocess.Popen(
            [HOLDFAST, "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env=environment({"HOLDFAST_DATABASE_URL": url}),
        )
    assert process.stdout is not None
    try:
        yield iter(process.stdout.readline, "")
    finally:
        process.terminate()
        process.communicate(timeout=servers.STOP_SECONDS)


def start_for_json(folder: Path, url: str, *arguments: str) -> dict[str, Any]:
    with started(folder, url, "--json", *arguments) as lines:
        printed: dict[str, Any] = json.loads(next(lines))
    return printed


def test_serve_without_staff_offers_a_link_for_the_first_admin_until_there_is_one(
    tmp_path: Path, postgres_url: str
) -> None:
    settings = {"HOLDFAST_DATABASE_URL": postgres_url}
    first = start_for_json(tmp_path, postgres_url)
    assert set(first) == {"url", "setupUrl"}
    assert first["setupUrl"].startswith(f"{first['url']}/backoffice/set-up/")
    second = start_for_json(tmp_path, postgres_url)
    assert second["setupUrl"].rpartition("/")[2] != first["setupUrl"].rpartition("/")[2]
    run(settings, "staff", "add", "boss@example.com", "--role", "admin")
    assert set(start_for_json(tmp_path, postgres_url)) == {"url"}


def test_the_link_that_serve_prints_makes_the_first_admin_once(tmp_path: Path, postgres_url: str) -> None:
    fields = {"email": "boss@example.com", "name": "The Boss", "password": PASSWORD, "again": PASSWORD}
    with started(tmp_path, postgres_url) as lines:
        address = next(lines).removeprefix(servers.READY).strip()
        path = next(line for line in lines if "/set-up/" in line).strip().removeprefix(address)
        with Person(address) as newcomer, Person(address) as latecomer:
            assert "Welcome to Holdfast" in newcomer.see(path)
            wrong = newcomer.submit(path, {**fields, "email": "nobody"}, on=path)
            assert (wrong.status_code, 'value="The Boss"' in wrong.text) == (422, True)
            assert newcomer.submit(path, fields, on=path).status_code == 303
            assert "boss@example.com" in newcomer.see("/backoffice/account")
            latecomer.see(path, 404)
            again = latecomer.submit(path, {**fields, "email": "thief@example.com"}, on=path)
            assert again.status_code == 404
    (person,) = run_for_json({"HOLDFAST_DATABASE_URL": postgres_url}, "staff", "list")["staff"]
    assert (person["email"], person["role"]) == ("boss@example.com", "admin")


def test_the_demo_prints_a_sign_in_that_is_new_at_each_start(tmp_path: Path, postgres_url: str) -> None:
    settings = {"HOLDFAST_DATABASE_URL": postgres_url}
    first, second = (start_for_json(tmp_path, postgres_url, "--demo") for _ in range(2))
    assert set(first) == {"url", "key", "signIn", "project", "receiver"}
    assert set(first["signIn"]) == {"url", "email", "password"}
    assert first["signIn"]["url"] == f"{first['url']}/backoffice"
    assert first["signIn"]["email"] == second["signIn"]["email"] == "demo@holdfast.example"
    assert first["signIn"]["password"] != second["signIn"]["password"]
    (person,) = run_for_json(settings, "staff", "list")["staff"]
    assert (person["email"], person["role"], person["setUp"]) == ("demo@holdfast.example", "admin", True)
