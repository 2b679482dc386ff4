"""A hold that is over takes no place and starts the wait, even when nobody has released it yet."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import states
from tests.support.background_work import stopped_worker
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit
from tests.support.installation import Installation, client_at, opened
from tests.support.problems import problem
from tests.support.server import serving
from tests.support.sql import Sql

LIMIT = 4
SETTINGS = {"HOLDFAST_HOLDS_PER_ADDRESS": str(LIMIT), "HOLDFAST_HOLDS_PER_VISITOR": "2"}
COOKIE = "holdfast_visitor=0123456789abcdef"
STILL_HELD = "select count(*) from unit where project_id = $1 and status = 'held'"

_addresses = itertools.count(1)


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str
) -> Iterator[Installation]:
    """Two processes that share one limit, and no background work."""
    folder = tmp_path_factory.mktemp("lapsed-limits")
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url, **SETTINGS}
    with (
        serving(folder, settings, "--processes", "2") as server,
        opened(server.address, module_postgres_url) as running,
        stopped_worker(server, running.sql),
    ):
        yield running


@pytest.fixture(scope="module")
def sql(installation: Installation) -> Sql:
    return installation.sql


@pytest.fixture
def buyer(installation: Installation) -> Iterator[Buyer]:
    """From an address that nobody has come from yet."""
    with client_at(installation.address, f"127.0.1.{next(_addresses)}") as http:
        yield Buyer(http)


def hold_until_they_lapse(buyer: Buyer, units: list[Unit], sql: Sql) -> list[Hold]:
    holds = [buyer.hold(unit) for unit in units]
    states.wait_until(sql, holds[-1].ends)
    assert sql.value(STILL_HELD, units[0].project.id) == len(units)
    return holds


def test_lapsed_holds_make_room_for_as_many(installation: Installation, buyer: Buyer, sql: Sql) -> None:
    hold_until_they_lapse(buyer, installation.units(LIMIT, hold_seconds=0.3), sql)
    fresh = [buyer.ask(unit).status_code for unit in installation.units(LIMIT + 1)]
    assert fresh == [201] * LIMIT + [429]


def test_the_limit_is_exact_when_all_ask_at_once(installation: Installation, buyer: Buyer, sql: Sql) -> None:
    hold_until_they_lapse(buyer, installation.units(LIMIT, hold_seconds=0.3), sql)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(buyer.ask, installation.units(20)))
    assert sorted(answer.status_code for answer in answers) == [201] * LIMIT + [429] * (20 - LIMIT)


def test_one_that_has_lapsed_makes_room_for_one(installation: Installation, buyer: Buyer, sql: Sql) -> None:
    long = installation.units(LIMIT)
    for unit in long[1:]:
        buyer.hold(unit)
    hold_until_they_lapse(buyer, installation.units(1, hold_seconds=0.02), sql)
    assert [buyer.ask(unit).status_code for unit in (long[0], *installation.units(1))] == [201, 429]


@pytest.mark.parametrize("known_by", ["cookie", "token"])
def test_the_wait_begins_at_the_end(
    installation: Installation, buyer: Buyer, sql: Sql, known_by: str
) -> None:
    visitor = Buyer(buyer.http, {"Cookie": COOKIE} if known_by == "cookie" else {})
    (unit,) = installation.units(1, hold_seconds=0.02)
    (lapsed,) = hold_until_they_lapse(visitor, [unit], sql)
    response = visitor.ask(unit, token=lapsed.token if known_by == "token" else None)
    assert problem(response, 429)["type"] == "/problems/held-too-recently"
    assert buyer.ask(unit).status_code == 201
