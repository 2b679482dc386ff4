"""Two installations of `holdfast serve`, each with a supervisor, a web process and a worker."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.ports import free_port
from tests.support.server import HOLDFAST, READY, environment

READY_SECONDS = 60.0
METRICS_TOKEN = "metrics-of-the-chaos-run"
CHILDREN = ("web", "work")


class Server:
    """One `holdfast serve` on a port that it keeps over all its starts."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, str], prefix: Sequence[str]) -> None:
        self.name, self.port = name, free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"serve-{name}.log"
        self._output = folder / f"serve-{name}.out"
        self._prefix = prefix
        # What a killed process leaves of its temporary files is removed with the folder.
        self._settings = {
            **settings,
            "HOLDFAST_DATA_DIR": str(folder / f"data-{name}"),
            "TMPDIR": str(folder),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("a") as stderr, self._output.open("w") as stdout:
            self._process = subprocess.Popen(
                [*self._prefix, HOLDFAST, "serve", "--port", str(self.port)],
                stdout=stdout,
                stderr=stderr,
                env=environment(self._settings),
                start_new_session=True,
            )

    async def wait_until_ready(self) -> None:
        async with asyncio.timeout(READY_SECONDS):
            while READY not in self._output.read_text():
                if self._process is None or self._process.poll() is not None:
                    raise AssertionError(f"{self.name} did not start:\n{self.log.read_text()[-4000:]}")
                await asyncio.sleep(0.05)

    @property
    def supervisor(self) -> psutil.Process:
        assert self._process is not None
        return psutil.Process(self._process.pid)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def child(self, kind: str) -> psutil.Process | None:
        """Return its web process or its worker, if it runs now."""
        with suppress(psutil.Error):
            for child in self.supervisor.children():
                with suppress(psutil.Error):
                    if f"holdfast.server.{kind}" in child.cmdline():
                        return child
        return None

    def processes(self) -> dict[str, psutil.Process]:
        """Return all that run, by a name that a restarted process does not share with the one before."""
        found = {}
        if self.is_running:
            for kind in CHILDREN:
                if (child := self.child(kind)) is not None:
                    found[f"{kind} {self.name}:{child.pid}"] = child
            found[f"supervisor {self.name}:{self.supervisor.pid}"] = self.supervisor
        return found

    async def stop(self, seconds: float = 40.0) -> None:
        """Stop it in good order; what does not end in time is killed."""
        if self._process is None:
            return
        with suppress(psutil.Error):
            for process in (*self.supervisor.children(), self.supervisor):
                process.send_signal(signal.SIGCONT)
        if self._process.poll() is None:
            self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, seconds)
        except subprocess.TimeoutExpired:
            await self.kill_all()

    async def kill_all(self) -> None:
        """Kill every process of it at once."""
        with suppress(psutil.Error):
            for process in self.supervisor.children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
        await self.kill()

    async def kill(self) -> None:
        """Kill the supervisor; its children end by themselves, since its sockets to them are closed."""
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)


class Servers:
    def __init__(self, folder: Path, settings: Mapping[str, str], prefix: Sequence[str] = ()) -> None:
        settings = {**settings, "HOLDFAST_METRICS_TOKEN": METRICS_TOKEN}
        self.all = [Server(name, folder, settings, prefix) for name in ("one", "two")]

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.all]

    async def start(self) -> None:
        """Start the first one alone: it makes the schema."""
        for server in self.all:
            server.start()
            await server.wait_until_ready()

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self.all))
