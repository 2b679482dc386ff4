"""The receivers of `examples/` as processes of their own, before Holdfast itself and before every vector."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sdk.make_vectors import FILE
from tests.docs.documents import WEBHOOKS_GUIDE, blocks
from tests.sdk.deliveries import delivery
from tests.sdk.example_receivers import EXAMPLE_RECEIVERS, NODE, PYTHON, ExampleReceiver
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.webhooks import Registrar

MEBIBYTE = 1024 * 1024
SECRET = "a-secret-for-vectors-4yq0Zt7bqM2vX9eR"

each_receiver = pytest.mark.parametrize("receiver", EXAMPLE_RECEIVERS, ids=lambda one: one.file.name)


@pytest.fixture
def http(real_server: RunningServer, keys: Keys) -> Iterator[httpx.Client]:
    key = keys.issue(scopes=["integration", "backoffice"])
    with integration_client(real_server.address, key.text) as client:
        yield client


@pytest.fixture
def registrar(http: httpx.Client) -> Iterator[Registrar]:
    own = Registrar(http)
    yield own
    own.remove_all()


@pytest.fixture
def project(sql: Sql) -> Project:
    return add_project(sql)


@each_receiver
def test_it_judges_every_vector_as_it_must(receiver: ExampleReceiver) -> None:
    vectors = json.loads(FILE.read_text(encoding="utf-8"))["vectors"]
    judged = dict(zip((one["name"] for one in vectors), receiver.verdicts(vectors), strict=True))
    assert judged == {
        one["name"]: [
            one["signatureRefusedFor"] is None,
            one["signatureRefusedFor"] is None and one["eventRefusedFor"] is None,
        ]
        for one in vectors
    }
    assert len(judged) > 50


@each_receiver
def test_it_takes_in_what_holdfast_delivers(
    receiver: ExampleReceiver, registrar: Registrar, http: httpx.Client, project: Project, tmp_path: Path
) -> None:
    unit = Unit(http, project, "برج أ/١٠١")
    unit.create(minimal())
    # Nothing is sent before the secret is known: it is in the answer to the registration.
    endpoint = registrar.add(paused=True, projects=[project.slug])
    with receiver.running(tmp_path, endpoint["secret"]) as running:
        registrar.change(endpoint["id"], url=running.url, paused=False)
        ping = registrar.ended(registrar.ping(endpoint["id"])["id"])
        unit.patch({"status": "unavailable"})
        (change,) = registrar.deliveries(endpoint=endpoint["id"], event="unit.unavailable")["deliveries"]
        told = registrar.ended(change["id"])
        assert (ping["lastStatusCode"], told["lastStatusCode"]) == (200, 200)
        assert running.printed == ["ping -", "unit.unavailable برج أ/١٠١"]
        assert running.inbox[1] == json.loads(told["body"])


@each_receiver
def test_a_repetition_is_answered_and_not_taken_twice_not_even_after_a_restart(
    receiver: ExampleReceiver, registrar: Registrar, tmp_path: Path
) -> None:
    endpoint = registrar.add(paused=True)
    with receiver.running(tmp_path, endpoint["secret"]) as running:
        registrar.change(endpoint["id"], url=running.url, paused=False)
        ping = registrar.ping(endpoint["id"])["id"]
        registrar.ended(ping)
        registrar.resend(ping)
        assert registrar.ended(ping, 2)["lastStatusCode"] == 200
    with (tmp_path / "inbox").open("a") as inbox:
        inbox.write('{"id": "cut off by a crash')
    with receiver.running(tmp_path, endpoint["secret"]) as running:
        registrar.change(endpoint["id"], url=running.url)
        registrar.resend(ping)
        assert registrar.ended(ping, 3)["lastStatusCode"] == 200
        assert [event["id"] for event in running.inbox] == [ping]
        assert running.printed == ["ping -"]


@each_receiver
def test_what_holdfast_has_not_sent_is_refused(receiver: ExampleReceiver, tmp_path: Path) -> None:
    sent = delivery()
    refused = {
        "forged": sent.with_headers(Signature=f"sha256={'0' * 64}"),
        "too old": sent.signed_at(int(sent.headers["X-Service-Timestamp"]) - 301),
        "another id": sent.with_headers(Delivery="b809d7b8-b646-5ec8-859a-0399f77c5ad3"),
        "too long": sent._replace(body=b" " * (MEBIBYTE + 1)),
    }
    with receiver.running(tmp_path, SECRET) as running, httpx.Client(trust_env=False) as client:
        answers = {
            name: client.post(running.url, headers=one.headers, content=one.body).status_code
            for name, one in refused.items()
        }
        assert answers == {"forged": 401, "too old": 401, "another id": 400, "too long": 413}
        assert client.get(running.url).status_code in (405, 501)
        assert running.inbox == []


@each_receiver
def test_both_secrets_count_while_they_are_rotated(receiver: ExampleReceiver, tmp_path: Path) -> None:
    with receiver.running(tmp_path, "hfs_the-new-one", SECRET) as running:
        sent = delivery()
        answer = httpx.post(running.url, headers=sent.headers, content=sent.body, trust_env=False)
        assert answer.status_code == 200


@pytest.mark.parametrize(("receiver", "language"), [(PYTHON, "py"), (NODE, "js")], ids=["python", "node"])
def test_the_guide_shows_the_receiver_as_it_is(receiver: ExampleReceiver, language: str) -> None:
    (shown,) = (block.text for block in blocks(WEBHOOKS_GUIDE) if block.language == language)
    assert shown == receiver.file.read_text(encoding="utf-8")
