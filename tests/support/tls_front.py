"""TLS in front of a PostgreSQL that has none, as the services of clouds have it."""

from __future__ import annotations

import asyncio
import ssl
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

_ASKED_FOR_TLS = struct.pack("!ii", 8, 80877103)


@dataclass
class TlsFront:
    socket_path: str
    tls: ssl.SSLContext | None
    """None: whoever asks for TLS is told that there is none."""
    port: int = 0
    encrypted: int = 0
    """Connections that were."""
    plain: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            with suppress(OSError, EOFError):
                first = await self._first(reader, writer)
                far_reader, far_writer = await asyncio.open_unix_connection(self.socket_path)
                far_writer.write(first)
                try:
                    await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
                finally:
                    far_writer.transport.abort()
        finally:
            writer.transport.abort()

    async def _first(self, reader: StreamReader, writer: StreamWriter) -> bytes:
        first = await reader.readexactly(8)
        if first == _ASKED_FOR_TLS and self.tls is not None:
            writer.write(b"S")
            await writer.start_tls(self.tls)
            self.encrypted += 1
            return b""
        self.plain += 1
        if first != _ASKED_FOR_TLS:
            return first
        writer.write(b"N")
        return b""


@asynccontextmanager
async def tls_front(socket_path: str, tls: ssl.SSLContext | None) -> AsyncIterator[TlsFront]:
    front = TlsFront(socket_path, tls)
    server = await asyncio.start_server(front.take, "127.0.0.1", 0)
    front.port = server.sockets[0].getsockname()[1]
    try:
        yield front
    finally:
        server.close()
        for task in front.tasks:
            task.cancel()
        await asyncio.gather(*front.tasks, return_exceptions=True)


async def _carry(source: StreamReader, target: StreamWriter) -> None:
    while chunk := await source.read(1 << 16):
        target.write(chunk)
        await target.drain()
    target.close()
