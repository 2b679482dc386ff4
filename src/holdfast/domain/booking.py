"""A booking: a buyer's way from hold to sale, with the terms that were agreed. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.unit import UnitFields

_HALALA = Decimal("0.01")
_NOTHING = Decimal("0.00")


class BookingStatus(StrEnum):
    OPEN = "open"
    SIGNED = "signed"
    RESERVED = "reserved"
    SOLD = "sold"
    LAPSED = "lapsed"
    CANCELLED = "cancelled"
    REFUND_DUE = "refund-due"
    REFUNDED = "refunded"


HOLDING = frozenset({BookingStatus.OPEN, BookingStatus.SIGNED})
"""The unit is held for the buyer."""

CLAIMING = frozenset({*HOLDING, BookingStatus.RESERVED, BookingStatus.SOLD})
"""The unit is the buyer's and nobody else's; at most one booking of a unit is in one of these."""


class Terms(NamedTuple):
    """What the buyer agreed to, frozen when the unit was opened."""

    price_sar: Decimal
    vat_included: bool | None
    vat_rate: Decimal | None
    deposit_percent: Decimal | None

    @property
    def total_sar(self) -> Decimal:
        if self.vat_included is not False or not self.vat_rate:
            return _rounded(self.price_sar)
        return _rounded(self.price_sar * (100 + self.vat_rate) / 100)

    @property
    def deposit_sar(self) -> Decimal:
        if not self.deposit_percent:
            return _NOTHING
        return _rounded(self.total_sar * self.deposit_percent / 100)


class Buyer(NamedTuple):
    name: str
    email: str
    phone: str


class Agreement(NamedTuple):
    """What the buyer signed for, as it was described at that moment; price and deposit are the terms."""

    project_name: str
    unit_type: str
    area_sqm: Decimal
    bedrooms: int | None
    bathrooms: int | None
    delivery_year: int | None
    language: str
    """In which it was read."""
    wording: int
    """Which version of the text around these facts."""


WORDING = 1
"""Of agreements that are signed now. The text of an earlier one is kept while there are agreements in it."""


class Holder(NamedTuple):
    """By what a buyer is known before they have a name; ids that tell nothing of address or cookie."""

    address_id: UUID | None = None
    visitor_id: UUID | None = None


class Slots(NamedTuple):
    """The places of a hold among those of its holder: no two live holds share one."""

    of_address: int | None = None
    of_visitor: int | None = None


NOBODY = Holder()
NO_SLOTS = Slots()


class Booking(NamedTuple):
    number: int
    reference: str
    project_id: UUID
    unit_id: UUID
    token_hash: bytes
    status: BookingStatus
    terms: Terms
    buyer: Buyer | None
    hold_expires_at: datetime | None
    """None: sold without a hold."""
    reserved_until: datetime | None
    created_at: datetime
    signed_at: datetime | None
    deposit_confirmed_at: datetime | None
    closed_at: datetime | None
    """When the sale was closed."""
    ended_at: datetime | None
    """When it ended unsold."""
    refunded_at: datetime | None
    holder: Holder
    slots: Slots
    idempotency_id: UUID | None
    buyer_erased_at: datetime | None = None
    """Since when nothing is left of the buyer's person."""
    agreement: Agreement | None = None
    """From the signature on."""
    payment_id: str | None = None
    """What the payment system calls the payment of the deposit."""

    @property
    def ends_at(self) -> datetime | None:
        """When it lapses, if nothing happens before."""
        if self.status in HOLDING:
            return self.hold_expires_at
        return self.reserved_until if self.status is BookingStatus.RESERVED else None


class Draft(NamedTuple):
    """What of a booking is made before its transaction, so that a repeated write recognises its own."""

    number: int
    reference: str
    token_hash: bytes
    holder: Holder = NOBODY
    idempotency_id: UUID | None = None


def agreement_on(fields: UnitFields, project_name: str, language: str) -> Agreement:
    return Agreement(
        project_name, fields.type, fields.area_sqm, fields.bedrooms, fields.bathrooms, fields.delivery_year,
        language, WORDING,
    )  # fmt: skip


def terms_of(fields: UnitFields) -> Terms:
    return Terms(fields.price_sar, fields.vat_included, fields.vat_rate, fields.deposit_percent)


def new_booking(
    draft: Draft,
    unit: tuple[UUID, UUID],
    terms: Terms,
    status: BookingStatus,
    now: datetime,
    *,
    buyer: Buyer | None = None,
    hold_expires_at: datetime | None = None,
    slots: Slots = NO_SLOTS,
) -> Booking:
    """``unit``: the ids of its project and its own."""
    closed_at = now if status is BookingStatus.SOLD else None
    return Booking(
        draft.number, draft.reference, *unit, draft.token_hash, status, terms, buyer,
        hold_expires_at, None, now, None, None, closed_at, None, None,
        draft.holder, slots, draft.idempotency_id,
    )  # fmt: skip


def end(booking: Booking, at: datetime, *, lapsed: bool = False) -> Booking:
    """It ends unsold; money that was paid is due back."""
    if booking.deposit_confirmed_at is not None:
        status = BookingStatus.REFUND_DUE
    else:
        status = BookingStatus.LAPSED if lapsed else BookingStatus.CANCELLED
    return booking._replace(status=status, ended_at=at, slots=NO_SLOTS)


def as_seen(booking: Booking, now: datetime) -> Booking:
    """What the clock has made of it, whether that is written already or not."""
    ends_at = booking.ends_at
    return booking if ends_at is None or ends_at > now else end(booking, ends_at, lapsed=True)


def _rounded(amount: Decimal) -> Decimal:
    return amount.quantize(_HALALA, ROUND_HALF_UP)
