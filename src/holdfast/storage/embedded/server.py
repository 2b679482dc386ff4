"""The log of the embedded PostgreSQL."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from holdfast.storage.embedded.cluster import (
    DATABASE,
    SUPERUSER,
    Programs,
    is_made,
    make_cluster,
    refuse_other_version,
    write_settings,
)
from holdfast.storage.embedded.files import (
    FileLock,
    allow_traversal,
    change_owner,
    change_tree_owner,
    exclusively,
    make_socket_folder,
    remove_socket_folder,
    remove_stale_socket,
    socket_folder,
)
from holdfast.storage.errors import EmbeddedPostgresError

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


# The running server of a cluster, as its postmaster.pid tells, and only if that is still true.

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    port: int
    socket_dir: str
    status: str


def running_postmaster(cluster: Path) -> Postmaster | None:
    """None when no server runs; a pid file that a crash or a reboot left behind says nothing."""
    found = _read(cluster / "postmaster.pid")
    return found if found is not None and _is_alive(found.pid, cluster) else None


def wait_until_settled(cluster: Path, patience_seconds: float) -> Postmaster | None:
    """The server once it takes connections, or None once there is none (it was on its way out)."""
    give_up_at = time.monotonic() + patience_seconds
    while True:
        found = running_postmaster(cluster)
        if found is None or found.status == "ready" or time.monotonic() > give_up_at:
            return found
        time.sleep(_POLL_SECONDS)


def wait_until_gone(cluster: Path, patience_seconds: float) -> bool:
    give_up_at = time.monotonic() + patience_seconds
    while running_postmaster(cluster) is not None:
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _read(pid_file: Path) -> Postmaster | None:
    try:
        lines = pid_file.read_text().splitlines()
        pid = abs(int(lines[0]))
    except (FileNotFoundError, IndexError, ValueError):
        return None
    # The server writes the later lines one after the other while it starts.
    lines += [""] * (8 - len(lines))
    return Postmaster(pid, int(lines[3] or 0), lines[4], lines[7].strip())


def _is_alive(pid: int, cluster: Path) -> bool:
    """A pid is used again by others; a postmaster is known by its working directory, the cluster."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("postgres"):
                return False
        return cluster.samefile(process.cwd())
    except (psutil.Error, OSError):
        return False


# One embedded PostgreSQL server: made if absent, adopted if running, started if not.

START_LIMIT_SECONDS = 120
STOP_LIMIT_SECONDS = 60

# Orphans of a killed server hold its shared memory for the moment they need to notice.
_PATIENCE_WITH_ORPHANS_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
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
        self._programs = Programs(version, self.data_dir)
        self._start_lock = self.data_dir / ".start.lock"
        self._users: FileLock | None = None

    @property
    def is_made(self) -> bool:
        return is_made(self.cluster)

    def start(self) -> str:
        """Have the server running, be counted as one of its users, and give its URL."""
        make_data_dir(self.data_dir)
        with self._starting():
            if is_made(self.cluster):
                refuse_other_version(self.cluster, self._version)
            postmaster = wait_until_settled(self.cluster, START_LIMIT_SECONDS)
            self.adopted = postmaster is not None
            postmaster = postmaster or self._launch()
            self._refuse_unsettled(postmaster)
            self._be_counted()
        self.url = _url_of(postmaster)
        return self.url

    def keep_up(self) -> bool:
        """Start the server again if it died; True if it had to be."""
        keep_log_small(self.log)
        if running_postmaster(self.cluster) is not None:
            return False
        with self._starting():
            if running_postmaster(self.cluster) is None:
                self._launch()
        return True

    def is_alone(self) -> bool:
        """Whether nobody else uses the server. If so, nobody else will before this user has left."""
        return self._users is not None and self._users.try_exclusive()

    def leave(self) -> None:
        """Stop the server if it was started here and nobody else uses it by now."""
        with FileLock(self._start_lock) as starting:
            # Whoever has this lock is about to use the server, or waits for us to be gone to stop it.
            if not self.adopted and starting.try_exclusive() and self.is_alone():
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

    def _be_counted(self) -> None:
        if self._users is None:
            self._users = FileLock(self.data_dir / ".users.lock")
            self._users.take(exclusive=False)

    def _be_gone(self) -> None:
        if self._users is not None:
            self._users.close()
            self._users = None

    def _launch(self) -> Postmaster:
        self._programs.prepare_account(self.cluster)
        if not is_made(self.cluster):
            _log.info("making a database in %s", self.cluster)
            make_cluster(self._programs, self.cluster, synced=self._extra_settings.get("fsync") != "off")
        self._prepare_files()
        give_up_at = time.monotonic() + _PATIENCE_WITH_ORPHANS_SECONDS
        while (postmaster := self._try_to_start()) is None:
            if time.monotonic() > give_up_at:
                raise EmbeddedPostgresError(
                    f"The embedded PostgreSQL did not start; {self.log} ends with: {last_lines(self.log)}"
                )
            time.sleep(_PAUSE_SECONDS)
        return postmaster

    def _prepare_files(self) -> None:
        """Only called when no server runs, so whatever a crashed one left behind can go."""
        folder, account = socket_folder(self.data_dir), self._programs.account
        make_socket_folder(folder, account)
        remove_stale_socket(folder)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        write_settings(self.cluster, folder, self._extra_settings)
        open_log(self.log)
        if account is not None:
            change_tree_owner(account, self.cluster)
            change_owner(account, self.log, 0o600)
            allow_traversal(account, [folder])
        self.cluster.chmod(0o700)

    def _try_to_start(self) -> Postmaster | None:
        self._pg_ctl("start", "-l", _LOG, "-t", str(START_LIMIT_SECONDS))
        return running_postmaster(self.cluster)

    def _shut_down(self) -> None:
        if running_postmaster(self.cluster) is None:
            return
        self._programs.prepare_account(self.cluster)
        self._pg_ctl("stop", "-m", "fast", "-t", str(STOP_LIMIT_SECONDS))
        if not wait_until_gone(self.cluster, 1.0):
            self._pg_ctl("stop", "-m", "immediate", "-t", str(STOP_LIMIT_SECONDS))
        remove_socket_folder(socket_folder(self.data_dir), self.data_dir)

    def _pg_ctl(self, action: str, *options: str) -> None:
        self._programs.run("pg_ctl", action, "-D", _CLUSTER, "-w", "-s", *options)

    def _refuse_unsettled(self, postmaster: Postmaster) -> None:
        if postmaster.status != "ready":
            raise EmbeddedPostgresError(
                f"The embedded PostgreSQL (process {postmaster.pid}) is not ready"
                f" after {START_LIMIT_SECONDS} seconds; {self.log} tells why."
            )


def make_data_dir(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as failure:
        raise EmbeddedPostgresError(
            f"The data directory {data_dir} cannot be used ({failure.strerror}); name another with --data or"
            " HOLDFAST_DATA_DIR."
        ) from None


def _url_of(postmaster: Postmaster) -> str:
    host = quote(postmaster.socket_dir, safe="/")
    return f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={postmaster.port}"


# Who may start and stop the embedded server: commands, and the one `serve` of a data directory.

_PATIENCE_WITH_COMMANDS_SECONDS = 5.0


@contextmanager
def using_embedded(data_dir: Path) -> Iterator[str]:
    """For a command: the URL of the server, which is running for as long as the block lasts."""
    server = EmbeddedPostgres(data_dir)
    url = server.start()
    try:
        yield url
    finally:
        server.leave()


@contextmanager
def serving_alone(data_dir: Path) -> Iterator[None]:
    """One `serve` at a time on a data directory."""
    make_data_dir(data_dir)
    with FileLock(data_dir / ".serve.lock") as lock:
        if not lock.try_exclusive():
            raise EmbeddedPostgresError(f"`holdfast serve` is already running on {data_dir}; stop it first.")
        yield


@contextmanager
def using_embedded_alone(data_dir: Path) -> Iterator[str]:
    """For a command that must not be disturbed: whoever comes meanwhile waits for its end."""
    with serving_alone(data_dir):
        server = EmbeddedPostgres(data_dir)
        url = server.start()
        try:
            if not server.is_alone():
                raise EmbeddedPostgresError(f"Another command is using {data_dir}; end it first.")
            yield url
        finally:
            server.leave()


@contextmanager
def serving_embedded(data_dir: Path, connections: int) -> Iterator[EmbeddedPostgres]:
    """For `serve`: the server is this process's own, and stops with it even if it was running before."""
    server = EmbeddedPostgres(data_dir, extra_settings={"max_connections": str(connections)})
    server.start()
    try:
        yield server
    finally:
        server.stop(_PATIENCE_WITH_COMMANDS_SECONDS)
