"""A receiver that costs next to nothing, in a process of its own: it answers, and notes what came when.

``python -m benchmarks.receiver [how many ports]`` prints its ports, and last one that refuses every
connection. A POST to ``/hang`` is never answered, every other one at once. ``GET /count`` says how many came,
``GET /noted`` which and when (by the clock of the machine), ``GET /forget`` forgets them.
"""

import asyncio
import json
import signal
import socket
import sys
import time
from typing import cast

import uvloop

BACKLOG = 1024
LENGTH, DELIVERY = b"\r\nContent-Length: ", b"\r\nX-Service-Delivery: "
ID_LENGTH = 36
OK = (
    b"HTTP/1.1 200 OK\r\nServer: receiver\r\nDate: Sun, 15 Nov 2026 09:00:00 GMT\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
)


class Noted:
    def __init__(self) -> None:
        self.arrivals: list[tuple[bytes, int]] = []
        self.connections = 0

    def answer(self, path: bytes) -> bytes:
        if path == b"/count":
            return json.dumps({"arrivals": len(self.arrivals), "connections": self.connections}).encode()
        if path == b"/noted":
            return b"\n".join(b"%s %d" % arrival for arrival in self.arrivals)
        self.arrivals.clear()
        self.connections = 0
        return b""


class Receiving(asyncio.Protocol):
    """Reads only what the two senders write: whole header names as they spell them, bodies with a length."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self._arrivals = noted.arrivals
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._noted.connections += 1

    def data_received(self, data: bytes) -> None:
        if self._unread:
            data = self._unread + data
        head_end = data.find(b"\r\n\r\n")
        if head_end < 0:
            self._unread = data
        elif data.startswith(b"POST "):
            self._receive(data, head_end)
        else:
            self._unread = b""
            content = self._noted.answer(data[4 : data.index(b" ", 4)])
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)
            )

    def _receive(self, data: bytes, head_end: int) -> None:
        at = data.index(LENGTH) + len(LENGTH)
        end = head_end + 4 + int(data[at : data.index(b"\r", at)])
        if len(data) < end:
            self._unread = data
            return
        self._unread = data[end:]
        at = data.index(DELIVERY) + len(DELIVERY)
        self._arrivals.append((data[at : at + ID_LENGTH], time.time_ns()))
        if not data.startswith(b"POST /hang"):
            self._transport.write(OK)


async def receive(ports: int) -> None:
    noted, loop, stop = Noted(), asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    servers = [
        await loop.create_server(lambda: Receiving(noted), "127.0.0.1", 0, backlog=BACKLOG)
        for _ in range(ports)
    ]
    # Bound, and never listened on.
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        sockets = [server.sockets[0] for server in servers]
        print(*(one.getsockname()[1] for one in [*sockets, refusing]), flush=True)
        await stop.wait()


if __name__ == "__main__":
    uvloop.run(receive(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
