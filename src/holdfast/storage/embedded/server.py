"""One embedded PostgreSQL server: made if absent, adopted if running, started if not."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psutil

from holdfast.storage.embedded import cluster, files
from holdfast.storage.embedded.files import FileLock, exclusive_lock
from holdfast.storage.errors import EmbeddedPostgresError, WrongDatabase

STOP_LIMIT_SECONDS = 60
MAX_LOG_BYTES = 16 * 1024 * 1024

# Orphans of a killed server hold its shared memory until they notice.
_PATIENCE_WITH_ORPHANS_SECONDS = 5.0
_PATIENCE_WITH_COMMANDS_SECONDS = 5.0
_PROGRESS_SECONDS, _RESTART_SECONDS = 5, 10
_PAUSE_SECONDS = 0.1
_POLL_SECONDS = 0.02
_CLUSTER = "postgres"
_LOG = "postgres.log"
_GRANTS = Path(__file__).parent.with_name("application_role.sql")

_log = logging.getLogger(__name__)


class EmbeddedPostgres:
    def __init__(
        self, data_dir: Path, version: int = 18, extra_settings: Mapping[str, str] | None = None
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / _CLUSTER
        self.log = self.data_dir / _LOG
        self.url = self.owner_url = ""
        """For the role of the application, and for that of the owner, who migrates, backs up and restores."""
        self.adopted = False
        """Whether the server was running already when it was asked for."""
        self._version = version
        self._extra_settings = dict(extra_settings or {})
        self._programs = cluster.Programs(version, self.data_dir)
        self._start_lock = self.data_dir / ".start.lock"
        self._passwords = self.data_dir / "database-passwords"
        self._users: FileLock | None = None
        self._next_restart_at = 0.0
        self._next_progress_at = time.monotonic() + _PROGRESS_SECONDS

    @property
    def is_made(self) -> bool:
        return self.cluster.exists() and any(self.cluster.iterdir())

    def start(self) -> str:
        """Start the server unless it runs, count this process as one of its users, and return its URL."""
        make_data_dir(self.data_dir)
        # Without the lock, so that whoever started it can stop it meanwhile.
        self._wait_until_ready()
        with exclusive_lock(self._start_lock):
            if self.is_made:
                cluster.check_version(self.cluster, self._version)
            postmaster = self._wait_until_ready()
            if postmaster is not None and not self._passwords.exists():
                self._stop_unless_shared()
                postmaster = None
            self.adopted = postmaster is not None
            postmaster = postmaster or self._launch()
            passwords = cluster.read_passwords(self._passwords)
            if self._users is None:
                self._users = FileLock(self.data_dir / ".users.lock")
                self._users.take(exclusive=False)
        host = quote(postmaster.socket_dir, safe="/")
        self.owner_url, self.url = (
            f"postgresql://{role}:{passwords[role]}@/{cluster.DATABASE}?host={host}&port={postmaster.port}"
            for role in (cluster.OWNER, cluster.APPLICATION)
        )
        return self.url

    def restart_if_ended(self) -> bool:
        """Start the server again if it died; return whether it had to be. Do not wait until it is ready."""
        keep_log_small(self.log)
        if running_postmaster(self.cluster) is not None:
            self._show_progress()
            return False
        with closing(FileLock(self._start_lock)) as start_lock:
            is_due = time.monotonic() > self._next_restart_at and start_lock.try_exclusive()
            if not is_due or running_postmaster(self.cluster) is not None:
                return False
            self._next_restart_at = time.monotonic() + _RESTART_SECONDS
            self._programs.prepare_account(self.cluster)
            self._boot()
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

    def _stop_unless_shared(self) -> None:
        """Stop a server of an earlier release, or one whose passwords are lost, so that it gets new ones."""
        with closing(FileLock(self.data_dir / ".users.lock")) as users:
            if not users.try_exclusive():
                raise EmbeddedPostgresError(
                    f"The database in {self.data_dir} is in use and must be restarted to get passwords; stop"
                    " every `holdfast` that uses it first."
                )
            self._shut_down()

    def _launch(self) -> Postmaster:
        self._programs.prepare_account(self.cluster)
        passwords = {role: secrets.token_urlsafe(24) for role in (cluster.OWNER, cluster.APPLICATION)}
        try:
            if not self.is_made:
                _log.info("making a database in %s", self.cluster)
                is_synced = self._extra_settings.get("fsync") != "off"
                self._passwords.unlink(missing_ok=True)
                cluster.make_cluster(self._programs, self.cluster, passwords, synced=is_synced)
            elif not self._passwords.exists():
                self._set_passwords(passwords)
            if not self._passwords.exists():
                # The roles have them by now: what the file says is always true.
                files.write_once(self._passwords, cluster.password_lines(passwords))
            self._boot()
            if (postmaster := self._wait_until_ready()) is None:
                raise self._did_not_start()
            return postmaster
        except BaseException:
            with suppress(EmbeddedPostgresError):
                self._shut_down()
            raise

    def _set_passwords(self, passwords: Mapping[str, str]) -> None:
        """Set them without knowing any: meanwhile the server takes connections of its own user alone."""
        _log.info("setting passwords for the roles of the database")
        self._boot(method="trust")
        if (postmaster := self._wait_until_ready()) is None:
            raise self._did_not_start()
        place = ("-h", postmaster.socket_dir, "-p", str(postmaster.port), "-U", cluster.OWNER)
        statements = cluster.ROLES.format_map(passwords) + _GRANTS.read_text()
        psql = ("psql", "-Xqw1", "-v", "ON_ERROR_STOP=1", *place, cluster.DATABASE)
        done = self._programs.run(*psql, stdin=statements)
        if done.returncode != 0:
            reason = " ".join(done.stderr.split())
            raise EmbeddedPostgresError(f"The database could not be given passwords: {reason}")
        self._shut_down()

    def _boot(self, method: str = "scram-sha-256") -> None:
        """Start the server, and wait a few seconds for it to become ready."""
        self._prepare_files(method)
        give_up_at = time.monotonic() + _PATIENCE_WITH_ORPHANS_SECONDS
        while True:
            self._pg_ctl("start", "-l", _LOG, "-t", str(_PROGRESS_SECONDS))
            if running_postmaster(self.cluster) is not None:
                return
            if "shared memory" not in self._log_tail() or time.monotonic() > give_up_at:
                raise self._did_not_start()
            time.sleep(_PAUSE_SECONDS)

    def _wait_until_ready(self) -> Postmaster | None:
        """Wait for as long as it starts or stops: recovery after a crash takes as long as it takes."""
        while (postmaster := running_postmaster(self.cluster)) is not None and postmaster.status != "ready":
            self._show_progress()
            time.sleep(_POLL_SECONDS)
        return postmaster

    def _show_progress(self) -> None:
        """Log every few seconds how a server that is not ready goes on."""
        if time.monotonic() > self._next_progress_at:
            self._next_progress_at = time.monotonic() + _PROGRESS_SECONDS
            if (found := running_postmaster(self.cluster)) is not None and found.status != "ready":
                _log.warning("waiting for PostgreSQL (%s): %s", found.status or "starting", self._log_tail(1))

    def _log_tail(self, lines: int = 5) -> str:
        with suppress(OSError):
            return " ".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return "no log"

    def _did_not_start(self) -> EmbeddedPostgresError:
        return EmbeddedPostgresError(
            f"The embedded PostgreSQL did not start; {self.log} ends with: {self._log_tail()}"
        )

    def _prepare_files(self, method: str) -> None:
        """Remove what a crashed server left. Only called when no server runs."""
        folder, account = files.socket_folder(self.data_dir), self._programs.account
        # The server of root is used by other users, who need its passwords.
        is_private = account is None or method == "trust"
        files.make_socket_folder(folder, account, 0o700 if is_private else 0o711)
        # A lock file whose pid is in use again would prevent a start.
        socket = folder / files.SOCKET_NAME
        for path in (socket, socket.with_name(f"{socket.name}.lock"), self.cluster / "postmaster.pid"):
            path.unlink(missing_ok=True)
        extra = {"unix_socket_permissions": "0700" if is_private else "0777", **self._extra_settings}
        cluster.write_settings(self.cluster, folder, method, extra)
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
        if running_postmaster(self.cluster) is not None:
            self._pg_ctl("stop", "-m", "immediate", "-t", str(STOP_LIMIT_SECONDS))
        if running_postmaster(self.cluster) is not None:
            raise EmbeddedPostgresError(f"The embedded PostgreSQL in {self.cluster} does not stop.")
        folder = files.socket_folder(self.data_dir)
        if folder.parent != self.data_dir:
            with suppress(OSError):
                folder.rmdir()

    def _pg_ctl(self, action: str, *options: str) -> None:
        self._programs.run("pg_ctl", action, "-D", _CLUSTER, "-w", "-s", *options)


def check_exists(data_dir: Path) -> None:
    """Raise WrongDatabase if there is none. One that this user may not look into is there."""
    with suppress(PermissionError):
        if not EmbeddedPostgres(data_dir).is_made:
            raise WrongDatabase(
                f"There is no database in {data_dir}. Name yours with --data, HOLDFAST_DATA_DIR or"
                " HOLDFAST_DATABASE_URL, or make a new one with `holdfast serve`, `migrate` or `restore`."
            )


@contextmanager
def using_embedded(data_dir: Path, *, owner: bool = False, alone: bool = False) -> Iterator[str]:
    """For a command: yield the URL of the server, which runs for as long as the block lasts.

    The URL is that of the application's role, or of the ``owner``. If the command is to be ``alone``, others
    that come meanwhile wait for its end.
    """
    with serving_alone(data_dir) if alone else nullcontext():
        server = EmbeddedPostgres(data_dir)
        server.start()
        try:
            if alone and not server.is_alone():
                raise EmbeddedPostgresError(f"Another command is using {data_dir}; end it first.")
            yield server.owner_url if owner else server.url
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
    except PermissionError:
        raise EmbeddedPostgresError(f"{cluster_dir} cannot be read; run Holdfast as its owner.") from None
    # The server writes the later lines one after the other while it starts.
    lines += [""] * (8 - len(lines))
    postmaster = Postmaster(pid, int(lines[3] or 0), lines[4], lines[7].strip())
    return postmaster if _is_alive(postmaster, cluster_dir) else None


def _is_alive(postmaster: Postmaster, cluster_dir: Path) -> bool:
    """A pid is used again by others; a postmaster is known by its working directory, the cluster.

    Root without CAP_SYS_PTRACE cannot see that of other users. A process that may be the postmaster counts as
    it, since to start a second one would be worse.
    """
    may_be_ours = False
    try:
        process = psutil.Process(postmaster.pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("postgres"):
                return False
            may_be_ours = process.uids().effective == cluster_dir.stat().st_uid
        return cluster_dir.samefile(process.cwd())
    except (psutil.Error, OSError):
        # Under hidepid even its name is hidden.
        return (may_be_ours and psutil.pid_exists(postmaster.pid)) or _takes_connections(postmaster)


def _takes_connections(postmaster: Postmaster) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)  # a server that is too busy is alive
        address = f"{postmaster.socket_dir}/.s.PGSQL.{postmaster.port}"
        return connection.connect_ex(address) not in (errno.ENOENT, errno.ECONNREFUSED)


def keep_log_small(log: Path) -> None:
    """The server appends, so its log can be emptied under it; one older part is kept."""
    with suppress(FileNotFoundError), os.fdopen(os.open(log, os.O_RDWR | os.O_NOFOLLOW), "r+b") as file:
        if os.fstat(file.fileno()).st_size > MAX_LOG_BYTES:
            with files.open_new(log.with_suffix(".log.1"), "wb") as older:
                shutil.copyfileobj(file, older)
            file.truncate(0)


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
