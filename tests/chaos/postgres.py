"""A PostgreSQL primary and its synchronous standby, each on its own disk, with a clock that can be moved."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from holdfast.storage.embedded import files
from holdfast.storage.embedded.cluster import DATABASE, OWNER, Programs, program_environment, program_folder
from tests.chaos.disk import Disk
from tests.chaos.machine import check_machine, faketime_library

VERSION = 18
SUPERUSER = "postgres"
START_SECONDS = 20.0
STOP_SECONDS = 10.0
WHOLE_SECONDS = 20.0
POLL_SECONDS = 0.05

UNREACHABLE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What a statement raises while a server is down, starting, stopping, full or hung."""

SETTINGS = {
    "listen_addresses": "",
    "port": files.SOCKET_NAME.rpartition(".")[2],
    "max_connections": "60",
    "superuser_reserved_connections": "3",
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "hot_standby": "on",
    "max_wal_size": "64MB",
    "min_wal_size": "8MB",
    "wal_keep_size": "64MB",
    "wal_sender_timeout": "3s",
    "wal_receiver_timeout": "3s",
    "wal_retrieve_retry_interval": "200ms",
    "shared_buffers": "64MB",
    # A second instead of three for each recovery.
    "recovery_init_sync_method": "syncfs",
    "restart_after_crash": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%a ",
}
# Of a standby that will never find the write-ahead log that it asks for.
_CANNOT_FOLLOW = (
    "has already been removed",
    "is ahead of the WAL flush position",
    "not in this server's history",
    "requested timeline",
)


class ServerFailed(Exception):
    """A server does not start, or a standby does not follow. The text ends with its log."""


class Node:
    """One server. Its log, its settings and its socket are beside its disk, which may be full or hung."""

    def __init__(self, name: str, folder: Path, sockets: Path, clock: Path) -> None:
        self.name = name
        self.disk = Disk(folder / f"{name}.img", folder / name)
        self.data = self.disk.folder / "data"
        self.log = folder / f"{name}.log"
        self.socket = sockets / name / files.SOCKET_NAME
        self._settings = folder / f"{name}.conf"
        self._hba = folder / "pg_hba.conf"
        self._programs = Programs(VERSION, folder)
        self._environment = program_environment() | {
            "LD_PRELOAD": str(faketime_library()),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            # Reading the file at each look at the clock would cost more than the statement.
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._start_of_log = 0

    # Files

    def make_disk(self) -> None:
        self.disk.make()
        self._programs.prepare_account(self.data)
        account = self._programs.account
        assert account is not None, "root runs it"
        files.change_owner(account, self.disk.folder, 0o700)
        self.socket.parent.mkdir(mode=0o755)
        files.change_owner(account, self.socket.parent, 0o755)
        self._hba.write_text("local all all trust\nlocal replication all trust\n")

    def make_cluster(self) -> None:
        # Small segments, so that a short run goes through many of them.
        self._run(
            "initdb", "-D", str(self.data), "-U", SUPERUSER, "--encoding=UTF8", "--no-locale",
            "--wal-segsize=1", "--auth=trust", "--no-instructions", "--sync-method=syncfs",
        )  # fmt: skip

    def copy(self, primary: Node) -> None:
        """Become a standby of it, whatever was here before."""
        self.kill()
        if self.data.exists():
            shutil.rmtree(self.data)
        self._run(
            "pg_basebackup", "-D", str(self.data), "-h", str(primary.socket.parent), "-U", SUPERUSER,
            "--checkpoint=fast", "--wal-method=stream", "--sync-method=syncfs",
        )  # fmt: skip
        (self.data / "standby.signal").touch()

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write its settings; a server that runs reads them at once."""
        own = {"hba_file": str(self._hba), "unix_socket_directories": str(self.socket.parent)}
        lines = (f"{name} = '{value}'\n" for name, value in {**SETTINGS, **own, **settings}.items())
        _write_at_once(self._settings, "".join(lines))
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGHUP)

    # The server's processes

    def start(self) -> None:
        """Start it as a service manager would: nothing of its last life is left."""
        self.kill()
        # After a power loss without fsync. The server takes it for one that another is writing.
        lock_file = self.data / "postmaster.pid"
        if lock_file.exists() and lock_file.stat().st_size == 0:
            lock_file.unlink()
        self._start_of_log = self.log_size()
        account = self._programs.account
        assert account is not None, "root runs it"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(program_folder(VERSION) / "bin" / "postgres"), "-D", str(self.data),
                    "-c", f"config_file={self._settings}",
                ],
                cwd=self.socket.parent,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
                user=account.uid,
                group=account.gid,
                extra_groups=[],
            )  # fmt: skip
        if (
            not wait_until(lambda: not self.is_running() or self.answers(), START_SECONDS)
            or not self.answers()
        ):
            raise ServerFailed(f"PostgreSQL {self.name} did not start. {self._end_of_log()}")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Shut it down: by SIGINT in good order, by SIGQUIT at once but without leaving shared memory."""
        if self.is_running() and self._process is not None:
            self._process.send_signal(number)
            wait_until(lambda: not self.is_running(), STOP_SECONDS)
        self.kill()

    def remove(self) -> None:
        """End it, whatever a fault has left of it, and its disk."""
        self.disk.thaw()
        self.signal_all(signal.SIGCONT)
        try:
            self.stop(signal.SIGQUIT)
        finally:
            self.disk.remove()

    def kill(self) -> None:
        """Kill every process of it, also one that is paused or has lost its postmaster."""

        def are_gone() -> bool:
            found = self.processes()
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return not found

        if not wait_until(are_gone, STOP_SECONDS):
            raise ServerFailed(f"PostgreSQL {self.name} cannot be killed.")
        if self._process is not None:
            self._process.wait()

    def signal_all(self, number: signal.Signals) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def processes(self) -> list[psutil.Process]:
        """Return all processes of it, the postmaster first. They work in its data directory."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, psutil.NoSuchProcess):
                if entry.name.isdecimal() and (entry / "cwd").readlink() == self.data:
                    found.append(psutil.Process(int(entry.name)))
        postmaster = None if self._process is None else self._process.pid
        return sorted(found, key=lambda process: (process.pid != postmaster, process.pid))

    # What it says

    def url(self, role: str) -> str:
        return f"postgresql://{role}@/{DATABASE}?host={self.socket.parent}&port={SETTINGS['port']}"

    async def connect(self) -> asyncpg.Connection:
        """Connect as a superuser; the caller bounds the time."""
        return await asyncpg.connect(
            host=str(self.socket.parent), port=SETTINGS["port"], user=SUPERUSER, database=SUPERUSER
        )

    async def fetch(self, statement: str, *arguments: object, seconds: float = 5.0) -> list[asyncpg.Record]:
        """Run a statement as a superuser, on a connection of its own."""
        connection = None
        try:
            async with asyncio.timeout(seconds):
                connection = await self.connect()
                return await connection.fetch(statement, *arguments)
        finally:
            if connection is not None:
                connection.terminate()

    async def value(self, statement: str, *arguments: object, seconds: float = 5.0) -> Any:
        rows = await self.fetch(statement, *arguments, seconds=seconds)
        return rows[0][0] if rows else None

    def ask(self, statement: str, *arguments: object, seconds: float = 5.0) -> Any:
        """As `value`, for a thread."""
        return asyncio.run(self.value(statement, *arguments, seconds=seconds))

    def answers(self) -> bool:
        try:
            return bool(self.ask("select true", seconds=1.0))
        except UNREACHABLE:
            return False

    def log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, size: int) -> str:
        with self.log.open("rb") as file:
            file.seek(size)
            return file.read().decode(errors="replace")

    def cannot_follow(self) -> bool:
        """Whether this standby has said so since it was started."""
        said = self.log_since(self._start_of_log)
        return any(text in said for text in _CANNOT_FOLLOW)

    def _end_of_log(self) -> str:
        return " | ".join(self.log_since(self._start_of_log).splitlines()[-12:])

    def _run(self, program: str, *arguments: str) -> None:
        result = self._programs.run(program, *arguments)
        if result.returncode != 0:
            raise ServerFailed(f"{program} failed: {' '.join(result.stderr.split())}")


class Pair:
    """The primary and the standby.

    Its methods block. A lock keeps `stop` from meeting a repair that goes on in a thread.
    """

    def __init__(
        self, folder: Path, replication_ports: Mapping[str, int], settings: Mapping[str, str] | None = None
    ) -> None:
        """``replication_ports``: where the other server reaches each. ``settings`` overrule ours."""
        check_machine()
        self._sockets = Path(tempfile.mkdtemp(prefix="holdfast-chaos-", dir="/tmp"))
        self._sockets.chmod(0o755)
        folder = folder.resolve()
        self._clock = folder / "clock"
        self._clock_offset = 0.0
        self._ports = replication_ports
        self._settings = settings or {}
        self.nodes = {name: Node(name, folder, self._sockets, self._clock) for name in ("one", "two")}
        self.primary = self.nodes["one"]
        self.standby: Node | None = None
        self.promotions = 0
        self.rebuilt = 0
        """How often a standby was copied from the primary after the start."""
        self.is_synchronous = False
        """Whether every commit waits for the standby, which had all that was committed before."""
        self._lock = threading.RLock()
        self._is_stopping = False

    def start(self) -> None:
        with self._lock:
            self.step_clock(0)
            for node in self.nodes.values():
                node.make_disk()
            self.primary.make_cluster()
            self._configure()
            self.primary.start()
            self.primary.ask(f"create role {OWNER} login")
            self.primary.ask(f"create database {DATABASE} owner {OWNER}")
            self._copy_standby()
            self.ensure_whole()

    def stop(self) -> None:
        """End and unmount everything. What fails for one server leaves nothing of the other."""
        self._is_stopping = True
        with self._lock, ExitStack() as stack:
            stack.callback(shutil.rmtree, self._sockets, ignore_errors=True)
            for node in self.nodes.values():
                stack.callback(node.remove)

    def url(self, *, superuser: bool = False) -> str:
        return self.primary.url(SUPERUSER if superuser else OWNER)

    def step_clock(self, seconds: float) -> None:
        """Move the clock of both servers; each of their processes sees it within a second."""
        self._clock_offset += seconds
        _write_at_once(self._clock, f"{self._clock_offset:+.0f}s\n")

    def flush(self) -> None:
        """Make sure that all there is now survives a power loss, also with fsync off."""
        self.primary.ask("checkpoint", seconds=20.0)
        for node in self.nodes.values():
            node.disk.flush()

    def promote(self) -> None:
        """Make the standby the primary. The old primary must be down; `ensure_whole` makes it the standby."""
        with self._lock:
            old, new = self.primary, self.standby
            assert new is not None, "there is a standby"
            with suppress(*UNREACHABLE):
                new.ask("select pg_promote()", seconds=10.0)
            if not self._was_promoted(new):
                return
            self.promotions += 1
            self.primary, self.standby, self.is_synchronous = new, None, False
            assert not old.is_running(), "two primaries would part"

    def ensure_whole(self) -> None:
        """Start what is down, copy the standby anew if need be; return when every commit reaches both."""
        with self._lock:
            rebuild_at = time.monotonic() + WHOLE_SECONDS
            rebuilds_left = 2
            while not self._is_stopping and not self._is_whole():
                if not self.primary.is_running():
                    self.primary.start()
                if self._needs_rebuild() or time.monotonic() >= rebuild_at:
                    if rebuilds_left == 0:
                        raise ServerFailed("The standby does not follow the primary.")
                    rebuilds_left -= 1
                    self.rebuilt += 1
                    self._copy_standby()
                    rebuild_at = time.monotonic() + WHOLE_SECONDS
                time.sleep(POLL_SECONDS)

    def _needs_rebuild(self) -> bool:
        if self.standby is None:
            return True
        if self.standby.is_running():
            return self.standby.cannot_follow()
        try:
            self.standby.start()
        except ServerFailed:
            return True
        return False

    def _copy_standby(self) -> None:
        (standby,) = (node for node in self.nodes.values() if node is not self.primary)
        self.standby = standby
        standby.copy(self.primary)
        self._configure()
        standby.start()

    def _configure(self, *, is_synchronous: bool | None = None) -> None:
        if is_synchronous is None:
            is_synchronous = self.is_synchronous
        names = self.standby.name if is_synchronous and self.standby is not None else ""
        self.primary.configure({**self._settings, "synchronous_standby_names": names})
        if self.standby is not None:
            port = self._ports[self.primary.name]
            conninfo = (
                f"host=127.0.0.1 port={port} user={SUPERUSER} application_name={self.standby.name}"
                " connect_timeout=3"
            )
            self.standby.configure({**self._settings, "primary_conninfo": conninfo})

    def _is_whole(self) -> bool:
        try:
            if self.standby is None or not self.standby.is_running() or not self._streams():
                return False
            if not self.is_synchronous:
                self._make_synchronous()
            # This commit waits for the standby, and so for all that was committed before.
            self.primary.ask("select pg_logical_emit_message(true, 'chaos', '')", seconds=2.0)
        except UNREACHABLE:
            return False
        self.is_synchronous = True
        return True

    def _streams(self) -> bool:
        assert self.standby is not None, "it was looked at"
        return bool(
            self.primary.ask(
                "select true from pg_stat_replication where application_name = $1 and state = 'streaming'"
                " and ($2 or sync_state = 'sync')",
                self.standby.name,
                not self.is_synchronous,
            )
        )

    def _make_synchronous(self) -> None:
        self._configure(is_synchronous=True)
        # Backends wait once the checkpointer has read the setting, which it does before its next checkpoint.
        # A new session has the setting when the postmaster has, and it tells the checkpointer first.
        if not wait_until(lambda: self.primary.ask("show synchronous_standby_names") != "", 3.0):
            raise TimeoutError
        self.primary.ask("checkpoint", seconds=10.0)

    def _was_promoted(self, node: Node) -> bool:
        """Look until it is known: a request that was not answered may have been heard."""
        with suppress(*UNREACHABLE):
            return not node.ask("select pg_is_in_recovery()")
        node.start()
        return not node.ask("select pg_is_in_recovery()")


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _write_at_once(path: Path, text: str) -> None:
    """Replace the file, so that nobody reads half of it; the servers' user must be able to read it."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.chmod(0o644)
    draft.rename(path)
