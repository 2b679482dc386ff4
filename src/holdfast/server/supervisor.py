"""Asks the service itself whether it is ready, through the socket that its users will use."""

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

_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 0.05
_REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def wait_until_ready(listener: socket.socket, give_up: threading.Event) -> bool:
    while not give_up.is_set():
        if _is_ready(listener):
            return True
        give_up.wait(_PAUSE_SECONDS)
    return False


def _is_ready(listener: socket.socket) -> bool:
    """The kernel takes the connection at once, so the answer comes as soon as a process serves."""
    try:
        with socket.socket(listener.family) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(_reachable(listener.getsockname()))
            connection.sendall(_REQUEST)
            return connection.recv(64).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def _reachable(address: tuple[str, int]) -> tuple[str, int]:
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
    return loopback.get(address[0], address[0]), address[1]


# Starts the processes of one `serve`, starts a dead one again, and takes them all along when it ends.

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_TICK_SECONDS = 0.25
_FIRST_GAP_SECONDS = 0.1
_LONGEST_GAP_SECONDS = 5.0
_HEALTHY_AFTER_SECONDS = 10.0
_LEAVE_SECONDS = 20.0
_DEATHS_BEFORE_READY = 3

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Child:
    name: str
    module: str
    descriptors: tuple[int, ...]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    gap_seconds: float = _FIRST_GAP_SECONDS

    def note_death(self, now: float) -> None:
        """A process that keeps dying is started ever more slowly, one that had worked almost at once."""
        lived_well = now - self.started_at > _HEALTHY_AFTER_SECONDS
        gap = _FIRST_GAP_SECONDS if lived_well else self.gap_seconds
        self.process = None
        self.due_at = now + gap
        self.gap_seconds = min(2 * gap, _LONGEST_GAP_SECONDS)


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
    ) -> None:
        self._listeners = listeners
        self._companions = companions
        self._environment = dict(environment)
        self._on_ready = on_ready
        self._on_tick = on_tick
        # Closed by the kernel when this process ends, in whatever way; each child waits for that.
        self._lifeline, self._lifeline_end = os.pipe()
        self._wake, self._waker = os.pipe()
        self._stop_requests = 0
        self._ready = False
        self._deaths_before_ready = 0
        self._given_up = threading.Event()
        self._children = self._plan()

    def _plan(self) -> list[Child]:
        """A web process for each socket."""
        children = [
            Child(f"web {number}", "web", (listener.fileno(), self._lifeline), self._environment)
            for number, listener in enumerate(self._listeners, start=1)
        ]
        children.append(Child("work", "work", (self._lifeline,), self._environment))
        for module, listener, environment in self._companions:
            children.append(Child(module, module, (listener.fileno(), self._lifeline), environment))
        return children

    def run(self) -> None:
        """Returns when asked to stop by a signal, with all children gone."""
        with self._noting_signals():
            threading.Thread(target=self._wait_until_ready, name="readiness", daemon=True).start()
            try:
                while self._stop_requests == 0:
                    self._start_due()
                    self._rest()
                    self._note_deaths()
                    self._on_tick()
            finally:
                self._given_up.set()
                self._take_along()

    @contextmanager
    def _noting_signals(self) -> Iterator[None]:
        """The handlers stay: what follows a stop is not to be torn apart by a second Ctrl-C."""
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

    def _rest(self, seconds: float = _TICK_SECONDS) -> None:
        """Until a signal comes, a child's end included, or the next tick."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 512)

    def _wait_until_ready(self) -> None:
        if wait_until_ready(self._listeners[0], self._given_up):
            self._ready = True
            self._on_ready()

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if child.process is None and child.due_at <= now:
                child.started_at = now
                child.process = self._spawn(child)

    def _spawn(self, child: Child) -> subprocess.Popen[bytes]:
        """In a session of its own, so that the terminal's Ctrl-C comes to the supervisor alone."""
        return subprocess.Popen(
            python_module(child.module, *map(str, child.descriptors)),
            env=child.environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            pass_fds=child.descriptors,
            start_new_session=True,
        )

    def _note_deaths(self) -> None:
        for child in self._children:
            if child.process is not None and child.process.poll() is not None:
                _log.warning("%s (process %d) ended: %s", child.name, child.process.pid, _how(child.process))
                child.note_death(time.monotonic())
                self._deaths_before_ready += not self._ready
        if self._deaths_before_ready >= _DEATHS_BEFORE_READY:
            raise StartError(
                "Holdfast could not start: its processes end before they are ready; see the log above."
            )

    def _take_along(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        give_up_at = time.monotonic() + _LEAVE_SECONDS
        while any(process.poll() is None for process in running):
            if time.monotonic() > give_up_at or self._stop_requests > 1:
                self._kill(running)
            self._rest(0.05)

    def _kill(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()


def python_module(name: str, *arguments: str) -> list[str]:
    """-P: a folder named holdfast where the user happens to be is not ours."""
    return [sys.executable, "-P", "-m", f"holdfast.server.{name}", *arguments]


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"signal {-code}" if code < 0 else f"exit {code}"
