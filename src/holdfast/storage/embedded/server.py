"""One embedded PostgreSQL server: made if absent, adopted if running, started if not."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from holdfast.storage.embedded import account, cluster
from holdfast.storage.embedded.locks import FileLock, exclusively
from holdfast.storage.embedded.postmaster import (
    Postmaster,
    running_postmaster,
    wait_until_gone,
    wait_until_settled,
)
from holdfast.storage.embedded.socket_folder import make_socket_folder, remove_stale_socket, socket_folder
from holdfast.storage.refused import EmbeddedRefused

START_LIMIT_SECONDS = 120
STOP_LIMIT_SECONDS = 60

# Orphans of a killed server hold its shared memory for the moment they need to notice.
_START_TRIES = 5
_CLUSTER = "postgres"
_UNFINISHED = "postgres.unfinished"
_LOG = "postgres.log"

_log = logging.getLogger(__name__)


class EmbeddedPostgres:
    def __init__(
        self, data_dir: Path, version: int = 18, extra_settings: Mapping[str, str] | None = None
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / _CLUSTER
        self.log = self.data_dir / _LOG
        self._start_lock = self.data_dir / ".start.lock"
        self.url = ""
        self.adopted = False
        """Whether the server was running already when it was asked for."""
        self._version = version
        self._extra_settings = dict(extra_settings or {})
        self._programs = cluster.programs_of(version)
        self._account: account.Account | None = None
        self._users: FileLock | None = None

    def start(self) -> str:
        """Have the server running, be counted as one of its users, and give its URL."""
        make_data_dir(self.data_dir)
        with self._starting():
            postmaster = wait_until_settled(self.cluster, START_LIMIT_SECONDS)
            self.adopted = postmaster is not None
            if postmaster is None:
                postmaster = self._launch()
            self._refuse_unsettled(postmaster)
            self._be_counted()
        self.url = _url_of(postmaster)
        return self.url

    def keep_up(self) -> bool:
        """Start the server again if it died; True if it had to be."""
        cluster.keep_log_small(self.log)
        if running_postmaster(self.cluster) is not None:
            return False
        with self._starting():
            if running_postmaster(self.cluster) is None:
                self._launch()
        return True

    def leave(self) -> None:
        """Stop the server if it was started here and nobody else uses it by now."""
        with FileLock(self._start_lock) as starting:
            # Whoever has this lock is about to use the server, or waits for us to be gone to stop it.
            if not self.adopted and starting.try_exclusive() and self._is_last():
                self._shut_down()
            self._be_gone()

    def stop(self, patience_seconds: float = 0.0) -> None:
        """Stop the server whoever started it, after a moment for others to finish."""
        with self._starting():
            if self._users is not None:
                self._users.try_exclusive(patience_seconds)
            self._shut_down()
            self._be_gone()

    def _starting(self) -> AbstractContextManager[None]:
        return exclusively(self._start_lock)

    def _is_last(self) -> bool:
        return self._users is not None and self._users.try_exclusive()

    def _be_counted(self) -> None:
        if self._users is None:
            self._users = FileLock(self.data_dir / ".users.lock")
            self._users.take(exclusive=False)

    def _be_gone(self) -> None:
        if self._users is not None:
            self._users.close()
            self._users = None

    def _launch(self) -> Postmaster:
        self._prepare_account()
        self._make_cluster_if_absent()
        cluster.refuse_other_version(self.cluster, self._version)
        self._prepare_files()
        for _ in range(_START_TRIES):
            result = self._pg_ctl("start", "-l", _LOG, "-t", str(START_LIMIT_SECONDS))
            if (postmaster := running_postmaster(self.cluster)) is not None:
                return postmaster
        raise EmbeddedRefused(
            f"The embedded PostgreSQL did not start ({result.stderr.strip() or result.returncode});"
            f" {self.log} ends with: {cluster.last_lines(self.log)}"
        )

    def _prepare_account(self) -> None:
        self._account = account.account_for(self.cluster)
        if self._account is not None:
            account.open_the_way(self._account, [self.cluster, self._programs])
            account.open_programs(self._account, self._programs)

    def _prepare_files(self) -> None:
        """Only called when no server runs, so whatever a crashed one left behind can go."""
        folder = socket_folder(self.data_dir)
        make_socket_folder(folder, self._account)
        remove_stale_socket(folder)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        cluster.write_settings(self.cluster, folder, self._extra_settings)
        cluster.open_log(self.log)
        if self._account is not None:
            account.give_tree(self._account, self.cluster)
            account.give(self._account, self.log, 0o600)
            account.open_the_way(self._account, [folder])
        self.cluster.chmod(0o700)

    def _make_cluster_if_absent(self) -> None:
        """Made under another name and renamed when complete: a crash midway leaves no half cluster."""
        if self.cluster.exists() and any(self.cluster.iterdir()):
            return
        _log.info("making a database in %s", self.cluster)
        unfinished = self.data_dir / _UNFINISHED
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(mode=0o700)
        if self._account is not None:
            account.give(self._account, unfinished, 0o700)
        self._initdb()
        cluster.write_main_settings(unfinished)
        unfinished.rename(self.cluster)
        _sync(self.data_dir)

    def _initdb(self) -> None:
        sync = ["--no-sync"] if self._extra_settings.get("fsync") == "off" else []
        self._run_to_success(
            "initdb", "-D", _UNFINISHED, "-U", cluster.SUPERUSER, "--encoding=UTF8", "--no-locale", *sync,
            "--data-checksums", "--auth-local=trust", "--auth-host=reject", "--no-instructions",
        )  # fmt: skip
        self._run_to_success(
            "postgres",
            "--single",
            "-D",
            _UNFINISHED,
            "postgres",
            typed=f"create database {cluster.DATABASE}\n",
        )

    def _shut_down(self) -> None:
        if running_postmaster(self.cluster) is None:
            return
        self._account = account.account_for(self.cluster)
        self._pg_ctl("stop", "-m", "fast", "-t", str(STOP_LIMIT_SECONDS))
        if not wait_until_gone(self.cluster, 1.0):
            self._pg_ctl("stop", "-m", "immediate", "-t", str(STOP_LIMIT_SECONDS))

    def _pg_ctl(self, action: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self._run("pg_ctl", action, "-D", _CLUSTER, "-w", "-s", *options)

    def _run_to_success(self, program: str, *arguments: str, typed: str = "") -> None:
        result = self._run(program, *arguments, typed=typed)
        if result.returncode != 0:
            raise EmbeddedRefused(f"A database could not be made in {self.cluster}: {result.stderr.strip()}")

    def _run(self, program: str, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Names are relative to the data directory: pg_ctl hands them to a shell.

        A session of its own keeps the terminal's Ctrl-C away from the server.
        """
        user = self._account
        return subprocess.run(
            [str(self._programs / "bin" / program), *arguments],
            cwd=self.data_dir,
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")}
            | {"LC_ALL": "C"},
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            umask=0o077,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else [],
        )

    def _refuse_unsettled(self, postmaster: Postmaster) -> None:
        if postmaster.status != "ready":
            raise EmbeddedRefused(
                f"The embedded PostgreSQL (process {postmaster.pid}) is not ready"
                f" after {START_LIMIT_SECONDS} seconds; {self.log} tells why."
            )


def make_data_dir(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as failure:
        raise EmbeddedRefused(
            f"The data directory {data_dir} cannot be used ({failure.strerror}); name another with --data or"
            " HOLDFAST_DATA_DIR."
        ) from None


def _url_of(postmaster: Postmaster) -> str:
    host = quote(postmaster.socket_dir, safe="/")
    return f"postgresql://{cluster.SUPERUSER}@/{cluster.DATABASE}?host={host}&port={postmaster.port}"


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
