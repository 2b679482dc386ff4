"""Holds without buyers: very many at once, as the product would have written them, and all of them ended."""

import time
from collections.abc import Callable
from datetime import datetime

import asyncpg

from benchmarks import database, workload
from holdfast.storage.bookings import next_references

STEP = 10_000
# A prime that divides no number of units here: what ends one after the other does not lie side by side.
STRIDE = 7919

# What a hold writes: the unit, its booking, the audit entry and the event.
HOLD = """
    with wanted as (
        select unit.*, given.number as booking_number, given.reference,
            greatest(date_trunc('milliseconds', statement_timestamp()), unit.updated_at + interval '1 ms')
                as moment,
            ($7::timestamptz + $8::float8 * place / $6 * interval '1 second')::timestamptz(3) as ends_at
        from unnest($2::bigint[], $3::text[]) with ordinality as given (number, reference, nth)
        cross join lateral (select $4::bigint + given.nth - 1 as place) as counted
        cross join lateral (select 'A-' || ($5::bigint + place * $9 % $6::bigint) as code) as named
        join project on project.slug = $1
        join unit on unit.project_id = project.id and unit.code = named.code
    ), held as (
        update unit
        set status = 'held', hold_expires_at = wanted.ends_at, version = unit.version + 1,
            turn = unit.turn + 1, updated_at = wanted.moment
        from wanted where unit.id = wanted.id and unit.status = 'available'
        returning unit.id
    ), noted as (
        insert into audit_entry (subject_id, project_id, at, actor_kind, actor_id, request_id, action,
            booking_reference, before, after)
        select id, project_id, moment, 'buyer', reference, md5(reference), 'open', reference,
            '{"status":"available","holdExpiresAt":null}',
            json_build_object('status', 'held', 'holdExpiresAt',
                to_char(ends_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                'bookingStatus', 'open')
        from wanted
    ), told as (
        insert into event (id, project_id, unit_id, unit_version, type, previous_status, status, created_at)
        select gen_random_uuid(), project_id, id, version + 1, 'unit.held', 'available', 'held', moment
        from wanted
    )
    insert into booking (number, reference, project_id, unit_id, token_hash, status, price_sar,
        vat_included, vat_rate, deposit_percent, hold_expires_at, created_at, address_id, address_slot)
    select booking_number, reference, project_id, id, sha256(id::text::bytea), 'open', price_sar,
        vat_included, vat_rate, deposit_percent, ends_at, moment, gen_random_uuid(), 1
    from wanted
"""

RELEASE = """
    with released as (
        update unit
        set status = 'available', hold_expires_at = null, version = version + 1, turn = turn + 1,
            updated_at = greatest(clock_timestamp(), updated_at + interval '1 ms')
        where status = 'held'
    )
    update booking
    set status = 'lapsed', ended_at = hold_expires_at, address_slot = null, visitor_slot = null
    where status in ('open', 'signed')
"""
TIDY = ("vacuum (analyze) unit, booking", "checkpoint")


def hold_all(
    url: str, units: range, first_end: datetime, spread_seconds: float, progress: Callable[[str], None]
) -> None:
    """Every one of the units; their ends are spread evenly from the first one on."""

    async def act(connection: asyncpg.Connection) -> None:
        for place in range(0, len(units), STEP):
            made = await next_references(connection, min(STEP, len(units) - place))
            numbers, references = zip(*made, strict=True)
            await connection.execute(
                HOLD, workload.SLUG, numbers, references, place, units.start, len(units), first_end,
                spread_seconds, STRIDE,
            )  # fmt: skip
            progress(f"{place + len(numbers):,} of {len(units):,} units held")

    database.run(url, act)
    database.execute(url, *TIDY)


def release_all(url: str) -> None:
    """All units back on sale, so that a load finds them free; their bookings have lapsed."""
    database.execute(url, RELEASE, *TIDY)


def wait_until_numbered(url: str) -> None:
    """A running server numbers events after their commit; a turn must not pay for the one before it."""
    while database.value(url, "select exists (select from event where position is null)"):
        time.sleep(0.2)
