"""The running server of a cluster, as its postmaster.pid tells, and only if that is still true."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    port: int
    socket_dir: str
    status: str


def running_postmaster(cluster: Path) -> Postmaster | None:
    """None when no server runs; a pid file that a crash or a reboot left behind says nothing."""
    found = _read(cluster / "postmaster.pid")
    return found if found is not None and _is_alive(found.pid, cluster) else None


def wait_until_settled(cluster: Path, patience_seconds: float) -> Postmaster | None:
    """The server once it takes connections, or None once there is none (it was on its way out)."""
    give_up_at = time.monotonic() + patience_seconds
    while True:
        found = running_postmaster(cluster)
        if found is None or found.status == "ready" or time.monotonic() > give_up_at:
            return found
        time.sleep(_POLL_SECONDS)


def wait_until_gone(cluster: Path, patience_seconds: float) -> bool:
    give_up_at = time.monotonic() + patience_seconds
    while running_postmaster(cluster) is not None:
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _read(pid_file: Path) -> Postmaster | None:
    try:
        lines = pid_file.read_text().splitlines()
        pid = abs(int(lines[0]))
    except (FileNotFoundError, IndexError, ValueError):
        return None
    # The server writes the later lines one after the other while it starts.
    lines += [""] * (8 - len(lines))
    return Postmaster(pid, int(lines[3] or 0), lines[4], lines[7].strip())


def _is_alive(pid: int, cluster: Path) -> bool:
    """A pid is used again by others; a postmaster is known by its working directory, the cluster."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("postgres"):
                return False
        return cluster.samefile(process.cwd())
    except (psutil.Error, OSError):
        return False
