"""Bookings: written with their units, found by reference or by unit, and listed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain import booking as domain
from holdfast.domain.booking import Agreement, Booking, BookingStatus, Buyer, Holder, Slots, Terms
from holdfast.domain.references import encode_reference
from holdfast.storage.database import Connection
from holdfast.storage.sellers import seller_from, seller_text

# Numbers and documents are sent as text, both ways.
_TYPES = {"price_sar": "numeric", "vat_rate": "numeric", "deposit_percent": "numeric"}
_TYPES |= {"agreement": "jsonb", "seller": "jsonb"}
_TIMES = (
    "hold_expires_at, reserved_until, created_at, signed_at, deposit_confirmed_at, closed_at, ended_at, "
    "refunded_at"
)
SLOT_KINDS = ("address", "visitor", "prefix_56", "prefix_48")
"""Live holds have slots of these, as in ``Slots``: the columns ``address_id`` and ``address_slot``, …"""
CLEAR_SLOTS = ", ".join(f"{kind}_slot = null" for kind in SLOT_KINDS)
_NETWORKS = "prefix_56_id, prefix_48_id, project_network_id, prefix_56_slot, prefix_48_slot"

WRITE_COLUMNS = (
    "number, reference, project_id, unit_id, token_hash, status, price_sar, vat_included, vat_rate, "
    f"deposit_percent, buyer_name, buyer_email, buyer_phone, {_TIMES}, "
    "address_id, visitor_id, address_slot, visitor_slot, idempotency_id, buyer_erased_at, agreement, "
    f"payment_id, {_NETWORKS}, seller"
)
"""In the order of the database's type ``booking_write``."""

_MUTABLE = (
    "token_hash, status, buyer_name, buyer_email, buyer_phone, hold_expires_at, reserved_until, signed_at, "
    "deposit_confirmed_at, closed_at, ended_at, refunded_at, address_id, visitor_id, address_slot, "
    f"visitor_slot, buyer_erased_at, agreement, payment_id, {_NETWORKS}, seller"
)

_READ = {"numeric": "trim_scale(booking.{})::text", "jsonb": "booking.{}::text", None: "booking.{}"}
READ_COLUMNS = ", ".join(_READ[_TYPES.get(name)].format(name) for name in WRITE_COLUMNS.split(", "))
"""In the order in which ``booking_from`` takes them."""

_STATUS = {str(status): status for status in BookingStatus}


def _written(name: str) -> str:
    """Return the column of a sent row, as the table takes it."""
    return f"written.{name}::{_TYPES[name]}" if name in _TYPES else f"written.{name}"


# Parts of the statement that stores units: update and insert the bookings of the units that it stored.
# Bookings that end are updated first and new ones inserted after them, so that these find their unit free.
# New ones are inserted in the order of slots, so that two that want the same wait in one order.
UPDATE_BOOKINGS = f"""
    update booking set {", ".join(f"{name} = {_written(name)}" for name in _MUTABLE.split(", "))}
    from (
        select * from unnest($5::booking_write[]) as written
        where written.unit_id in (select id from stored)
        order by written.status in ('open', 'signed', 'reserved', 'sold')
    ) as written
    where booking.number = written.number
    returning booking.number
"""
INSERT_BOOKINGS = f"""
    insert into booking ({WRITE_COLUMNS})
    select {", ".join(map(_written, WRITE_COLUMNS.split(", ")))}
    from unnest($6::booking_write[]) as written
    where written.unit_id in (select id from stored) and (select count(*) from updated_bookings) >= 0
    order by written.address_id, written.address_slot
"""


def booking_from(columns: tuple[Any, ...]) -> Booking:
    """From the values of ``READ_COLUMNS``."""
    (
        number, reference, project_id, unit_id, token_hash, status, price, vat_included, vat_rate, deposit,
        name, email, phone,
        hold_expires_at, reserved_until, created_at, signed_at, deposit_confirmed_at, closed_at, ended_at,
        refunded_at, address_id, visitor_id, address_slot, visitor_slot, idempotency_id, buyer_erased_at,
        agreement, payment_id, *networks, seller,
    ) = columns  # fmt: skip
    terms = Terms(Decimal(price), vat_included, vat_rate and Decimal(vat_rate), deposit and Decimal(deposit))
    return Booking(
        number, reference, project_id, unit_id, token_hash, _STATUS[status], terms,
        None if name is None else Buyer(name, email, phone),
        hold_expires_at, reserved_until, created_at, signed_at, deposit_confirmed_at, closed_at, ended_at,
        refunded_at,
        Holder(address_id, visitor_id, *networks[:3]), Slots(address_slot, visitor_slot, *networks[3:]),
        idempotency_id, buyer_erased_at,
        None if agreement is None else _agreement_from(agreement, seller), payment_id,
    )  # fmt: skip


def booking_row(booking: Booking) -> tuple[Any, ...]:
    """The value of the database's type ``booking_write``."""
    terms = booking.terms
    return (
        *booking[:6],
        str(terms.price_sar), terms.vat_included,
        terms.vat_rate if terms.vat_rate is None else str(terms.vat_rate),
        terms.deposit_percent if terms.deposit_percent is None else str(terms.deposit_percent),
        *(booking.buyer or (None, None, None)),
        *booking[8:16],
        *booking.holder[:2], *booking.slots[:2], booking.idempotency_id, booking.buyer_erased_at,
        None if booking.agreement is None else _agreement_text(booking.agreement), booking.payment_id,
        *booking.holder[2:], *booking.slots[2:],
        None if booking.agreement is None else seller_text(booking.agreement.seller),
    )  # fmt: skip


def _agreement_text(agreement: Agreement) -> str:
    """A number that must stay exact is kept as text."""
    kept = {**agreement._asdict(), "area_sqm": str(agreement.area_sqm)}
    del kept["seller"]  # It has a column of its own: the release before it knows no other fields here.
    return json.dumps(kept, ensure_ascii=False)


def _agreement_from(text: str, seller: str | None) -> Agreement:
    kept = json.loads(text)
    return Agreement(**{**kept, "area_sqm": Decimal(kept["area_sqm"]), "seller": seller_from(seller or "{}")})


_CLAIMING = "booking.status in ('open', 'signed', 'reserved', 'sold')"

# With each booking the turn of its unit, so that a reader without locks sees whether the two belong together.
_WITH_TURN = f"select unit.turn, {READ_COLUMNS} from booking join unit on unit.id = booking.unit_id"
_RELATED = f"""
    {_WITH_TURN}
    where booking.unit_id = any($1::uuid[]) and {_CLAIMING}
    union all
    {_WITH_TURN}
    where booking.number = any($2::bigint[]) and not (booking.unit_id = any($1::uuid[]) and {_CLAIMING})
    union all
    {_WITH_TURN}
    where booking.unit_id = any($3::uuid[]) and booking.idempotency_id = any($4::uuid[])
"""

# A unit is held by one buyer at a time, so there are few, however many holds others cancel meanwhile.
_LATELY_EXPIRED = f"""
    select {READ_COLUMNS} from booking
    where unit_id = any($1::uuid[]) and status = 'lapsed' and ended_at > $2
        and (visitor_id = any($3::uuid[]) or token_hash = any($4::bytea[]))
"""

_CLAIMS = f"""
    select clock_timestamp(), {READ_COLUMNS} from booking where unit_id = any($1::uuid[]) and {_CLAIMING}
"""

_NEXT_NUMBERS = "select nextval('booking_number'), secret from installation, generate_series(1, $1)"
_TAKEN = "select reference from booking where reference = any($1::text[])"

_WITH_NAMES = f"""
    select clock_timestamp(), unit.code, project.slug, {READ_COLUMNS}
    from booking
    join unit on unit.id = booking.unit_id
    join project on project.id = booking.project_id
"""
_FIND = f"{_WITH_NAMES} where booking.reference = $1"
_HELD_BY = f"{_WITH_NAMES} where booking.visitor_id = $1 and booking.visitor_slot is not null"
_PAYMENTS = "select payment_id, number from booking where payment_id = any($1::text[])"
# With each network the units of its project as far as its share, $4 percent, needs them: one is allowed.
# Order, and filters in place of conditions, keep the planner from other indexes when hardly anything is held.
_NETWORK_HOLDS = """
    select asked.network_id, held.number, held.first_end, (
        select count(*) from unnest('{available, held}'::text[]) as on_sale (status)
        cross join lateral (
            select from unit where unit.project_id = asked.project_id and unit.status = on_sale.status
            order by code
            limit case when held.number + asked.number > 1
                then (held.number + asked.number) * 100 / $4 + 1 else 0 end
        ) as counted
    )
    from unnest($1::uuid[], $2::uuid[], $3::bigint[]) as asked (network_id, project_id, number)
    cross join lateral (
        select count(*) filter (where status in ('open', 'signed')) as number,
            min(hold_expires_at) filter (where status in ('open', 'signed')) as first_end
        from booking where project_network_id = asked.network_id and hold_expires_at > $5
    ) as held
"""
_LOCK_NETWORKS = "select pg_advisory_xact_lock(number) from unnest($1::bigint[]) as number"


# Delete bookings that ended without a deposit more than $1 ago, at most $2, but no revoked sale. Units are
# locked first, as writers do, and get their next turn: a deposit that was decided on such a booking is
# decided again and finds none. Arrays and offset make every plan look up rows by their keys.
_ENDED_UNPAID = "status in ('lapsed', 'cancelled') and closed_at is null"
TRIM = f"""
    with old as (
        select ended.* from project
        cross join lateral (
            select number, unit_id from booking
            where project_id = project.id and created_at < statement_timestamp() - $1::interval
                and ended_at < statement_timestamp() - $1::interval and {_ENDED_UNPAID}
            order by created_at, number limit $2
        ) as ended
        cross join lateral (
            select from unit where id = ended.unit_id offset 0 for no key update skip locked
        ) as locked
        limit $2
    ), gone as (
        delete from booking where number = any(array(select number from old)) and {_ENDED_UNPAID}
        returning unit_id
    ), overtaken as (update unit set turn = turn + 1 where id = any(array(select unit_id from gone)))
    select from gone
"""


class FoundBooking(NamedTuple):
    """A booking as it is seen now, with the names of its unit and project."""

    booking: Booking
    unit_code: str
    project_slug: str
    now: datetime


async def load_related(
    connection: Connection,
    unit_ids: Sequence[UUID],
    numbers: Sequence[int],
    asked_units: Sequence[UUID] = (),
    idempotency_ids: Sequence[UUID] = (),
) -> list[tuple[int, Booking]]:
    """Load the bookings that claim these units, have these numbers, or were made of the units that are asked
    for with these Idempotency-Keys, each with the turn of its unit."""
    rows = await connection.fetch(_RELATED, unit_ids, numbers, asked_units, idempotency_ids)
    return [(row[0], booking_from(row[1:])) for row in rows]


async def claims_on(connection: Connection, unit_ids: Sequence[UUID]) -> dict[UUID, Booking]:
    """Return the bookings that claim these units, as they are seen now."""
    rows = await connection.fetch(_CLAIMS, unit_ids)
    found = [domain.as_seen(booking_from(row[1:]), row[0]) for row in rows]
    return {booking.unit_id: booking for booking in found if booking.status in domain.CLAIMING}


async def load_lately_expired(
    connection: Connection,
    unit_ids: Sequence[UUID],
    since: datetime,
    visitors: Sequence[UUID],
    token_hashes: Sequence[bytes],
) -> list[Booking]:
    """Load the bookings of these units that expired after ``since`` and are of these visitors or tokens."""
    rows = await connection.fetch(_LATELY_EXPIRED, unit_ids, since, visitors, token_hashes)
    return [booking_from(tuple(row)) for row in rows]


async def next_references(connection: Connection, count: int) -> list[tuple[int, str]]:
    """Return up to ``count`` numbers that nobody else gets, each with its reference. Earlier releases made
    references in another way: a number is left out if its reference is one of those."""
    made = {
        encode_reference(number, secret): number
        for number, secret in await connection.fetch(_NEXT_NUMBERS, count)
    }
    taken = {row[0] for row in await connection.fetch(_TAKEN, list(made))}
    return [(number, reference) for reference, number in made.items() if reference not in taken]


async def installation_secret(connection: Connection) -> bytes:
    return bytes(await connection.fetchval("select secret from installation"))


async def find(connection: Connection, reference: str) -> FoundBooking | None:
    row = await connection.fetchrow(_FIND, reference)
    return _found_booking(row) if row else None


async def held_by(connection: Connection, visitor_id: UUID) -> list[FoundBooking]:
    """Return the bookings that a visitor holds, as they are seen now: the hold of one may be over."""
    return [_found_booking(row) for row in await connection.fetch(_HELD_BY, visitor_id)]


async def load_payments(connection: Connection, payment_ids: Sequence[str]) -> dict[str, int | None]:
    """Return the number of the booking that each of these payments has confirmed."""
    found = {row[0]: row[1] for row in await connection.fetch(_PAYMENTS, payment_ids)}
    return {payment_id: found.get(payment_id) for payment_id in payment_ids}


ProjectNetworks = Mapping[tuple[UUID, UUID], int]
"""How many units each network (its id, the project's id) asks for."""


async def lock_networks(connection: Connection, asked: ProjectNetworks) -> None:
    """Let one transaction at a time count and make holds of these networks. Call it before any other lock."""
    if asked:
        await connection.execute(_LOCK_NETWORKS, sorted(network_id.int >> 65 for network_id, _ in asked))


async def load_network_holds(
    connection: Connection, asked: ProjectNetworks, share_percent: int, now: datetime
) -> dict[UUID, domain.NetworkHolds]:
    if not asked:
        return {}
    columns = zip(*((*key, number) for key, number in asked.items()), strict=True)
    rows = await connection.fetch(_NETWORK_HOLDS, *columns, share_percent, now)
    return {row[0]: domain.NetworkHolds(*row[1:]) for row in rows}


def _found_booking(row: asyncpg.Record) -> FoundBooking:
    now, code, slug, *columns = row
    return FoundBooking(domain.as_seen(booking_from(tuple(columns)), now), code, slug, now)


# Lists of bookings, the latest first: of all, of projects or of units. There is one statement for each status
# and scope, since the planner must know the status: it chooses between the indexes by how rare the status is.

_ENDS_AT = (datetime.max.replace(tzinfo=UTC), 0)

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

# One index scan for each way to have the status, merged in the order of time. Bookings of the same time are
# ordered by number; numbers do not follow time, since every process draws some in advance.
_LATEST_FIRST = "booking.created_at desc, booking.number desc"
_PAGE_BRANCH = f"""(
    select * from booking
    where (booking.created_at, booking.number) < ($1::timestamptz, $2::bigint) and {{of}} and {{status}}
    order by {_LATEST_FIRST} limit $3
)"""
_OF_EACH = "select booking.* from unnest($4::uuid[]) as scope (id) cross join lateral ({branches}) as booking"
_BRANCHES_OF = {None: "select * from ({branches}) as booking", "project_id": _OF_EACH, "unit_id": _OF_EACH}
# These statuses have an index of their own; other lists go from project to project.
_ALL_AT_ONCE = frozenset(BookingStatus) - {BookingStatus.LAPSED}
_PROJECT_IDS = "select id from project where $1::text[] is null or slug = any($1)"
# Without a project: one lookup for each, since units are found by project and code.
_UNIT_IDS = """
    select unit.id from project join unit on unit.project_id = project.id and unit.code = $2
    where $1::text[] is null or project.slug = any($1)
"""


def _booking_page_statement(scope: str | None, status: BookingStatus | None) -> str:
    of = "true" if scope is None else f"booking.{scope} = scope.id"
    branches = " union all ".join(_PAGE_BRANCH.format(of=of, status=where) for where in _WHERE_STATUS[status])
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
    (scope, status): _booking_page_statement(scope, status)
    for scope in _BRANCHES_OF
    for status in _WHERE_STATUS
}


async def booking_page(
    connection: Connection,
    before: tuple[datetime, int] | None,
    slugs: Sequence[str] | None,
    unit_code: str | None,
    status: BookingStatus | None,
    limit: int,
) -> list[FoundBooking]:
    """``before``: time and number of the last booking of the page before."""
    scope, ids = await _page_scope(connection, slugs, unit_code, status)
    arguments = (*(before or _ENDS_AT), limit) if scope is None else (*(before or _ENDS_AT), limit, ids)
    return [_found_booking(row) for row in await connection.fetch(_PAGES[scope, status], *arguments)]


# Reservations that are over and not expired yet are found by their units.
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
    return min(int(await connection.fetchval(_REFUNDS_DUE, at_most)), at_most)


async def _page_scope(
    connection: Connection, slugs: Sequence[str] | None, unit_code: str | None, status: BookingStatus | None
) -> tuple[str | None, list[UUID]]:
    """Return the column that limits the list, and its values."""
    if unit_code is not None:
        return "unit_id", [row[0] for row in await connection.fetch(_UNIT_IDS, slugs, unit_code)]
    if slugs is None and status in _ALL_AT_ONCE:
        return None, []
    return "project_id", [row[0] for row in await connection.fetch(_PROJECT_IDS, slugs)]
