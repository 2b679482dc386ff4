"""64 writers on 8 units lose no update: over two servers on one database, and a control that does."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import pytest

from holdfast.operations.units import PatchUnit, Units
from holdfast.storage import units as units_storage
from holdfast.storage.database import Database
from tests.support import exact_json, states
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client, put_array
from tests.support.projects import add_project
from tests.support.server import RunningServer
from tests.support.sql import Sql

UNITS = [f"A-{number}" for number in range(8)]
ROUNDS = 12
AS_FOUND = "unit.turn = written.found_turn"
# One writer a field: a write made from a stale row puts back what another writer had changed.
FIELDS: dict[str, Callable[[int], object]] = {
    "type": lambda turn: f"type {turn}",
    "areaSqm": lambda turn: turn + 1,
    "priceSar": lambda turn: turn,
    "vatRate": lambda turn: turn,
    "depositPercent": lambda turn: turn,
    "bedrooms": lambda turn: turn,
    "deliveryYear": lambda turn: 2000 + turn,
    "description": lambda turn: f"turn {turn}",
}
TURNS = range(1, ROUNDS + 1)


def start_body() -> dict[str, object]:
    return {"type": "type 0", "areaSqm": 1} | {name: value(0) for name, value in FIELDS.items()}


@dataclass(frozen=True)
class Writers:
    """Threads, 64 of them unless told otherwise, each with a connection of its own, that begin together."""

    addresses: list[str]
    key: str
    project: Project

    def run(self, work: Callable[[Unit, int], None], per_unit: int = 8) -> None:
        together = threading.Barrier(len(UNITS) * per_unit)
        places = [(code, number) for code in UNITS for number in range(per_unit)]
        with ThreadPoolExecutor(len(places)) as pool:
            for done in [pool.submit(self._write, work, code, number, together) for code, number in places]:
                done.result()

    def _write(
        self, work: Callable[[Unit, int], None], code: str, number: int, together: threading.Barrier
    ) -> None:
        with integration_client(self.addresses[number % 2], self.key) as http:
            http.get("/healthz")
            together.wait()
            work(Unit(http, self.project, code), number)


@pytest.fixture
def writers(addresses: list[str], api_key: str, sql: Sql) -> Writers:
    return Writers(addresses, api_key, add_project(sql))


@pytest.fixture
def units(writers: Writers) -> Iterator[list[Unit]]:
    """The eight units, to be looked at when the writers are done."""
    with integration_client(writers.addresses[0], writers.key) as http:
        found = [Unit(http, writers.project, code) for code in UNITS]
        for unit in found:
            unit.create(start_body())
        yield found


def test_writers_of_different_fields_undo_nothing_of_each_other(
    writers: Writers, units: list[Unit], sql: Sql
) -> None:
    def patch_own_field(unit: Unit, number: int) -> None:
        name = list(FIELDS)[number]
        for turn in TURNS:
            answer = unit.patch({name: FIELDS[name](turn)})
            assert answer.status_code == 200, answer.text
            assert exact_json.read(answer.text)[name] == FIELDS[name](turn)

    writers.run(patch_own_field)
    for unit in units:
        stored = unit.read()
        assert {name: stored[name] for name in FIELDS} == {
            name: value(ROUNDS) for name, value in FIELDS.items()
        }
        assert states.version(sql, unit) == 1 + 8 * ROUNDS


def test_writers_that_add_one_on_condition_add_up(writers: Writers, units: list[Unit], sql: Sql) -> None:
    def add_one(unit: Unit, _: int) -> None:
        for _ in range(3):
            while True:
                seen = unit.get()
                price = exact_json.read(seen.text)["priceSar"] + 1
                answer = unit.patch({"priceSar": price}, If_Match=seen.headers["etag"])
                if answer.status_code == 200:
                    break
                assert answer.status_code == 412, answer.text

    writers.run(add_one)
    assert [unit.read()["priceSar"] for unit in units] == [8 * 3] * len(UNITS)
    assert {states.version(sql, unit) for unit in units} == {1 + 8 * 3}


def test_one_code_created_by_many_at_once_is_created_once(writers: Writers) -> None:
    created: list[int] = []

    def create(unit: Unit, number: int) -> None:
        created.append(unit.put(minimal(priceSar=Decimal(number))).status_code)

    writers.run(create)
    assert sorted(created) == [200] * 56 + [201] * 8


def test_bulk_calls_in_opposite_order_create_every_unit_once(writers: Writers) -> None:
    codes = [f"B-{number:03}" for number in range(300)]
    created: list[int] = []

    def put_all(unit: Unit, number: int) -> None:
        ordered = codes if UNITS.index(unit.code) % 2 else codes[::-1]
        answer = put_array(unit.http, unit.project, [minimal(code=code) for code in ordered])
        counts = answer.json()["counts"]
        assert (answer.status_code, counts["refused"]) == (200, 0)
        created.append(counts["created"])

    writers.run(put_all, per_unit=2)
    assert sum(created) == len(codes)


async def versions_lost(database_url: str, project: Project, codes: list[str]) -> int:
    """Changes that were acknowledged to two writing processes and are not there, in this process.

    Each inventory has its own connections and its own batches, as each server process has.
    """
    async with Database(database_url) as one, Database(database_url) as other:
        inventories = [Units(one), Units(other)]
        acknowledged = 0
        for turn in TURNS:
            writes = [
                inventory.write(
                    PatchUnit((UUID(project.id), code), {"price_sar": Decimal(10 * turn + number)})
                )
                for code in codes
                for number, inventory in enumerate(inventories)
            ]
            acknowledged += sum(written.changed for written in await asyncio.gather(*writes))
        stored = [await inventories[0].find(project.slug, code) for code in codes]
        for inventory in inventories:
            await inventory.close()
    return acknowledged - sum(unit.version - 1 for unit, _ in stored)


@pytest.fixture
def project_of_eight(sql: Sql, real_server: RunningServer, api_key: str) -> Project:
    project = add_project(sql)
    with integration_client(real_server.address, api_key) as http:
        for code in UNITS:
            Unit(http, project, code).create(minimal())
    return project


def test_the_write_path_loses_nothing_with_its_lock(
    sql: Sql, database_url: str, project_of_eight: Project
) -> None:
    assert sql.run(versions_lost(database_url, project_of_eight, UNITS)) == 0


def test_the_write_path_loses_updates_without_its_lock(
    sql: Sql, database_url: str, project_of_eight: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: what the tests above look for does happen as soon as the lock is taken out.

    Two things hold a unit: the comparison with the version that was found, and the row lock behind it.
    """
    monkeypatch.setattr(units_storage, "_LOAD_LOCKED", units_storage._LOAD)
    for name in ("_UPDATE", "_UPDATE_STATE"):
        guarded = getattr(units_storage, name)
        assert all(AS_FOUND in text for text in guarded)
        unguarded = type(guarded)(*(text.replace(AS_FOUND, "true") for text in guarded))
        monkeypatch.setattr(units_storage, name, unguarded)
    assert sql.run(versions_lost(database_url, project_of_eight, UNITS)) > 0
