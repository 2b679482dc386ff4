"""A real `holdfast serve`, started as its users start it."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HOLDFAST = Path(sys.executable).with_name("holdfast")
READY = "Holdfast is ready at "
# What seals the secrets of endpoints, and where receivers of the tests are.
WEBHOOKS = {
    "HOLDFAST_ENCRYPTION_KEYS": "bm90IGEgc2VjcmV0LCBmb3IgdGVzdHMgYWxvbmUgISE=",
    "HOLDFAST_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
}
START_SECONDS = 60
STOP_SECONDS = 30


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without its own HOLDFAST settings, and with these; an empty one is not set."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {**outside, **WEBHOOKS, **settings}


@dataclass
class RunningServer:
    address: str
    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOP_SECONDS)


@contextmanager
def serving(folder: Path, settings: Mapping[str, str], *arguments: str) -> Iterator[RunningServer]:
    server = start(folder, settings, *arguments)
    try:
        yield server
    finally:
        server.stop()


def start(folder: Path, settings: Mapping[str, str], *arguments: str) -> RunningServer:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [HOLDFAST, "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=folder,
            env=environment(settings),
            start_new_session=True,
        )
    try:
        return RunningServer(_wait_until_ready(process, log), process, log)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _wait_until_ready(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    ready: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_find_ready_line, args=(process.stdout, ready), daemon=True).start()
    try:
        address = ready.get(timeout=START_SECONDS)
    except queue.Empty:
        address = None
    assert address is not None, f"serve did not become ready:\n{log.read_text()[-5000:]}"
    return address


def _find_ready_line(stdout: IO[str], ready: "queue.Queue[str | None]") -> None:
    """Reads to the end, so that the server never waits for a full pipe."""
    with stdout:
        for line in stdout:
            if line.startswith(READY):
                ready.put(line.removeprefix(READY).strip())
    ready.put(None)
