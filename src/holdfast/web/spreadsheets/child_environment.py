"""What a process that reads or writes a file of somebody's is told: nothing of the database or the keys."""

from __future__ import annotations

import os

_TOLD = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


def child_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _TOLD if name in os.environ}
