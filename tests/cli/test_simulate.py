"""`holdfast simulate`, against a real server."""

import asyncio
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from holdfast.simulation.plans import Behavior, plan_buyers
from holdfast.storage import schema
from holdfast.storage.database import Database
from tests.support import exact_json
from tests.support.backoffice import Desk
from tests.support.bodies import full
from tests.support.client import JSON, Project, Unit, integration_client
from tests.support.commands import run, run_for_json, run_refused
from tests.support.feed import Feed
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import PATIENCE_SECONDS, RunningServer, started
from tests.support.sql import Sql

ALL_SCOPES = ("integration", "backoffice", "payments")
NO_DATABASE = {"HOLDFAST_DATA_DIR": "/nonexistent/data"}
OWN_KEYS = """
    select revoked_at is null as valid, expires_at < clock_timestamp() + interval '1 hour' as soon_over
    from api_key where name = 'holdfast simulate' order by created_at
"""
STATUSES = "select status, count(*) from unit where project_id = $1 group by status"
EVENTS = "select type, count(*) from event where project_id = $1 group by type"


@pytest.fixture
def settings(database_url: str) -> dict[str, str]:
    """On the database of the server."""
    return {"HOLDFAST_DATABASE_URL": database_url}


@pytest.fixture(scope="module")
def http(real_server: RunningServer, keys: Keys) -> Iterator[httpx.Client]:
    with integration_client(real_server.address, keys.issue(scopes=ALL_SCOPES).text) as client:
        yield client


def project_on_sale(http: httpx.Client, sql: Sql, count: int) -> Project:
    project = add_project(sql)
    units = [
        full(code=f"A-{number:02}", priceSar=500_000 + 10_000 * number, bedrooms=number % 4)
        for number in range(count)
    ]
    stored = http.put(project.units_url, content=exact_json.write(units), headers={"Content-Type": JSON})
    assert stored.json()["counts"]["created"] == count
    return project


def command_for(http: httpx.Client, project: Project, buyers: int, seed: int) -> tuple[str, ...]:
    names = ("--buyers", "--seed", "--url", "--project")
    values = (str(buyers), str(seed), str(http.base_url), project.slug)
    return ("simulate", *(word for pair in zip(names, values, strict=True) for word in pair))


def counted(sql: Sql, statement: str, project: Project) -> dict[str, int]:
    return {row[next(iter(row))]: row["count"] for row in sql.rows(statement, project.id)}


def test_it_ends_by_itself_and_its_numbers_are_those_of_the_server(
    settings: dict[str, str], http: httpx.Client, sql: Sql
) -> None:
    project = project_on_sale(http, sql, 30)
    told = run_for_json(settings, *command_for(http, project, 16, 2), "--pace", "60")
    assert (told["ended"], told["failure"], told["brokenPromises"]) == ("finished", None, [])
    # Those who come together race.
    assert told["racesLost"] == told["refusals"]["not-available"] > 0
    held = sql.value("select count(distinct unit_id) from booking where project_id = $1", project.id)
    assert told["unitsChecked"] == held
    listed = http.get("/v1/backoffice/bookings", params={"project": project.slug, "limit": 100}).json()
    assert Counter(booking["status"] for booking in listed["bookings"]) == told["bookings"]
    assert len(listed["bookings"]) == told["holds"]
    units, events = counted(sql, STATUSES, project), counted(sql, EVENTS, project)
    assert units["sold"] == told["sales"] == events["unit.sold"] == told["bookings"]["sold"]
    assert set(units) == {"available", "sold"}
    assert events["unit.reserved"] == told["sales"] + told["withdrawn"]
    assert sql.rows(OWN_KEYS)[-1] == {"valid": False, "soon_over": True}
    assert len(Feed(http).of(project)) == sum(events.values())


def test_a_fifth_of_what_is_on_sale_is_never_bought(
    settings: dict[str, str], http: httpx.Client, sql: Sql
) -> None:
    small = project_on_sale(http, sql, 5)
    told = run_for_json(settings, *command_for(http, small, 20, 3), "--pace", "100")
    assert told["leftWithoutUnit"] > 0
    assert counted(sql, STATUSES, small)["available"] >= 1


def test_a_short_hold_is_left_to_lapse(settings: dict[str, str], http: httpx.Client, sql: Sql) -> None:
    project = project_on_sale(http, sql, 10)
    Desk(http).settle(project, holdSeconds=1.5)
    seed = next(
        seed for seed in range(100) if Behavior.WALKS_AWAY in {plan.behavior for plan in plan_buyers(4, seed)}
    )
    told = run_for_json(settings, *command_for(http, project, 4, seed), "--pace", "100")
    assert told["lapsed"] == told["bookings"]["lapsed"] > 0
    assert "held" not in counted(sql, STATUSES, project)


def test_a_key_that_was_given_is_used_and_not_revoked(keys: Keys, http: httpx.Client, sql: Sql) -> None:
    """By HTTP alone: no database is named."""
    project = project_on_sale(http, sql, 10)
    key = keys.issue(scopes=ALL_SCOPES, projects=[project.slug])
    before = len(sql.rows(OWN_KEYS))
    command = ("simulate", "--buyers", "2", "--url", str(http.base_url), "--pace", "60")
    told = run_for_json(NO_DATABASE | {"HOLDFAST_KEY": key.text}, *command)
    assert told["project"] == project.slug
    assert len(sql.rows(OWN_KEYS)) == before
    assert sql.value("select revoked_at from api_key where id = $1", key.id) is None


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_whoever_stops_it_gets_the_totals_and_leaves_no_hold_and_no_key(
    settings: dict[str, str], http: httpx.Client, sql: Sql, number: signal.Signals
) -> None:
    project = project_on_sale(http, sql, 30)
    issued_before = len(sql.rows(OWN_KEYS))
    with started(settings, *command_for(http, project, 30, 1), "--pace", "5") as process:
        assert process.stdout is not None
        opening = process.stdout.readline()
        assert opening.startswith(f"30 buyers come to {project.name}, where 30 units are available")
        next(line for line in process.stdout if "  holds " in line)
        process.send_signal(number)
        lines = process.stdout.read().splitlines()
        assert process.stderr is not None
        assert (process.wait(PATIENCE_SECONDS), process.stderr.read()) == (0, "")
    assert any(line.startswith("Stopped after ") for line in lines)
    assert lines[-1].startswith("No unit was held twice")
    assert "held" not in counted(sql, STATUSES, project)
    assert [row["valid"] for row in sql.rows(OWN_KEYS)][issued_before:] == [False]


def test_too_little_for_sale_or_no_such_project_is_one_sentence(
    settings: dict[str, str], http: httpx.Client, keys: Keys, sql: Sql
) -> None:
    small, empty = project_on_sale(http, sql, 5), add_project(sql)
    for number in range(4):
        Desk(http).held(Unit(http, small, f"A-{number:02}"))
    sentences = {
        small.slug: f"Too few units are for sale in {small.slug}: 1 of 5 units, and 1 always stay available.",
        empty.slug: f"No units are for sale in {empty.slug}.",
        "no-such-tower": "The key has no access to a project no-such-tower.",
    }
    at_server = ("simulate", "--url", str(http.base_url))
    for slug, sentence in sentences.items():
        assert run_refused(settings, 1, *at_server, "--project", slug) == f"holdfast: {sentence}\n"
    key = keys.issue(scopes=ALL_SCOPES, projects=[empty.slug]).text
    assert run_refused({}, 1, *at_server, "--key", key) == (
        "holdfast: No project has enough units for sale:"
        " a fifth of the units on sale always stays available.\n"
    )


def test_nobody_or_another_program_listens_there() -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody_listens.getsockname()[1]}"
        said = run_refused({}, 1, "simulate", "--url", url, "--key", "hfk_x")
    assert said == f"holdfast: Nothing answers at {url}; is `holdfast serve` running there?\n"
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        said = run_refused({}, 1, "simulate", "--url", url, "--key", "hfk_x")
        other.shutdown()
    assert said.endswith(f"holdfast: The server at {url} is not Holdfast.\n")


def test_a_key_that_is_refused_or_opens_too_little_is_one_sentence(
    http: httpx.Client, keys: Keys, sql: Sql
) -> None:
    project, command = project_on_sale(http, sql, 5), ("simulate", "--url", str(http.base_url), "--key")
    said = run_refused({}, 1, *command, "hfk_x")
    assert said.endswith(" refuses the key: it is unknown, revoked or expired.\n")
    for scope, missing in (("backoffice", "integration API"), ("integration", "back office")):
        key = keys.issue(scopes=[scope], projects=[project.slug]).text
        assert run_refused({}, 1, *command, key) == (
            f"holdfast: The key has no access to the {missing}."
            " It needs the scopes integration and backoffice.\n"
        )


def test_without_a_key_and_a_database_there_is_none_to_issue(real_server: RunningServer) -> None:
    for arguments in ((), ("--url", real_server.address)):
        said = run_refused(NO_DATABASE, 2, "simulate", *arguments)
        assert said.startswith(
            "holdfast: There is no database in /nonexistent/data. Name yours with --data, "
        )
    assert "it needs the server's database" in " ".join(run({}, "simulate", "--help").split())


def test_the_key_of_another_database_is_explained(real_server: RunningServer, postgres_url: str) -> None:
    """And without --url it goes where `serve` last was."""

    async def note() -> None:
        async with Database(postgres_url) as database:
            await database.write(schema.record_start, is_demo=False, public_url=real_server.address)

    asyncio.run(note())
    said = run_refused({"HOLDFAST_DATABASE_URL": postgres_url}, 1, "simulate")
    assert said.startswith(f"holdfast: The server at {real_server.address} refuses the key")
    assert said.endswith("Pass one of its keys with --key.\n")
    with Sql(postgres_url) as sql:
        assert [row["valid"] for row in sql.rows(OWN_KEYS)] == [False]
