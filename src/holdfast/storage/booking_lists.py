"""Lists of bookings, the latest first: of all, of projects, or of units."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from holdfast.domain.booking import BookingStatus
from holdfast.storage.booking_rows import READ_COLUMNS
from holdfast.storage.bookings import Found, found_in
from holdfast.storage.database import Connection

_END = (datetime.max.replace(tzinfo=UTC), 0)

# As readers see it: the same rule as domain.booking.as_seen; a test holds the two against each other.
_HOLD_OVER = "booking.hold_expires_at <= statement_timestamp()"
_RESERVATION_OVER = "booking.reserved_until <= statement_timestamp()"
_WHERE_STATUS = {
    None: ("true",),
    BookingStatus.OPEN: (f"booking.status = 'open' and not {_HOLD_OVER}",),
    BookingStatus.SIGNED: (f"booking.status = 'signed' and not {_HOLD_OVER}",),
    BookingStatus.RESERVED: (f"booking.status = 'reserved' and not {_RESERVATION_OVER}",),
    BookingStatus.SOLD: ("booking.status = 'sold'",),
    BookingStatus.LAPSED: (
        "booking.status = 'lapsed'",
        f"booking.status = 'open' and {_HOLD_OVER}",
        f"booking.status = 'signed' and {_HOLD_OVER}",
    ),
    BookingStatus.CANCELLED: ("booking.status = 'cancelled'",),
    BookingStatus.REFUND_DUE: (
        "booking.status = 'refund-due'",
        f"booking.status = 'reserved' and {_RESERVATION_OVER}",
    ),
    BookingStatus.REFUNDED: ("booking.status = 'refunded'",),
}

# One index scan for each way to have the status, merged in the order of time. Bookings of one moment are
# told apart by their numbers, which say nothing of time: every process has drawn some in advance.
_LATEST_FIRST = "booking.created_at desc, booking.number desc"
_BRANCH = f"""(
    select * from booking
    where (booking.created_at, booking.number) < ($1::timestamptz, $2::bigint) and {{of}} and {{status}}
    order by {_LATEST_FIRST} limit $3
)"""
_OF_EACH = """
    select booking.* from unnest($4::uuid[]) as scope (id) cross join lateral ({branches}) as booking
"""
_BRANCHES_OF = {
    None: "select * from ({branches}) as booking",
    "project_id": _OF_EACH,
    "unit_id": _OF_EACH,
}
# By a status that has an index of its own; lists of whatever else go from project to project.
_ALL_AT_ONCE = frozenset(BookingStatus) - {BookingStatus.LAPSED}
_PROJECT_IDS = "select id from project where $1::text[] is null or slug = any($1)"
# Without a project: one look for each, since units are found by project and code.
_UNIT_IDS = """
    select unit.id from project join unit on unit.project_id = project.id and unit.code = $2
    where $1::text[] is null or project.slug = any($1)
"""


def _page_statement(scope: str | None, status: BookingStatus | None) -> str:
    of = "true" if scope is None else f"booking.{scope} = scope.id"
    branches = " union all ".join(_BRANCH.format(of=of, status=where) for where in _WHERE_STATUS[status])
    return f"""
        select statement_timestamp(), unit.code, project.slug, {READ_COLUMNS}
        from (
            {_BRANCHES_OF[scope].format(branches=branches)} order by {_LATEST_FIRST} limit $3
        ) as booking
        join unit on unit.id = booking.unit_id
        join project on project.id = booking.project_id
        order by {_LATEST_FIRST}
    """


_PAGES = {
    (scope, status): _page_statement(scope, status) for scope in _BRANCHES_OF for status in _WHERE_STATUS
}


async def page(
    connection: Connection,
    before: tuple[datetime, int] | None,
    slugs: Sequence[str] | None,
    unit_code: str | None,
    status: BookingStatus | None,
    limit: int,
) -> list[Found]:
    """``before``: time and number of the last booking of the page before."""
    scope, ids = await _scope(connection, slugs, unit_code, status)
    arguments = (*(before or _END), limit) if scope is None else (*(before or _END), limit, ids)
    rows = await connection.fetch(_PAGES[scope, status], *arguments)
    return [found for row in rows if (found := found_in(row)) is not None]


# Reservations that are over and not yet written as such are found among the units that are about to be swept.
_REFUNDS_DUE = """
    select
        (select count(*) from (select from booking where status = 'refund-due' limit $1) as due)
        + (select count(*) from (
            select from unit
            where coalesce(hold_expires_at, reserved_until) <= statement_timestamp() and status = 'reserved'
            limit $1
        ) as over)
"""


async def refunds_due(connection: Connection, at_most: int) -> int:
    count: int = await connection.fetchval(_REFUNDS_DUE, at_most)
    return min(count, at_most)


async def _scope(
    connection: Connection,
    slugs: Sequence[str] | None,
    unit_code: str | None,
    status: BookingStatus | None,
) -> tuple[str | None, list[UUID]]:
    """The column that the list is limited by, and to which values."""
    if unit_code is not None:
        return "unit_id", [row[0] for row in await connection.fetch(_UNIT_IDS, slugs, unit_code)]
    if slugs is None and status in _ALL_AT_ONCE:
        return None, []
    return "project_id", [row[0] for row in await connection.fetch(_PROJECT_IDS, slugs)]
