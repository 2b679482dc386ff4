"""The log of the embedded PostgreSQL."""

import os
import shutil
from pathlib import Path

LARGEST_BYTES = 16 * 1024 * 1024


def open_log(log: Path) -> None:
    keep_log_small(log)
    os.close(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))


def keep_log_small(log: Path) -> None:
    """The server appends, so its log can be emptied under it; one older part is kept."""
    if log.exists() and log.stat().st_size > LARGEST_BYTES:
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)


def last_lines(log: Path, count: int = 5) -> str:
    try:
        return " ".join(log.read_text(errors="replace").splitlines()[-count:])
    except OSError:
        return "no log"
