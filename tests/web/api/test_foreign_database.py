"""A database that its operators have set up in their own way."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import commands, states
from tests.support.app import running_app
from tests.support.bodies import full
from tests.support.client import Unit, integration_client
from tests.support.clusters import NEWEST, Cluster
from tests.support.projects import add_project
from tests.support.sql import Sql

HABITS = {
    "timezone": "'Asia/Riyadh'",
    "datestyle": "'German, DMY'",
    "intervalstyle": "'sql_standard'",
    "default_transaction_isolation": "'repeatable read'",
    "extra_float_digits": "-15",
    "bytea_output": "'escape'",
    "statement_timeout": "'60s'",
}


@pytest.fixture(scope="module")
def foreign_url(cluster_of: Callable[[int], Cluster]) -> str:
    url = cluster_of(NEWEST).new_database()
    name = url.split("?")[0].rsplit("/", 1)[1]
    with Sql(url) as sql:
        for setting, value in HABITS.items():
            sql.execute(f"alter database {name} set {setting} = {value}")
    return url


@pytest.fixture(scope="module")
def foreign(foreign_url: str) -> Iterator[Unit]:
    settings = {"HOLDFAST_DATABASE_URL": foreign_url}
    key = commands.run_for_json(settings, "key", "add", "--name", "foreign")["key"]
    with (
        Sql(foreign_url) as sql,
        running_app(settings) as server,
        integration_client(server.address, key) as http,
    ):
        yield Unit(http, add_project(sql), "A-101")


def test_a_unit_is_the_same_there(foreign: Unit, unit: Unit, foreign_url: str) -> None:
    here, there = unit.create(full()), foreign.create(full())
    assert {name: there[name] for name in full()} == {name: here[name] for name in full()}
    # Both were made within this minute or two, so a time zone taken for UTC would show.
    assert there["createdAt"][:13] in (here["createdAt"][:13], foreign.read()["updatedAt"][:13])
    assert foreign.http.get(foreign.project.units_url).json()["units"] == [foreign.get().json()]
    with Sql(foreign_url) as sql:
        ended_at = states.hold_and_let_lapse(sql, foreign)
    assert foreign.read()["updatedAt"] == ended_at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    assert foreign.patch({"status": "unavailable"}).status_code == 200


def test_writers_do_not_trip_over_each_other_there(foreign: Unit) -> None:
    foreign.put(full())

    def write(number: int) -> set[int]:
        return {foreign.patch({"priceSar": 100 * number + turn}).status_code for turn in range(20)}

    with ThreadPoolExecutor(16) as pool:
        assert set().union(*pool.map(write, range(16))) == {200}
