"""A relay in front of PostgreSQL, whose machine can hang or vanish."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

SO_ATTACH_FILTER = 26
_DROP_EVERYTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
_PROGRAM = struct.pack("HL", 1, ctypes.addressof(_DROP_EVERYTHING))


class Relay:
    def __init__(self, server: str | int) -> None:
        """``server``: the path of its socket, or its port on this machine."""
        self._server = server
        self.port = 0
        self.greetings: list[bytes] = []
        """The first bytes of each connection, with the parameters of its session."""
        self._passes_on = asyncio.Event()
        self._passes_on.set()
        self._writers: list[StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Relay]:
        listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listening.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def hang(self) -> None:
        """Pass nothing on; the kernel of its machine still acknowledges what it receives."""
        self._passes_on.clear()

    def vanish(self) -> None:
        """Let neither side get another packet from the connections that there are, not even a farewell."""
        self.hang()
        for writer in self._writers:
            found = writer.get_extra_info("socket")
            if found.family == socket.AF_INET:
                found.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _PROGRAM)

    def come_back(self) -> None:
        """For connections that are opened from now on."""
        self._passes_on = asyncio.Event()
        self._passes_on.set()

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._writers.append(writer)
        far_writer = None
        try:
            with suppress(OSError, EOFError):
                # A driver that would like TLS asks for it first.
                if (first := await reader.readexactly(8)).endswith(b"\x04\xd2\x16\x2f"):
                    writer.write(b"N")
                    first = await reader.readexactly(8)
                first += await reader.readexactly(int.from_bytes(first[:4]) - 8)
                self.greetings.append(first)
                if isinstance(self._server, str):
                    far_reader, far_writer = await asyncio.open_unix_connection(self._server)
                else:
                    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server)
                self._writers.append(far_writer)
                far_writer.write(first)
                passes_on = self._passes_on
                async with asyncio.TaskGroup() as group:
                    group.create_task(_carry(reader, far_writer, passes_on))
                    group.create_task(_carry(far_reader, writer, passes_on))
        finally:
            for one in (writer, far_writer):
                if one is not None:
                    one.transport.abort()


async def _carry(source: StreamReader, target: StreamWriter, passes_on: asyncio.Event) -> None:
    with suppress(OSError):
        while chunk := await source.read(1 << 16):
            await passes_on.wait()
            target.write(chunk)
            await target.drain()
        await passes_on.wait()
        target.close()
