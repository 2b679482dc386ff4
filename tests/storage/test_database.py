"""The way to PostgreSQL: which host, and what a failure means."""

from collections.abc import Callable

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage.database import _SESSION, COMMAND_TIMEOUT_SECONDS, Database, connect
from tests.support.clusters import Cluster
from tests.support.sql import with_database


def both_hosts(first: str, second: str) -> str:
    """One URL with the sockets of two clusters; databases of one name."""
    sockets = [url.split("host=")[1].split("&")[0] for url in (first, second)]
    return f"{first.split('?')[0]}?host={','.join(sockets)}"


async def run(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_host_that_takes_no_writes_is_passed_over(cluster_of: Callable[[int], Cluster]) -> None:
    standby, primary = cluster_of(16).url, cluster_of(18).url
    anew = ("drop database if exists two_hosts", "create database two_hosts")
    await run(with_database(primary, "postgres"), *anew)
    read_only = "alter database two_hosts set default_transaction_read_only = on"
    await run(with_database(standby, "postgres"), *anew, read_only)
    url = both_hosts(with_database(standby, "two_hosts"), with_database(primary, "two_hosts"))
    connection = await connect(url)
    try:
        assert connection.get_server_version().major == 18
    finally:
        await connection.close()


async def test_a_database_that_is_not_there_is_away(postgres_url: str) -> None:
    async with Database(with_database(postgres_url, "nowhere")) as database:
        with pytest.raises(DatabaseUnavailable):
            async with database.reading():
                pass


async def test_a_statement_that_was_given_up_is_not_stored_afterwards(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_SESSION, "statement_timeout", "200ms")
    await run(postgres_url, "drop table if exists waited", "create table waited as select 1 as number")
    holder = await asyncpg.connect(postgres_url)
    async with Database(postgres_url) as database:
        async with holder.transaction():
            await holder.execute("select * from waited for update")
            with pytest.raises(DatabaseUnavailable):
                async with database.writing_autocommit() as connection:
                    await connection.execute("update waited set number = 2")
        async with database.reading() as connection:
            assert await connection.fetchval("select number from waited") == 1
    await holder.close()


def test_the_server_gives_up_before_we_do() -> None:
    assert float(_SESSION["statement_timeout"].removesuffix("s")) < COMMAND_TIMEOUT_SECONDS
