"""`holdfast delivery`, as scripts and people use it."""

import shlex
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.bodies import minimal
from tests.support.client import Unit, integration_client
from tests.support.commands import finish, run, run_for_json, run_refused
from tests.support.installation import Installation, installed
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.webhooks import (
    ATTEMPTS,
    DELIVERIES,
    DELIVERY_FIELDS,
    IMPATIENT,
    Registrar,
    an_inbox,
)


@pytest.fixture
def installation(postgres_url: str) -> Iterator[Installation]:
    with installed(postgres_url, IMPATIENT) as running:
        yield running


@pytest.fixture
def registrar(installation: Installation, postgres_url: str) -> Iterator[Registrar]:
    key = Keys(installation.sql, postgres_url).issue(scopes=["backoffice"])
    with integration_client(installation.address, key.text) as http:
        yield Registrar(http)


def test_deliveries_are_listed_the_latest_first_and_page_by_page(
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
    assert all(list(one) == DELIVERY_FIELDS for one in found)
    # People are told that there are more, and how to go on.
    first = finish(settings, *command[:-1], "4")
    told, _, onward = first.stderr.partition(": ")
    assert (told, made[0] in first.stdout) == ("There are more", False)
    program, *words = shlex.split(onward)
    assert (program, words[:-2], words[-2]) == ("holdfast", [*command[:-1], "4"], "--cursor")
    last = finish(settings, *words)
    assert [line.split()[-1] for line in last.stdout.splitlines()[1:]] == made[:1]
    assert last.stderr == ""


def test_deliveries_are_filtered(
    settings: dict[str, str], registrar: Registrar, installation: Installation
) -> None:
    project = add_project(installation.sql)
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
    nothing = run(settings, "delivery", "list", "--endpoint", endpoint_id, "--status", "delivered")
    assert nothing == "There are no such deliveries.\n"


def test_a_failed_delivery_is_listed_shown_and_sent_again(
    settings: dict[str, str], registrar: Registrar
) -> None:
    with an_inbox() as inbox:
        inbox.status, inbox.body = 500, b"out of\x1b[31m order"
        failed = registrar.ended(registrar.ping(registrar.add(inbox.url)["id"])["id"])
        headings, line = run(settings, "delivery", "list").splitlines()
        assert headings.split()[:4] == ["CREATED", "EVENT", "UNIT", "STATUS"]
        assert "failed" in line
        assert "The receiver answered 500." in line
        assert line.endswith(failed["id"])

        on_the_wire = registrar.http.get(f"{DELIVERIES}/{failed['id']}").json()
        assert run_for_json(settings, "delivery", "show", failed["id"]) == on_the_wire
        text = run(settings, "delivery", "show", failed["id"])
        assert text.startswith(f"ping, failed after {ATTEMPTS} attempts\n")
        for once_each in ("The receiver answered 500.", f"POST {inbox.url} at 127.0.0.1", "first byte"):
            assert text.count(once_each) == ATTEMPTS
        assert "first\n" in text
        assert "retry\n" in text
        assert failed["body"] in text
        # What a receiver answers does nothing to the terminal.
        assert "response: out of [31m order" in text
        assert "\x1b" not in text

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
