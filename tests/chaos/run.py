"""One run: set up the deployment, run the plan under load, wait until it has settled, and check."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from pathlib import Path
from random import Random

import asyncpg
import httpx
import psutil

from holdfast.storage.embedded.server import using_embedded
from holdfast.storage.errors import EmbeddedPostgresError
from tests.chaos import checker, state
from tests.chaos.clients import SETTINGS as OF_CLIENTS
from tests.chaos.clients import Clients
from tests.chaos.faults import Injection
from tests.chaos.history import History, read
from tests.chaos.network import Network
from tests.chaos.postgres import UNREACHABLE, Pair
from tests.chaos.receivers import Receivers
from tests.chaos.report import Result
from tests.chaos.scene import Scene
from tests.chaos.servers import CHILDREN, METRICS_TOKEN, Servers
from tests.chaos.state import FinalState
from tests.support.client import NO_TLS
from tests.support.server import HOLDFAST, environment

HOLD_SECONDS, LEASE_SECONDS = 5, 3
SETTINGS = {
    **OF_CLIENTS,
    "HOLDFAST_HOLD_SECONDS": str(HOLD_SECONDS),
    "HOLDFAST_RETRY_FIRST_GAP_SECONDS": "0.2",
    "HOLDFAST_ATTEMPT_TIMEOUT_SECONDS": "1",
    "HOLDFAST_LEASE_SECONDS": str(LEASE_SECONDS),
    "HOLDFAST_SESSION_IDLE_MINUTES": "600",
}
SETTLED_WITHIN_SECONDS, LOAD_AFTER_SECONDS, RESTORE_SECONDS = 60.0, 1.0, 60.0
UNSETTLED = """
    select
        (select count(*) from pending_delivery) as pending,
        (select count(*) from in_flight) as "in flight",
        (select count(*) from event where position is null) as "not in the feed",
        (select count(*) from unit where status = 'held') as held
"""
QUEUE_BUCKET = re.compile(r'^holdfast_write_queue_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)

Progress = Callable[[str], None]


class Samples:
    """What the processes of Holdfast use, once a second."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._ports = {link.port for link in scene.network.app.values()}
        headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
        self._http = httpx.AsyncClient(headers=headers, timeout=2, verify=NO_TLS)

    async def run(self) -> None:
        async with self._http:
            while True:
                await self._note()
                await asyncio.sleep(1)

    async def _note(self) -> None:
        connections, rss = await asyncio.to_thread(self._look)
        waiting = [await self._waiting(address) for address in self._scene.servers.addresses]
        self._scene.history.note("sample", connections=connections, rss=rss, waiting=max(waiting))

    def _look(self) -> tuple[int, dict[str, int]]:
        connections, rss = 0, {}
        for server in self._scene.servers.all:
            with suppress(psutil.Error):
                for name, process in server.processes().items():
                    with suppress(psutil.Error):
                        rss[name] = process.memory_info().rss
                        connections += sum(
                            found.status == psutil.CONN_ESTABLISHED and found.raddr.port in self._ports
                            for found in process.net_connections("tcp")
                            if found.raddr
                        )
        return connections, rss

    async def _waiting(self, address: str) -> float:
        """Return how many writes have waited in the web process at most: 0 while it does not answer."""
        with suppress(httpx.HTTPError):
            answer = await self._http.get(f"{address}/metrics")
            buckets = QUEUE_BUCKET.findall(answer.text)
            return next((float(least) for least, count in buckets if count == buckets[-1][1]), 0.0)
        return 0.0


async def run_plan(
    plan: Sequence[Injection],
    seed: int,
    folder: Path,
    progress: Progress,
    settings: Mapping[str, str],
    postgres_settings: Mapping[str, str],
) -> Result:
    """Run it in the folder, which has the history, the final state and the logs afterwards."""
    began_at = time.time()
    with History(folder / "history.jsonl") as history:
        async with deployed(folder, seed, history, progress, settings, postgres_settings) as scene:
            errors = await _run_under_load(scene, plan, progress)
            progress("The faults are over; waiting until everything has settled")
            await _settle(scene, max((one.ended_at for one in plan), default=began_at))
            await scene.clients.read_feeds_to_the_end()
            secrets = {one["id"]: one["secret"] for one in scene.clients.endpoints.values()}
            final = await state.read_state(scene.pair.url(superuser=True), secrets)
            final.save(folder / "state.json")
            number, restored = await _restore_last_backup(scene)
    progress("Checking")
    limits = checker.Limits(connections=checker.CONNECTIONS)
    faults = checker.check(read(history.path), final, limits)
    if isinstance(restored, str):
        faults["I1"].append(restored)
    elif restored is not None:
        begun_at = plan[number - 1].begun_at
        faults["I1"] += checker.backup_faults(restored, final, read(history.path), begun_at)
    return Result.of(seed, plan, history, faults, errors, began_at)


@asynccontextmanager
async def deployed(
    folder: Path,
    seed: int,
    history: History,
    progress: Progress,
    settings: Mapping[str, str],
    postgres_settings: Mapping[str, str],
) -> AsyncIterator[Scene]:
    network, receivers = Network(), Receivers(folder, Random(seed))
    pair = Pair(folder, network.replication_ports, postgres_settings)
    sockets = {name: node.socket for name, node in pair.nodes.items()}
    async with network.running(sockets), receivers.running(history):
        ports = ",".join(str(network.app[name].port) for name in pair.nodes)
        hosts = ",".join("127.0.0.1" for _ in pair.nodes)
        url = f"postgresql://holdfast@/holdfast?host={hosts}&port={ports}"
        own = {**SETTINGS, "HOLDFAST_DATABASE_URL": url, **settings}
        servers = Servers(folder, own, receivers.serve_prefix)
        try:
            progress("Starting PostgreSQL with a synchronous standby")
            await asyncio.to_thread(pair.start)
            progress("Starting two installations of Holdfast")
            await servers.start()
            clients = Clients(
                servers.addresses,
                pair.url(),
                {name: receivers.url(name) for name in receivers.receivers},
                history,
                seed,
            )
            await clients.prepare()
            # A power loss without fsync would leave no database at all.
            await asyncio.to_thread(pair.flush)
            yield Scene(folder, history, pair, network, servers, receivers, clients)
        finally:
            ending = asyncio.create_task(_tear_down(servers, pair))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending
                raise


async def _tear_down(servers: Servers, pair: Pair) -> None:
    try:
        await servers.stop()
    finally:
        await asyncio.to_thread(pair.stop)


async def _run_under_load(scene: Scene, plan: Sequence[Injection], progress: Progress) -> list[str]:
    """Return what went wrong with the harness itself."""
    errors: list[str] = []
    load = asyncio.create_task(scene.clients.run())
    sampling = asyncio.create_task(Samples(scene).run())
    began_at = time.monotonic()
    lanes = groupby(sorted(plan, key=lambda one: (one.kind.lane, one.at)), lambda one: one.kind.lane)
    running = [
        asyncio.create_task(_run_lane(scene, list(own), began_at, progress, errors)) for _, own in lanes
    ]
    try:
        await asyncio.gather(*running)
        await asyncio.sleep(LOAD_AFTER_SECONDS)
        scene.clients.stop()
        await load
    finally:
        for task in (*running, load, sampling):
            task.cancel()
        ended = await asyncio.gather(*running, load, sampling, return_exceptions=True)
    return errors + [f"{one!r}" for one in ended if isinstance(one, Exception)]


async def _run_lane(
    scene: Scene, injections: Sequence[Injection], began_at: float, progress: Progress, errors: list[str]
) -> None:
    for injection in injections:
        await asyncio.sleep(max(0.0, began_at + injection.at - time.monotonic()))
        progress(f"{_counts(scene)}; {injection.kind.name}")
        record = {"number": injection.number, "fault": injection.kind.name, "lane": injection.kind.lane}
        injection.begun_at = scene.history.note("fault", **record, phase="begun")
        try:
            await injection.kind.run(scene, injection)
        except Exception as failure:  # noqa: BLE001 - the other faults go on; the run fails for it
            errors.append(f"{injection.kind.name} at {injection.at} s: {failure!r}")
            progress(f"The harness failed: {errors[-1]}")
        if injection.effect:
            scene.history.note("fault", **record, phase="seen", effect=injection.effect)
        injection.ended_at = scene.history.note("fault", **record, phase="ended")


def _counts(scene: Scene) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in scene.clients.counts.items())


async def _settle(scene: Scene, since: float) -> None:
    """Wait until every event has its place, every delivery and every hold its end, and all servers are ready.

    ``since``: when the last fault ended; the load goes on for a little after it.
    """
    left = await _look_for_unsettled(scene)
    while any(left.values()) and time.time() < since + SETTLED_WITHIN_SECONDS:
        await asyncio.sleep(0.3)
        left = await _look_for_unsettled(scene)
    seconds = None if any(left.values()) else round(time.time() - since, 1)
    scene.history.note("settled", seconds=seconds, left=left)


async def _look_for_unsettled(scene: Scene) -> dict[str, int]:
    left = {"servers not ready": 0, "databases away": 1}
    async with httpx.AsyncClient(timeout=5, verify=NO_TLS) as http:
        for server in scene.servers.all:
            ready = False
            with suppress(httpx.HTTPError):
                ready = (await http.get(f"{server.address}/readyz")).status_code == 200
            left["servers not ready"] += not (ready and all(server.child(kind) for kind in CHILDREN))
    with suppress(*UNREACHABLE):
        connection = await asyncpg.connect(scene.pair.url(superuser=True), timeout=5)
        try:
            rows = await connection.fetch(UNSETTLED, timeout=10)
            left |= {**rows[0], "databases away": 0}
        finally:
            await connection.close()
    return left


async def _restore_last_backup(scene: Scene) -> tuple[int, FinalState | str | None]:
    """Return the number of the last backup that was made during the faults, and what it has or why not."""
    backups = sorted((scene.folder / "backups").glob("[!.]*"), key=lambda path: path.stat().st_mtime)
    if not backups:
        return 0, None
    number, data = int(backups[-1].stem), scene.folder / "restored"
    process = await asyncio.create_subprocess_exec(
        *(str(HOLDFAST), "restore", str(backups[-1])),
        env=environment({"HOLDFAST_DATA_DIR": str(data)}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(RESTORE_SECONDS):
            output, _ = await process.communicate()
        if process.returncode != 0:
            return number, f"backup {number} could not be restored: {output.decode()[-300:]}"
        with using_embedded(data, owner=True) as url:
            return number, await state.read_state(url, {})
    except (TimeoutError, EmbeddedPostgresError) as failure:
        return number, f"backup {number} could not be restored: {failure!r}"
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        shutil.rmtree(data, ignore_errors=True)
