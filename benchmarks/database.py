"""The PostgreSQL side of the harness: databases, seeds, and a like state before every run."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from benchmarks import workload

Result = TypeVar("Result")
KEY_OF_PEERS = "bench_0123456789abcdefghijklmnopqrstuvwxyz"

SEED = """
    insert into unit (id, project_id, code, type, area_sqm, price_sar, vat_included, vat_rate,
        deposit_percent, bedrooms, bathrooms, delivery_year, description, images, files, status,
        version, created_at, updated_at)
    select gen_random_uuid(), project.id, 'A-' || number, 'Apartment', 142.75, 400000 + number * 0.25,
        false, 15, 5, 3, 2, 2027, $2,
        json_build_array('https://cdn.example.com/units/A-' || number || '.jpg'), '[]', 'available', 1,
        moment, moment
    from project, generate_series($3::bigint, $4::bigint) as number,
        lateral (select clock_timestamp() - interval '1 day' * (number * 7919 % 9000) / 100.0 as moment) as t
    where slug = $1
"""
SEED_STEP = 50_000


async def _with_connection(url: str, act: Callable[[asyncpg.Connection], Awaitable[Result]]) -> Result:
    connection = await asyncpg.connect(url)
    try:
        return await act(connection)
    finally:
        await connection.close()


def run(url: str, act: Callable[[asyncpg.Connection], Awaitable[Result]]) -> Result:
    return asyncio.run(_with_connection(url, act))


def execute(url: str, *statements: str) -> None:
    async def act(connection: asyncpg.Connection) -> None:
        for statement in statements:
            await connection.execute(statement)

    run(url, act)


def value(url: str, query: str, *arguments: Any) -> Any:
    return run(url, lambda connection: connection.fetchval(query, *arguments))


def add_project_and_key(url: str, slug: str = workload.SLUG) -> str:
    """For the peers, which have no commands of their own."""

    async def act(connection: asyncpg.Connection) -> None:
        await connection.execute(
            "insert into project (id, slug, name) values (gen_random_uuid(), $1, 'Bench Tower')", slug
        )
        await connection.execute(
            "insert into api_key (id, name, hint, key_hash, scopes, limited_to_projects)"
            " values (gen_random_uuid(), 'bench', 'bench', $1, array['integration'], false)",
            hashlib.sha256(KEY_OF_PEERS.encode()).digest(),
        )

    run(url, act)
    return KEY_OF_PEERS


def seed_units(url: str, count: int, progress: Callable[[str], None], slug: str = workload.SLUG) -> None:
    async def act(connection: asyncpg.Connection) -> None:
        for first in range(1, count + 1, SEED_STEP):
            last = min(first + SEED_STEP - 1, count)
            await connection.execute(SEED, slug, workload.DESCRIPTION, first, last)
            progress(f"{last:,} of {count:,} units seeded")
        if count:
            await connection.execute("vacuum (analyze) unit")

    run(url, act)


def make_ready(url: str) -> None:
    """Nobody pays for the dead rows, dirty pages or full-page writes of another contestant's run."""
    execute(
        url,
        "update unit set status = 'available' where status = 'unavailable'",
        "vacuum unit",
        "checkpoint",
    )


def changes_stored(url: str) -> tuple[int, int]:
    """The sum of all versions, which rises by one per change, and the number of events."""

    async def act(connection: asyncpg.Connection) -> tuple[int, int]:
        versions = await connection.fetchval("select sum(version)::bigint from unit")
        return versions, await connection.fetchval("select count(*) from event")

    return run(url, act)
