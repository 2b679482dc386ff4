"""E-mail to buyers: queued with the change that calls for it, claimed by workers, and listed."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from holdfast.domain.email import MOST_A_DAY, Email, EmailKind, EmailStatus
from holdfast.storage.database import Connection

# A part of the statement that stores units ($7): queue the e-mails of the units that it stored.
INSERT_EMAILS = """
    insert into email (booking_number, kind, sealed_token)
    select booking_number, kind, sealed_token from unnest($7::email_write[]) as written
    where written.unit_id in (select id from stored)
    on conflict do nothing
"""

# Reservations that end within $1, and were longer than that. One reminder for each end.
REMIND = """
    insert into email (booking_number, kind, reserved_until)
    select booking.number, 'reminder', booking.reserved_until
    from unit join booking on booking.unit_id = unit.id and booking.status = 'reserved'
    where coalesce(unit.hold_expires_at, unit.reserved_until) > statement_timestamp()
        and coalesce(unit.hold_expires_at, unit.reserved_until) <= statement_timestamp() + $1::interval
        and booking.reserved_until > booking.deposit_confirmed_at + $1::interval
        and booking.buyer_email is not null
    on conflict do nothing
"""

# Many servers put what is sent to nora+flats@ or n.ora@ into the mailbox of nora@.
_MAILBOX = r"lower(regexp_replace({}.buyer_email, '\+[^@]*|\.(?=.*@)|\.$', '', 'g'))"
_COLUMNS = """
    email.id, kind, email.status, reference, buyer_email, email.reserved_until, sealed_token, attempts,
    last_error, email.created_at, due_at, email.ended_at
"""
# One worker at a time claims e-mails, so that each counts what the others have claimed.
_LOCK = "select pg_advisory_xact_lock(x'686F6C6D'::bigint)"
# Claim what is due first, for $1, and see whether $2 others went to the same mailbox within a day. Those that
# were tried are due at their next attempt, or were when they ended.
_CLAIM = f"""
    with due as (
        select email.id from email join booking on number = booking_number
        where email.status = 'queued' and due_at <= statement_timestamp()
        order by due_at limit 1 for update of email skip locked
    ), claimed as (
        update email set attempts = attempts + 1, due_at = clock_timestamp() + $1::interval
        from due where email.id = due.id returning email.*
    )
    select {_COLUMNS}, kind = 'signed' and deposit_confirmed_at is null and $2 <= (
        select count(*) from email as other join booking as others on others.number = other.booking_number
        where other.status in ('queued', 'sent', 'failed') and other.attempts > 0
            and other.due_at > statement_timestamp() - interval '1 day'
            and other.kind = 'signed' and other.id <> email.id and others.deposit_confirmed_at is null
            and {_MAILBOX.format("others")} = {_MAILBOX.format("booking")}
    )
    from claimed as email join booking on number = booking_number
"""
# What became of attempt $2 of $1. Only for the worker that still has the claim: another one may have it since
# its lease is over.
RECORD = """
    update email set
        status = $3, last_error = $4, due_at = clock_timestamp() + $5::interval,
        ended_at = case when $3 <> 'queued' then clock_timestamp() end,
        sealed_token = case when $3 = 'queued' then sealed_token end
    where id = $1 and attempts = $2 and status = 'queued'
"""

# Delete the oldest, at most $2. What is queued for so long is not sent. REMIND and _CLAIM look back two days.
TRIM = """
    delete from email where id = any(array(
        select id from email where created_at < statement_timestamp() - greatest($1::interval, '2 days')
        order by created_at, id limit $2
    ))
"""

_PAGE = f"""
    select {_COLUMNS} from email join booking on number = booking_number
    where ($1::timestamptz is null or (email.created_at, email.id) < ($1, $2::uuid))
        and ($3::text is null or email.status = $3)
    order by email.created_at desc, email.id desc limit $4
"""


async def claim(connection: Connection, lease: timedelta) -> Email | None:
    """Claim the e-mail that is due first. Call it in a transaction."""
    await connection.execute(_LOCK)
    row = await connection.fetchrow(_CLAIM, lease, MOST_A_DAY)
    return None if row is None else _email(row)


async def page(
    connection: Connection, before: tuple[datetime, UUID] | None, status: EmailStatus | None, limit: int
) -> list[Email]:
    rows = await connection.fetch(_PAGE, *(before or (None, None)), status, limit)
    return [_email(row) for row in rows]


def _email(row: asyncpg.Record) -> Email:
    return Email(row[0], EmailKind(row[1]), EmailStatus(row[2]), *row[3:])
