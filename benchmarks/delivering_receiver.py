"""The receiver as the harness sees it: started, asked what came, stopped."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants import TOP
from benchmarks.processes import cpu_seconds, running


@dataclass(frozen=True, slots=True)
class Arrival:
    delivery_id: str
    at: float
    """Seconds since 1970, by the clock that the database has too."""


@dataclass(frozen=True, slots=True)
class Counts:
    arrivals: int
    connections: int


@dataclass(frozen=True, slots=True)
class Receiver:
    pid: int
    ports: list[int]
    refusing_port: int
    connection: socket.socket

    def urls(self, count: int) -> list[str]:
        """Each with a port of its own, as receivers have hosts of their own."""
        return [f"http://127.0.0.1:{port}/hook" for port in self.ports[:count]]

    @property
    def hanging_url(self) -> str:
        return f"http://127.0.0.1:{self.ports[-1]}/hang"

    @property
    def refusing_url(self) -> str:
        return f"http://127.0.0.1:{self.refusing_port}/hook"

    def counts(self) -> Counts:
        return Counts(**json.loads(self._ask("/count")))

    def arrivals(self) -> list[Arrival]:
        lines = (line.split() for line in self._ask("/noted").decode().splitlines())
        return [Arrival(delivery_id, int(nanoseconds) / 1e9) for delivery_id, nanoseconds in lines]

    def forget(self) -> None:
        self._ask("/forget")

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def _ask(self, path: str) -> bytes:
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        received = bytearray()
        while (head_end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        length = int(received[:head_end].rpartition(b" ")[2])
        while len(received) < head_end + 4 + length:
            received += self._more()
        return bytes(received[head_end + 4 :])

    def _more(self) -> bytes:
        received = self.connection.recv(1 << 20)
        if not received:
            raise ConnectionError("The receiver closed the connection.")
        return received


@contextmanager
def receiving(logs: Path, ports: int) -> Iterator[Receiver]:
    """One port more than asked for is the one that hangs."""
    log = logs / "receiver.log"
    command = [sys.executable, "-m", "benchmarks.receiver", str(ports + 1)]
    environment = {"PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
    with running(command, environment, log, lambda: log.read_bytes().endswith(b"\n")) as process:
        *listening, refusing = (int(port) for port in log.read_text().split())
        with socket.create_connection(("127.0.0.1", listening[0]), timeout=60) as connection:
            yield Receiver(process.pid, listening, refusing, connection)
