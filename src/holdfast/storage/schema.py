"""The installation and its schema: the revision of the database, that of this release, and migrations."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from holdfast.storage.database import Connection, connect, translate_errors
from holdfast.storage.errors import SchemaError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as MigratingConnection


_RECORD_START = """
    update installation set demo = $1, public_url = $2 where (demo, public_url) is distinct from ($1, $2)
"""


async def record_start(connection: Connection, is_demo: bool, public_url: str) -> None:
    await connection.execute(_RECORD_START, is_demo, public_url)


async def is_demo(connection: Connection) -> bool:
    return bool(await connection.fetchval("select demo from installation"))


async def public_url(connection: Connection) -> str | None:
    """Return the URL of the pages as `serve` recorded it at its last start."""
    url: str | None = await connection.fetchval("select public_url from installation")
    return url


OLDEST_SERVER = 15

_MIGRATIONS = Path(__file__).parent / "migrations"
_REVISIONS = sorted(path.name.partition("_")[0] for path in _MIGRATIONS.glob("versions/[0-9]*.py"))
HEAD = _REVISIONS[-1]
LAST_COMMIT_FOR_OLDER = "9d1560574838bfb6f6b5a74698567705631bd43e"
"""The last commit that migrates from the revisions before the first one here. None of them was released."""

# Held while a process looks at the revision and changes it. The number only has to be ours alone.
ADVISORY_LOCK = 0x686F6C64
_CONNECT_TIMEOUT_SECONDS = 5.0
_LOGIN_REJECTED_STATES = ("28", "3D")

_log = logging.getLogger(__name__)


async def migrate(database_url: str) -> list[str]:
    """Bring the schema up to date; gives the revisions applied. Any number of processes may do so at once."""
    with translate_errors():
        try:
            connection = await connect(database_url, timeout=_CONNECT_TIMEOUT_SECONDS)
        except asyncpg.PostgresError as failure:
            if (failure.sqlstate or "").startswith(_LOGIN_REJECTED_STATES):
                raise SchemaError(f"PostgreSQL refuses the connection: {failure}.") from failure
            raise
    try:
        await check_suitable(connection)
        if await current_revision(connection) == HEAD:
            return []
    finally:
        await connection.close()
    return await _upgrade(database_url)


async def current_revision(connection: Connection) -> str | None:
    """None for an empty database."""
    if await connection.fetchval("select to_regclass('alembic_version')") is None:
        return None
    revision: str | None = await connection.fetchval("select max(version_num) from alembic_version")
    return revision


async def check_suitable(connection: asyncpg.Connection) -> None:
    major = connection.get_server_version().major
    if major < OLDEST_SERVER:
        raise SchemaError(f"Holdfast needs PostgreSQL {OLDEST_SERVER} or newer; this server is {major}.")
    encoding = await connection.fetchval("show server_encoding")
    if encoding != "UTF8":
        raise SchemaError(f"Holdfast needs a database with the encoding UTF8; this one has {encoding}.")
    revision = await current_revision(connection)
    if revision is not None and (reason := unknown_reason(revision)):
        raise SchemaError(f"The database has the schema {revision}, {reason}")


def unknown_reason(revision: str) -> str | None:
    """Return why this release cannot migrate from a revision, as the end of a sentence; None if it can."""
    if revision in _REVISIONS:
        return None
    if revision < _REVISIONS[0]:
        return (
            f"and this release of Holdfast migrates from {_REVISIONS[0]} on. Migrate it to"
            f" {_REVISIONS[0]} or newer with the commit {LAST_COMMIT_FOR_OLDER} first."
        )
    return f"but this release of Holdfast knows it up to {HEAD}; use the release that made it, or a newer."


async def _upgrade(database_url: str) -> list[str]:
    # Imported only when there is something to do: Alembic and SQLAlchemy outweigh the rest of a start.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic.util import CommandError
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    # Our own connect chooses the host, so a URL with several hosts needs no translation.
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=NullPool,
        async_creator=lambda: connect(database_url, timeout=_CONNECT_TIMEOUT_SECONDS),
    )
    try:
        with translate_errors():
            async with engine.begin() as connection:
                return await connection.run_sync(_upgrade_locked)
    except CommandError as failure:
        # A newer release was first, between our look and our lock.
        raise SchemaError(f"The schema could not be brought up to date: {failure}.") from failure
    except (DBAPIError, asyncpg.PostgresError) as failure:
        reason = str(failure.orig if isinstance(failure, DBAPIError) else failure)
        reason = reason.splitlines()[0].rpartition(": ")[2]
        raise SchemaError(f"The schema could not be brought up to date: {reason}.") from failure
    finally:
        await engine.dispose()


def _upgrade_locked(connection: MigratingConnection) -> list[str]:
    """One transaction: the lock ends with it, and a failure anywhere leaves the schema as it was."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text

    connection.execute(text("select pg_advisory_xact_lock(:number)"), {"number": ADVISORY_LOCK})
    applied: list[str] = []
    config = Config(attributes={"connection": connection, "applied": applied})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, HEAD)
    if applied:
        _log.info("brought the schema up to date: %s", ", ".join(applied))
    return applied
