"""What all commands have in common: how they are called, and how they find their database."""

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from holdfast.cli import main
from holdfast.storage import schema
from holdfast.storage.embedded.server import EmbeddedPostgres, running_postmaster
from tests.docs.documents import OPERATIONS, block_beginning
from tests.support.clusters import NEWEST, Cluster
from tests.support.commands import finish, finish_process, refused, run, run_for_json, run_refused
from tests.support.server import HOLDFAST, environment
from tests.support.sql import Sql, blank_database

URL = "http://127.0.0.1:9/hook"
SIGNED = ("--timestamp", "1", "--signature", "x")
NOT_UTF8 = "\udcff"
WRONG_USAGE: list[tuple[str, ...]] = [
    ("unknown",),
    ("serve", "--port", "65536"),
    ("serve", "--processes", "0"),
    ("serve", "--host", NOT_UTF8),
    ("key", "add", "--name", "x", "--scope", "everything"),
    ("key", "add", "--name", "x", "--expires", "0"),
    ("key", "add", "--name", "x", "--project", NOT_UTF8),
    ("key", "revoke", "not-an-id"),
    ("staff", "add", "a@b.example", "--role", "owner"),
    ("staff", "add", NOT_UTF8, "--role", "sales"),
    ("staff", "add", "a@b.example", "--role", "sales", "--name", NOT_UTF8),
    ("endpoint", "add", URL, "--event", "ping"),
    ("endpoint", "add", URL, "--max-in-flight", "0"),
    ("endpoint", "add", URL, "--description", "x" * 501),
    ("endpoint", "add", URL, "--description", NOT_UTF8),
    ("endpoint", "add", URL, "--project", "tower", "--project", NOT_UTF8),
    ("delivery", "show", "not-an-id"),
    ("delivery", "list", "--status", "lost"),
    ("delivery", "list", "--event", "unit.gone"),
    ("delivery", "list", "--unit-code", " A"),
    ("delivery", "list", "--limit", "0"),
    ("delivery", "list", "--cursor", "here"),
    ("delivery", "list", "--cursor", ""),
    ("verify", "--secret", "s", "--signature", "sha256=0"),
    ("verify", "--secret", "s", "--timestamp", "1"),
    ("verify", "--secret", "", *SIGNED),
    ("verify", "--secret", NOT_UTF8, *SIGNED),
    ("verify", "--secret", "s", *SIGNED, "/no/such/file"),
    ("listen", "--forward-to", URL, "--event", "unit.gone"),
    ("listen", "--forward-to", URL, "--secret", NOT_UTF8),
    ("simulate", "--buyers", "0"),
    ("simulate", "--pace", "0"),
    ("simulate", "--seed", "-1"),
    ("simulate", "--url", "ftp://example.com"),
    ("simulate", "--url", "http://"),
    ("simulate", "--url", "http://["),
    ("simulate", "--key", "ü"),
    ("simulate", "--key", "two words\n"),
    ("simulate", "--project", NOT_UTF8),
]


USES_A_DATABASE: list[tuple[str, ...]] = [
    ("project", "add", "tower", "--name", "The Tower"),
    ("key", "add", "--name", "x"),
    ("staff", "add", "a@b.example", "--role", "sales"),
    ("endpoint", "add", URL),
    ("endpoint", "reencrypt"),
    ("delivery", "list"),
    ("backup", "a.backup"),
    ("listen", "--forward-to", URL),
]
NEEDS_A_PROCESS = [("work",), ("serve", "--port", "0", "--no-migrate")]


@pytest.fixture
def blank(cluster_of: Callable[[int], Cluster]) -> Iterator[Sql]:
    with blank_database(cluster_of(NEWEST).url) as url, Sql(url) as sql:
        yield sql


@pytest.mark.parametrize("arguments", WRONG_USAGE, ids=range(len(WRONG_USAGE)))
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    assert "Error: " in run_refused({}, 2, *arguments)


@pytest.mark.parametrize("command", ["verify", "listen"])
def test_a_secret_of_the_environment_that_is_not_utf_8_is_wrong_usage(command: str) -> None:
    arguments = {"verify": SIGNED, "listen": ("--forward-to", URL)}[command]
    assert "it is not UTF-8." in run_refused({"HOLDFAST_SECRET": NOT_UTF8}, 2, command, *arguments)


@pytest.mark.parametrize("command", ["serve", "work", "migrate"])
def test_every_command_explains_itself(command: str) -> None:
    assert f"Usage: holdfast {command} " in run({}, command, "--help")
    assert "--json" in run({}, command, "--help")
    assert command in run({}, "--help")


COMPLETED = r"""
COMP_WORDS=(holdfast ""); COMP_CWORD=1; $(complete -p holdfast | grep -o '_[a-z_]*completion') {holdfast}
echo ${{COMPREPLY[*]}}
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_the_commands_once_it_has_the_line_of_the_documents() -> None:
    line = block_beginning(OPERATIONS, "sh", "eval").replace(".venv/bin/holdfast", str(HOLDFAST))
    script = line + COMPLETED.format(holdfast=HOLDFAST)
    done = subprocess.run(["bash", "-c", script], env=environment({}), capture_output=True, text=True)
    assert done.stdout.split() == main.list_commands(click.Context(main))


ERRORS: list[tuple[int, tuple[str, ...]]] = [
    (2, ("unknown",)),
    (2, ("--unknown",)),
    (2, ("key", "add")),
    (2, ("key", "list", "--data", "/nonexistent/data")),
    (1, ("restore", "/nonexistent/backup")),
    (1, ("verify", "--secret", "s", *SIGNED)),
]


@pytest.mark.parametrize(("exit_code", "arguments"), ERRORS, ids=range(len(ERRORS)))
def test_with_json_an_error_is_an_object_on_stderr(exit_code: int, arguments: tuple[str, ...]) -> None:
    plain, as_json = finish({}, *arguments), finish({}, *arguments, "--json")
    assert (plain.returncode, as_json.returncode) == (exit_code, exit_code)
    (line,) = as_json.stderr.splitlines()
    told = json.loads(line)
    assert list(told) == ["error"]
    assert told["error"] in " ".join(plain.stderr.split())


def test_a_command_that_is_interrupted_says_so_as_json_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://holdfast@127.0.0.1:{silent.getsockname()[1]}/holdfast"
        process = subprocess.Popen(
            [HOLDFAST, "project", "list", "--json"],
            env=environment({"HOLDFAST_DATABASE_URL": url}),
            stderr=subprocess.PIPE,
            text=True,
        )
        # It has connected, and waits for an answer.
        accepted, _ = silent.accept()
        with accepted:
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
    assert (process.returncode, json.loads(told)) == (1, {"error": "Stopped."})


@pytest.mark.parametrize(
    "group",
    [
        "project",
        *(pytest.param(group, marks=pytest.mark.slow) for group in ("key", "staff", "endpoint", "delivery")),
    ],
)
def test_the_process_prints_what_the_command_says(settings: dict[str, str], group: str) -> None:
    done = finish_process(settings, group, "list", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == run_for_json(settings, group, "list")


def test_migrate_makes_the_embedded_database_and_each_command_starts_and_stops_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    run({}, "migrate", "--data", str(data))
    done = finish_process({}, "project", "add", "tower", "--name", "The Tower", "--data", str(data), "--json")
    assert running_postmaster(data / "postgres") is None
    listed = run_for_json({"HOLDFAST_DATA_DIR": str(data)}, "project", "list")
    assert listed == {"projects": [json.loads(done.stdout)]}


@pytest.mark.parametrize("arguments", [*USES_A_DATABASE, *NEEDS_A_PROCESS], ids=" ".join)
def test_in_the_wrong_folder_a_command_says_so_and_creates_nothing(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = finish_process if arguments in NEEDS_A_PROCESS else finish
    own_keys = {"HOLDFAST_ENCRYPTION_KEYS": ""}
    told = refused(runner(own_keys, *arguments, "--data", str(tmp_path / "data")), 2)
    assert told.startswith(f"holdfast: There is no database in {tmp_path / 'data'}. Name yours with --data, ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [*USES_A_DATABASE, *NEEDS_A_PROCESS[1:]], ids=" ".join)
def test_a_command_changes_neither_an_empty_database_nor_an_older_schema(
    arguments: tuple[str, ...], blank: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a backup takes an older schema, as it is."""
    monkeypatch.chdir(tmp_path)
    runner = finish_process if arguments in NEEDS_A_PROCESS else finish
    settings = {"HOLDFAST_DATABASE_URL": blank.url}
    assert "no schema of Holdfast" in refused(runner(settings, *arguments), 2)
    assert blank.value("select count(*) from pg_tables where schemaname = 'public'") == 0
    blank.execute(
        "create table alembic_version (version_num text); insert into alembic_version values ('0012')"
    )
    if arguments[0] != "backup":
        told = refused(runner(settings, *arguments), 2)
        assert f"has the schema 0012, and this release works with {schema.OLDEST_READY} to" in told
        assert blank.value("select version_num from alembic_version") == "0012"


def test_a_data_directory_and_a_database_service_are_not_named_together(settings: dict[str, str]) -> None:
    told = run_refused(settings, 2, "key", "list", "--data", "data")
    assert "--data names an embedded database, and HOLDFAST_DATABASE_URL a service" in told


def test_migrate_says_what_it_did_and_leaves_a_running_database_alone(tmp_path: Path) -> None:
    settings, server = {"HOLDFAST_DATA_DIR": str(tmp_path)}, EmbeddedPostgres(tmp_path)
    server.start()
    try:
        revisions = ["0012", "0013", "0014", "0015", "0016", "0017", "0017.1"]
        assert run_for_json(settings, "migrate") == {"applied": revisions, "revision": "0017.1"}
        assert run_for_json(settings, "migrate") == {"applied": [], "revision": "0017.1"}
        assert "up to date" in run({}, "migrate", "--data", str(tmp_path))
        assert running_postmaster(server.cluster) is not None
        done = finish_process(settings | {"HOLDFAST_COLOUR": "blue"}, "migrate", "--json")
        assert done.returncode == 0
        assert "ignoring unknown settings: HOLDFAST_COLOUR" in done.stderr.splitlines()
    finally:
        server.stop()


@pytest.mark.parametrize("command", ["serve", "work", "migrate"])
def test_a_misspelt_setting_is_one_sentence(command: str, tmp_path: Path) -> None:
    settings = {"HOLDFAST_HOLD_SECOND": "60"}
    told = refused(finish_process(settings, command, "--data", str(tmp_path / "data")))
    assert told == "holdfast: HOLDFAST_HOLD_SECOND is not a setting; did you mean HOLDFAST_HOLD_SECONDS?\n"
    assert not (tmp_path / "data").exists()


def test_a_wrong_setting_or_a_database_that_is_away_is_one_sentence() -> None:
    told = refused(finish_process({"HOLDFAST_DATABASE_URL": "mysql://h"}, "key", "list"))
    assert told.startswith("holdfast: HOLDFAST_DATABASE_URL is 'mysql://h', but must be ")
    assert told.count("\n") == 1
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        url = f"postgresql://u@127.0.0.1:{nobody_listens.getsockname()[1]}/db"
        told = run_refused({"HOLDFAST_DATABASE_URL": url}, 1, "project", "list")
    assert "database cannot be reached" in told
    assert told.count("\n") == 1
