"""`holdfast endpoint`, as scripts and people use it."""

import re
from typing import Any

import pytest
from cryptography.fernet import Fernet

from holdfast.domain.event import EventName
from tests.support.commands import finish, run, run_for_json, run_refused
from tests.support.server import WEBHOOKS
from tests.support.sql import Sql
from tests.support.webhooks import DELIVERY_FIELDS, ENDPOINT_FIELDS

URL = "http://127.0.0.1:9/hook"


@pytest.fixture
def added(settings: dict[str, str]) -> dict[str, Any]:
    return run_for_json(settings, "endpoint", "add", URL)


def test_an_endpoint_receives_everything_unless_it_is_told_otherwise(
    settings: dict[str, str], added: dict[str, Any]
) -> None:
    assert list(added) == [*ENDPOINT_FIELDS, "secret"]
    assert (added["url"], added["events"], added["projects"]) == (URL, list(EventName), None)
    assert (added["paused"], added["ordered"], added["maxInFlight"]) == (False, False, 32)
    shown = {name: value for name, value in added.items() if name != "secret"}
    assert run_for_json(settings, "endpoint", "list") == {"endpoints": [shown], "nextCursor": None}


def test_an_endpoint_is_as_it_was_asked_for(settings: dict[str, str], added: dict[str, Any]) -> None:
    run(settings, "project", "add", "tower", "--name", "The Tower")
    events = ("--event", "unit.sold", "--event", "unit.held")
    more = ("--description", "The ERP", "--ordered", "--paused", "--max-in-flight", "3")
    narrow = run_for_json(settings, "endpoint", "add", URL, *events, "--project", "tower", *more)
    assert (narrow["events"], narrow["projects"]) == (["unit.held", "unit.sold"], ["tower"])
    assert (narrow["description"], narrow["ordered"], narrow["maxInFlight"]) == ("The ERP", True, 3)
    assert (narrow["paused"], narrow["state"]) == (True, "paused")
    headings, *lines = run(settings, "endpoint", "list").splitlines()
    assert headings.split()[:4] == ["URL", "EVENTS", "PROJECTS", "STATE"]
    assert any(line.endswith(added["id"]) and " all " in line and " active " in line for line in lines)
    assert any("unit.sold" in line and " tower " in line and " paused " in line for line in lines)
    assert "no-such" in run_refused(settings, 1, "endpoint", "add", URL, "--project", "no-such")


def test_the_secret_alone_is_on_stdout_and_shown_once(settings: dict[str, str]) -> None:
    done = finish(settings, "endpoint", "add", URL)
    assert re.fullmatch(r"hfs_[\w-]+\n", done.stdout)
    assert URL in done.stderr
    assert "only this once" in done.stderr
    assert done.stdout.strip() not in run(settings, "endpoint", "list")


def test_a_new_secret_takes_the_place_of_the_old_one(settings: dict[str, str], added: dict[str, Any]) -> None:
    rotated = run_for_json(settings, "endpoint", "rotate", added["id"])
    (listed,) = run_for_json(settings, "endpoint", "list")["endpoints"]
    assert rotated["secret"] != added["secret"]
    assert rotated["secretId"] == listed["secretId"] != added["secretId"]
    assert re.fullmatch(r"hfs_[\w-]+\n", run(settings, "endpoint", "rotate", added["id"]))


def test_a_ping_is_a_delivery(settings: dict[str, str], added: dict[str, Any]) -> None:
    made = run_for_json(settings, "endpoint", "ping", added["id"])
    assert list(made) == [*DELIVERY_FIELDS, "body", "attempts"]
    assert (made["event"], made["endpointId"], made["status"]) == ("ping", added["id"], "pending")
    assert re.search(r"holdfast delivery show [0-9a-f-]{36}", run(settings, "endpoint", "ping", added["id"]))


def test_an_endpoint_is_paused_resumed_and_removed(settings: dict[str, str], added: dict[str, Any]) -> None:
    assert run_for_json(settings, "endpoint", "pause", added["id"])["state"] == "paused"
    assert "is paused" in run(settings, "endpoint", "pause", added["id"])
    assert run_for_json(settings, "endpoint", "resume", added["id"])["state"] == "active"
    assert URL in run(settings, "endpoint", "resume", added["id"])
    removed = run_for_json(settings, "endpoint", "remove", added["id"])
    assert removed == {"id": added["id"], "url": URL, "removed": True}
    assert run(settings, "endpoint", "list") == "There are no endpoints yet.\n"
    for command in ("remove", "rotate", "ping", "pause", "resume"):
        assert added["id"] in run_refused(settings, 1, "endpoint", command, added["id"])


@pytest.mark.parametrize(
    ("url", "word"), [("https://10.0.0.1/", "private"), ("https://a.example/\udcff", "invisible")]
)
def test_a_url_that_is_not_to_be_contacted_is_refused(settings: dict[str, str], url: str, word: str) -> None:
    assert word in run_refused(settings, 1, "endpoint", "add", url)


def test_an_old_encryption_key_can_be_dropped_once_all_is_encrypted_anew(
    settings: dict[str, str], added: dict[str, Any], postgres_url: str
) -> None:
    old, new = WEBHOOKS["HOLDFAST_ENCRYPTION_KEYS"], Fernet.generate_key().decode()
    both = settings | {"HOLDFAST_ENCRYPTION_KEYS": f"{new},{old}"}
    only_new = settings | {"HOLDFAST_ENCRYPTION_KEYS": new}
    assert "HOLDFAST_ENCRYPTION_KEYS" in run_refused(only_new, 1, "endpoint", "reencrypt")
    assert run_for_json(both, "endpoint", "reencrypt") == {"count": 1}
    assert run_for_json(only_new, "endpoint", "reencrypt") == {"count": 1}
    with Sql(postgres_url) as sql:
        sealed = sql.value("select secret_sealed from endpoint where id = $1", added["id"])
    assert Fernet(new).decrypt(sealed).decode() == added["secret"]
