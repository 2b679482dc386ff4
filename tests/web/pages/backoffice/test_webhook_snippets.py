"""The lines that a page offers to receivers do what they promise, where they are run."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.domain.signature import TOLERANCE_SECONDS, sign
from holdfast.web.pages.backoffice.endpoints import verification_snippets
from tests.support.webhooks import an_inbox

SNIPPETS = verification_snippets("https://erp.example/hook")
SECRET = "hfs_" + "k" * 43
BODY = '{"id":"1","data":{"unit":{"code":"أ-1"}}}\n'.encode()

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not here")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here")
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")


class Sent(NamedTuple):
    timestamp: str
    signature: str
    body: bytes
    is_genuine: bool


def _sent(age_seconds: int = 0, *, secret: str = SECRET, body: bytes = BODY) -> Sent:
    timestamp = int(time.time()) - age_seconds
    is_genuine = secret == SECRET and body == BODY and abs(age_seconds) <= TOLERANCE_SECONDS
    return Sent(str(timestamp), sign(secret, timestamp, BODY), body, is_genuine)


CASES: dict[str, Callable[[], Sent]] = {
    "genuine": lambda: _sent(),
    "other secret": lambda: _sent(secret="hfs_other"),
    "other body": lambda: _sent(body=BODY + b" "),
    "too old": lambda: _sent(TOLERANCE_SECONDS + 60),
    "too far ahead": lambda: _sent(-TOLERANCE_SECONDS - 60),
    "no signature": lambda: _sent()._replace(signature="", is_genuine=False),
    "odd signature": lambda: _sent()._replace(signature="sha256=é", is_genuine=False),
    "no timestamp": lambda: _sent()._replace(timestamp="", is_genuine=False),
    "odd timestamp": lambda: _sent()._replace(timestamp="+1", is_genuine=False),
}


@pytest.mark.parametrize("case", CASES)
def test_the_python_lines_tell_the_genuine_from_the_forged(case: str) -> None:
    sent = CASES[case]()
    names: dict[str, Any] = {}
    exec(SNIPPETS["python"], names)
    headers = {"X-Service-Timestamp": sent.timestamp, "X-Service-Signature": sent.signature}
    assert names["is_genuine"](SECRET, headers, sent.body) is sent.is_genuine


@needs_node
def test_the_node_lines_tell_the_genuine_from_the_forged(tmp_path: Path) -> None:
    sent = {case: make() for case, make in CASES.items()}
    (tmp_path / "snippet.js").write_text(SNIPPETS["node"])
    (tmp_path / "run.js").write_text(
        """
        const { isGenuine } = require("./snippet.js");
        const told = {};
        for (const [name, [timestamp, signature, body]] of Object.entries(JSON.parse(process.argv[3]))) {
          const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };
          told[name] = isGenuine(process.argv[2], headers, Buffer.from(body));
        }
        console.log(JSON.stringify(told));
        """
    )
    given = {case: [one.timestamp, one.signature, one.body.decode()] for case, one in sent.items()}
    told = _run("node", str(tmp_path / "run.js"), SECRET, json.dumps(given), folder=tmp_path)
    assert json.loads(told) == {case: one.is_genuine for case, one in sent.items()}


@needs_openssl
@pytest.mark.parametrize("case", ["genuine", "other secret", "other body", "no signature"])
def test_the_openssl_lines_tell_the_genuine_from_the_forged(tmp_path: Path, case: str) -> None:
    sent = CASES[case]()
    (tmp_path / "body.json").write_bytes(sent.body)
    lines = (
        SNIPPETS["openssl"]
        .replace("SECRET='hfs_…'", f"SECRET='{SECRET}'")
        .replace("TIMESTAMP='…'", f"TIMESTAMP='{sent.timestamp}'")
        .replace("SIGNATURE='…'", f"SIGNATURE='{sent.signature}'")
    )
    told = _run("sh", "-c", lines, folder=tmp_path)
    assert told.strip() == ("genuine" if sent.is_genuine else "forged")


@needs_openssl
@needs_curl
def test_the_curl_lines_send_a_ping_that_is_genuine(tmp_path: Path) -> None:
    with an_inbox() as inbox:
        lines = verification_snippets(f"{inbox.url}?it's=1")["curl"].replace(
            "SECRET='hfs_…'", f"SECRET='{SECRET}'"
        )
        _run("sh", "-c", lines, folder=tmp_path)
        post = inbox.next()
    assert post.event["type"] == post.headers["X-Service-Event"] == "ping"
    assert post.event["id"] == post.headers["X-Service-Delivery"]
    signature = sign(SECRET, int(post.headers["X-Service-Timestamp"]), post.body)
    assert post.headers["X-Service-Signature"] == signature


def _run(*command: str, folder: Path) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout
