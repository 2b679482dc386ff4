"""`holdfast delivery`, as scripts and people use it."""

import shlex
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.refused import run_refused
from tests.support.bodies import minimal
from tests.support.client import Unit, integration_client
from tests.support.commands import finish, run, run_for_json
from tests.support.installation import Installation, installed_server
from tests.support.keys import Keys
from tests.support.webhooks import (
    ATTEMPTS,
    DELIVERIES,
    DELIVERY_FIELDS,
    IMPATIENT,
    Inbox,
    Registrar,
    an_inbox,
)


@pytest.fixture(scope="module")
def settings(module_postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": module_postgres_url}


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str
) -> Iterator[Installation]:
    with installed_server(tmp_path_factory.mktemp("impatient"), module_postgres_url, IMPATIENT) as running:
        yield running


@pytest.fixture
def registrar(installation: Installation, module_postgres_url: str) -> Iterator[Registrar]:
    key = Keys(installation.sql, module_postgres_url).issue(scopes=["backoffice"])
    with integration_client(installation.address, key.text) as http:
        own = Registrar(http)
        yield own
        own.remove_all()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with an_inbox() as opened:
        yield opened


@pytest.fixture
def failed(registrar: Registrar, inbox: Inbox) -> dict[str, Any]:
    """A ping that was answered with 500 until nobody tried any more."""
    inbox.status, inbox.body = 500, b"out of\x1b[31m order"
    return registrar.ended(registrar.ping(registrar.add(inbox.url)["id"])["id"])


def test_deliveries_are_listed_the_latest_first(settings: dict[str, str], registrar: Registrar) -> None:
    endpoint_id = registrar.add(paused=True)["id"]
    made = [registrar.ping(endpoint_id)["id"] for _ in range(3)]
    found = run_for_json(settings, "delivery", "list", "--endpoint", endpoint_id)["deliveries"]
    assert [one["id"] for one in found] == made[::-1]
    assert all(list(one) == DELIVERY_FIELDS for one in found)
    latest = run_for_json(settings, "delivery", "list", "--endpoint", endpoint_id, "--limit", "1")
    assert [one["id"] for one in latest["deliveries"]] == made[-1:]


def test_the_next_page_begins_where_the_last_one_ended(
    settings: dict[str, str], registrar: Registrar
) -> None:
    endpoint_id = registrar.add(paused=True)["id"]
    made = [registrar.ping(endpoint_id)["id"] for _ in range(5)]
    command = ("delivery", "list", "--endpoint", endpoint_id, "--limit", "2")
    page = run_for_json(settings, *command)
    assert page["nextCursor"] == registrar.deliveries(endpoint=endpoint_id, limit=2)["nextCursor"]
    found = page["deliveries"]
    while page["nextCursor"] is not None:
        page = run_for_json(settings, *command, "--cursor", page["nextCursor"])
        assert list(page) == ["deliveries", "nextCursor"]
        found += page["deliveries"]
    assert [one["id"] for one in found] == made[::-1]


def test_people_are_told_that_there_are_more_and_how_to_go_on(
    settings: dict[str, str], registrar: Registrar
) -> None:
    endpoint_id = registrar.add(paused=True)["id"]
    made = [registrar.ping(endpoint_id)["id"] for _ in range(3)]
    command = ("delivery", "list", "--endpoint", endpoint_id, "--event", "ping", "--limit", "2")
    first = finish(settings, *command)
    assert made[0] not in first.stdout
    told, _, onward = first.stderr.partition(": ")
    assert told == "There are more"
    program, *words = shlex.split(onward)
    assert (program, words[:-2], words[-2]) == ("holdfast", list(command), "--cursor")
    last = finish(settings, *words)
    assert [line.split()[-1] for line in last.stdout.splitlines()[1:]] == made[:1]
    assert last.stderr == ""


def test_deliveries_are_filtered(
    settings: dict[str, str], registrar: Registrar, installation: Installation
) -> None:
    project = installation.new_project()
    endpoint_id = registrar.add(projects=[project.slug], paused=True)["id"]
    unit = Unit(installation.http, project, "A-101")
    unit.create(minimal())
    unit.patch({"status": "unavailable"})
    registrar.ping(endpoint_id)

    def listed(*options: str) -> list[str]:
        page = run_for_json(settings, "delivery", "list", "--endpoint", endpoint_id, *options)
        return [one["event"] for one in page["deliveries"]]

    assert listed("--event", "ping") == ["ping"]
    assert listed("--unit-code", "A-101") == ["unit.unavailable"]
    assert listed("--status", "pending") == ["ping", "unit.unavailable"]
    assert listed("--status", "delivered") == []


def test_the_list_is_a_table_for_people(settings: dict[str, str], failed: dict[str, Any]) -> None:
    lines = run(settings, "delivery", "list", "--endpoint", failed["endpointId"]).splitlines()
    assert lines[0].split()[:4] == ["CREATED", "EVENT", "UNIT", "STATUS"]
    assert "failed" in lines[1]
    assert "The receiver answered 500." in lines[1]
    assert lines[1].endswith(failed["id"])
    nothing = run(settings, "delivery", "list", "--endpoint", failed["endpointId"], "--status", "pending")
    assert nothing == "There are no such deliveries.\n"


def test_a_delivery_is_shown_to_programs_as_it_is_on_the_wire(
    settings: dict[str, str], registrar: Registrar, failed: dict[str, Any]
) -> None:
    wire = registrar.http.get(f"{DELIVERIES}/{failed['id']}").json()
    assert run_for_json(settings, "delivery", "show", failed["id"]) == wire


def test_a_delivery_is_told_to_people_attempt_by_attempt(
    settings: dict[str, str], failed: dict[str, Any], inbox: Inbox
) -> None:
    text = run(settings, "delivery", "show", failed["id"])
    assert text.startswith(f"ping, failed after {ATTEMPTS} attempts\n")
    assert text.count("The receiver answered 500.") == ATTEMPTS
    assert text.count(f"POST {inbox.url} at 127.0.0.1") == ATTEMPTS
    assert text.count("first byte") == ATTEMPTS
    assert "first\n" in text
    assert "retry\n" in text
    assert failed["body"] in text


def test_what_a_receiver_answers_does_nothing_to_the_terminal(
    settings: dict[str, str], failed: dict[str, Any]
) -> None:
    text = run(settings, "delivery", "show", failed["id"])
    assert "the answer: out of [31m order" in text
    assert "\x1b" not in text


def test_a_delivery_is_sent_again(
    settings: dict[str, str], registrar: Registrar, failed: dict[str, Any], inbox: Inbox
) -> None:
    inbox.status = 204
    sent = run_for_json(settings, "delivery", "resend", failed["id"])
    assert (sent["id"], sent["status"], sent["body"]) == (failed["id"], "pending", failed["body"])
    ended = registrar.ended(failed["id"], ATTEMPTS + 1)
    assert (ended["status"], ended["lastStatusCode"]) == ("delivered", 204)
    assert "Delivered: the receiver answered 204." in run(settings, "delivery", "show", failed["id"])
    assert failed["id"] in run(settings, "delivery", "resend", failed["id"])


def test_a_pending_and_a_cancelled_one_say_so(settings: dict[str, str], registrar: Registrar) -> None:
    made = registrar.ping(registrar.add(paused=True)["id"])
    assert "ping, pending after 0 attempts; next at " in run(settings, "delivery", "show", made["id"])
    registrar.remove(made["endpointId"])
    shown = run(settings, "delivery", "show", made["id"])
    assert shown.startswith("ping, cancelled after 0 attempts: The endpoint was removed.\n")
    assert "removed" in run_refused(settings, 1, "delivery", "resend", made["id"])


def test_what_does_not_exist_is_refused(settings: dict[str, str]) -> None:
    unknown = str(uuid4())
    for command in (("show", unknown), ("resend", unknown), ("list", "--endpoint", unknown)):
        assert unknown in run_refused(settings, 1, "delivery", *command)


@pytest.mark.parametrize(
    "arguments",
    [
        ("delivery", "show"),
        ("delivery", "show", "not-an-id"),
        ("delivery", "list", "--status", "lost"),
        ("delivery", "list", "--event", "unit.gone"),
        ("delivery", "list", "--unit-code", " A"),
        ("delivery", "list", "--limit", "0"),
        ("delivery", "list", "--cursor", "here"),
        ("delivery", "list", "--cursor", ""),
        ("delivery", "forget"),
    ],
)
def test_wrong_usage_exits_2(settings: dict[str, str], arguments: tuple[str, ...]) -> None:
    run_refused(settings, 2, *arguments)
