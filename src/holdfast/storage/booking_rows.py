"""How a booking stands in a row, and back."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from holdfast.domain.booking import Agreement, Booking, BookingStatus, Buyer, Holder, Slots, Terms

_NUMBERS = ("price_sar", "vat_rate", "deposit_percent")
_DOCUMENTS = ("agreement",)
_TIMES = (
    "hold_expires_at, reserved_until, created_at, signed_at, deposit_confirmed_at, closed_at, ended_at, "
    "refunded_at"
)
WRITE_COLUMNS = (
    "number, reference, project_id, unit_id, token_hash, status, price_sar, vat_included, vat_rate, "
    f"deposit_percent, buyer_name, buyer_email, buyer_phone, {_TIMES}, "
    "address_id, visitor_id, address_slot, visitor_slot, idempotency_id, buyer_erased_at, agreement, "
    "payment_id"
)
"""In the order of the database's type ``booking_write``."""

_MUTABLE = (
    "token_hash, status, buyer_name, buyer_email, buyer_phone, hold_expires_at, reserved_until, signed_at, "
    "deposit_confirmed_at, closed_at, ended_at, refunded_at, address_id, visitor_id, address_slot, "
    "visitor_slot, buyer_erased_at, agreement, payment_id"
)

READ_COLUMNS = ", ".join(
    f"trim_scale(booking.{name})::text"
    if name in _NUMBERS
    else f"booking.{name}::text"
    if name in _DOCUMENTS
    else f"booking.{name}"
    for name in WRITE_COLUMNS.split(", ")
)
"""In the order in which ``booking_from`` takes them."""

_STATUS = {str(status): status for status in BookingStatus}


def _written(name: str) -> str:
    if name in _DOCUMENTS:
        return f"written.{name}::jsonb"
    return f"written.{name}::numeric" if name in _NUMBERS else f"written.{name}"


def insert_statement(argument: int, stored: str, after: str) -> str:
    """For the statement that stores the units: the new bookings of those units that it did store.

    ``after``: a condition that waits for those bookings that end, so that these find their unit free.
    In the order of places, so that two who want the same wait for each other in one order.
    """
    return f"""
        insert into booking ({WRITE_COLUMNS})
        select {", ".join(map(_written, WRITE_COLUMNS.split(", ")))}
        from unnest(${argument}::booking_write[]) as written
        where written.unit_id in ({stored}) and {after}
        order by written.address_id, written.address_slot
    """


def update_statement(argument: int, stored: str) -> str:
    """Likewise, for bookings that were there. Those that end come first."""
    return f"""
        update booking set {", ".join(f"{name} = {_written(name)}" for name in _MUTABLE.split(", "))}
        from (
            select * from unnest(${argument}::booking_write[]) as written
            where written.unit_id in ({stored})
            order by written.status in ('open', 'signed', 'reserved', 'sold')
        ) as written
        where booking.number = written.number
        returning booking.number
    """


def booking_from(columns: tuple[Any, ...]) -> Booking:
    """From the values of ``READ_COLUMNS``."""
    (
        number, reference, project_id, unit_id, token_hash, status, price, vat_included, vat_rate, deposit,
        name, email, phone,
        hold_expires_at, reserved_until, created_at, signed_at, deposit_confirmed_at, closed_at, ended_at,
        refunded_at,
        address_id, visitor_id, address_slot, visitor_slot, idempotency_id, buyer_erased_at,
        agreement, payment_id,
    ) = columns  # fmt: skip
    terms = Terms(Decimal(price), vat_included, vat_rate and Decimal(vat_rate), deposit and Decimal(deposit))
    return Booking(
        number, reference, project_id, unit_id, token_hash, _STATUS[status], terms,
        None if name is None else Buyer(name, email, phone),
        hold_expires_at, reserved_until, created_at, signed_at, deposit_confirmed_at, closed_at, ended_at,
        refunded_at,
        Holder(address_id, visitor_id), Slots(address_slot, visitor_slot), idempotency_id, buyer_erased_at,
        None if agreement is None else _agreement_from(agreement), payment_id,
    )  # fmt: skip


def row_for(booking: Booking) -> tuple[Any, ...]:
    """The value of the database's type ``booking_write``."""
    terms = booking.terms
    return (
        *booking[:6],
        str(terms.price_sar), terms.vat_included,
        terms.vat_rate if terms.vat_rate is None else str(terms.vat_rate),
        terms.deposit_percent if terms.deposit_percent is None else str(terms.deposit_percent),
        *(booking.buyer or (None, None, None)),
        *booking[8:16],
        *booking.holder, *booking.slots, booking.idempotency_id, booking.buyer_erased_at,
        None if booking.agreement is None else _agreement_text(booking.agreement), booking.payment_id,
    )  # fmt: skip


def _agreement_text(agreement: Agreement) -> str:
    """A number that must stay exact is kept as text."""
    return json.dumps({**agreement._asdict(), "area_sqm": str(agreement.area_sqm)}, ensure_ascii=False)


def _agreement_from(text: str) -> Agreement:
    kept = json.loads(text)
    return Agreement(**{**kept, "area_sqm": Decimal(kept["area_sqm"])})
