"""A socket on this machine that leads to a PostgreSQL service by TLS.

PostgreSQL's programs come from a wheel that was built without TLS. They speak plainly to a socket in a folder
that nobody else can enter, and what goes over the network is encrypted as all our own connections are.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from ssl import SSLContext
from typing import NamedTuple

PORT = 5432

_ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)
_GRANTED = b"S"
_CHUNK = 1 << 18
_GOODBYE_SECONDS = 1.0


class Service(NamedTuple):
    host: str
    port: int
    tls: SSLContext
    tls_only: bool
    """False: a server that has no TLS is spoken to without."""
    at_once: bool
    """TLS from the first byte, without asking for it."""


@asynccontextmanager
async def relayed(service: Service) -> AsyncIterator[Path]:
    """The folder of the socket."""
    relay = _Relay(service)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        server = await asyncio.start_unix_server(relay.take, Path(folder) / f".s.PGSQL.{PORT}", limit=_CHUNK)
        try:
            yield Path(folder)
        finally:
            server.close()
            await relay.close()


class _Relay:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Whatever goes wrong, the program sees its connection end, and says so."""
        with suppress(OSError, EOFError):
            try:
                far_reader, far_writer = await _reach(self._service)
                try:
                    await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
                finally:
                    await _let_go(far_writer)
            finally:
                await _let_go(writer)


async def _reach(service: Service) -> tuple[StreamReader, StreamWriter]:
    if service.at_once:
        return await asyncio.open_connection(service.host, service.port, limit=_CHUNK, ssl=service.tls)
    reader, writer = await asyncio.open_connection(service.host, service.port, limit=_CHUNK)
    try:
        writer.write(_ASK_FOR_TLS)
        if await reader.readexactly(1) == _GRANTED:
            await writer.start_tls(service.tls, server_hostname=service.host)
        elif service.tls_only:
            raise ConnectionError("The server has no TLS.")
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _let_go(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        async with asyncio.timeout(_GOODBYE_SECONDS):
            await writer.wait_closed()


async def _carry(source: StreamReader, target: StreamWriter) -> None:
    while chunk := await source.read(_CHUNK):
        target.write(chunk)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
    else:
        target.close()
