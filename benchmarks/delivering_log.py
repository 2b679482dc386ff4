"""A long life by SQL: a log over all the days that are kept, and very many retries that are due later."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import asyncpg

from benchmarks import database
from holdfast.storage import log_partitions

DAYS = 89
"""Before today, all within what is kept."""

MAKE_DAY = """
    create table if not exists {table}_{day:%Y%m%d} partition of {table}
    for values from ('{day} 00:00Z') to ('{after} 00:00Z')
"""
# Endpoints and units take turns, so that every one of them has its share of every day.
NUMBERED = """
    lane as (
        select *, row_number() over (order by id) - 1 as place, count(*) over () as many from endpoint
    ),
    thing as (
        select unit.id as unit_id, project_id, code, slug, row_number() over (order by unit.id) - 1 as place,
            count(*) over () as many
        from unit join project on project.id = project_id
    )
"""
PAIRED = """
    join lane on lane.place = n % (select many from lane limit 1)
    join thing on thing.place = n / (select many from lane limit 1) % (select many from thing limit 1)
"""
LOG_DAY = f"""
    with {NUMBERED},
    made as materialized (
        select gen_random_uuid() as id, lane.id as endpoint_id, lane.url, lane.secret_id, thing.*,
            ($1::date::timestamp at time zone 'UTC' + n * interval '1 day' / $2)::timestamptz(3) as at
        from generate_series(0, $2::bigint - 1) as n {PAIRED}
    ),
    logged as (
        insert into attempt (
            delivery_id, number, trigger, started_at, ended_at, duration_ms, first_byte_ms, url,
            request_headers, secret_id, address, status_code, response_headers, response_body,
            response_clipped
        )
        select id, 1, 'first', at, at, 1.5, 1.2, url,
            json_build_array(
                json_build_array('Host', '127.0.0.1:40000'),
                json_build_array('Content-Type', 'application/json'),
                json_build_array('User-Agent', 'Service-Webhooks/1'),
                json_build_array('X-Service-Event', 'unit.unavailable'),
                json_build_array('X-Service-Delivery', id),
                json_build_array('X-Service-Timestamp', extract(epoch from at)::bigint::text),
                json_build_array('X-Service-Signature', 'sha256=' || encode(sha256(id::text::bytea), 'hex')),
                json_build_array('Content-Length', '312')
            ),
            secret_id, '127.0.0.1', 200,
            json_build_array(json_build_array('Server', 'receiver'), json_build_array('Content-Length', '2')),
            'ok', false
        from made
    )
    insert into ended_delivery (
        id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, body, tried,
        attempts, last_status_code, status, ended_at
    )
    select id, endpoint_id, 'unit.unavailable', project_id, unit_id, 1, code, at,
        json_build_object(
            'id', id, 'type', 'unit.unavailable', 'createdAt', at, 'data', json_build_object(
                'unit', json_build_object(
                    'id', unit_id, 'code', code, 'projectSlug', slug, 'status', 'unavailable',
                    'previousStatus', 'available'
                ),
                'booking', null
            )
        )::text,
        1, 1, 200, 'delivered', at
    from made
"""
# Tried once, due in an hour and more; each for an earlier event of a unit that has later ones due now.
RETRIES = f"""
    with {NUMBERED}
    insert into pending_delivery (
        id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, body, tried,
        attempts, last_status_code, last_cause, due_at
    )
    select delivery.id, lane.id, 'unit.unavailable', project_id, unit_id, 1 + n, code,
        now() - interval '1 minute',
        json_build_object(
            'id', delivery.id, 'type', 'unit.unavailable', 'createdAt', now(), 'data', json_build_object(
                'unit', json_build_object(
                    'id', unit_id, 'code', code, 'projectSlug', slug, 'status', 'unavailable',
                    'previousStatus', 'available'
                ),
                'booking', null
            )
        )::text,
        1, 1, 500, 'The receiver answered 500.', now() + interval '1 hour' + n * interval '1 ms'
    from generate_series($1::bigint, $2::bigint - 1) as n {PAIRED}
    cross join lateral (select gen_random_uuid() as id where n >= 0 offset 0) as delivery
"""
STEP = 50_000
HASTE = "set synchronous_commit = off"


def write_log(url: str, rows: int, progress: Callable[[str], None]) -> None:
    """Half of the rows are deliveries that ended, half are their attempts."""
    today = datetime.now(UTC).date()

    async def act(connection: asyncpg.Connection) -> None:
        await connection.execute(HASTE)
        for before in range(DAYS, 0, -1):
            await _write_day(connection, today - timedelta(days=before), -(-rows // (2 * DAYS)))
            if before % 10 == 1:
                progress(f"{(DAYS - before + 1) * (rows // DAYS):,} of {rows:,} rows of log written")
        await connection.execute(f"vacuum (analyze) {', '.join(log_partitions.TABLES)}")

    database.run(url, act)


async def _write_day(connection: asyncpg.Connection, day: date, deliveries: int) -> None:
    for table in log_partitions.TABLES:
        await connection.execute(MAKE_DAY.format(table=table, day=day, after=day + timedelta(days=1)))
    await connection.execute(LOG_DAY, day, deliveries)


def schedule_retries(url: str, count: int, progress: Callable[[str], None]) -> None:
    async def act(connection: asyncpg.Connection) -> None:
        await connection.execute(HASTE)
        for first in range(0, count, STEP):
            await connection.execute(RETRIES, first, min(first + STEP, count))
            progress(f"{min(first + STEP, count):,} of {count:,} retries scheduled")

    database.run(url, act)
