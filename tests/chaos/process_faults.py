"""Faults of Holdfast's own processes."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import psutil

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage.errors import SchemaError
from tests.chaos.faults import Injection, Kind, Run, until
from tests.chaos.scene import Scene
from tests.chaos.servers import CHILDREN, Server
from tests.support import next_revision

LANE = "processes"
RESTART_SECONDS = 25.0
GRACE_SECONDS = 10.0
"""What does not end so long after it was asked to is killed, as by a container's runtime."""


def _choose(scene: Scene, injection: Injection) -> Server:
    return injection.chance.choice(scene.servers.all)


def _is_stopped(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def _child_killed(kind: str) -> Run:
    async def run(scene: Scene, injection: Injection) -> None:
        server = _choose(scene, injection)
        if (killed := server.child(kind)) is None:
            return
        os.kill(killed.pid, signal.SIGKILL)
        await _replaced(server, kind, killed)
        injection.saw(f"process {killed.pid} ended and another one took its place")

    return run


async def _replaced(server: Server, kind: str, lost: psutil.Process) -> None:
    if not await until(
        lambda: (child := server.child(kind)) is not None and child.pid != lost.pid, seconds=RESTART_SECONDS
    ):
        raise AssertionError(f"{server.name} had no other process for {lost.pid} ({kind}) in time")


async def _pause(process: psutil.Process, injection: Injection) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    try:
        if await until(lambda: _is_stopped(process), seconds=2):
            injection.saw(f"process {process.pid} stood still")
        await asyncio.sleep(injection.seconds)
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def _child_paused(kind: str) -> Run:
    async def run(scene: Scene, injection: Injection) -> None:
        process = _choose(scene, injection).child(kind)
        if process is not None:
            await _pause(process, injection)

    return run


async def _child_replaced(scene: Scene, injection: Injection) -> None:
    """It hangs until the supervisor notices that it sends no heartbeats."""
    server, kind = _choose(scene, injection), injection.chance.choice(CHILDREN)
    if (hung := server.child(kind)) is None:
        return
    os.kill(hung.pid, signal.SIGSTOP)
    try:
        await _replaced(server, kind, hung)
    finally:
        with suppress(ProcessLookupError):
            os.kill(hung.pid, signal.SIGCONT)
    injection.saw(f"process {hung.pid} was killed and replaced")


def _supervisor_killed(*, alone: bool) -> Run:
    """Its children end with it; or all are killed at once, as when the machine of one installation fails."""

    async def run(scene: Scene, injection: Injection) -> None:
        server = _choose(scene, injection)
        family = server.supervisor.children(recursive=True)
        await (server.kill() if alone else server.kill_all())
        try:
            if not await until(lambda: not any(one.is_running() for one in family), seconds=RESTART_SECONDS):
                raise AssertionError(f"processes of {server.name} outlived their supervisor")
            injection.saw(f"the supervisor and its processes {[one.pid for one in family]} ended")
            await asyncio.sleep(injection.seconds)
        finally:
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            server.start()
            await server.wait_until_ready()

    return run


async def _supervisor_paused(scene: Scene, injection: Injection) -> None:
    await _pause(_choose(scene, injection).supervisor, injection)


async def _rolling_restart(scene: Scene, injection: Injection) -> None:
    for server in scene.servers.all:
        await server.stop(GRACE_SECONDS)
        server.start()
        await server.wait_until_ready()
    injection.saw("both were stopped and started again, one after the other")


async def _next_revision(scene: Scene, injection: Injection) -> None:
    """The schema of the next release comes, once, and this release goes on with it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(RESTART_SECONDS):
            while True:
                with suppress(DatabaseUnavailable, SchemaError):
                    if await next_revision.apply(scene.pair.url(superuser=True)):
                        injection.saw(
                            "a column, an index, and an attribute of each type of parameters were added"
                        )
                    return
                await asyncio.sleep(0.5)


def _kind(
    name: str,
    run: Run,
    seconds: tuple[float, float] = (0.0, 0.0),
    *,
    takes_seconds: float,
    weight: int = 2,
) -> Kind:
    async def run_unless_gone(scene: Scene, injection: Injection) -> None:
        # A process may end by itself in that moment; then the fault has no effect.
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            await run(scene, injection)

    return Kind(name, LANE, run_unless_gone, seconds, takes_seconds, weight)


KINDS = [
    _kind("a web process is killed", _child_killed("web"), takes_seconds=2),
    _kind("a worker is killed", _child_killed("work"), takes_seconds=2),
    _kind("a web process is paused", _child_paused("web"), (1, 4), takes_seconds=0.2),
    _kind("a worker is paused", _child_paused("work"), (1, 4), takes_seconds=0.2),
    _kind("a process hangs until it is replaced", _child_replaced, takes_seconds=13),
    _kind("a supervisor is killed", _supervisor_killed(alone=True), (0, 1), takes_seconds=4),
    _kind("a supervisor is paused", _supervisor_paused, (1, 4), takes_seconds=0.2),
    _kind("an installation is killed", _supervisor_killed(alone=False), (0, 1), takes_seconds=4),
    _kind("rolling restart", _rolling_restart, takes_seconds=9),
    _kind("the next schema revision is applied", _next_revision, takes_seconds=1.5, weight=4),
]
