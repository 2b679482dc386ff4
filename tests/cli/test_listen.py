"""`holdfast listen`, as somebody starts it who writes a receiver."""

import json
import subprocess
from typing import Any

import pytest

from tests.cli.refused import run_refused
from tests.support.commands import COMMAND_SECONDS
from tests.support.server import HOLDFAST, environment

URL = "http://127.0.0.1:9/hook"
GIVEN = "known-to-the-receiver"


@pytest.fixture(scope="module")
def settings(module_postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": module_postgres_url}


def said_at_the_start(settings: dict[str, str], *arguments: str) -> str:
    """All that it printed when it was stopped as soon as it was ready."""
    process = subprocess.Popen(
        [HOLDFAST, "listen", "--forward-to", URL, *arguments],
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        exit_code = process.wait(COMMAND_SECONDS)
        said = first + process.stdout.read()
    finally:
        process.kill()
        process.communicate()
    assert exit_code == 0, said
    return said


def announced(settings: dict[str, str], *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(said_at_the_start(settings, "--json", *arguments))
    return document


def test_a_secret_that_was_made_is_printed(settings: dict[str, str]) -> None:
    lines = said_at_the_start(settings).splitlines()
    assert lines[0] == f"Events go to {URL} from now on; Ctrl-C stops it."
    assert lines[1].startswith("They are signed with hfs_")
    made = announced(settings)
    assert (made["listening"], made["url"], made["secret"][:4]) == (True, URL, "hfs_")


def test_a_secret_that_was_given_is_not_printed(settings: dict[str, str]) -> None:
    in_the_environment = settings | {"HOLDFAST_SECRET": GIVEN}
    for said in (said_at_the_start(settings, "--secret", GIVEN), said_at_the_start(in_the_environment)):
        assert said.splitlines()[1:] == ["They are signed with the secret that was given."]
    for document in (announced(settings, "--secret", GIVEN), announced(in_the_environment)):
        assert document == {"listening": True, "url": URL, "secret": None}


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "The URL must begin with https://."),
        ("ftp://127.0.0.1/", "The URL must begin with https://."),
        ("http://", "The URL has no host."),
        ("http://127.0.0.1:99999/", "The URL's port must be a number from 1 to 65535."),
        ("http://127.0.0.1/\udcff", "The URL must not have spaces, backslashes or invisible characters."),
    ],
)
def test_a_url_that_cannot_be_is_wrong_usage(settings: dict[str, str], url: str, sentence: str) -> None:
    said = run_refused(settings, 2, "listen", "--forward-to", url)
    assert f"Invalid value for '--forward-to': {sentence}" in said


def test_a_secret_that_is_not_utf_8_is_wrong_usage(settings: dict[str, str]) -> None:
    said = run_refused(settings, 2, "listen", "--forward-to", URL, "--secret", "\udcff")
    assert "it is not UTF-8." in said
    in_the_environment = settings | {"HOLDFAST_SECRET": "\udcff"}
    assert "it is not UTF-8." in run_refused(in_the_environment, 2, "listen", "--forward-to", URL)


@pytest.mark.parametrize("arguments", [(), ("--forward-to", URL, "--event", "unit.gone")])
def test_wrong_usage_exits_2(settings: dict[str, str], arguments: tuple[str, ...]) -> None:
    run_refused(settings, 2, "listen", *arguments)
