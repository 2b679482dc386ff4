"""The cluster of the embedded PostgreSQL: how it is made, and which settings it runs with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.storage.embedded.account import give
from holdfast.storage.embedded.programs import Programs
from holdfast.storage.refused import EmbeddedRefused

DATABASE = "holdfast"
SUPERUSER = "holdfast"

_UNFINISHED = "postgres.unfinished"

_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
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


def is_made(cluster: Path) -> bool:
    return cluster.exists() and any(cluster.iterdir())


def make_cluster(programs: Programs, cluster: Path, *, synced: bool) -> None:
    """Made under another name and renamed when complete: a crash midway leaves no half cluster."""
    unfinished = cluster.with_name(_UNFINISHED)
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    if programs.account is not None:
        give(programs.account, unfinished, 0o700)
    _fill(programs, synced)
    _write_anew(unfinished / "postgresql.conf", _POSTGRESQL_CONF)
    unfinished.rename(cluster)
    _sync(cluster.parent)


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


def _fill(programs: Programs, synced: bool) -> None:
    _run_to_success(
        programs, "initdb", "-D", _UNFINISHED, "-U", SUPERUSER, "--encoding=UTF8", "--no-locale",
        "--data-checksums", "--auth-local=trust", "--auth-host=reject", "--no-instructions",
        *([] if synced else ["--no-sync"]),
    )  # fmt: skip
    statement = f"create database {DATABASE}\n"
    _run_to_success(programs, "postgres", "--single", "-D", _UNFINISHED, "postgres", typed=statement)


def _run_to_success(programs: Programs, program: str, *arguments: str, typed: str = "") -> None:
    result = programs.run(program, *arguments, typed=typed)
    if result.returncode != 0:
        raise EmbeddedRefused(f"A database could not be made: {' '.join(result.stderr.split())}")


def _write_anew(path: Path, text: str) -> None:
    """A new file each time, so that nothing is ever written through a link."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
