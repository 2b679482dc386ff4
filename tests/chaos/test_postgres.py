"""The databases of a chaos run: what they keep, and whether each fault is seen and healed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import pytest

from tests.chaos.database_faults import KINDS
from tests.chaos.disk import Disk, DiskFailed
from tests.chaos.faults import Injection
from tests.chaos.history import History
from tests.chaos.postgres import UNREACHABLE, Node, Pair
from tests.chaos.scene import Scene
from tests.support.relay import Relay

NEED_NETWORK = {"the standby is promoted", "the replication link is cut"}

pytestmark = pytest.mark.usefixtures("able_machine")


def test_what_is_not_mounted_is_not_touched(tmp_path: Path) -> None:
    """The folder would be on a disk of this machine."""
    disk = Disk(tmp_path / "image", tmp_path / "disk")
    disk.folder.mkdir()
    for harm in (disk.lose_power, disk.fail, disk.freeze, disk.fill):
        with pytest.raises(DiskFailed, match="is not mounted"):
            harm()
    assert list(disk.folder.iterdir()) == []


@asynccontextmanager
async def running_pair(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[Pair]:
    ports: dict[str, int] = {}
    pair = Pair(folder, ports, settings)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, pair.stop)
        for name, node in pair.nodes.items():
            relay = await stack.enter_async_context(Relay(str(node.socket)).running())
            ports[name] = relay.port
        await asyncio.to_thread(pair.start)
        await execute(pair, "create table kept (number integer primary key)")
        yield pair


async def execute(pair: Pair, statement: str) -> str:
    async with asyncio.timeout(10):
        connection = await asyncpg.connect(pair.url())
        try:
            status: str = await connection.execute(statement)
            return status
        finally:
            connection.terminate()


async def numbers(pair: Pair) -> list[int]:
    connection = await asyncpg.connect(pair.url())
    try:
        return [row["number"] for row in await connection.fetch("select number from kept order by number")]
    finally:
        connection.terminate()


def lose_power(*nodes: Node) -> None:
    for node in nodes:
        node.disk.lose_power()
    for node in nodes:
        node.kill()
        node.disk.unmount()
        node.disk.mount()


@pytest.mark.slow
async def test_a_commit_survives_the_power_loss_of_both(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await execute(pair, "insert into kept values (1)")
        await asyncio.to_thread(lose_power, *pair.nodes.values())
        await asyncio.to_thread(pair.ensure_whole)
        assert await numbers(pair) == [1]
        assert pair.rebuilt == 0


async def test_without_fsync_a_power_loss_takes_commits_away(tmp_path: Path) -> None:
    async with running_pair(tmp_path, {"fsync": "off"}) as pair:
        await execute(pair, "insert into kept values (1)")
        await asyncio.to_thread(pair.flush)
        await execute(pair, "insert into kept values (2)")
        await asyncio.to_thread(lose_power, *pair.nodes.values())
        await asyncio.to_thread(pair.primary.start)
        assert await numbers(pair) == [1]


@pytest.mark.slow
async def test_a_disk_loses_its_power_though_another_mount_namespace_has_it(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        other = await asyncio.create_subprocess_exec(
            "unshare", "--mount", "sh", "-c", "echo; exec sleep 60", stdout=asyncio.subprocess.PIPE
        )
        try:
            assert other.stdout is not None
            await other.stdout.readline()
            await asyncio.to_thread(lose_power, pair.primary)
            await asyncio.to_thread(pair.ensure_whole)
            await execute(pair, "insert into kept values (1)")
        finally:
            other.kill()
            await other.wait()


@pytest.mark.slow
async def test_the_promoted_standby_has_every_commit_and_the_old_primary_follows_it(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        old, new = pair.nodes["one"], pair.nodes["two"]
        await execute(pair, "insert into kept values (1)")
        await asyncio.to_thread(old.kill)
        await asyncio.to_thread(pair.promote)
        assert (pair.primary, pair.promotions) == (new, 1)
        assert await numbers(pair) == [1]
        await asyncio.to_thread(pair.ensure_whole)
        assert pair.standby is old
        synchronous = "select application_name from pg_stat_replication where sync_state = 'sync'"
        assert await new.value(synchronous) == "one"
        await execute(pair, "insert into kept values (2)")
        await asyncio.to_thread(new.kill)
        await asyncio.to_thread(pair.promote)
        assert await numbers(pair) == [1, 2]


@pytest.mark.slow
async def test_the_clock_moves_in_open_sessions_ahead_and_back(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        connection = await pair.primary.connect()
        for offset in (600, -600):
            before = await connection.fetchval("select clock_timestamp()")
            pair.step_clock(offset)
            moved = f"abs(extract(epoch from clock_timestamp() - '{before}')) > 500"
            await connection.execute(f"do $$ begin while not {moved} loop null; end loop; end $$", timeout=5)
        connection.terminate()


@pytest.mark.slow
async def test_every_fault_is_seen_and_healed_without_a_loss(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        nothing: Any = None
        with History(tmp_path / "history.jsonl") as history:
            scene = Scene(tmp_path, history, pair, nothing, nothing, nothing, nothing)
            acknowledged: list[int] = []
            writers = [asyncio.create_task(_write(pair, first, acknowledged)) for first in range(4)]
            unseen = []
            for number, kind in enumerate(KINDS):
                if kind.name in NEED_NETWORK:
                    continue
                injection = Injection(kind, number, 0.0, kind.seconds[0], Random(number))
                await kind.run(scene, injection)
                if not injection.effect:
                    unseen.append(kind.name)
            for writer in writers:
                writer.cancel()
            ends = await asyncio.gather(*writers, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
        assert unseen == []
        assert set(acknowledged) <= set(await numbers(pair))
        assert pair.rebuilt == 0


async def _write(pair: Pair, first: int, acknowledged: list[int]) -> None:
    """Insert numbers over one connection, as long as it works."""
    number = first
    while True:
        with suppress(*UNREACHABLE):
            connection = await asyncpg.connect(pair.url(), timeout=5)
            try:
                while True:
                    number += 4
                    await connection.execute(f"insert into kept values ({number})", timeout=10)
                    acknowledged.append(number)
                    await asyncio.sleep(0.02)
            finally:
                connection.terminate()
        await asyncio.sleep(0.05)
