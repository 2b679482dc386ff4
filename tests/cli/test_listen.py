"""`holdfast listen`, as somebody starts it who writes a receiver."""

import json

import pytest

from tests.support.commands import run_refused
from tests.support.server import PATIENCE_SECONDS, started

URL = "http://127.0.0.1:9/hook"
GIVEN = "known-to-the-receiver"


def said_at_the_start(settings: dict[str, str], *arguments: str) -> str:
    """All that it printed when it was stopped as soon as it was ready."""
    with started(settings, "listen", "--forward-to", URL, *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.terminate()
        assert (process.wait(PATIENCE_SECONDS), process.stderr.read()) == (0, "")
        return first + process.stdout.read()


def test_a_secret_that_was_made_is_printed(settings: dict[str, str]) -> None:
    lines = said_at_the_start(settings).splitlines()
    assert lines[0] == f"Events go to {URL} from now on; Ctrl-C stops it."
    assert lines[1].startswith("They are signed with hfs_")
    made = json.loads(said_at_the_start(settings, "--json"))
    assert (made["listening"], made["url"], made["secret"][:4]) == (True, URL, "hfs_")


def test_a_secret_that_was_given_is_not_printed(settings: dict[str, str]) -> None:
    said = said_at_the_start(settings, "--secret", GIVEN)
    assert said.splitlines()[1:] == ["They are signed with the secret that was given."]
    said = said_at_the_start(settings | {"HOLDFAST_SECRET": GIVEN}, "--json")
    assert json.loads(said) == {"listening": True, "url": URL, "secret": None}


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://127.0.0.1/", "The URL must begin with https://, as in https://erp.example.com/hooks, or"),
        ("http://127.0.0.1/\udcff", "The URL must not have spaces, backslashes or invisible characters."),
    ],
)
def test_a_url_that_cannot_be_is_wrong_usage(url: str, sentence: str) -> None:
    said = run_refused({}, 2, "listen", "--forward-to", url)
    assert f"Invalid value for '--forward-to': {sentence}" in said
