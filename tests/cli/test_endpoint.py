"""`holdfast endpoint`, as scripts and people use it."""

import re
from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet

from holdfast.domain.event import EventName
from tests.cli.refused import run_refused
from tests.support.commands import finish, run, run_for_json
from tests.support.server import WEBHOOKS
from tests.support.sql import Sql
from tests.support.webhooks import DELIVERY_FIELDS, ENDPOINT_FIELDS

URL = "http://127.0.0.1:9/hook"


@pytest.fixture(scope="module")
def settings(module_postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": module_postgres_url}


@pytest.fixture
def slug(settings: dict[str, str]) -> str:
    slug = f"p-{uuid4().hex[:12]}"
    run(settings, "project", "add", slug, "--name", "A project")
    return slug


@pytest.fixture
def added(settings: dict[str, str]) -> dict[str, Any]:
    return run_for_json(settings, "endpoint", "add", URL)


def listed(settings: dict[str, str], endpoint_id: str) -> dict[str, Any]:
    """The endpoint as the list has it."""
    found = run_for_json(settings, "endpoint", "list")
    assert (list(found), found["nextCursor"]) == (["endpoints", "nextCursor"], None)
    (only,) = (one for one in found["endpoints"] if one["id"] == endpoint_id)
    return dict(only)


def test_an_endpoint_receives_everything_unless_it_is_told_otherwise(
    settings: dict[str, str], added: dict[str, Any]
) -> None:
    assert list(added) == [*ENDPOINT_FIELDS, "secret"]
    assert (added["url"], added["events"], added["projects"]) == (URL, list(EventName), None)
    assert (added["paused"], added["ordered"], added["maxInFlight"]) == (False, False, 32)
    shown = listed(settings, added["id"])
    assert shown == {name: value for name, value in added.items() if name != "secret"}


def test_an_endpoint_is_as_it_was_asked_for(settings: dict[str, str], slug: str) -> None:
    events = ("--event", "unit.sold", "--event", "unit.held")
    more = ("--project", slug, "--description", "The ERP", "--ordered", "--paused", "--max-in-flight", "3")
    added = run_for_json(settings, "endpoint", "add", URL, *events, *more)
    assert (added["events"], added["projects"]) == (["unit.held", "unit.sold"], [slug])
    assert (added["description"], added["ordered"], added["maxInFlight"]) == ("The ERP", True, 3)
    assert (added["paused"], added["state"]) == (True, "paused")


def test_the_secret_alone_is_on_stdout_for_people(settings: dict[str, str]) -> None:
    done = finish(settings, "endpoint", "add", URL)
    assert re.fullmatch(r"hfs_[\w-]+\n", done.stdout)
    assert URL in done.stderr
    assert "only time" in done.stderr
    assert done.stdout.strip() not in run(settings, "endpoint", "list")


def test_the_list_is_a_table_for_people(settings: dict[str, str], added: dict[str, Any], slug: str) -> None:
    run(settings, "endpoint", "add", URL, "--event", "unit.sold", "--project", slug, "--paused")
    lines = run(settings, "endpoint", "list").splitlines()
    assert lines[0].split()[:4] == ["URL", "EVENTS", "PROJECTS", "STATE"]
    assert any(line.endswith(added["id"]) and " all " in line and " active " in line for line in lines)
    assert any("unit.sold" in line and slug in line and " paused " in line for line in lines)


def test_a_new_secret_is_printed_once(settings: dict[str, str], added: dict[str, Any]) -> None:
    rotated = run_for_json(settings, "endpoint", "rotate", added["id"])
    assert rotated["secret"] != added["secret"]
    assert rotated["secretId"] == listed(settings, added["id"])["secretId"] != added["secretId"]
    assert re.fullmatch(r"hfs_[\w-]+\n", run(settings, "endpoint", "rotate", added["id"]))


def test_a_ping_is_a_delivery(settings: dict[str, str], added: dict[str, Any]) -> None:
    made = run_for_json(settings, "endpoint", "ping", added["id"])
    assert list(made) == [*DELIVERY_FIELDS, "body", "attempts"]
    assert (made["event"], made["endpointId"], made["status"]) == ("ping", added["id"], "pending")
    assert re.search(r"holdfast delivery show [0-9a-f-]{36}", run(settings, "endpoint", "ping", added["id"]))


def test_an_endpoint_is_paused_and_resumed(settings: dict[str, str], added: dict[str, Any]) -> None:
    assert run_for_json(settings, "endpoint", "pause", added["id"])["state"] == "paused"
    assert "is paused" in run(settings, "endpoint", "pause", added["id"])
    assert run_for_json(settings, "endpoint", "resume", added["id"])["state"] == "active"
    assert URL in run(settings, "endpoint", "resume", added["id"])


def test_a_removed_endpoint_is_gone(settings: dict[str, str], added: dict[str, Any]) -> None:
    removed = run_for_json(settings, "endpoint", "remove", added["id"])
    assert removed == {"id": added["id"], "url": URL, "removed": True}
    assert added["id"] not in run(settings, "endpoint", "list")
    for command in ("remove", "rotate", "ping", "pause", "resume"):
        assert added["id"] in run_refused(settings, 1, "endpoint", command, added["id"])


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("https://10.0.0.1/", "private"),
        ("ftp://a.example/", "https"),
        ("https://a:b@a.example/", "url"),
        ("https://a.example/\udcff", "invisible"),
        ("https://" + "a" * 2000, "url"),
    ],
)
def test_a_url_that_is_not_to_be_contacted_is_refused(settings: dict[str, str], url: str, word: str) -> None:
    assert word in run_refused(settings, 1, "endpoint", "add", url)


def test_an_unknown_project_is_refused(settings: dict[str, str]) -> None:
    assert "no-such" in run_refused(settings, 1, "endpoint", "add", URL, "--project", "no-such")


@pytest.mark.parametrize(
    "arguments",
    [
        ("endpoint", "add"),
        ("endpoint", "add", URL, "--event", "ping"),
        ("endpoint", "add", URL, "--event", "unit.gone"),
        ("endpoint", "add", URL, "--max-in-flight", "0"),
        ("endpoint", "add", URL, "--description", "x" * 501),
        ("endpoint", "add", URL, "--description", "\udcff"),
        ("endpoint", "add", URL, "--project", "tower", "--project", "\udcff"),
        ("endpoint", "pause", "not-an-id"),
        ("endpoint", "forget"),
    ],
)
def test_wrong_usage_exits_2(settings: dict[str, str], arguments: tuple[str, ...]) -> None:
    run_refused(settings, 2, *arguments)


def test_an_old_encryption_key_can_be_dropped_once_all_is_encrypted_anew(postgres_url: str) -> None:
    """On a database of its own: every secret of an installation is meant."""
    old, new = WEBHOOKS["HOLDFAST_ENCRYPTION_KEYS"], Fernet.generate_key().decode()
    settings = {"HOLDFAST_DATABASE_URL": postgres_url}
    added = run_for_json(settings, "endpoint", "add", URL)
    both = settings | {"HOLDFAST_ENCRYPTION_KEYS": f"{new},{old}"}
    only_new = settings | {"HOLDFAST_ENCRYPTION_KEYS": new}
    assert "HOLDFAST_ENCRYPTION_KEYS" in run_refused(only_new, 1, "endpoint", "reencrypt")
    assert run_for_json(both, "endpoint", "reencrypt") == {"count": 1}
    assert run_for_json(only_new, "endpoint", "reencrypt") == {"count": 1}
    with Sql(postgres_url) as sql:
        sealed = sql.value("select secret_sealed from endpoint where id = $1", added["id"])
    assert Fernet(new).decrypt(sealed).decode() == added["secret"]
