"""PostgreSQL's programs, and how they reach the server that our own connections reach."""

from __future__ import annotations

import asyncio
import struct
import tempfile
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from ssl import SSLContext
from typing import Any, NamedTuple

import asyncpg
from asyncpg import connect_utils as driver

from holdfast.storage.database import Connection, connect, translate_errors
from holdfast.storage.embedded.cluster import environment, folder_of
from holdfast.storage.errors import BackupError

NEWEST_SERVER = 18
_CHUNK = 1 << 20


class Program:
    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process
        assert process.stderr is not None
        self._errors = asyncio.create_task(process.stderr.read())

    async def chunks(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(_CHUNK):
            yield chunk

    async def line(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.readline()

    async def take(self, chunk: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(chunk)
        await self._process.stdin.drain()

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def finish(self) -> None:
        """Wait for the end of the program, and raise BackupError if it failed."""
        errors_text = (await self._errors).decode(errors="replace")
        if await self._process.wait() != 0:
            raise BackupError(f"PostgreSQL's {self._name} failed: {_first_error(errors_text)}")

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._errors


@asynccontextmanager
async def running(
    name: str, variables: Mapping[str, str], *arguments: str, takes_input: bool = True
) -> AsyncIterator[Program]:
    """In a session of its own, so that the terminal's Ctrl-C ends it through us, in order."""
    process = await asyncio.create_subprocess_exec(
        folder_of(NEWEST_SERVER) / "bin" / name,
        *arguments,
        stdin=PIPE if takes_input else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**environment(), **variables},
        limit=_CHUNK,
        start_new_session=True,
    )
    program = Program(name, process)
    try:
        yield program
    finally:
        await program.end()


def _first_error(errors_text: str) -> str:
    """Return the first error; the others are its consequences."""
    lines = [line.strip() for line in errors_text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line.lower()]
    return (errors or lines or ["it does not say why"])[0]


# A relay to a PostgreSQL service by TLS. It is needed because the pg_dump and psql of the wheel are built
# without TLS. They connect to a socket in a private folder, and the relay encrypts the network connection.

PORT = 5432

_ASK_FOR_TLS = struct.pack("!ii", 8, 80877103)
_GRANTED = b"S"
_RELAY_CHUNK = 1 << 18
_CLOSE_SECONDS = 1.0


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
    relay = _RelayServer(service)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        server = await asyncio.start_unix_server(
            relay.accept, Path(folder) / f".s.PGSQL.{PORT}", limit=_RELAY_CHUNK
        )
        try:
            yield Path(folder)
        finally:
            server.close()
            await relay.close()


class _RelayServer:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _relay(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Copy in both directions. On an error the program sees its connection end, and says so."""
        with suppress(OSError, EOFError):
            try:
                far_reader, far_writer = await _connect(self._service)
                try:
                    await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
                finally:
                    await _close(far_writer)
            finally:
                await _close(writer)


async def _connect(service: Service) -> tuple[StreamReader, StreamWriter]:
    if service.at_once:
        return await asyncio.open_connection(service.host, service.port, limit=_RELAY_CHUNK, ssl=service.tls)
    reader, writer = await asyncio.open_connection(service.host, service.port, limit=_RELAY_CHUNK)
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


async def _close(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()


async def _copy(source: StreamReader, target: StreamWriter) -> None:
    while chunk := await source.read(_RELAY_CHUNK):
        target.write(chunk)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
    else:
        target.close()


_NAME = "holdfast backup"
# A dump takes as long as the database is large.
_NO_TIMEOUTS = {
    "application_name": _NAME,
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}


class _AddressedConnection(asyncpg.Connection):
    """Knows to where it was opened, and how: as the driver has read the URL and the environment."""

    def __init__(
        self, protocol: Any, transport: Any, loop: Any, addr: str | tuple[str, int], config: Any, params: Any
    ) -> None:
        super().__init__(protocol, transport, loop, addr, config, params)
        self.address, self.parameters = addr, params


class ClientConnection(NamedTuple):
    connection: Connection
    programs: Mapping[str, str]
    """The environment in which a program of PostgreSQL finds the same server. Nothing of it stands in its
    command line, which anybody on the machine can read."""


@asynccontextmanager
async def open_client_connection(database_url: str) -> AsyncIterator[ClientConnection]:
    with translate_errors():
        connection = await connect(
            database_url, server_settings=_NO_TIMEOUTS, connection_class=_AddressedConnection
        )
        assert isinstance(connection, _AddressedConnection)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        yield ClientConnection(connection, await _environment(connection, stack))


async def _environment(connection: _AddressedConnection, stack: AsyncExitStack) -> dict[str, str]:
    address, named = connection.address, connection.parameters
    variables = {"PGUSER": named.user, "PGDATABASE": named.database, "PGAPPNAME": _NAME}
    if isinstance(named.password, str):
        variables["PGPASSWORD"] = named.password
    if isinstance(address, str):
        folder, _, port = address.rpartition("/.s.PGSQL.")
        return variables | _without_tls(folder, int(port))
    if not isinstance(named.ssl, SSLContext):
        return variables | _without_tls(*address)
    folder_of_relay = await stack.enter_async_context(relayed(_service(address, named.ssl, named)))
    return variables | _without_tls(str(folder_of_relay), PORT)


def _service(address: tuple[str, int], tls: SSLContext, named: Any) -> Service:
    tls_only = named.sslmode not in (driver.SSLMode.allow, driver.SSLMode.prefer)
    return Service(*address, tls, tls_only, named.ssl_negotiation is driver.SSLNegotiation.direct)


def _without_tls(host: str, port: int) -> dict[str, str]:
    return {"PGHOST": host, "PGPORT": str(port), "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
