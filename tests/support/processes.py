"""The processes of a `holdfast serve`, to be found and killed."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil

from holdfast.storage.embedded.server import running_postmaster
from tests.support.server import PATIENCE_SECONDS, RunningServer


def children(server: RunningServer, kind: str = "") -> list[psutil.Process]:
    """Its web processes, its worker, or all of them."""
    found = []
    for child in psutil.Process(server.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # It may end while we look.
            if f"holdfast.server.{kind}" in " ".join(child.cmdline()):
                found.append(child)
    return found


def postmaster(data: Path) -> psutil.Process | None:
    found = running_postmaster(data / "postgres")
    return None if found is None else psutil.Process(found.pid)


def stop_postgres(data: Path) -> None:
    """The embedded PostgreSQL of the data directory, if somebody has left it running."""
    left = postmaster(data)
    if left is not None:
        left.send_signal(signal.SIGINT)
        wait_until_gone([left])


def kill_family(server: RunningServer, *others: psutil.Process) -> None:
    """The supervisor first, then all that it started, without a word of warning."""
    family = [*psutil.Process(server.process.pid).children(recursive=True), *others]
    for pid in (server.process.pid, *(process.pid for process in family)):
        with suppress(ProcessLookupError):  # It may have gone with its parent.
            os.kill(pid, signal.SIGKILL)
    server.process.wait()
    wait_until_gone(family)


def wait_until_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)
    assert not alive
