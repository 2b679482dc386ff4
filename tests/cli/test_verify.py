"""`holdfast verify`, as somebody runs it on a delivery that a receiver captured."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.verify import CapturedDelivery
from sdk import make_vectors
from tests.sdk.vectors import named
from tests.support.commands import COMMAND_SECONDS
from tests.support.server import HOLDFAST, environment

SOLD = named("unit.sold")
DAY_SECONDS = 86_400


def run_verify(
    *arguments: str, body: bytes = b"", secret: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    settings = {"HOLDFAST_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    if secret is not None:
        settings["HOLDFAST_SECRET"] = secret
    return subprocess.run(
        [HOLDFAST, "verify", *arguments],
        env=environment(settings),
        input=body,
        capture_output=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def captured(secret: str = SOLD.secret, **headers: str) -> list[str]:
    given = {"timestamp": SOLD.timestamp or "", "signature": SOLD.signature or "", **headers}
    return ["--secret", secret, *(part for name, value in given.items() for part in (f"--{name}", value))]


def signed_at(moment: int) -> list[str]:
    digest = make_vectors.digest(SOLD.secret, str(moment), SOLD.body.decode())
    return captured(timestamp=str(moment), signature=f"sha256={digest}")


def refused(done: subprocess.CompletedProcess[bytes]) -> str:
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (1, b""), said
    assert said.startswith("holdfast: ")
    assert "Traceback" not in said
    return said


def test_a_fresh_delivery_from_a_file_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(SOLD.body)
    done = run_verify(*signed_at(int(time.time())), str(file))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"The signature is valid; it was made ")


@pytest.mark.parametrize("file", [["-"], []])
def test_the_body_may_come_on_stdin_and_the_secret_in_the_environment(file: list[str]) -> None:
    arguments = captured()[2:]
    done = run_verify(*arguments, "--any-age", *file, body=SOLD.body, secret=SOLD.secret)
    assert done.returncode == 0, done.stderr


def test_the_body_is_taken_byte_for_byte() -> None:
    vector = named("white space and a newline are part of the body")
    arguments = captured(signature=vector.signature or "")
    assert run_verify(*arguments, "--any-age", body=vector.body).returncode == 0
    assert "digest is not that of this body" in refused(run_verify(*arguments, "--any-age", body=SOLD.body))


def test_an_old_delivery_is_refused_and_the_sentence_says_that_the_signature_matches() -> None:
    said = refused(run_verify(*signed_at(int(time.time()) - DAY_SECONDS), body=SOLD.body))
    assert "s ago; 300 s are allowed." in said
    assert "The signature itself matches (--any-age leaves the age out)." in said


def test_an_old_delivery_with_a_wrong_digest_is_said_to_be_both() -> None:
    said = refused(run_verify(*signed_at(int(time.time()) - DAY_SECONDS), body=b"{}"))
    assert "The signature itself does not match either." in said


def test_a_delivery_from_the_future_blames_the_clocks() -> None:
    said = refused(run_verify(*signed_at(int(time.time()) + DAY_SECONDS), body=SOLD.body))
    assert "ahead of this machine's clock" in said


@pytest.mark.parametrize("late_seconds", [-301, -300.4, -300, 0.9, 299.9, 300, 300.4, 300.999, 301])
def test_the_verdict_is_that_of_the_age_which_is_printed(late_seconds: float) -> None:
    now = SOLD.now + late_seconds
    delivery = CapturedDelivery(SOLD.secret, SOLD.timestamp or "", SOLD.signature or "", SOLD.body)
    age_seconds = delivery.age_seconds(now)
    assert age_seconds is not None
    assert (delivery.find_problem(now) is None) == (abs(age_seconds) <= 300)


def test_a_newline_that_an_editor_added_is_found_out() -> None:
    said = refused(run_verify(*captured(), "--any-age", body=SOLD.body + b"\r\n"))
    assert "newline at its end" in said


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"signature": ""}, "The signature is empty."),
        ({"signature": "sha1=00"}, "The scheme of the signature is not sha256"),
        ({"signature": "sha256="}, "no digest after the scheme"),
        ({"signature": "sha256=" + "A" * 64}, "64 lower-case hexadecimal digits"),
        ({"timestamp": ""}, "The timestamp is empty."),
        ({"timestamp": "yesterday"}, "not a whole number of seconds"),
        ({"timestamp": "1"}, "The digest is not that of this body and timestamp with this secret."),
        ({"secret": "another"}, "The digest is not that of this body and timestamp with this secret."),
    ],
)
def test_what_is_wrong_is_said(headers: dict[str, str], sentence: str) -> None:
    assert sentence in refused(run_verify(*captured(**headers), "--any-age", body=SOLD.body))


def document(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = run_verify(*arguments, "--json", body=SOLD.body)
    (line,) = done.stdout.decode().splitlines()
    return done.returncode, json.loads(line)


def test_json_is_one_object_whether_valid_or_not() -> None:
    exit_code, valid = document(*captured(), "--any-age")
    assert exit_code == 0
    assert valid == {
        "valid": True,
        "reason": None,
        "detail": None,
        "signatureMatches": True,
        "ageSeconds": valid["ageSeconds"],
    }
    exit_code, old = document(*signed_at(int(time.time()) - DAY_SECONDS))
    assert exit_code == 1
    assert (old["valid"], old["reason"], old["signatureMatches"]) == (False, "too-old", True)
    assert DAY_SECONDS <= old["ageSeconds"] < DAY_SECONDS + COMMAND_SECONDS
    assert "--any-age" in old["detail"]
    exit_code, ageless = document(*captured(timestamp="x"))
    assert (exit_code, ageless["reason"], ageless["ageSeconds"]) == (1, "timestamp-not-a-number", None)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([], "--secret"),
        (["--secret", "s", "--signature", "sha256=0"], "--timestamp"),
        (["--secret", "s", "--timestamp", "1"], "--signature"),
        (["--secret", "", "--timestamp", "1", "--signature", "x"], "secret"),
        ([*captured(), "/no/such/file"], "/no/such/file"),
        (
            captured(secret="\udcff"),
            "Invalid value for '--secret' (env var: 'HOLDFAST_SECRET'): it is not UTF-8.",
        ),
    ],
)
def test_a_wrong_call_exits_2_and_names_what_is_wrong(arguments: list[str], fault: str) -> None:
    done = run_verify(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert fault in done.stderr.decode()


def test_a_secret_of_the_environment_that_is_not_utf_8_is_a_wrong_call() -> None:
    done = run_verify(*captured()[2:], "--any-age", body=SOLD.body, secret="\udcff")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "it is not UTF-8." in done.stderr.decode()


def test_the_command_is_listed() -> None:
    listed = subprocess.run([HOLDFAST, "--help"], capture_output=True, check=True, timeout=COMMAND_SECONDS)
    assert "verify" in listed.stdout.decode()
