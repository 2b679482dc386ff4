"""The walk-through of a PUT in architecture.md is what a real PUT and its delivery execute."""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType

import asyncpg
import httpx
import pytest

from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import ConnectionCounts, WebServer
from holdfast.settings import Settings
from holdfast.web.app import create_app
from holdfast.wiring import run_background_work
from tests.docs.documents import ARCHITECTURE, ROOT
from tests.docs.test_architecture import STEP, diagram
from tests.support import commands
from tests.support.delivery_engine import eventually, replying
from tests.support.receivers import receiving
from tests.support.server import WEBHOOKS

PACKAGE = f"{ROOT / 'src' / 'holdfast'}/"
BACKGROUND = f"{PACKAGE}background/"
FILES = re.compile(r"executes code in at most (\d+) files")
UNIT = "/v1/integration/projects/traced/units/A-1"
FIELDS = {"type": "Studio", "areaSqm": 40, "priceSar": 400000}

WRITES = 3

Calls = set[tuple[str, str]]


@pytest.fixture
async def calls(postgres_url: str) -> Calls:
    """Each function that runs for one PUT and its delivery, with its file."""
    environment = {"HOLDFAST_DATABASE_URL": postgres_url, **WEBHOOKS}
    commands.run(environment, "project", "add", "traced", "--name", "Traced")
    key = commands.run_for_json(environment, "key", "add", "--name", "tests")["key"]
    async with receiving(replying(lambda _: 204)) as receiver:
        commands.run(environment, "endpoint", "add", receiver.url)
        async with _serving(Settings.from_environment(environment)) as address, _sql(postgres_url) as sql:
            http = httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key}"})
            async with http:
                traces = [
                    await _trace_put(http, sql, status)
                    for status in ("available", *("unavailable", "available") * WRITES)
                ]
    # Caches and idle connections time out on a busy machine; the smallest trace found all of them warm.
    return min(traces[2:], key=lambda calls: len({path for path, _ in calls}))


async def _trace_put(http: httpx.AsyncClient, sql: asyncpg.Connection, status: str) -> Calls:
    with _traced() as found:
        (await http.put(UNIT, json={**FIELDS, "status": status})).raise_for_status()
        await eventually(lambda: _all_recorded(sql))
    return found


async def test_a_put_and_its_delivery_run_through_few_files(calls: Calls) -> None:
    (at_most,) = FILES.findall(" ".join(ARCHITECTURE.read_text().split()))
    files = {path for path, _ in calls}
    assert len(files) <= int(at_most), sorted(files)


async def test_every_step_of_the_walk_through_is_executed(calls: Calls) -> None:
    steps = STEP.findall(diagram("put"))
    assert len(steps) > 20
    assert [step for step in steps if step not in calls] == []


class _Server(WebServer):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to pytest."""
        yield


@asynccontextmanager
async def _serving(settings: Settings) -> AsyncIterator[str]:
    """The web process and the background process of ``serve``, in the loop of this test."""
    app = create_app(settings)
    HttpProtocol.counts = ConnectionCounts(settings.connections_per_address, settings.trusted_proxies)
    server, stop = _Server(app, app.state.stopping.set, 1, HttpProtocol), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            group.create_task(run_background_work(settings, stop))
            await eventually(lambda: server.started)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True
            stop.set()


@asynccontextmanager
async def _sql(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def _all_recorded(sql: asyncpg.Connection) -> bool:
    return not await sql.fetchval("select exists (select from pending_delivery)")


@contextmanager
def _traced() -> Iterator[Calls]:
    found: Calls = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE) and not _is_of_a_loop(frame):
            path = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
            found.add((path, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def _is_of_a_loop(frame: FrameType | None) -> bool:
    """Whether a background loop makes the call: these run at any time, whatever is written."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(BACKGROUND):
            return True
        frame = frame.f_back
    return False
