"""`holdfast simulate`, against a real server."""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from holdfast.simulation.plans import Behavior, plan_buyers
from tests.cli.simulating import ALL_SCOPES, OWN_KEYS, project_on_sale
from tests.support import states
from tests.support.client import Project, Unit, integration_client
from tests.support.commands import COMMAND_SECONDS, run_for_json
from tests.support.feed import Feed
from tests.support.keys import Keys
from tests.support.server import HOLDFAST, RunningServer, environment
from tests.support.sql import Sql

FAST = ("--pace", "60")
KEPT_SHORT = (
    "select bool_and(expires_at < clock_timestamp() + interval '1 hour') from api_key where name = $1"
)
STATUSES = "select status, count(*) from unit where project_id = $1 group by status"
EVENTS = "select type, count(*) from event where project_id = $1 group by type"


@pytest.fixture(scope="module")
def settings(database_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": database_url}


@pytest.fixture(scope="module")
def http(real_server: RunningServer, keys: Keys) -> Iterator[httpx.Client]:
    with integration_client(real_server.address, keys.issue(scopes=ALL_SCOPES).text) as client:
        yield client


@pytest.fixture
def project(http: httpx.Client, sql: Sql) -> Project:
    return project_on_sale(http, sql, 30)


def seed_with(behavior: Behavior, buyers: int) -> str:
    plays = (seed for seed in range(100) if behavior in {plan.behavior for plan in plan_buyers(buyers, seed)})
    return str(next(plays))


def counted(sql: Sql, statement: str, project: Project) -> dict[str, int]:
    return {row[next(iter(row))]: row["count"] for row in sql.rows(statement, project.id)}


def test_it_ends_by_itself_and_its_numbers_are_those_of_the_server(
    real_server: RunningServer, settings: dict[str, str], http: httpx.Client, sql: Sql, project: Project
) -> None:
    arguments = ("--buyers", "12", "--seed", "1", "--url", real_server.address, "--project", project.slug)
    told = run_for_json(settings, "simulate", *arguments, *FAST)
    assert (told["ended"], told["failure"], told["brokenPromises"]) == ("finished", None, [])
    assert told["holds"] == told["unitsChecked"] + _held_again(told, sql, project)
    listed = http.get("/v1/backoffice/bookings", params={"project": project.slug, "limit": 100}).json()
    assert Counter(booking["status"] for booking in listed["bookings"]) == told["bookings"]
    assert len(listed["bookings"]) == told["holds"]
    units, events = counted(sql, STATUSES, project), counted(sql, EVENTS, project)
    assert units["sold"] == told["sales"] == events["unit.sold"] == told["bookings"]["sold"]
    assert set(units) == {"available", "sold"}
    assert events["unit.reserved"] == told["sales"] + told["withdrawn"]
    assert all(row["revoked_at"] is not None for row in sql.rows(OWN_KEYS))
    assert sql.value(KEPT_SHORT, "holdfast simulate")
    assert len(Feed(http).of(project)) == sum(events.values())


def _held_again(told: dict[str, Any], sql: Sql, project: Project) -> int:
    codes = "select count(distinct unit_id) from booking where project_id = $1"
    return int(told["holds"] - sql.value(codes, project.id))


def test_buyers_who_come_together_race(
    real_server: RunningServer, settings: dict[str, str], project: Project
) -> None:
    arguments = ("--buyers", "16", "--seed", "2", "--url", real_server.address, "--project", project.slug)
    told = run_for_json(settings, "simulate", *arguments, *FAST)
    assert told["racesLost"] == told["refusals"]["not-available"] > 0


def test_a_short_hold_is_left_to_lapse(
    real_server: RunningServer, settings: dict[str, str], http: httpx.Client, sql: Sql, project: Project
) -> None:
    states.settle(sql, Unit(http, project, "A-00"), holdSeconds=1.5)
    seed = seed_with(Behavior.WALKS_AWAY, 4)
    arguments = ("--buyers", "4", "--seed", seed, "--url", real_server.address, "--project", project.slug)
    told = run_for_json(settings, "simulate", *arguments, "--pace", "100")
    assert told["lapsed"] == told["bookings"]["lapsed"] > 0
    assert counted(sql, STATUSES, project).get("held") is None


def test_a_fifth_of_what_is_on_sale_is_never_bought(
    real_server: RunningServer, settings: dict[str, str], http: httpx.Client, sql: Sql
) -> None:
    small = project_on_sale(http, sql, 5)
    arguments = ("--buyers", "20", "--seed", "3", "--url", real_server.address, "--project", small.slug)
    told = run_for_json(settings, "simulate", *arguments, *FAST)
    assert told["leftWithoutUnit"] > 0
    assert counted(sql, STATUSES, small)["available"] >= 1


def test_a_key_that_was_given_is_used_and_not_revoked(
    real_server: RunningServer, keys: Keys, http: httpx.Client, sql: Sql, project: Project
) -> None:
    """By HTTP alone: no database is named."""
    key = keys.issue(scopes=ALL_SCOPES, projects=[project.slug])
    elsewhere = {"HOLDFAST_DATA_DIR": "/nonexistent/data", "HOLDFAST_KEY": key.text}
    before = len(sql.rows(OWN_KEYS))
    told = run_for_json(elsewhere, "simulate", "--buyers", "2", "--url", real_server.address, *FAST)
    assert told["project"] == project.slug
    assert len(sql.rows(OWN_KEYS)) == before
    assert sql.value("select revoked_at from api_key where id = $1", key.id) is None


def started(settings: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [HOLDFAST, "simulate", *arguments],
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_it_gets_the_totals_and_leaves_no_hold_and_no_key(
    real_server: RunningServer, settings: dict[str, str], sql: Sql, project: Project, number: signal.Signals
) -> None:
    arguments = ("--buyers", "30", "--seed", "1", "--url", real_server.address, "--project", project.slug)
    issued_before = len(sql.rows(OWN_KEYS))
    process = started(settings, *arguments, "--pace", "5")
    assert process.stdout is not None
    opening = process.stdout.readline()
    assert opening.startswith(f"30 buyers come to {project.name}, where 30 units are available")
    next(line for line in process.stdout if "  holds " in line)
    process.send_signal(number)
    said, complaints = process.communicate(timeout=COMMAND_SECONDS)
    assert (process.returncode, complaints) == (0, "")
    lines = said.splitlines()
    assert any(line.startswith("Stopped after ") for line in lines)
    assert lines[-1].startswith("No unit was held twice")
    assert counted(sql, STATUSES, project).get("held") is None
    assert [row["revoked_at"] is None for row in sql.rows(OWN_KEYS)][issued_before:] == [False]
