"""`holdfast simulate`, where nothing can be played: one sentence each."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.operations.health import record_start
from holdfast.storage.database import Database
from tests.cli.refused import run_refused
from tests.cli.simulating import ALL_SCOPES, OWN_KEYS, project_on_sale
from tests.support import states
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import RunningServer
from tests.support.sql import Sql


@pytest.fixture(scope="module")
def settings(database_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": database_url}


@pytest.fixture(scope="module")
def http(real_server: RunningServer, keys: Keys) -> Iterator[httpx.Client]:
    with integration_client(real_server.address, keys.issue(scopes=ALL_SCOPES).text) as client:
        yield client


@pytest.fixture
def project(http: httpx.Client, sql: Sql) -> Project:
    return project_on_sale(http, sql, 5)


def test_too_little_for_sale(
    real_server: RunningServer, settings: dict[str, str], http: httpx.Client, sql: Sql
) -> None:
    small = project_on_sale(http, sql, 5)
    for number in range(4):
        states.hold(sql, Unit(http, small, f"A-{number:02}"))
    said = run_refused(settings, 1, "simulate", "--url", real_server.address, "--project", small.slug)
    few = f"Too little is for sale in {small.slug}: 1 of 5 units, and 1 always stay available."
    assert said == f"holdfast: {few}\n"


def test_nothing_listens_there() -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody_listens.getsockname()[1]}"
        said = run_refused({}, 1, "simulate", "--url", url, "--key", "hfk_x")
    assert said == f"holdfast: Nothing answers at {url}; is `holdfast serve` running there?\n"


def test_another_program_listens_there() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        said = run_refused({}, 1, "simulate", "--url", url, "--key", "hfk_x")
        other.shutdown()
    assert said == f"holdfast: What answers at {url} is no Holdfast.\n"


def test_a_key_that_is_refused(real_server: RunningServer) -> None:
    said = run_refused({}, 1, "simulate", "--url", real_server.address, "--key", "hfk_x")
    assert said == (
        f"holdfast: The Holdfast at {real_server.address} refuses the key: "
        "it is unknown, revoked or expired.\n"
    )


@pytest.mark.parametrize(
    ("scopes", "sentence"),
    [
        (("backoffice",), "This key may not do what the ERP does."),
        (("integration",), "This key may not do what staff do."),
    ],
)
def test_a_key_that_opens_too_little(
    real_server: RunningServer, keys: Keys, project: Project, scopes: tuple[str, ...], sentence: str
) -> None:
    key = keys.issue(scopes=scopes, projects=[project.slug]).text
    said = run_refused({}, 1, "simulate", "--url", real_server.address, "--key", key)
    assert said == f"holdfast: {sentence} It takes the scopes integration and backoffice.\n"


def test_a_project_that_is_not_there(real_server: RunningServer, settings: dict[str, str]) -> None:
    said = run_refused(settings, 1, "simulate", "--url", real_server.address, "--project", "no-such-tower")
    assert said == "holdfast: There is no project no-such-tower that this key opens.\n"


def test_nothing_for_sale(real_server: RunningServer, settings: dict[str, str], keys: Keys, sql: Sql) -> None:
    empty = add_project(sql)
    said = run_refused(settings, 1, "simulate", "--url", real_server.address, "--project", empty.slug)
    assert said == f"holdfast: Nothing is for sale in {empty.slug}.\n"
    key = keys.issue(scopes=ALL_SCOPES, projects=[empty.slug]).text
    said = run_refused({}, 1, "simulate", "--url", real_server.address, "--key", key)
    assert said == (
        "holdfast: No project has enough units for sale: a fifth of what is on sale is never bought.\n"
    )


def test_without_a_key_and_a_database(real_server: RunningServer) -> None:
    nowhere = {"HOLDFAST_DATA_DIR": "/nonexistent/data"}
    sentence = (
        "holdfast: There is no database in /nonexistent/data to issue a key in."
        " Name its folder by --data, or give a --key.\n"
    )
    assert run_refused(nowhere, 1, "simulate") == sentence
    assert run_refused(nowhere, 1, "simulate", "--url", real_server.address) == sentence


def test_the_key_of_another_database_is_explained(
    real_server: RunningServer, module_postgres_url: str
) -> None:
    """And without --url it goes where `serve` last was."""

    async def note() -> None:
        async with Database(module_postgres_url) as database:
            await record_start(database, real_server.address, is_demo=False)

    asyncio.run(note())
    said = run_refused({"HOLDFAST_DATABASE_URL": module_postgres_url}, 1, "simulate")
    assert said.startswith(f"holdfast: The Holdfast at {real_server.address} refuses the key")
    assert said.endswith("give one of its own by --key.\n")
    with Sql(module_postgres_url) as sql:
        assert [row["revoked_at"] is None for row in sql.rows(OWN_KEYS)] == [False]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--buyers", "0"),
        ("--pace", "0"),
        ("--seed", "-1"),
        ("--url", "ftp://example.com"),
        ("--url", "http://"),
        ("--key", "ü"),
        ("--key", "two words\n"),
        ("--project", "\udcff"),
    ],
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(main, ["simulate", *arguments])
    assert refused.exit_code == 2
    assert f"Invalid value for '{arguments[0]}'" in refused.output
