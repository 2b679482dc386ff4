"""A client that costs next to nothing: one kept-alive connection, one request at a time."""

import socket
import time
from types import TracebackType

from benchmarks.contestants import Contestant
from benchmarks.wrk import InvalidRun


class OneConnection:
    def __init__(self, contestant: Contestant, *, as_buyer: bool = False, cookie: str | None = None) -> None:
        """A buyer has no key, and sends no body; staff have a cookie."""
        self._name = contestant.name
        known = f"Authorization: Bearer {contestant.ground.key}\r\nContent-Type: application/json\r\n"
        if cookie is not None:
            known = f"Cookie: {cookie}\r\nAccept: text/html\r\n"
        self._head = f" HTTP/1.1\r\nHost: 127.0.0.1\r\n{'' if as_buyer else known}Content-Length: "
        self._socket = socket.create_connection(("127.0.0.1", contestant.port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "OneConnection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._socket.close()

    def request(self, method: str, target: str, body: str = "") -> tuple[float, bytes]:
        """Seconds from the first byte out to the last byte in, and the body of a 2xx answer."""
        content = body.encode()
        message = f"{method} {target}{self._head}{len(content)}\r\n\r\n".encode() + content
        started = time.perf_counter()
        self._socket.sendall(message)
        status, answer = self._answer()
        taken = time.perf_counter() - started
        if not 200 <= status < 300:
            raise InvalidRun(f"{self._name}: {method} {target} was answered {status}: {answer[:300]!r}")
        return taken, answer

    def _answer(self) -> tuple[int, bytes]:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, content = received.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line[:15].lower() == b"content-length:")
        pieces, missing = [content], length - len(content)
        while missing > 0:
            pieces.append(self._receive())
            missing -= len(pieces[-1])
        return int(lines[0][9:12]), b"".join(pieces)

    def _receive(self) -> bytes:
        received = self._socket.recv(1 << 20)
        if not received:
            raise InvalidRun(f"{self._name} closed the connection.")
        return received
