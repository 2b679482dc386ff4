"""How PostgreSQL's programs get to the database that our own connections get to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from ssl import SSLContext
from typing import Any, NamedTuple

import asyncpg
from asyncpg import connect_utils as driver

from holdfast.storage.backups.relay import PORT, Service, relayed
from holdfast.storage.database import Connection, connect, failures_named

_NAME = "holdfast backup"
# What takes as long as the database is large must be cut off by nobody.
_UNHURRIED = {
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


class Door(NamedTuple):
    connection: Connection
    programs: Mapping[str, str]
    """The environment in which a program of PostgreSQL finds the same server. Nothing of it stands in its
    command line, which anybody on the machine can read."""


@asynccontextmanager
async def opened_door(database_url: str) -> AsyncIterator[Door]:
    with failures_named():
        connection = await connect(
            database_url, server_settings=_UNHURRIED, connection_class=_AddressedConnection
        )
        assert isinstance(connection, _AddressedConnection)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        yield Door(connection, await _environment(connection, stack))


async def _environment(connection: _AddressedConnection, stack: AsyncExitStack) -> dict[str, str]:
    address, named = connection.address, connection.parameters
    way = {"PGUSER": named.user, "PGDATABASE": named.database, "PGAPPNAME": _NAME}
    if isinstance(named.password, str):
        way["PGPASSWORD"] = named.password
    if isinstance(address, str):
        folder, _, port = address.rpartition("/.s.PGSQL.")
        return way | _plainly(folder, int(port))
    if not isinstance(named.ssl, SSLContext):
        return way | _plainly(*address)
    folder_of_relay = await stack.enter_async_context(relayed(_service(address, named.ssl, named)))
    return way | _plainly(str(folder_of_relay), PORT)


def _service(address: tuple[str, int], tls: SSLContext, named: Any) -> Service:
    tls_only = named.sslmode not in (driver.SSLMode.allow, driver.SSLMode.prefer)
    return Service(*address, tls, tls_only, named.ssl_negotiation is driver.SSLNegotiation.direct)


def _plainly(host: str, port: int) -> dict[str, str]:
    return {"PGHOST": host, "PGPORT": str(port), "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
