"""`holdfast` processes, started as their users start them, and a real `holdfast serve`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

HOLDFAST = Path(sys.executable).with_name("holdfast")
READY = "Holdfast is ready at "
# What seals the secrets of endpoints, and where receivers of the tests are.
WEBHOOKS = {
    "HOLDFAST_ENCRYPTION_KEYS": "bm90IGEgc2VjcmV0LCBmb3IgdGVzdHMgYWxvbmUgISE=",
    "HOLDFAST_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
}
PATIENCE_SECONDS = 180
"""For what normally ends by itself: on a busy machine it takes many times as long."""
STOP_SECONDS = PATIENCE_SECONDS
LOOK_SECONDS = 0.02


def _reset_ignored_signals() -> None:
    """Children inherit that a signal is ignored, as under nohup, but not a handler that does nothing."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


_reset_ignored_signals()


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without its own HOLDFAST settings, and with these; an empty one is not set."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {**outside, **WEBHOOKS, **settings}


def wait_until(is_so: Callable[[], Any]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < give_up_at, "waited in vain"
        time.sleep(LOOK_SECONDS)


@contextmanager
def started(settings: Mapping[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A `holdfast` process with pipes for its output; it has ended and they are closed after the block."""
    process = subprocess.Popen(
        [HOLDFAST, *arguments],
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """In good order if it can be, so that it stops its children too."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@dataclass
class RunningServer:
    address: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        end(self.process)


@contextmanager
def serving(folder: Path, settings: Mapping[str, str], *arguments: str) -> Iterator[RunningServer]:
    server = start(folder, settings, *arguments)
    try:
        yield server
    finally:
        server.stop()


def start(folder: Path, settings: Mapping[str, str], *arguments: str) -> RunningServer:
    folder.mkdir(parents=True, exist_ok=True)
    log, output = folder / "serve.log", folder / f"serve-{uuid4().hex}.out"
    with log.open("a") as stderr, output.open("w") as stdout:
        process = subprocess.Popen(
            [HOLDFAST, "serve", "--port", "0", *arguments],
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=environment(settings),
            start_new_session=True,
        )
    try:
        wait_until(lambda: READY in output.read_text() or process.poll() is not None)
        assert process.poll() is None, f"serve did not become ready:\n{log.read_text()[-5000:]}"
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    ready = next(line for line in output.read_text().splitlines() if line.startswith(READY))
    return RunningServer(ready.removeprefix(READY), process, log)
