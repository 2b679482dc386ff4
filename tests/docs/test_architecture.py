"""The diagrams of architecture.md say what the code says, and a real PUT executes the walk-through."""

import asyncio
import re
import socket
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType

import asyncpg
import grimp
import httpx
import pytest

import holdfast
from holdfast.domain import delivery
from holdfast.domain.api_key import Scope
from holdfast.domain.delivery import DeliveryStatus, Outcome, Progress, Schedule, decide_after_attempt
from holdfast.operations import api_keys
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import ConnectionCounts, WebServer
from holdfast.settings import Settings
from holdfast.storage.database import Database
from holdfast.web.app import create_app
from holdfast.webhooks import connection
from holdfast.wiring import run_background_work
from tests.docs.documents import ARCHITECTURE, ROOT, blocks
from tests.support.delivery_engine import eventually, replying
from tests.support.receivers import receiving
from tests.support.server import WEBHOOKS

ARROW = re.compile(r"^(\S+) +── (.+?) ─*► (\w+)$")
STEP = re.compile(r"^  ([\w/]+\.py) +([\w.<>]+)", re.MULTILINE)
FILES = re.compile(r"executes code in at most (\d+) files")
STATUS_AFTER = {
    Outcome.DELIVERED: DeliveryStatus.DELIVERED,
    Outcome.RETRY: DeliveryStatus.PENDING,
    Outcome.FAILED: DeliveryStatus.FAILED,
}
PACKAGE = f"{Path(holdfast.__file__).parent}/"
BACKGROUND = f"{PACKAGE}background/"
UNIT = {"type": "Studio", "areaSqm": 40, "priceSar": 400000}
# Nothing is cached at first.
STATUSES = ("available", "unavailable", *("available", "unavailable") * 3)
WARM = 2

Calls = set[tuple[str, str]]
"""Files and functions."""


def diagram(marker: str) -> str:
    start = ARCHITECTURE.read_text().index(f"<!-- {marker} -->")
    return next(block.text for block in blocks(ARCHITECTURE) if block.start > start)


def test_the_layers_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["type"] == "layers")
    enforced = [
        {name.strip().removeprefix("holdfast.") for name in layer.split("|")} for layer in contract["layers"]
    ]
    shown = [set(re.split(r" {2,}", line)[0].split(", ")) for line in diagram("layers").splitlines()]
    assert shown == enforced


def test_no_module_imports_itself_through_others() -> None:
    """Neither at run time nor for types."""
    graph = grimp.build_graph("holdfast", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()


def test_the_life_of_a_delivery_is_that_of_the_code() -> None:
    arrows = [ARROW.fullmatch(line) for line in diagram("delivery").splitlines()]
    shown = {(arrow[1], arrow[2]): arrow[3] for arrow in arrows if arrow}
    assert len(shown) == len(arrows)
    assert {source for source, _ in shown} | set(shown.values()) == {"(new)", *DeliveryStatus}
    for label, succeeded, tried in (
        ("2xx", True, 0),
        ("failure, attempts left", False, 0),
        ("failure, last attempt", False, 7),
    ):
        decided = decide_after_attempt(Progress(1, tried, tried), succeeded, Schedule(attempts=8))
        assert shown["pending", label] == STATUS_AFTER[decided.outcome]
    for label, reason in (
        ("endpoint removed", delivery.ENDPOINT_REMOVED),
        ("event unselected", delivery.EVENT_UNSELECTED),
    ):
        assert reason.endswith(".")
        assert shown["pending", label] == DeliveryStatus.CANCELLED
    ended = {source for (source, label), target in shown.items() if (label, target) == ("resend", "pending")}
    assert ended == set(DeliveryStatus) - {DeliveryStatus.PENDING}


async def test_a_put_and_its_delivery_execute_every_step_of_the_walk_through_in_few_files(
    postgres_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a key would be looked up and the receiver connected to anew for each PUT.
    monkeypatch.setattr(api_keys, "CACHED_SECONDS", 3600)
    monkeypatch.setattr(connection, "LONGEST_IDLE_SECONDS", 3600)
    monkeypatch.setattr(connection, "LONGEST_LIFE_SECONDS", 3600)
    scopes = (Scope.INTEGRATION, Scope.ADMIN)
    key = (await api_keys.issue(database, api_keys.NewApiKey("tests", scopes))).text
    settings = Settings.from_environment({"HOLDFAST_DATABASE_URL": postgres_url, **WEBHOOKS})
    async with (
        receiving(replying(lambda _: 204)) as receiver,
        _serving(settings) as address,
        httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
    ):
        project = {"slug": "traced", "name": "Traced"}
        (await http.post("/v1/backoffice/projects", json=project)).raise_for_status()
        (await http.post("/v1/backoffice/endpoints", json={"url": receiver.url})).raise_for_status()
        sql = await asyncpg.connect(postgres_url)
        traces = [await _trace_put(http, sql, status) for status in STATUSES]
        await sql.close()
    calls = min(traces[WARM:], key=lambda calls: len({path for path, _ in calls}))
    (at_most,) = FILES.findall(" ".join(ARCHITECTURE.read_text().split()))
    files = {path for path, _ in calls}
    assert len(files) <= int(at_most), sorted(files)
    steps = STEP.findall(diagram("put"))
    assert len(steps) > 20
    assert [step for step in steps if step not in calls] == []


async def _trace_put(http: httpx.AsyncClient, sql: asyncpg.Connection, status: str) -> Calls:
    """Each function that runs for one PUT and its delivery, with its file."""

    async def is_recorded() -> bool:
        return not await sql.fetchval("select exists (select from pending_delivery)")

    with _traced() as found:
        path = "/v1/integration/projects/traced/units/A-1"
        (await http.put(path, json={**UNIT, "status": status})).raise_for_status()
        await eventually(is_recorded)
    return found


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
