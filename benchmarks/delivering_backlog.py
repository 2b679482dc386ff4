"""A backlog by SQL, row for row what the product's fan-out writes; and proof of what became of it."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import database
from benchmarks.delivering import tidy
from benchmarks.delivering_receiver import Arrival
from benchmarks.wrk import InvalidRun

RECORDED_WITHIN_SECONDS = 60
# Above every version that the units had, and every one of the scheduled retries.
VERSIONS_ABOVE = 1_000_000

# One event of each unit, a millisecond apart, for every endpoint.
FILL = """
    with told as materialized (
        select gen_random_uuid() as event_id, unit.id, unit.project_id, unit.code, project.slug,
            unit.version + $2 as version,
            date_trunc('milliseconds', statement_timestamp())
                - ($1 - row_number() over (order by unit.id)) * interval '1 ms' as at
        from unit join project on project.id = unit.project_id
        order by unit.id limit $1
    )
    insert into pending_delivery (
        id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, due_at, body
    )
    select
        delivery.id, endpoint.id, 'unit.unavailable', told.project_id, told.id, told.version, told.code,
        told.at, told.at,
        json_build_object(
            'id', delivery.id, 'type', 'unit.unavailable', 'createdAt', told.at, 'data', json_build_object(
                'unit', json_build_object(
                    'id', told.id, 'code', told.code, 'projectSlug', told.slug, 'status', 'unavailable',
                    'previousStatus', 'available'
                ),
                'booking', null
            )
        )::text
    from told cross join endpoint
    cross join lateral (select delivery_id(told.event_id, endpoint.id) as id offset 0) as delivery
    order by told.at
"""
LINES = """
    select url, event, pending_delivery.id::text, body
    from pending_delivery join endpoint on endpoint.id = endpoint_id where tried = 0 order by due_at
"""
LEFT = "select count(*) from pending_delivery where tried = 0"
ENDED = "select id::text from ended_delivery where ended_at >= $1 and status = 'delivered'"
# All that the log keeps of an attempt that was answered.
RECORDED = """
    select delivery_id::text from attempt
    where ended_at >= $1 and status_code = 200 and cause is null and secret_id is not null
        and address is not null and first_byte_ms is not null and json_array_length(request_headers) = 8
        and json_array_length(response_headers) > 0 and response_body = 'ok'
"""


def fill(url: str, events: int) -> datetime:
    """Gives the time before which nothing of it can have ended."""

    async def act(connection: asyncpg.Connection) -> datetime:
        since: datetime = await connection.fetchval("select clock_timestamp()")
        await connection.execute(FILL, events, VERSIONS_ABOVE)
        return since

    since = database.run(url, act)
    tidy(url)
    return since


def export(url: str, path: Path) -> None:
    """For a sender that has no database: the same bodies, in the same order."""
    rows = database.run(url, lambda connection: connection.fetch(LINES))
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


def prove_recorded(url: str, since: datetime, arrivals: list[Arrival], count: int) -> None:
    """Void unless each delivery came once, is delivered, and has its attempt with all there is to it."""
    _wait_until_ended(url)
    came = sorted(arrival.delivery_id for arrival in arrivals)
    ended, attempts = _ids(url, ENDED, since), _ids(url, RECORDED, since)
    if not len(set(came)) == len(came) == count:
        raise InvalidRun(
            f"{count} deliveries were due, {len(came)} came, {len(set(came))} of them different."
        )
    if came != ended or came != attempts:
        raise InvalidRun(f"{count} deliveries came, but {len(ended)} ended, with {len(attempts)} attempts.")


def _wait_until_ended(url: str) -> None:
    deadline = time.monotonic() + RECORDED_WITHIN_SECONDS
    while left := database.value(url, LEFT):
        if time.monotonic() > deadline:
            raise InvalidRun(f"{left} deliveries were not recorded within {RECORDED_WITHIN_SECONDS} s.")
        time.sleep(0.1)


def _ids(url: str, query: str, *arguments: Any) -> list[str]:
    return sorted(row[0] for row in database.run(url, lambda connection: connection.fetch(query, *arguments)))
