"""A relay in front of PostgreSQL, whose network a test disturbs."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

from tests.support.ports import bind_shared

SO_ATTACH_FILTER = 26
_DROP_EVERYTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
_PROGRAM = struct.pack("HL", 1, ctypes.addressof(_DROP_EVERYTHING))
_RESET_AT_ONCE = struct.pack("ii", 1, 0)

# A driver that would like TLS, or GSSAPI, asks for it before it says who it is.
_ENCRYPTION_REQUESTS = (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30")
_WAITING_LIMIT = 1 << 20
_TRICKLE_SECONDS = 0.05
_END = b""


@dataclass
class Line:
    """The state of the network for the connections that share it."""

    passes: bool = True
    delay: float = 0.0
    """Seconds, for each direction."""
    bytes_per_second: int | None = None

    @property
    def is_clear(self) -> bool:
        return self.passes and not self.delay and self.bytes_per_second is None


class Relay:
    connection_type: type[Connection]

    def __init__(self, server: str | int) -> None:
        """``server``: the path of its socket, or its port on this machine."""
        self._server = server
        self.port = 0
        self.greetings: list[bytes] = []
        """The first bytes of each connection, with the parameters of its session."""
        self.connections: set[Connection] = set()
        self.line = Line()
        self.withheld_bytes = 0
        """Had to wait because the line was not clear."""
        self._reserving: socket.socket | None = None
        self._listening: asyncio.Server | None = None
        self._connecting: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Relay]:
        self.reserve_port()
        await self.accept()
        try:
            yield self
        finally:
            self.refuse()
            for task in self._connecting:
                task.cancel()
            await asyncio.gather(*self._connecting, return_exceptions=True)
            for connection in list(self.connections):
                connection.abort()
            self.release_port()

    def reserve_port(self) -> None:
        """Keep a port for this relay, also while it refuses connections."""
        if self._reserving is None:
            self._reserving = bind_shared()
            self.port = self._reserving.getsockname()[1]

    def release_port(self) -> None:
        if self._reserving is not None:
            self._reserving.close()
            self._reserving = None

    async def accept(self) -> None:
        if self._listening is None:
            self._listening = await asyncio.get_running_loop().create_server(
                lambda: self.connection_type(self).client, sock=bind_shared(self.port), backlog=512
            )

    def refuse(self) -> None:
        """Let the kernel reset whoever connects, as if no server ran."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def hang(self) -> None:
        """Pass nothing on; the kernel of its machine still acknowledges what it receives."""
        self.line.passes = False

    def go_on(self) -> None:
        """Pass on what was withheld, and everything else at once."""
        self.line.passes, self.line.delay, self.line.bytes_per_second = True, 0.0, None
        for connection in list(self.connections):
            connection.client.pump()
            connection.server.pump()

    def vanish(self) -> None:
        """Let neither side get another packet from the connections that there are, not even a farewell."""
        self.hang()
        for connection in self.connections:
            connection.lose()

    def come_back(self) -> None:
        """For connections that are opened from now on."""
        self.line = Line()

    def cut(self) -> int:
        """Reset all connections, and return how many there were."""
        found = [connection for connection in self.connections if not connection.is_lost]
        for connection in found:
            connection.abort()
        return len(found)

    def connect(self, connection: Connection) -> None:
        task = asyncio.create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        try:
            if isinstance(self._server, str):
                await loop.create_unix_connection(lambda: connection.server, self._server)
            else:
                await loop.create_connection(lambda: connection.server, "127.0.0.1", self._server)
        except OSError:
            connection.abort()


class Connection:
    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.line = relay.line
        self.client, self.server = End(self), End(self)
        self.is_lost = False
        """Neither side learns any more what becomes of the other."""
        self._greeting: bytes | None = b""

    def abort(self) -> None:
        self.client.reset()
        self.server.reset()
        self.relay.connections.discard(self)

    def lose(self) -> None:
        self.is_lost, self.line = True, Line(passes=False)
        self.client.drop_packets()
        self.server.drop_packets()

    def received(self, end: End, data: bytes) -> None:
        if end is self.server:
            self.to_client(data)
        elif self._greeting is None:
            self.to_server(data)
        else:
            self._greet(self._greeting + data)

    def to_server(self, data: bytes) -> None:
        self.server.give(data)

    def to_client(self, data: bytes) -> None:
        self.client.give(data)

    def closed(self, end: End) -> None:
        if not self.is_lost:
            self._other(end).give(_END)
        if self.client.is_closed and (self.server.is_closed or self.server.transport is None):
            self.relay.connections.discard(self)

    def flow(self, end: End, *, is_full: bool) -> None:
        """Read from one side no faster than the other takes it."""
        transport = self._other(end).transport
        if transport is not None and not transport.is_closing():
            transport.pause_reading() if is_full else transport.resume_reading()

    def _other(self, end: End) -> End:
        return self.server if end is self.client else self.client

    def _greet(self, data: bytes) -> None:
        if data[4:8] in _ENCRYPTION_REQUESTS:
            assert self.client.transport is not None
            self.client.transport.write(b"N")
            data = data[8:]
        self._greeting = data
        if len(data) >= 8 and len(data) >= int.from_bytes(data[:4]):
            self._greeting = None
            self.greeted(data)

    def greeted(self, greeting: bytes) -> None:
        self.relay.greetings.append(greeting)
        self.relay.connect(self)
        self.server.give(greeting)


Relay.connection_type = Connection


class End(asyncio.Protocol):
    """One end of a connection, with what is yet to be written to it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._waiting_bytes = 0
        self._writable = True
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def peer_port(self) -> int:
        assert self.transport is not None
        return int(self.transport.get_extra_info("peername")[1])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._connection.relay.connections.add(self._connection)
        self.pump()

    def data_received(self, data: bytes) -> None:
        self._connection.received(self, data)

    def connection_lost(self, _: Exception | None) -> None:
        self.is_closed = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._connection.closed(self)

    def pause_writing(self) -> None:
        self._writable = False
        self._connection.flow(self, is_full=True)

    def resume_writing(self) -> None:
        self._writable = True
        self.pump()

    def give(self, data: bytes) -> None:
        """Write it as soon as the line lets it pass; ``_END`` closes."""
        if self.is_closed:
            return
        line = self._connection.line
        if line.is_clear and self.transport is not None and self._writable and not self._waiting:
            self._write(data)
            return
        if not line.is_clear:
            self._connection.relay.withheld_bytes += len(data)
        self._waiting.append((self._loop.time() + line.delay, data))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > _WAITING_LIMIT:
            self._connection.flow(self, is_full=True)
        self.pump()

    def pump(self) -> None:
        """Write what is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.transport is None or self.is_closed or not self._connection.line.passes:
            return
        now = self._loop.time()
        while self._waiting and self._writable and self._waiting[0][0] <= now:
            self._write_next(now)
        if not self._writable:
            return
        if self._waiting:
            self._timer = self._loop.call_at(self._waiting[0][0], self.pump)
        if self._waiting_bytes <= _WAITING_LIMIT:
            self._connection.flow(self, is_full=False)

    def reset(self) -> None:
        if self.transport is not None and not self.is_closed:
            found = self.transport.get_extra_info("socket")
            if found.family == socket.AF_INET:
                with suppress(OSError):
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_ONCE)
            self.transport.abort()

    def drop_packets(self) -> None:
        if self.transport is not None and not self.is_closed:
            found = self.transport.get_extra_info("socket")
            if found.family == socket.AF_INET:
                found.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _PROGRAM)

    def _write_next(self, now: float) -> None:
        _, data = self._waiting.popleft()
        speed = self._connection.line.bytes_per_second
        if speed is not None:
            size = max(1, int(speed * _TRICKLE_SECONDS))
            if len(data) > size:
                self._waiting.appendleft((now + _TRICKLE_SECONDS, data[size:]))
                data = data[:size]
        self._waiting_bytes -= len(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        assert self.transport is not None
        if self.transport.is_closing():
            return
        if data:
            self.transport.write(data)
        else:
            self.transport.close()
