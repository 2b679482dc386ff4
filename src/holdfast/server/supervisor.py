"""Start the processes of one `serve`, restart those that end, and stop them all at the end."""

from __future__ import annotations

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
from typing import NamedTuple

from holdfast.server.sockets import StartError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 20.0

_TICK_SECONDS = 0.25
_FIRST_GAP_SECONDS = 0.1
_LONGEST_GAP_SECONDS = 5.0
_HEALTHY_AFTER_SECONDS = 10.0
_ENDS_BEFORE_READY = 3
_READINESS_POLL_SECONDS = 0.05
_READINESS_TIMEOUT_SECONDS = 5.0
_READINESS_REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

_log = logging.getLogger(__name__)


class Companion(NamedTuple):
    """A process that is no part of the service: it has a socket and an environment of its own."""

    module: str
    listener: socket.socket
    environment: Mapping[str, str]


class Supervisor:
    def __init__(
        self,
        listeners: Sequence[socket.socket],
        environment: Mapping[str, str],
        on_ready: Callable[[], None],
        on_tick: Callable[[], None],
        companions: Sequence[Companion] = (),
        metrics_listener: socket.socket | None = None,
    ) -> None:
        self._listener = listeners[0]
        self._on_ready = on_ready
        self._on_tick = on_tick
        # Closed by the kernel when this process ends, in whatever way; each child waits for that.
        lifeline, self._lifeline_end = os.pipe()
        self._wake, self._waker = os.pipe()
        metrics = () if metrics_listener is None else (metrics_listener.fileno(),)
        self._stop_requests = 0
        self._ready = False
        self._ends_before_ready = 0
        self._stopping = threading.Event()
        self._children = [
            *(
                _Child(f"web {number}", "web", (listener.fileno(), lifeline, *metrics), environment)
                for number, listener in enumerate(listeners, start=1)
            ),
            _Child("work", "work", (lifeline,), environment),
            *(
                _Child(each.module, each.module, (each.listener.fileno(), lifeline), each.environment)
                for each in companions
            ),
        ]

    def run(self) -> None:
        """Return after a signal to stop, when all children have ended."""
        with self._handle_signals():
            threading.Thread(target=self._wait_until_ready, name="readiness", daemon=True).start()
            try:
                while self._stop_requests == 0:
                    for child in self._children:
                        child.start_if_due()
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
        for child in self._children:
            if child.process is not None and (code := child.process.poll()) is not None:
                reason = f"signal {-code}" if code < 0 else f"exit {code}"
                _log.warning("%s (process %d) ended: %s", child.name, child.process.pid, reason)
                child.plan_restart()
                self._ends_before_ready += not self._ready
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
class _Child:
    name: str
    module: str
    descriptors: tuple[int, ...]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    gap_seconds: float = _FIRST_GAP_SECONDS

    def start_if_due(self) -> None:
        """Start it in a session of its own, so that the terminal's Ctrl-C reaches the supervisor alone."""
        now = time.monotonic()
        if self.process is not None or self.due_at > now:
            return
        self.started_at = now
        self.process = subprocess.Popen(
            python_module(self.module, *map(str, self.descriptors)),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            pass_fds=self.descriptors,
            start_new_session=True,
        )

    def plan_restart(self) -> None:
        """A process that had worked starts again almost at once, one that keeps ending ever more slowly."""
        now = time.monotonic()
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
