"""The installation and its schema: the revision of the database, that of this release, and migrations."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage.database import (
    CONFLICT_STATES,
    NO_TIMEOUTS,
    Connection,
    TransactionConflict,
    connect,
    translate_errors,
)
from holdfast.storage.errors import SchemaError, WrongDatabase

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection as MigratingConnection


_RECORD_START = """
    update installation set demo = $1, public_url = $2 where (demo, public_url) is distinct from ($1, $2)
"""


async def record_start(connection: Connection, is_demo: bool, public_url: str) -> None:
    await connection.execute(_RECORD_START, is_demo, public_url)


_DURABILITY = ("fsync", "full_page_writes", "synchronous_standby_names")


async def load_durability(connection: Connection) -> dict[str, str]:
    """Return the settings of the server on which it depends whether what was acknowledged may be lost."""
    return {name: await connection.fetchval("select current_setting($1)", name) for name in _DURABILITY}


async def is_demo(connection: Connection) -> bool:
    return bool(await connection.fetchval("select demo from installation"))


async def public_url(connection: Connection) -> str | None:
    """Return the URL of the pages as `serve` recorded it at its last start."""
    url: str | None = await connection.fetchval("select public_url from installation")
    return url


# Tables, types and functions other than those of extensions, which come with the service.
NOT_EMPTY = """
    with ours as (
        select oid, 'pg_class'::regclass as kind, relnamespace as schema from pg_class
        union all select oid, 'pg_type'::regclass, typnamespace from pg_type
        union all select oid, 'pg_proc'::regclass, pronamespace from pg_proc
    )
    select exists (
        select from ours join pg_namespace on pg_namespace.oid = ours.schema
        where nspname <> 'information_schema' and nspname not like 'pg\\_%'
            and not exists (
                select from pg_depend
                where classid = ours.kind and objid = ours.oid and deptype = 'e'
            )
    )
"""
# The column is not there before its migration, which marks a database by the same rule.
_MAY_FILL = """
    select
        coalesce(
            (to_jsonb(installation) ->> 'filled_by_demo')::boolean,
            (select array_agg(slug::text) from project) = array[$1]
        )
        or not exists (
            select from project union all select from api_key
            union all select from staff union all select from endpoint
        )
    from installation
"""


async def check_may_fill(connection: Connection, demo_slug: str) -> None:
    """Raise WrongDatabase unless the demo has filled the database, or it is empty."""
    if await current_revision(connection) is None:
        may_fill = not await connection.fetchval(NOT_EMPTY)
    else:
        may_fill = await connection.fetchval(_MAY_FILL, demo_slug)
    if not may_fill:
        raise WrongDatabase(
            "This database is in use and was not filled by the demo, so `serve --demo` leaves it alone. Leave"
            " out --demo, or name an empty database with --data, HOLDFAST_DATA_DIR or HOLDFAST_DATABASE_URL."
        )


async def mark_as_filled(connection: Connection) -> None:
    await connection.execute("update installation set filled_by_demo = true where not filled_by_demo")


@asynccontextmanager
async def lock_filling(database_url: str) -> AsyncIterator[None]:
    """Let one process at a time fill a database for the demo; the others wait as long as that takes."""
    with translate_errors():
        connection = await connect(database_url, server_settings=NO_TIMEOUTS)
        try:
            await connection.execute(f"select pg_advisory_lock({_FILLING})")
            yield
        finally:
            await connection.close()


def _parse(revision: str | None) -> tuple[float, ...]:
    """Return a key to sort by: 0016.10 is after 0016.9, None is first, a name of another program last."""
    try:
        return tuple(map(int, revision.split("."))) if revision else ()
    except ValueError:
        return (inf,)


OLDEST_SERVER = 15

_GRANTS = (Path(__file__).parent / "application_role.sql").read_text()
_MIGRATIONS = Path(__file__).parent / "migrations"
_REVISIONS = sorted((path.stem.partition("_")[0] for path in _MIGRATIONS.glob("versions/0*.py")), key=_parse)
HEAD = _REVISIONS[-1]
OLDEST_READY = "0017.1"
"""The oldest revision that the code of this release works with. The newest is HEAD, or one that only adds to
it: such a revision has the same number and a point, as 0016.1 after 0016."""
LAST_COMMIT_FOR_OLDER = "9d1560574838bfb6f6b5a74698567705631bd43e"
"""The last commit that migrates from the revisions before the first one here. None of them was released."""

# Held while a process looks at the revision and changes it. The number only has to be ours alone.
ADVISORY_LOCK = 0x686F6C64
_FILLING = 0x686F6C67
_CONNECT_TIMEOUT_SECONDS = 5.0
_LOGIN_REJECTED_STATES = ("28", "3D")
_LOST_STATES = ("08", "57P")

# Whoever reads or writes a table waits behind a migration that waits for its lock. So a migration gives up
# soon, lets them pass, and tries again.
_LOCK_TIMEOUT = "set local lock_timeout = '1s'"
LOCK_PAUSE_SECONDS = 3.0
_OLDEST_TRANSACTION = """
    select format(
        'the oldest transaction is of %s, process %s, since %s',
        coalesce(nullif(application_name, ''), usename), pid, xact_start::timestamptz(0)
    )
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
    order by xact_start limit 1
"""

_log = logging.getLogger(__name__)


async def migrate(database_url: str, demo_slug: str | None = None) -> list[str]:
    """Bring the schema up to date; gives the revisions applied. Any number of processes may do so at once.

    The application's role, if there is one, gets its privileges. ``demo_slug``: the demo is to fill the
    database. Nothing is changed if it must not.

    If others hold locks that it needs, it is tried again for as long as they do: a start that failed instead
    would only be repeated.
    """
    while True:
        try:
            revision = await check(database_url, demo_slug, may_migrate=True)
            return [] if _parse(revision) >= _parse(HEAD) else await _upgrade(database_url)
        except TransactionConflict as conflict:
            oldest = await _oldest_transaction(database_url)
            cause = conflict.reason if oldest is None else f"{conflict.reason} ({oldest})"
            _log.warning("%s; the migration is tried again", cause)
        await asyncio.sleep(LOCK_PAUSE_SECONDS)


async def _oldest_transaction(database_url: str) -> str | None:
    """Describe what probably holds the lock."""
    with translate_errors():
        connection = await connect(database_url, timeout=_CONNECT_TIMEOUT_SECONDS)
        try:
            oldest: str | None = await connection.fetchval(_OLDEST_TRANSACTION)
            return oldest
        finally:
            await connection.close()


async def check(database_url: str, demo_slug: str | None = None, *, may_migrate: bool = False) -> str | None:
    """Return the revision; raise SchemaError unless this release works with it. The schema stays as it is."""
    with translate_errors():
        try:
            connection = await connect(database_url, timeout=_CONNECT_TIMEOUT_SECONDS)
        except asyncpg.ClientConfigurationError as failure:
            raise SchemaError(f"HOLDFAST_DATABASE_URL cannot be used: {failure}.") from failure
        except asyncpg.PostgresError as failure:
            if (failure.sqlstate or "").startswith(_LOGIN_REJECTED_STATES):
                raise SchemaError(f"PostgreSQL refuses the connection: {failure}.") from failure
            raise
        try:
            revision = await check_suitable(connection, may_migrate)
            if demo_slug is not None:
                await check_may_fill(connection, demo_slug)
            if may_migrate:
                await connection.execute(_GRANTS)
            return revision
        except (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedObjectError) as failure:
            raise SchemaError(f"PostgreSQL refuses to prepare the schema: {failure}.") from failure
        finally:
            await connection.close()


def is_ready(revision: str | None) -> bool:
    return _parse(OLDEST_READY) <= _parse(revision) < (_parse(HEAD)[0] + 1,)


async def current_revision(connection: Connection) -> str | None:
    """None for an empty database."""
    if await connection.fetchval("select to_regclass('alembic_version')") is None:
        return None
    revision: str | None = await connection.fetchval("select max(version_num) from alembic_version")
    return revision


async def check_suitable(connection: Connection, may_migrate: bool = True) -> str | None:
    """Return the revision. Raise SchemaError for a server or schema that this release does not work with."""
    major = connection.get_server_version().major
    if major < OLDEST_SERVER:
        raise SchemaError(f"Holdfast needs PostgreSQL {OLDEST_SERVER} or newer; this server is {major}.")
    encoding = await connection.fetchval("show server_encoding")
    if encoding != "UTF8":
        raise SchemaError(f"Holdfast needs a database with the encoding UTF8; this one has {encoding}.")
    revision = await current_revision(connection)
    if reason := unsuitable_reason(revision, may_migrate):
        raise WrongDatabase(f"The database has {reason}")
    return revision


def unsuitable_reason(revision: str | None, may_migrate: bool = True) -> str | None:
    """Return why this release does not work with a revision, to follow "has"; None if it does."""
    is_known = revision is None or revision in _REVISIONS
    if is_ready(revision) or (is_known and may_migrate):
        return None
    if is_known:
        advice = "if it is the right database, run `holdfast migrate` first."
    elif _parse(revision) < _parse(_REVISIONS[0]):
        advice = f"migrate it to {_REVISIONS[0]} or newer with the commit {LAST_COMMIT_FOR_OLDER} first."
    else:
        advice = "use the release that made it, or a newer one."
    found = "no schema of Holdfast" if revision is None else f"the schema {revision}"
    oldest = _REVISIONS[0] if may_migrate else OLDEST_READY
    return f"{found}, and this release works with {oldest} to {HEAD}; {advice}"


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
        async_creator=lambda: connect(
            database_url, timeout=_CONNECT_TIMEOUT_SECONDS, server_settings=NO_TIMEOUTS
        ),
    )
    try:
        with translate_errors():
            async with engine.begin() as connection:
                return await connection.run_sync(_upgrade_locked)
    except CommandError as failure:
        # A newer release was first, between our look and our lock.
        raise SchemaError(f"The schema could not be brought up to date: {failure}.") from failure
    except (DBAPIError, asyncpg.PostgresError) as failure:
        cause = getattr(failure, "orig", failure)
        state = getattr(cause, "sqlstate", None) or ""
        # SQLAlchemy puts the class of the driver's error before its message.
        reason = re.sub(r"^<class '[\w.]+'>: ", "", str(cause).splitlines()[0])
        if state in CONFLICT_STATES:
            statement = " ".join(str(getattr(failure, "statement", "")).split())[:200]
            raise TransactionConflict(f"{reason}: {statement}") from cause
        if state.startswith(_LOST_STATES) or getattr(failure, "connection_invalidated", False):
            raise DatabaseUnavailable from cause
        raise SchemaError(f"The schema could not be brought up to date: {reason}.") from failure
    finally:
        await engine.dispose()


def _upgrade_locked(connection: MigratingConnection) -> list[str]:
    """One transaction: the lock ends with it, and a failure anywhere leaves the schema as it was."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text

    connection.execute(text("select pg_advisory_xact_lock(:number)"), {"number": ADVISORY_LOCK})
    connection.execute(text(_LOCK_TIMEOUT))
    applied: list[str] = []
    config = Config(attributes={"connection": connection, "applied": applied})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, HEAD)
    connection.exec_driver_sql(_GRANTS)
    if applied:
        _log.info("brought the schema up to date: %s", ", ".join(applied))
    return applied
