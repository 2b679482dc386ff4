"""How a command finds its database, and what it says when it cannot."""

import socket
from pathlib import Path

import pytest

from holdfast.storage.embedded.server import EmbeddedPostgres, running_postmaster
from tests.cli.refused import run_refused
from tests.support.commands import finish, run, run_for_json


def test_a_command_makes_the_embedded_database_and_stops_it_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    added = run_for_json({}, "project", "add", "tower", "--name", "The Tower", "--data", str(data))
    assert running_postmaster(data / "postgres") is None
    assert run_for_json({"HOLDFAST_DATA_DIR": str(data)}, "project", "list") == {"projects": [added]}


def test_a_command_leaves_a_running_database_alone(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path)
    server.start()
    try:
        run({}, "project", "list", "--data", str(tmp_path))
        assert running_postmaster(server.cluster) is not None
    finally:
        server.stop()


def test_migrate_tells_what_it_did(tmp_path: Path) -> None:
    settings = {"HOLDFAST_DATA_DIR": str(tmp_path)}
    assert run_for_json(settings, "migrate") == {
        "applied": ["0012", "0013", "0014", "0015"],
        "revision": "0015",
    }
    assert run_for_json(settings, "migrate") == {"applied": [], "revision": "0015"}
    assert "up to date" in run(settings, "migrate")


def test_a_wrong_setting_is_one_sentence(tmp_path: Path) -> None:
    told = run_refused({"HOLDFAST_DATABASE_URL": "mysql://h"}, 1, "key", "list")
    assert told.startswith("holdfast: HOLDFAST_DATABASE_URL is 'mysql://h', but must be ")
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", ["serve", "work", "migrate"])
def test_a_misspelt_setting_is_one_sentence(command: str, tmp_path: Path) -> None:
    told = run_refused({"HOLDFAST_HOLD_SECOND": "60"}, 1, command, "--data", str(tmp_path / "data"))
    assert told == "holdfast: HOLDFAST_HOLD_SECOND is not a setting; did you mean HOLDFAST_HOLD_SECONDS?\n"
    assert not (tmp_path / "data").exists()


def test_an_unknown_setting_is_warned_of_and_does_not_stop_a_command(tmp_path: Path) -> None:
    done = finish({"HOLDFAST_COLOUR": "blue", "HOLDFAST_DATA_DIR": str(tmp_path)}, "migrate", "--json")
    assert done.returncode == 0
    assert "ignoring unknown settings: HOLDFAST_COLOUR" in done.stderr.splitlines()


def test_a_database_that_is_away_is_one_sentence() -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        url = f"postgresql://u@127.0.0.1:{nobody_listens.getsockname()[1]}/db"
        told = run_refused({"HOLDFAST_DATABASE_URL": url}, 1, "project", "list")
    assert "database cannot be reached" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "command", [(), ("serve",), ("work",), ("migrate",), ("project", "add"), ("key", "add")]
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    assert "Usage: holdfast" in run({}, *command, "--help")


@pytest.mark.parametrize("command", ["serve", "work", "migrate"])
def test_every_command_takes_json(command: str) -> None:
    assert "--json" in run({}, command, "--help")
