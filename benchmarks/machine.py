"""On what the numbers were taken: enough to judge them, nothing that names the machine."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks import database


def hardware() -> dict[str, str]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": str(len(os.sched_getaffinity(0))),
        "CPU": _cpu_model(),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
    }


def describe(server_url: str, folder: Path) -> dict[str, str]:
    return hardware() | {
        "file system": file_system_of(folder),
        "PostgreSQL": str(database.value(server_url, "show server_version")),
        "shared_buffers": str(database.value(server_url, "show shared_buffers")),
        "Python": platform.python_version(),
    }


def file_system_of(folder: Path) -> str:
    """The kind of the mount that the folder lies on, which is the longest one above it."""
    above = [mount for mount in psutil.disk_partitions(all=True) if folder.is_relative_to(mount.mountpoint)]
    return str(max(above, key=lambda mount: len(mount.mountpoint)).fstype)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
