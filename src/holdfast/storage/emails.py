"""E-mail to buyers: queued with the change that calls for it, claimed by workers, and listed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.domain.email import (
    BUYER_ERASED,
    LIMIT_REACHED,
    MOST_A_DAY,
    REMINDED_BEFORE,
    ClaimedEmail,
    Email,
    EmailKind,
    EmailStatus,
)
from holdfast.storage.database import Connection

# A part of the statement that stores units ($7): queue the e-mails of the units that it stored.
INSERT_EMAILS = """
    insert into email (booking_number, kind, sealed_token)
    select booking_number, kind, sealed_token from unnest($7::email_write[]) as written
    where written.unit_id in (select id from stored)
    on conflict do nothing
"""

# Reservations that end within $1, and were longer than that. One reminder for each end.
_REMIND = """
    insert into email (booking_number, kind, reserved_until)
    select booking.number, 'reminder', booking.reserved_until
    from unit join booking on booking.unit_id = unit.id and booking.status = 'reserved'
    where coalesce(unit.hold_expires_at, unit.reserved_until) > statement_timestamp()
        and coalesce(unit.hold_expires_at, unit.reserved_until) <= statement_timestamp() + $1::interval
        and booking.reserved_until > booking.deposit_confirmed_at + $1::interval
        and booking.buyer_email is not null
    on conflict do nothing
"""

# One worker at a time claims e-mails, so that each counts what the others have claimed.
_LOCK = "select pg_advisory_xact_lock(x'686F6C6D'::bigint)"
# Claim what is due ($1 at most) for $2; suppress what nobody may get any more, or not so soon ($3).
_CLAIM = """
    with due as (
        select * from email where status = 'queued' and due_at <= statement_timestamp()
        order by due_at limit $1 for update skip locked
    ), checked as (
        select due.id, case
            when booking.buyer_email is null then $4
            when due.kind = 'signed' and due.attempts = 0 and booking.deposit_confirmed_at is null and $3 <= (
                select count(*)
                from email as other join booking as others on others.number = other.booking_number
                where other.created_at > statement_timestamp() - interval '1 day'
                    and other.kind = 'signed' and other.status <> 'suppressed' and other.id <> due.id
                    and (other.attempts > 0 or (other.created_at, other.id) < (due.created_at, due.id))
                    and others.deposit_confirmed_at is null
                    and lower(others.buyer_email) = lower(booking.buyer_email)
            ) then $5
        end as reason
        from due left join booking on booking.number = due.booking_number
    ), claimed as (
        update email set
            attempts = attempts + (reason is null)::integer,
            due_at = clock_timestamp() + $2::interval,
            status = case when reason is null then status else 'suppressed' end,
            ended_at = case when reason is not null then clock_timestamp() end,
            sealed_token = case when reason is null then sealed_token end,
            last_error = coalesce(reason, last_error)
        from checked where email.id = checked.id
        returning email.*
    )
    select claimed.id, kind, reference, claimed.reserved_until, sealed_token, attempts
    from claimed join booking on number = booking_number
    where claimed.status = 'queued'
"""
# Only for the worker that still has the claim: another one may have it since its lease is over.
_RECORD = """
    update email set
        status = $3, last_error = $4, due_at = clock_timestamp() + $5::interval,
        ended_at = case when $3 <> 'queued' then clock_timestamp() end,
        sealed_token = case when $3 = 'queued' then sealed_token end
    where id = $1 and attempts = $2 and status = 'queued'
"""

# Delete the oldest, at most $2. What is still queued after so long is not sent any more.
TRIM = """
    delete from email where id = any(array(
        select id from email where created_at < statement_timestamp() - $1::interval
        order by created_at, id limit $2
    ))
"""

_PAGE = """
    select email.id, kind, email.status, buyer_email, reference, slug, attempts, last_error, email.created_at,
        case when email.status = 'queued' then due_at end, email.ended_at
    from email join booking on number = booking_number join project on project.id = project_id
    where ($1::timestamptz is null or (email.created_at, email.id) < ($1, $2::uuid))
        and ($3::text is null or email.status = $3) and ($4::text[] is null or slug = any($4))
    order by email.created_at desc, email.id desc limit $5
"""


async def write_reminders(connection: Connection) -> None:
    await connection.execute(_REMIND, REMINDED_BEFORE)


async def claim(connection: Connection, limit: int, lease: timedelta) -> list[ClaimedEmail]:
    """Call it in a transaction."""
    await connection.execute(_LOCK)
    rows = await connection.fetch(_CLAIM, limit, lease, MOST_A_DAY, BUYER_ERASED, LIMIT_REACHED)
    return [ClaimedEmail(row[0], EmailKind(row[1]), *row[2:]) for row in rows]


async def record(
    connection: Connection, claimed: ClaimedEmail, status: EmailStatus, error: str | None, gap: timedelta
) -> None:
    await connection.execute(_RECORD, claimed.id, claimed.attempts, status, error, gap)


async def page(
    connection: Connection,
    before: tuple[datetime, UUID] | None,
    status: EmailStatus | None,
    slugs: Sequence[str] | None,
    limit: int,
) -> list[Email]:
    position: tuple[Any, Any] = before or (None, None)
    rows = await connection.fetch(_PAGE, *position, status, slugs, limit)
    return [Email(row[0], EmailKind(row[1]), EmailStatus(row[2]), *row[3:]) for row in rows]
