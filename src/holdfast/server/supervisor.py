"""Start the processes of one `serve`, restart those that end, and stop them all at the end."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from holdfast.server.sockets import StartError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 20.0

_TICK_SECONDS = 0.25
_FIRST_GAP_SECONDS = 0.1
_LONGEST_GAP_SECONDS = 5.0
_HEALTHY_AFTER_SECONDS = 10.0
_ENDS_BEFORE_READY = 3
_LONGEST_SILENCE_SECONDS, _MORE_AT_START = 10.0, 50.0
_READINESS_POLL_SECONDS = 0.05
_READINESS_TIMEOUT_SECONDS = 5.0
_READINESS_REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

_log = logging.getLogger(__name__)


class Supervisor:
    def __init__(
        self,
        web_listener: socket.socket,
        children: Sequence[Child],
        on_ready: Callable[[], None],
        on_tick: Callable[[], None],
    ) -> None:
        self._listener = web_listener
        self._children = children
        self._on_ready = on_ready
        self._on_tick = on_tick
        self._wake, self._waker = os.pipe()
        self._stop_requests = 0
        self._ready = False
        self._ends_before_ready = 0
        self._stopping = threading.Event()
        self._checked_at = time.monotonic()

    def run(self) -> None:
        """Return after a signal to stop, when all children have ended."""
        with self._handle_signals():
            threading.Thread(target=self._wait_until_ready, name="readiness", daemon=True).start()
            try:
                while self._stop_requests == 0:
                    for child in self._children:
                        self._ends_before_ready += not (child.start_if_due() or self._ready)
                    self._wait(_TICK_SECONDS)
                    self._check_children()
                    self._on_tick()
            finally:
                self._stopping.set()
                self._stop_children()

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        """Count signals to stop. The handlers stay, so that a second Ctrl-C does not interrupt the stop."""
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._request_stop)
        yield
        signal.set_wakeup_fd(-1)

    def _request_stop(self, *_: object) -> None:
        self._stop_requests += 1

    def _wait(self, seconds: float) -> None:
        """Wait for a signal, which the end of a child is too, or for so long."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 512)

    def _wait_until_ready(self) -> None:
        while not self._stopping.is_set():
            if _is_ready(self._listener):
                self._ready = True
                self._on_ready()
                return
            self._stopping.wait(_READINESS_POLL_SECONDS)

    def _check_children(self) -> None:
        # More time can have passed if this process was stopped itself, and perhaps its children too.
        elapsed = min(time.monotonic() - self._checked_at, 2 * _TICK_SECONDS)
        self._checked_at = time.monotonic()
        for child in self._children:
            if child.process is None:
                continue
            if (code := child.process.poll()) is not None:
                reason = f"signal {-code}" if code < 0 else f"exit {code}"
                _log.warning("%s (process %d) ended: %s", child.name, child.process.pid, reason)
                child.plan_restart()
                self._ends_before_ready += not self._ready
            elif child.is_hung(elapsed):
                _log.warning("%s (process %d) hangs and is killed", child.name, child.process.pid)
                child.process.kill()
                child.silent_seconds = 0.0
        if self._ends_before_ready >= _ENDS_BEFORE_READY:
            raise StartError(
                "Holdfast could not start: its processes end before they are ready; see the log above."
            )

    def _stop_children(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        kill_at = time.monotonic() + STOP_SECONDS
        while any(process.poll() is None for process in running):
            if time.monotonic() > kill_at or self._stop_requests > 1:
                for process in running:
                    with suppress(ProcessLookupError):
                        process.kill()
            self._wait(0.05)


@dataclass(slots=True)
class Child:
    name: str
    """That of its module, and perhaps a number."""
    settings: Mapping[str, str]
    options: dict[str, Any]
    """Of Popen: its environment and its user."""
    listeners: Sequence[socket.socket] = ()
    process: subprocess.Popen[bytes] | None = None
    stdin: socket.socket | None = None
    silent_seconds: float = -_MORE_AT_START
    started_at: float = 0.0
    due_at: float = 0.0
    gap_seconds: float = _FIRST_GAP_SECONDS

    def start_if_due(self) -> bool:
        """Return False if that failed. Its session keeps the terminal's Ctrl-C for the supervisor alone."""
        now = time.monotonic()
        if self.process is not None or self.due_at > now:
            return True
        self.started_at, self.silent_seconds = now, -_MORE_AT_START
        descriptors = [listener.fileno() for listener in self.listeners]
        try:
            self.stdin, own_end = socket.socketpair()
            with own_end:
                self.process = subprocess.Popen(
                    python_module(self.name.split()[0], *map(str, descriptors)),
                    stdin=own_end.fileno(),
                    stdout=sys.stderr.fileno(),
                    pass_fds=descriptors,
                    start_new_session=True,
                    **self.options,
                )
            self.stdin.sendall(json.dumps(self.settings).encode() + b"\n")
        except OSError as error:
            _log.warning("%s could not be started: %s", self.name, error)
            self.plan_restart()
            return False
        return True

    def is_hung(self, elapsed: float) -> bool:
        """Read its heartbeats, or count the time without one."""
        self.silent_seconds += elapsed
        with suppress(OSError):  # there is none
            if self.stdin is not None and self.stdin.recv(4096, socket.MSG_DONTWAIT):
                self.silent_seconds = 0.0
        return self.silent_seconds > _LONGEST_SILENCE_SECONDS

    def plan_restart(self) -> None:
        """A process that had worked starts again almost at once, one that keeps ending ever more slowly."""
        now = time.monotonic()
        if self.stdin is not None:
            self.stdin.close()
        if now - self.started_at > _HEALTHY_AFTER_SECONDS:
            self.gap_seconds = _FIRST_GAP_SECONDS
        self.process, self.due_at = None, now + self.gap_seconds
        self.gap_seconds = min(2 * self.gap_seconds, _LONGEST_GAP_SECONDS)


def python_module(name: str, *arguments: str) -> list[str]:
    """-P: a folder named holdfast in the user's current directory is not imported."""
    return [sys.executable, "-P", "-m", f"holdfast.server.{name}", *arguments]


def _is_ready(listener: socket.socket) -> bool:
    """The kernel accepts the connection at once, so the response comes as soon as a process serves."""
    host, port, *_ = listener.getsockname()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
    try:
        with socket.socket(listener.family) as connection:
            connection.settimeout(_READINESS_TIMEOUT_SECONDS)
            connection.connect((host, port))
            connection.sendall(_READINESS_REQUEST)
            return connection.recv(64).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False
