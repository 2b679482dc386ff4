"""`holdfast verify`, as somebody runs it on a delivery that a receiver captured."""

import json
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from sdk import make_vectors
from tests.sdk.vectors import named
from tests.support import commands

SOLD = named("unit.sold")
DAY_SECONDS = 86_400
NOT_THE_DIGEST = "The digest is not that of this body and timestamp with this secret."


def run_verify(*arguments: str, body: bytes = SOLD.body) -> CompletedProcess[str]:
    return commands.finish({}, "verify", *arguments, stdin=body)


def captured(secret: str = SOLD.secret, **headers: str) -> list[str]:
    given = {"timestamp": SOLD.timestamp or "", "signature": SOLD.signature or "", **headers}
    return ["--secret", secret, *(part for name, value in given.items() for part in (f"--{name}", value))]


def signed_at(moment: float) -> list[str]:
    digest = make_vectors.digest(SOLD.secret, str(int(moment)), SOLD.body.decode())
    return captured(timestamp=str(int(moment)), signature=f"sha256={digest}")


def refused(*arguments: str, body: bytes = SOLD.body) -> str:
    said = commands.refused(run_verify(*arguments, body=body))
    assert said.startswith("holdfast: ")
    return said


def test_a_fresh_delivery_from_a_file_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(SOLD.body)
    done = run_verify(*signed_at(time.time()), str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The signature is valid; it was made ")


@pytest.mark.parametrize("file", [["-"], []])
def test_the_body_may_come_on_stdin_and_the_secret_in_the_environment(file: list[str]) -> None:
    arguments = ("verify", *captured()[2:], "--any-age", *file)
    done = commands.finish_process({"HOLDFAST_SECRET": SOLD.secret}, *arguments, stdin=SOLD.body)
    assert done.returncode == 0, done.stderr


def test_the_body_is_taken_byte_for_byte() -> None:
    vector = named("white space and a newline are part of the body")
    arguments = captured(signature=vector.signature or "")
    assert run_verify(*arguments, "--any-age", body=vector.body).returncode == 0
    assert NOT_THE_DIGEST in refused(*arguments, "--any-age")
    assert "newline at its end" in refused(*captured(), "--any-age", body=SOLD.body + b"\r\n")


def test_a_delivery_of_another_day_is_refused_and_the_sentence_says_whether_the_signature_matches() -> None:
    old = signed_at(time.time() - DAY_SECONDS)
    said = refused(*old)
    assert "s ago; 300 s are allowed." in said
    assert "The signature itself matches (--any-age leaves the age out)." in said
    assert "The signature itself does not match either." in refused(*old, body=b"{}")
    assert "ahead of this machine's clock" in refused(*signed_at(time.time() + DAY_SECONDS))


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"signature": ""}, "The signature is empty."),
        ({"signature": "sha1=00"}, "The scheme of the signature is not sha256"),
        ({"signature": "sha256="}, "no digest after the scheme"),
        ({"signature": "sha256=" + "A" * 64}, "64 lower-case hexadecimal digits"),
        ({"timestamp": ""}, "The timestamp is empty."),
        ({"timestamp": "yesterday"}, "not a whole number of seconds"),
        ({"timestamp": "1"}, NOT_THE_DIGEST),
        ({"secret": "another"}, NOT_THE_DIGEST),
    ],
)
def test_what_is_wrong_is_said(headers: dict[str, str], sentence: str) -> None:
    assert sentence in refused(*captured(**headers), "--any-age")


def document(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = run_verify(*arguments, "--json")
    (line,) = done.stdout.splitlines()
    return done.returncode, json.loads(line)


def test_json_is_one_object_whether_valid_or_not() -> None:
    exit_code, valid = document(*captured(), "--any-age")
    assert exit_code == 0
    age = valid.pop("ageSeconds")
    assert valid == {"valid": True, "reason": None, "detail": None, "signatureMatches": True}
    assert isinstance(age, int)
    exit_code, old = document(*signed_at(time.time() - DAY_SECONDS))
    assert exit_code == 1
    assert (old["valid"], old["reason"], old["signatureMatches"]) == (False, "too-old", True)
    assert old["ageSeconds"] >= DAY_SECONDS
    assert "--any-age" in old["detail"]
    exit_code, ageless = document(*captured(timestamp="x"))
    assert (exit_code, ageless["reason"], ageless["ageSeconds"]) == (1, "timestamp-not-a-number", None)
