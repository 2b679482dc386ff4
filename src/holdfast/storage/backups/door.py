"""How PostgreSQL's programs get to the database that our own connections get to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from ssl import SSLContext
from typing import NamedTuple

import asyncpg
from asyncpg import connect_utils as driver

from holdfast.storage.backups.relay import PORT, Service, relayed
from holdfast.storage.database import Connection, connect, failures_named
from holdfast.storage.dsn import split_hosts

_NAME = "holdfast backup"
# What takes as long as the database is large must be cut off by nobody.
_UNHURRIED = {
    "application_name": _NAME,
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}


class Door(NamedTuple):
    connection: Connection
    programs: Mapping[str, str]
    """The environment in which a program of PostgreSQL finds the same server. Nothing of it stands in its
    command line, which anybody on the machine can read."""


@asynccontextmanager
async def opened_door(database_url: str) -> AsyncIterator[Door]:
    with failures_named():
        host_url, connection = await _first_that_takes_writes(database_url)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        yield Door(connection, await _way_to(host_url, stack))


async def _first_that_takes_writes(database_url: str) -> tuple[str, Connection]:
    last_failure: Exception = OSError("The database URL names no host.")
    for host_url in split_hosts(database_url):
        try:
            return host_url, await connect(host_url, server_settings=_UNHURRIED)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as failure:
            last_failure = failure
    raise last_failure


async def _way_to(host_url: str, stack: AsyncExitStack) -> dict[str, str]:
    address, named = _as_the_driver_reads_it(host_url)
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


def _as_the_driver_reads_it(host_url: str) -> tuple[str | tuple[str, int], driver._ConnectionParameters]:
    """A reading of our own, of the URL and of what stands in the environment, would differ some day."""
    addresses, named, _ = driver._parse_connect_arguments(  # type: ignore[attr-defined]
        dsn=host_url, host=None, port=None, user=None, password=None, passfile=None, database=None,
        command_timeout=None, statement_cache_size=0, max_cached_statement_lifetime=0,
        max_cacheable_statement_size=0, ssl=None, direct_tls=None, server_settings=None,
        target_session_attrs=None, krbsrvname=None, gsslib=None, service=None, servicefile=None,
    )  # fmt: skip
    return addresses[0], named


def _service(address: tuple[str, int], tls: SSLContext, named: driver._ConnectionParameters) -> Service:
    tls_only = named.sslmode not in (driver.SSLMode.allow, driver.SSLMode.prefer)
    return Service(*address, tls, tls_only, named.ssl_negotiation is driver.SSLNegotiation.direct)


def _plainly(host: str, port: int) -> dict[str, str]:
    return {"PGHOST": host, "PGPORT": str(port), "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
