"""What a machine must have for a chaos run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_PROGRAMS = {"mkfs.ext4": "e2fsprogs", "mount": "mount", "nsenter": "util-linux", "unshare": "util-linux"}


class CannotRun(Exception):
    """This machine lacks something. The text is a sentence for whoever started the run."""


def check_machine() -> None:
    if os.geteuid() != 0:
        raise CannotRun("A chaos run mounts file systems, so it must be started by root.")
    if not Path("/dev/loop-control").exists():
        raise CannotRun("This machine has no loop devices (/dev/loop-control) for the databases' disks.")
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise CannotRun(f"{program} is missing; install the package {package}.")
    faketime_library()


def faketime_library() -> Path:
    for path in Path("/usr/lib").glob("*/faketime/libfaketime.so.1"):
        return path
    raise CannotRun("libfaketime is missing; install the package libfaketime.")
