"""More to do than there is time or memory for: 503 before anything is stored, and callers who have left."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx
import pytest
from starlette.applications import Starlette

from holdfast.domain.errors import SchemaNotCurrent
from holdfast.operations import write_path
from holdfast.operations.units import Units
from holdfast.server.http_protocol import HttpProtocol
from holdfast.web.api.integration import units
from tests.server.connecting import Serving, Streams, serving
from tests.support import exact_json
from tests.support.bodies import minimal
from tests.support.client import JSON, Project, with_body
from tests.support.delivery_engine import eventually
from tests.support.in_process import app_with, context_of
from tests.support.keys import Keys
from tests.support.problems import problem
from tests.support.projects import add_project
from tests.support.sql import Sql, connected

LIMIT = 100_000
UNIT = exact_json.write(minimal())
WAITS = "select from pg_locks where not granted and relation = 'unit'::regclass"


class Scene(NamedTuple):
    url: str
    key: str
    project: Project
    app: Starlette


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Sql(postgres_url) as sql:
        key, project = Keys(sql, postgres_url).issue(), add_project(sql)
        yield Scene(postgres_url, key.text, project, app_with(database_url=postgres_url))


@asynccontextmanager
async def served(scene: Scene) -> AsyncIterator[tuple[Serving, httpx.AsyncClient]]:
    async with serving(scene.app) as server:
        base, headers = "http://{}:{}".format(*server._address), {"Authorization": f"Bearer {scene.key}"}
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=60) as http:
            yield server, http


async def send(server: Serving, scene: Scene, path: str, *lines: str, body: str) -> Streams:
    """On a connection of its own, without a wait for the response."""
    streams = await server.connect()
    head = [f"PUT {path} HTTP/1.1", "Host: h", f"Authorization: Bearer {scene.key}", f"Content-Type: {JSON}"]
    streams[1].write("\r\n".join([*head, *lines, "", body]).encode())
    return streams


async def test_a_caller_who_leaves_while_the_command_waits_changes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_path, "CALLER_CHECKED_AFTER_SECONDS", 0.0)
    url, length = scene.project.units_url, f"Content-Length: {len(UNIT)}"
    async with connected(scene.url) as other, served(scene) as (server, http):
        waiting = context_of(scene.app).services.units._write_path._waiting
        connections = server.server.server_state.connections
        async with other.transaction():
            await other.execute("lock table unit in exclusive mode")
            begun = asyncio.create_task(http.put(f"{url}/begun", **with_body(UNIT)))
            await eventually(lambda: other.fetch(WAITS))
            _, leaving = await send(server, scene, f"{url}/left", length, body=UNIT)
            await eventually(lambda: len(waiting) == 1)
            there, _ = await send(server, scene, f"{url}/there", length, body=UNIT)
            await eventually(lambda: len(waiting) == 2)
            leaving.close()
            await eventually(lambda: len(connections) == 2)
        assert (await begun).status_code == 201
        async with asyncio.timeout(60):
            assert b" 201 " in await there.readline()
        assert [row["code"] for row in await other.fetch("select code from unit order by code")] == [
            "begun",
            "there",
        ]


async def test_a_full_queue_is_a_503_that_does_not_name_the_same_time_to_all(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_path, "MAX_WAITING", 0)
    url = scene.project.units_url
    async with served(scene) as (_, http):
        refused = [await http.put(f"{url}/A-1", **with_body(minimal())) for _ in range(30)]
        assert {problem(one, 503)["type"] for one in refused} == {"/problems/overloaded"}
        times = {int(one.headers["retry-after"]) for one in refused}
        assert len(times) > 1
        assert times <= {1, 2, 3, 4}
        assert (await http.get(f"{url}/A-1")).status_code == 404
        assert (await http.put(url, **with_body([minimal(code="A-1")]))).json()["counts"]["created"] == 1


async def test_bulk_bodies_take_limited_memory_and_give_it_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "BULK_MEMORY_LIMIT", LIMIT)
    url, sizes, one = scene.project.units_url, units._body_sizes, [minimal(code="A-1")]
    async with served(scene) as (server, http):
        # It has announced all that there is, and sent a little of it: that keeps nobody out.
        _, announced = await send(server, scene, url, f"Content-Length: {LIMIT}", body="[")
        await eventually(lambda: list(sizes.values()) == [1])
        assert (await http.put(url, **with_body(one))).status_code == 200
        announced.write(b" " * (LIMIT - 10))
        await eventually(lambda: sum(sizes.values()) == LIMIT - 9)
        refused = await http.put(url, **with_body(one))
        assert problem(refused, 503)["type"] == "/problems/overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        # What cannot fit is refused before it has come.
        early, _ = await send(server, scene, url, "Content-Length: 10", body="[")
        async with asyncio.timeout(60):
            assert b" 503 " in await early.readline()
        assert (await http.put(f"{url}/B-1", **with_body(minimal()))).status_code == 201
        announced.close()
        await eventually(lambda: not sizes)
        # In chunks: the size is not known before.
        chunks = await send(
            server, scene, url, "Transfer-Encoding: chunked", body=f"{LIMIT:x}\r\n{' ' * LIMIT}\r\n"
        )
        await eventually(lambda: sum(sizes.values()) == LIMIT)
        chunks[1].write(b"1\r\n \r\n")
        async with asyncio.timeout(60):
            assert b" 503 " in await chunks[0].readline()
        assert (await http.put(url, **with_body("["))).status_code == 400
        assert (await http.put(f"{url}?dryRun=what", **with_body(one))).status_code == 422
        assert (await http.put(url, **with_body(one))).json()["counts"]["unchanged"] == 1
        await eventually(lambda: not sizes)


@pytest.mark.parametrize(("failure", "status"), [(SchemaNotCurrent(), 503), (LookupError("a bug"), 500)])
async def test_a_bulk_body_that_fails_gives_its_memory_back_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, failure: Exception, status: int
) -> None:
    """Not when garbage is collected, which is seldom."""

    async def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(Units, "write_many", fail)
    gc.disable()
    try:
        async with served(scene) as (_, http):
            answer = await http.put(scene.project.units_url, **with_body([minimal(code="A-1")]))
            assert (answer.status_code, dict(units._body_sizes)) == (status, {})
    finally:
        gc.enable()


async def test_a_client_that_does_not_read_the_report_keeps_no_memory_from_others(scene: Scene) -> None:
    body = "[" + ",".join("0" * 40_000) + "]"
    async with served(scene) as (server, _):
        await send(server, scene, scene.project.units_url, f"Content-Length: {len(body)}", body=body)
        connections = server.server.server_state.connections
        await eventually(
            lambda: any(isinstance(one, HttpProtocol) and one.flow.write_paused for one in connections)
        )
        assert not units._body_sizes
