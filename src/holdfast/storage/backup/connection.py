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

from asyncpg import connect_utils as driver

from holdfast.storage.database import (
    DURABLE_COMMITS,
    NO_TIMEOUTS,
    PEER_SETTINGS,
    WatchedConnection,
    connect,
    translate_errors,
)
from holdfast.storage.embedded.cluster import program_environment, program_folder
from holdfast.storage.errors import BackupError

NEWEST_SERVER = 18

_CHUNK = 1 << 20
_NAME = "holdfast backup"
# A dump takes as long as the database is large.
_SETTINGS = {"application_name": _NAME, **NO_TIMEOUTS}
_PORT = 5432
_TLS_REQUEST = struct.pack("!ii", 8, 80877103)
_TLS_GRANTED = b"S"
_RELAY_CHUNK = 1 << 18
_CLOSE_SECONDS = 1.0


class Client(NamedTuple):
    connection: WatchedConnection
    programs: Mapping[str, str]
    """The environment in which a program of PostgreSQL finds the same server. Nothing of it stands in its
    command line, which anybody on the machine can read."""


@asynccontextmanager
async def open_client(database_url: str) -> AsyncIterator[Client]:
    with translate_errors():
        connection = await connect(
            database_url, server_settings=_SETTINGS, connection_class=_AddressedConnection
        )
        assert isinstance(connection, _AddressedConnection)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        yield Client(connection, await _environment(connection, stack))


class _AddressedConnection(WatchedConnection):
    """Knows its address and parameters, as the driver has read them from the URL and the environment."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.address: str | tuple[str, int] = arguments[3]
        self.parameters = arguments[5]


async def _environment(connection: _AddressedConnection, stack: AsyncExitStack) -> dict[str, str]:
    address, parameters = connection.address, connection.parameters
    if isinstance(address, str):
        host, _, port = address.rpartition("/.s.PGSQL.")
    elif isinstance(parameters.ssl, SSLContext):
        service = _Service(
            *address,
            parameters.ssl,
            requires_tls=parameters.sslmode not in (driver.SSLMode.allow, driver.SSLMode.prefer),
            is_direct=parameters.ssl_negotiation is driver.SSLNegotiation.direct,
        )
        host, port = await stack.enter_async_context(_open_relay(service)), str(_PORT)
    else:
        host, port = address[0], str(address[1])
    settings = PEER_SETTINGS | DURABLE_COMMITS
    variables = {
        "PGHOST": host,
        "PGPORT": port,
        "PGUSER": parameters.user,
        "PGDATABASE": parameters.database,
        "PGAPPNAME": _NAME,
        "PGSSLMODE": "disable",
        "PGGSSENCMODE": "disable",
        "PGOPTIONS": " ".join(f"-c{name}={value}" for name, value in settings.items()),
    }
    if isinstance(parameters.password, str):
        variables["PGPASSWORD"] = parameters.password
    return variables


class Program:
    def __init__(self, name: str, process: Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._name = name
        self._process = process
        self._output = process.stdout
        self._errors = asyncio.create_task(process.stderr.read())

    async def read_chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._output.read(_CHUNK):
            yield chunk

    async def read_line(self) -> bytes:
        return await self._output.readline()

    async def write(self, chunk: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(chunk)
        await self._process.stdin.drain()

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def finish(self) -> None:
        """Wait for the end of the program, and raise BackupError with its first error if it failed."""
        lines = [line.strip() for line in (await self._errors).decode(errors="replace").splitlines()]
        if await self._process.wait() != 0:
            errors = [line for line in lines if "error:" in line.lower()] or [*filter(None, lines)]
            reason = errors[0] if errors else "it does not say why"
            raise BackupError(f"PostgreSQL's {self._name} failed: {reason}")

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._errors


@asynccontextmanager
async def run_program(
    name: str, variables: Mapping[str, str], *arguments: str, takes_input: bool = True
) -> AsyncIterator[Program]:
    """Run it in a session of its own, so that the terminal's Ctrl-C ends it through us, in order."""
    process = await asyncio.create_subprocess_exec(
        program_folder(NEWEST_SERVER) / "bin" / name,
        *arguments,
        # For one that connects; no variable of the environment says this.
        *(["--dbname=keepalives_idle=10 keepalives_interval=5 tcp_user_timeout=30000"] if variables else []),
        stdin=PIPE if takes_input else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**program_environment(), **variables},
        limit=_CHUNK,
        start_new_session=True,
    )
    program = Program(name, process)
    try:
        yield program
    finally:
        await program.end()


class _Service(NamedTuple):
    host: str
    port: int
    tls: SSLContext
    requires_tls: bool
    """False: without TLS if the server has none."""
    is_direct: bool
    """TLS from the first byte, without asking for it."""


@asynccontextmanager
async def _open_relay(service: _Service) -> AsyncIterator[str]:
    """Relay connections to a PostgreSQL service by TLS, and yield the folder of the relay's socket.

    The pg_dump and psql of the wheel are built without TLS. They connect to a socket in a private folder, and
    the relay encrypts the network connection.
    """
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(_relay(service, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        path = Path(folder) / f".s.PGSQL.{_PORT}"
        server = await asyncio.start_unix_server(accept, path, limit=_RELAY_CHUNK)
        try:
            yield folder
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _relay(service: _Service, reader: StreamReader, writer: StreamWriter) -> None:
    """Copy in both directions. On an error the program sees its connection end, and says so."""
    with suppress(OSError, EOFError):
        try:
            far_reader, far_writer = await _connect(service)
            try:
                WatchedConnection.watch(far_writer.transport)
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
            finally:
                await _close(far_writer)
        finally:
            await _close(writer)


async def _connect(service: _Service) -> tuple[StreamReader, StreamWriter]:
    if service.is_direct:
        return await asyncio.open_connection(service.host, service.port, limit=_RELAY_CHUNK, ssl=service.tls)
    reader, writer = await asyncio.open_connection(service.host, service.port, limit=_RELAY_CHUNK)
    try:
        writer.write(_TLS_REQUEST)
        if await reader.readexactly(1) == _TLS_GRANTED:
            await writer.start_tls(service.tls, server_hostname=service.host)
        elif service.requires_tls:
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
