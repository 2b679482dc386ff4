"""A booking of a unit, from hold to sale, with the terms that were agreed. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.seller import NOBODY_NAMED, Seller
from holdfast.domain.unit import Unit, UnitFields

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

CLAIMING = frozenset({*HOLDING, BookingStatus.RESERVED, BookingStatus.SOLD})
"""The unit is the buyer's and nobody else's; at most one booking of a unit is in one of these."""


class Terms(NamedTuple):
    """The terms that the buyer agreed to, frozen when the unit was opened."""

    price_sar: Decimal
    vat_included: bool | None
    vat_rate: Decimal | None
    deposit_percent: Decimal | None

    @property
    def total_sar(self) -> Decimal:
        if self.vat_included is not False or not self.vat_rate:
            return rounded(self.price_sar)
        return rounded(self.price_sar * (100 + self.vat_rate) / 100)

    @property
    def deposit_sar(self) -> Decimal:
        if not self.deposit_percent:
            return _NOTHING
        return rounded(self.total_sar * self.deposit_percent / 100)


class Buyer(NamedTuple):
    name: str
    email: str
    phone: str


class Agreement(NamedTuple):
    """The unit and the seller as described when the buyer signed; price and deposit are in the terms."""

    project_name: str
    unit_type: str
    area_sqm: Decimal
    bedrooms: int | None
    bathrooms: int | None
    delivery_year: int | None
    language: str
    wording: int
    seller: Seller = NOBODY_NAMED


WORDING = 2
"""The version of new agreements. The text of an earlier version is kept while there are agreements in it."""


class Holder(NamedTuple):
    """A buyer before they sign: hashed ids of what their holds are counted by."""

    address_id: UUID | None = None
    """Of an IPv4 address or an IPv6 /64."""
    visitor_id: UUID | None = None
    """Of a cookie."""
    prefix_56_id: UUID | None = None
    prefix_48_id: UUID | None = None
    project_network_id: UUID | None = None
    """Of an IPv4 /24 or an IPv6 /48 together with the project."""


class Slots(NamedTuple):
    """The slots of a hold among those of its holder: no two live holds share one."""

    of_address: int | None = None
    of_visitor: int | None = None
    of_prefix_56: int | None = None
    of_prefix_48: int | None = None


class LiveHold(NamedTuple):
    slot: int
    expires_at: datetime


class NetworkHolds(NamedTuple):
    """The live holds of the buyers of one network in one project."""

    live: int
    first_end: datetime | None
    units: int
    """Units of the project that are on sale or held, counted as far as it matters."""


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
    ended_at: datetime | None
    """When the booking ended unsold."""
    refunded_at: datetime | None
    holder: Holder
    slots: Slots
    idempotency_id: UUID | None
    buyer_erased_at: datetime | None = None
    agreement: Agreement | None = None
    payment_id: str | None = None

    @property
    def ends_at(self) -> datetime | None:
        if self.status in HOLDING:
            return self.hold_expires_at
        return self.reserved_until if self.status is BookingStatus.RESERVED else None

    @property
    def link_version(self) -> str:
        """Return a text that is another one for each link that the buyer gets."""
        return self.token_hash.hex()[:32]


class Draft(NamedTuple):
    """The parts of a booking that are made before its transaction: a repeated write recognizes them."""

    number: int
    reference: str
    token_hash: bytes
    holder: Holder = NOBODY
    idempotency_id: UUID | None = None


def new_agreement(fields: UnitFields, project_name: str, language: str, seller: Seller) -> Agreement:
    return Agreement(
        project_name, fields.type, fields.area_sqm, fields.bedrooms, fields.bathrooms, fields.delivery_year,
        language, WORDING, seller,
    )  # fmt: skip


def unit_terms(fields: UnitFields) -> Terms:
    return Terms(fields.price_sar, fields.vat_included, fields.vat_rate, fields.deposit_percent)


def new_booking(
    draft: Draft,
    unit: Unit,
    status: BookingStatus,
    now: datetime,
    *,
    buyer: Buyer | None = None,
    hold_expires_at: datetime | None = None,
    slots: Slots = NO_SLOTS,
) -> Booking:
    return Booking(
        draft.number, draft.reference, unit.project_id, unit.id, draft.token_hash, status,
        unit_terms(unit.fields), buyer,
        hold_expires_at, None, now, None, None, None, None, None,
        draft.holder, slots, draft.idempotency_id,
    )  # fmt: skip


def end(booking: Booking, at: datetime, *, expired: bool = False) -> Booking:
    """End the booking unsold; a deposit that was paid is due back."""
    if booking.deposit_confirmed_at is not None:
        status = BookingStatus.REFUND_DUE
    else:
        status = BookingStatus.LAPSED if expired else BookingStatus.CANCELLED
    return booking._replace(status=status, ended_at=at, slots=NO_SLOTS)


def as_seen(booking: Booking, now: datetime) -> Booking:
    """Return the booking as readers see it: expired at its end, whether that is written already or not."""
    ends_at = booking.ends_at
    return booking if ends_at is None or ends_at > now else end(booking, ends_at, expired=True)


def rounded(amount: Decimal) -> Decimal:
    """Return an amount in whole halalas."""
    return amount.quantize(_HALALA, ROUND_HALF_UP)
