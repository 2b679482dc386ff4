"""One embedded PostgreSQL server: made if absent, adopted if running, started if not."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psutil

from holdfast.storage.embedded import cluster, files
from holdfast.storage.embedded.files import FileLock, exclusive_lock
from holdfast.storage.errors import EmbeddedPostgresError, WrongDatabase

START_LIMIT_SECONDS = 120
STOP_LIMIT_SECONDS = 60
MAX_LOG_BYTES = 16 * 1024 * 1024

# Orphans of a killed server hold its shared memory until they notice.
_PATIENCE_WITH_ORPHANS_SECONDS = 5.0
_PATIENCE_WITH_COMMANDS_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_POLL_SECONDS = 0.02
_CLUSTER = "postgres"
_LOG = "postgres.log"

_log = logging.getLogger(__name__)


class EmbeddedPostgres:
    def __init__(
        self, data_dir: Path, version: int = 18, extra_settings: Mapping[str, str] | None = None
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / _CLUSTER
        self.log = self.data_dir / _LOG
        self.url = ""
        self.adopted = False
        """Whether the server was running already when it was asked for."""
        self._version = version
        self._extra_settings = dict(extra_settings or {})
        self._programs = cluster.Programs(version, self.data_dir)
        self._start_lock = self.data_dir / ".start.lock"
        self._users: FileLock | None = None

    @property
    def is_made(self) -> bool:
        return self.cluster.exists() and any(self.cluster.iterdir())

    def start(self) -> str:
        """Start the server unless it runs, count this process as one of its users, and return its URL."""
        make_data_dir(self.data_dir)
        with exclusive_lock(self._start_lock):
            if self.is_made:
                cluster.check_version(self.cluster, self._version)
            # One that starts becomes ready; one that stops ends.
            postmaster = self._wait_for_postmaster(
                START_LIMIT_SECONDS, lambda found: found is None or found.status == "ready"
            )
            self.adopted = postmaster is not None
            postmaster = postmaster or self._launch()
            if postmaster.status != "ready":
                raise EmbeddedPostgresError(
                    f"The embedded PostgreSQL (process {postmaster.pid}) is not ready"
                    f" after {START_LIMIT_SECONDS} seconds; {self.log} tells why."
                )
            if self._users is None:
                self._users = FileLock(self.data_dir / ".users.lock")
                self._users.take(exclusive=False)
        host = quote(postmaster.socket_dir, safe="/")
        self.url = f"postgresql://{cluster.SUPERUSER}@/{cluster.DATABASE}?host={host}&port={postmaster.port}"
        return self.url

    def restart_if_ended(self) -> bool:
        """Start the server again if it died; return whether it had to be."""
        keep_log_small(self.log)
        if running_postmaster(self.cluster) is not None:
            return False
        with exclusive_lock(self._start_lock):
            if running_postmaster(self.cluster) is None:
                self._launch()
        return True

    def is_alone(self) -> bool:
        """Return whether nobody else uses the server. If so, nobody else will before this user has left."""
        return self._users is not None and self._users.try_exclusive()

    def leave(self) -> None:
        """Stop the server if it was started here and nobody else uses it by now."""
        with closing(FileLock(self._start_lock)) as start_lock:
            # Whoever has this lock is about to use the server, or waits for us to be gone to stop it.
            if not self.adopted and start_lock.try_exclusive() and self.is_alone():
                self._shut_down()
            self._close_users_lock()

    def stop(self, patience_seconds: float = 0.0) -> None:
        """Stop the server, even if another process started it, after a time for others to finish."""
        with exclusive_lock(self._start_lock):
            if self._users is not None:
                self._users.try_exclusive(patience_seconds)
            self._shut_down()
            self._close_users_lock()

    def _close_users_lock(self) -> None:
        if self._users is not None:
            self._users.close()
            self._users = None

    def _launch(self) -> Postmaster:
        self._programs.prepare_account(self.cluster)
        if not self.is_made:
            _log.info("making a database in %s", self.cluster)
            is_synced = self._extra_settings.get("fsync") != "off"
            cluster.make_cluster(self._programs, self.cluster, synced=is_synced)
        self._prepare_files()
        give_up_at = time.monotonic() + _PATIENCE_WITH_ORPHANS_SECONDS
        while True:
            self._pg_ctl("start", "-l", _LOG, "-t", str(START_LIMIT_SECONDS))
            if (postmaster := running_postmaster(self.cluster)) is not None:
                return postmaster
            if time.monotonic() > give_up_at:
                last_lines = "no log"
                with suppress(OSError):
                    last_lines = " ".join(self.log.read_text(errors="replace").splitlines()[-5:])
                raise EmbeddedPostgresError(
                    f"The embedded PostgreSQL did not start; {self.log} ends with: {last_lines}"
                )
            time.sleep(_PAUSE_SECONDS)

    def _prepare_files(self) -> None:
        """Remove what a crashed server left. Only called when no server runs."""
        folder, account = files.socket_folder(self.data_dir), self._programs.account
        files.make_socket_folder(folder, account)
        # A lock file whose pid is in use again would prevent a start.
        socket = folder / files.SOCKET_NAME
        for path in (socket, socket.with_name(f"{socket.name}.lock"), self.cluster / "postmaster.pid"):
            path.unlink(missing_ok=True)
        cluster.write_settings(self.cluster, folder, self._extra_settings)
        keep_log_small(self.log)
        os.close(os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        if account is not None:
            files.change_tree_owner(account, self.cluster)
            files.change_owner(account, self.log, 0o600)
            files.allow_traversal(account, [folder])
        self.cluster.chmod(0o700)

    def _shut_down(self) -> None:
        if running_postmaster(self.cluster) is None:
            return
        self._programs.prepare_account(self.cluster)
        self._pg_ctl("stop", "-m", "fast", "-t", str(STOP_LIMIT_SECONDS))
        if self._wait_for_postmaster(1.0, lambda found: found is None) is not None:
            self._pg_ctl("stop", "-m", "immediate", "-t", str(STOP_LIMIT_SECONDS))
        folder = files.socket_folder(self.data_dir)
        if folder.parent != self.data_dir:
            with suppress(OSError):
                folder.rmdir()

    def _pg_ctl(self, action: str, *options: str) -> None:
        self._programs.run("pg_ctl", action, "-D", _CLUSTER, "-w", "-s", *options)

    def _wait_for_postmaster(
        self, patience_seconds: float, is_expected: Callable[[Postmaster | None], bool]
    ) -> Postmaster | None:
        give_up_at = time.monotonic() + patience_seconds
        while True:
            postmaster = running_postmaster(self.cluster)
            if is_expected(postmaster) or time.monotonic() > give_up_at:
                return postmaster
            time.sleep(_POLL_SECONDS)


def check_exists(data_dir: Path) -> None:
    """Raise WrongDatabase if there is none. One that this user may not look into is there."""
    with suppress(PermissionError):
        if not EmbeddedPostgres(data_dir).is_made:
            raise WrongDatabase(
                f"There is no database in {data_dir}. Name yours with --data, HOLDFAST_DATA_DIR or"
                " HOLDFAST_DATABASE_URL, or make a new one with `holdfast serve`, `migrate` or `restore`."
            )


@contextmanager
def using_embedded(data_dir: Path, *, alone: bool = False) -> Iterator[str]:
    """For a command: yield the URL of the server, which runs for as long as the block lasts.

    If the command is to be ``alone``, others that come meanwhile wait for its end.
    """
    with serving_alone(data_dir) if alone else nullcontext():
        server = EmbeddedPostgres(data_dir)
        url = server.start()
        try:
            if alone and not server.is_alone():
                raise EmbeddedPostgresError(f"Another command is using {data_dir}; end it first.")
            yield url
        finally:
            server.leave()


@contextmanager
def serving_alone(data_dir: Path) -> Iterator[None]:
    """Allow one `serve` at a time on a data directory."""
    make_data_dir(data_dir)
    with closing(FileLock(data_dir / ".serve.lock")) as lock:
        if not lock.try_exclusive():
            raise EmbeddedPostgresError(f"`holdfast serve` is already running on {data_dir}; stop it first.")
        yield


@contextmanager
def serving_embedded(data_dir: Path, connections: int) -> Iterator[EmbeddedPostgres]:
    """For `serve`: the server is this process's own, and stops with it even if it was running before."""
    server = EmbeddedPostgres(data_dir, extra_settings={"max_connections": str(connections)})
    server.start()
    try:
        yield server
    finally:
        server.stop(_PATIENCE_WITH_COMMANDS_SECONDS)


class Postmaster(NamedTuple):
    pid: int
    port: int
    socket_dir: str
    status: str


def running_postmaster(cluster_dir: Path) -> Postmaster | None:
    """Return the server that postmaster.pid names, unless a crash or a reboot left that file behind."""
    try:
        lines = (cluster_dir / "postmaster.pid").read_text().splitlines()
        pid = abs(int(lines[0]))
    except (FileNotFoundError, IndexError, ValueError):
        return None
    if not _is_postmaster(pid, cluster_dir):
        return None
    # The server writes the later lines one after the other while it starts.
    lines += [""] * (8 - len(lines))
    return Postmaster(pid, int(lines[3] or 0), lines[4], lines[7].strip())


def _is_postmaster(pid: int, cluster_dir: Path) -> bool:
    """A pid is used again by others; a postmaster is known by its working directory, the cluster."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("postgres"):
                return False
        return cluster_dir.samefile(process.cwd())
    except (psutil.Error, OSError):
        return False


def keep_log_small(log: Path) -> None:
    """The server appends, so its log can be emptied under it; one older part is kept."""
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)


def make_data_dir(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise EmbeddedPostgresError(
            f"The data directory {data_dir} cannot be used ({error.strerror}); name another with --data or"
            " HOLDFAST_DATA_DIR."
        ) from None
