"""The receivers of `examples/`, run as their readers run them, before Holdfast itself and every vector."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from sdk.make_vectors import FILE, SECRET
from tests.docs.documents import ROOT, WEBHOOKS_GUIDE, blocks
from tests.sdk.deliveries import delivery
from tests.sdk.vectors import VECTORS
from tests.support.app import InProcessApp
from tests.support.bodies import minimal
from tests.support.client import Unit, integration_client
from tests.support.keys import Keys
from tests.support.ports import free_port, wait_until_it_listens
from tests.support.programs import installed
from tests.support.projects import add_project
from tests.support.sql import Sql
from tests.support.webhooks import Registrar

MEBIBYTE = 1024 * 1024
CODE = "برج أ/١٠١"
JUDGE_IN_PYTHON = """
import json, sys
sys.path.insert(0, sys.argv[1])
from receiver import event_of, is_delivery
def judge(one):
    headers, body = one["headers"], one["body"].encode()
    signed = is_delivery(headers, body, [one["secret"]], one["now"])
    return [signed, signed and event_of(headers, body) is not None]
print(json.dumps([judge(one) for one in json.load(sys.stdin)]))
"""
JUDGE_IN_NODE = """
import { readFileSync } from "node:fs";
const { eventOf, isDelivery } = await import(`${process.argv.at(-1)}/receiver.mjs`);
const lowered = (headers) => Object.fromEntries(
  Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
const judge = (one) => {
  const [headers, body] = [lowered(one.headers), Buffer.from(one.body)];
  const signed = isDelivery(headers, body, [one.secret], one.now);
  return [signed, signed && eventOf(headers, body) !== null];
};
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(judge)));
"""


@dataclass(frozen=True)
class ExampleReceiver:
    path: str
    language: str
    program: Callable[[], str]
    judge: Sequence[str]

    @property
    def file(self) -> Path:
        return ROOT / "examples" / self.path

    @contextmanager
    def running(self, folder: Path, *secrets: str) -> Iterator[str]:
        """Its URL."""
        port = free_port()
        variables = {"HOLDFAST_SECRET": " ".join(secrets), "PORT": str(port), "INBOX": str(folder / "inbox")}
        with (folder / "printed").open("a") as printed:
            process = subprocess.Popen(
                [self.program(), str(self.file)], stdout=printed, env={**os.environ, **variables}, cwd=folder
            )
        try:
            wait_until_it_listens(process, port)
            yield f"http://127.0.0.1:{port}/holdfast"
        finally:
            process.kill()
            process.wait()


PYTHON = ExampleReceiver("receiver-python/receiver.py", "py", lambda: sys.executable, ["-c", JUDGE_IN_PYTHON])
AS_MODULE = ["--input-type=module", "-e", JUDGE_IN_NODE, "--"]
NODE = ExampleReceiver("receiver-node/receiver.mjs", "js", lambda: installed("node"), AS_MODULE)


@pytest.fixture(params=[PYTHON, NODE], ids=["python", "node"])
def receiver(request: pytest.FixtureRequest) -> ExampleReceiver:
    found: ExampleReceiver = request.param
    return found


def test_it_judges_every_vector_as_it_must(receiver: ExampleReceiver) -> None:
    """Whether its signature is accepted, and whether it is taken for an event."""
    given = json.dumps(json.loads(FILE.read_text(encoding="utf-8"))["vectors"])
    command = [receiver.program(), *receiver.judge, str(receiver.file.parent)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=True)
    expected = {one.name: [one.signature_refused_for is None, one.refused_for is None] for one in VECTORS}
    assert dict(zip(expected, json.loads(done.stdout), strict=True)) == expected
    assert len(expected) > 50


def test_it_takes_in_what_holdfast_delivers_once_even_after_a_restart(
    receiver: ExampleReceiver, server: InProcessApp, keys: Keys, sql: Sql, tmp_path: Path
) -> None:
    project = add_project(sql)
    key = keys.issue(scopes=["integration", "backoffice"])
    with integration_client(server.address, key.text) as http:
        registrar, unit = Registrar(http), Unit(http, project, CODE)
        unit.create(minimal())
        # Nothing is sent before the secret is known: it is in the answer to the registration.
        endpoint = registrar.add(paused=True, projects=[project.slug])
        with receiver.running(tmp_path, "hfs_the-new-one", endpoint["secret"]) as url:
            registrar.change(endpoint["id"], url=url, paused=False)
            ping = registrar.ping(endpoint["id"])["id"]
            assert registrar.ended(ping)["lastStatusCode"] == 200
            unit.patch({"status": "unavailable"})
            (change,) = registrar.deliveries(endpoint=endpoint["id"], event="unit.unavailable")["deliveries"]
            told = registrar.ended(change["id"])
            assert told["lastStatusCode"] == 200
            registrar.resend(ping)
            assert registrar.ended(ping, 2)["lastStatusCode"] == 200
        inbox = tmp_path / "inbox"
        events = [json.loads(line) for line in inbox.read_text().splitlines()]
        assert [event["id"] for event in events] == [ping, change["id"]]
        assert events[1] == json.loads(told["body"])
        with inbox.open("a") as file:
            file.write('{"id": "cut off by a crash')
        with receiver.running(tmp_path, endpoint["secret"]) as url:
            registrar.change(endpoint["id"], url=url)
            registrar.resend(ping)
            assert registrar.ended(ping, 3)["lastStatusCode"] == 200
        assert [json.loads(line) for line in inbox.read_text().splitlines()] == events
        assert (tmp_path / "printed").read_text().splitlines() == ["ping -", f"unit.unavailable {CODE}"]
        registrar.remove_all()


def test_what_holdfast_has_not_sent_is_refused(receiver: ExampleReceiver, tmp_path: Path) -> None:
    sent = delivery()
    refused = {
        "forged": sent.with_headers(Signature=f"sha256={'0' * 64}"),
        "too old": sent.signed_at(int(sent.headers["X-Service-Timestamp"]) - 301),
        "another id": sent.with_headers(Delivery="b809d7b8-b646-5ec8-859a-0399f77c5ad3"),
        "too long": sent._replace(body=b" " * (MEBIBYTE + 1)),
    }
    with receiver.running(tmp_path, SECRET) as url, httpx.Client(trust_env=False, timeout=60) as client:
        assert client.get(url).status_code in (405, 501)
        # The one that is too long comes last: it is not read, and the connection is closed.
        answers = {
            name: client.post(url, headers=one.headers, content=one.body).status_code
            for name, one in refused.items()
        }
        assert answers == {"forged": 401, "too old": 401, "another id": 400, "too long": 413}
    assert (tmp_path / "inbox").read_text() == ""


def test_the_guide_shows_the_receiver_as_it_is(receiver: ExampleReceiver) -> None:
    (shown,) = (block.text for block in blocks(WEBHOOKS_GUIDE) if block.language == receiver.language)
    assert shown == receiver.file.read_text(encoding="utf-8")
