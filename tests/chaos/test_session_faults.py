"""The faults of sessions and clients, on one database that nothing else happens to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from tests.chaos.clients import SETTINGS, Clients
from tests.chaos.faults import Injection
from tests.chaos.history import History, read
from tests.chaos.scene import Scene
from tests.chaos.session_faults import KINDS
from tests.support.clusters import Cluster
from tests.support.server import serving
from tests.support.sql import Sql, with_database

TRIES = 5


class Databases:
    """Gives the URLs of one server."""

    def __init__(self, cluster: Cluster) -> None:
        self._superuser = with_database(cluster.url, "chaos")
        with Sql(cluster.url) as sql:
            sql.execute("create role seller login")
            sql.execute("create database chaos owner seller")
            sql.execute("alter database chaos set holdfast.application_role = ''")

    def url(self, *, superuser: bool = False) -> str:
        return self._superuser if superuser else self._superuser.replace(self._login(), "seller")

    def _login(self) -> str:
        return self._superuser.split("//")[1].split("@")[0]


@contextmanager
def a_scene(folder: Path) -> Iterator[Scene]:
    with (
        Cluster(folder / "postgres", max_connections="60") as cluster,
        History(folder / "history.jsonl") as history,
    ):
        cluster.allow_tcp()
        databases = Databases(cluster)
        settings = {**SETTINGS, "HOLDFAST_DATABASE_URL": databases.url(), "HOLDFAST_HOLD_SECONDS": "2"}
        with serving(folder / "one", settings) as one, serving(folder / "two", settings) as two:
            clients = Clients([one.address, two.address], databases.url(), {}, history, seed=7)
            others: Any = None
            yield Scene(folder, history, cast("Any", databases), others, others, others, clients)


async def run_all(scene: Scene) -> dict[str, str]:
    """What was seen of each, one after the other, while the clients go on."""
    await scene.clients.prepare()
    running = asyncio.create_task(scene.clients.run())
    numbers, seen = count(), dict[str, str]()
    for kind in KINDS:
        # Whether a client comes by in the right moment is a matter of chance.
        for number in islice(numbers, TRIES):
            injection = Injection(kind, number, 0, kind.seconds[0], Random(number))
            await kind.run(scene, injection)
            seen[kind.name] = injection.effect
            if injection.effect:
                break
    scene.clients.stop()
    await running
    return seen


@pytest.mark.slow
def test_each_fault_is_seen_and_the_clients_go_on(tmp_path: Path) -> None:
    with a_scene(tmp_path) as scene:
        seen = asyncio.run(run_all(scene))
        with Sql(scene.pair.url(superuser=True)) as sql:
            assert sql.value("select count(*) from pg_locks where not granted") == 0
            assert sql.value("select count(*) from unit where code like 'cut-%'") == 0
    assert [name for name, effect in seen.items() if not effect] == []
    counts = scene.clients.counts
    assert counts["unknown"] < counts["ok"]
    assert [record for record in read(scene.history.path) if record["kind"] == "stale"] == []
