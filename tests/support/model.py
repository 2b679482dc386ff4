"""A model of units and their bookings, written from the contract alone.

It says what every call must answer, and keeps what must be read back: statuses, events, history. It
shares nothing with the product, so that a mistake in one is not a mistake in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

HALALA = Decimal("0.01")
TERMS = ("priceSar", "depositPercent", "vatIncluded", "vatRate")
SERVICE_STATUSES = ("held", "reserved", "sold")
HOLDING = ("open", "signed")
CLAIMING = (*HOLDING, "reserved", "sold")

# docs/state-machine.md: action -> (from, to, event). By staff; an archived unit can only be put on sale.
STAFF_MOVES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "cancel-hold": (("held",), "available", "unit.released"),
    "cancel-reservation": (("reserved",), "available", "unit.released"),
    "put-on-sale": (("unavailable",), "available", "unit.available"),
    "take-off-sale": (("available", "held", "reserved"), "unavailable", "unit.unavailable"),
    "archive": (("available", "held", "reserved", "unavailable"), "unavailable", "unit.unavailable"),
    "revoke-sale": (("sold",), "unavailable", "unit.unavailable"),
    **dict.fromkeys(("lapse-hold", "lapse-reservation"), ((), "", "")),
}

Event = tuple[str, str, str, str | None]
"""Its type, both statuses, and the reference of its booking."""
Entry = tuple[str, str | None, str]
"""Of the history: the action, the reference of the booking, and who did it."""


class Answer(NamedTuple):
    code: int
    reason: str | None = None
    fields: tuple[str, ...] = ()


OK = Answer(200)
UNKNOWN = Answer(404)
INVALID = Answer(422)
NOT_ALLOWED = Answer(409, "transition-not-allowed")


@dataclass
class Booking:
    reference: str
    code: str
    status: str
    terms: dict[str, Any]
    token: str | None = None
    buyer: dict[str, str] | None = None
    is_signed: bool = False
    is_paid: bool = False
    is_closed: bool = False
    key: str | None = None
    """The Idempotency-Key of the request that made it."""
    is_reissued: bool = False

    def end(self, *, lapsed: bool = False) -> None:
        self.status = "refund-due" if self.is_paid else "lapsed" if lapsed else "cancelled"


@dataclass
class Unit:
    code: str
    status: str | None = None
    """None: there is none yet."""
    is_archived: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    claim: Booking | None = None
    changes: int = 0
    """Of the unit itself: a signature is none."""
    events: list[Event] = field(default_factory=list)
    history: list[Entry] = field(default_factory=list)

    def move(self, target: str, event: str, reference: str | None = None) -> None:
        assert self.status is not None
        self.events.append((event, self.status, target, reference))
        self.status, self.is_archived = target, False
        self.changes += 1

    def note(self, action: str, actor: str, booking: Booking | None = None) -> None:
        self.history.append((action, None if booking is None else booking.reference, actor))

    # The integration API

    def put(self, body: dict[str, Any], status: str | None) -> Answer:
        if self.status is not None:
            return self._change(body, status)
        if status in SERVICE_STATUSES:
            return INVALID
        self.status, self.fields = status or "available", body
        self.note("create", "key")
        return Answer(201)

    def patch(self, changes: dict[str, Any], status: str | None) -> Answer:
        if self.status is None:
            return INVALID if status in SERVICE_STATUSES else UNKNOWN
        return self._change({**self.fields, **changes}, status)

    def _change(self, fields: dict[str, Any], status: str | None) -> Answer:
        if status is not None and self.status in SERVICE_STATUSES:
            return Answer(409, "status-locked", ("status",))
        if status in SERVICE_STATUSES:
            return INVALID
        changed = tuple(name for name in TERMS if self.fields[name] != fields[name])
        if changed and self.status in ("held", "reserved"):
            return Answer(409, "terms-locked", changed)
        if self.is_archived and status == "available":
            return Answer(409, "transition-not-allowed", ("status",))
        self._take(fields, status)
        return OK

    def _take(self, fields: dict[str, Any], status: str | None) -> None:
        was, self.fields = self.fields, fields
        if status is None or status == self.status:
            if was != fields:
                self.changes += 1
                self.note("change", "key")
            return
        self.move(status, f"unit.{status}")
        self.note("put-on-sale" if status == "available" else "take-off-sale", "key")

    # Buyers

    def hold(self, token: str | None, earlier: Booking | None = None) -> Answer:
        """``earlier``: what the same Idempotency-Key has made."""
        if earlier is not None:
            return _again(earlier)
        if self.status is None:
            return UNKNOWN
        if token is not None and self.claim and self.claim.token == token and self.claim.status in HOLDING:
            return OK
        return Answer(201) if self.status == "available" else Answer(409, "not-available")

    def opened(self, reference: str, token: str | None, actor: str, key: str | None = None) -> Booking:
        """The hold was given; its reference is for the service to choose."""
        self.claim = Booking(reference, self.code, "open", agreed(self.fields), token, key=key)
        self.move("held", "unit.held")
        self.note("open", actor, self.claim)
        return self.claim

    def sign(self, booking: Booking, buyer: dict[str, str]) -> Answer:
        if booking.status == "open":
            booking.status, booking.buyer, booking.is_signed = "signed", buyer, True
            self.note("sign", "buyer", booking)
            return OK
        if booking.status in CLAIMING:
            return OK if booking.is_signed and booking.buyer == buyer else NOT_ALLOWED
        return Answer(409, "hold-lapsed") if booking.status == "lapsed" else NOT_ALLOWED

    def cancel_as_buyer(self, booking: Booking) -> Answer:
        if booking.status in HOLDING:
            self._end_claim("available", "unit.released", "cancel-hold", "buyer")
            return Answer(204)
        if booking.status == "cancelled":
            return Answer(204)
        return Answer(409, "hold-lapsed") if booking.status == "lapsed" else NOT_ALLOWED

    def lapse(self) -> None:
        action = "lapse-hold" if self.status == "held" else "lapse-reservation"
        self._end_claim("available", "unit.released", action, "clock", lapsed=True)

    # Staff and payment systems

    def act(self, action: str) -> Answer:
        sources, target, event = STAFF_MOVES[action]
        if refusal := self._refusal(*sources):
            return refusal
        if self.is_archived and action != "put-on-sale":
            return NOT_ALLOWED
        self._end_claim(target, event, action, "key")
        self.is_archived = action == "archive"
        return OK

    def _refusal(self, *sources: str) -> Answer | None:
        """The answer to an action that is possible in these statuses alone."""
        if self.status is None:
            return UNKNOWN
        return None if self.status in sources else NOT_ALLOWED

    def open(self) -> Answer:
        """The booking is made by ``opened``."""
        return self._refusal("available") or OK

    def extend(self) -> Answer:
        if refusal := self._refusal("held", "reserved"):
            return refusal
        self.changes += 1
        self.note("extend", "key", self.claim)
        return OK

    def close_sale(self, buyer: dict[str, str] | None) -> Answer:
        """A sale to a walk-in buyer is made by ``sold_to``."""
        if refusal := self._refusal("available", "reserved"):
            return refusal
        if self.status == "available":
            return OK if buyer else INVALID
        return NOT_ALLOWED if buyer else self._close()

    def sold_to(self, buyer: dict[str, str], reference: str) -> Booking:
        self.claim = Booking(reference, self.code, "sold", agreed(self.fields), buyer=buyer, is_closed=True)
        self.move("sold", "unit.sold", reference)
        self.note("close-sale", "key", self.claim)
        return self.claim

    def confirm_deposit(self) -> Answer:
        if refusal := self._refusal("held"):
            return refusal
        assert self.claim is not None
        return self.confirm_deposit_of(self.claim)

    def confirm_deposit_of(self, booking: Booking) -> Answer:
        if booking.is_paid:
            return OK
        if not booking.is_signed:
            return Answer(409, "not-signed")
        booking.is_paid = True
        if booking is self.claim or self.status == "available":
            self._reserve(booking)
        else:
            booking.status = "refund-due"
        self.note("confirm-deposit", "key", booking)
        return OK

    def cancel(self, booking: Booking) -> Answer:
        if booking.status not in (*HOLDING, "reserved"):
            return NOT_ALLOWED
        return self.act("cancel-reservation" if booking.status == "reserved" else "cancel-hold")

    def close_sale_of(self, booking: Booking) -> Answer:
        return self._close() if booking.status == "reserved" else NOT_ALLOWED

    def extend_booking(self, booking: Booking) -> Answer:
        return self.extend() if booking is self.claim else NOT_ALLOWED

    def mark_refunded(self, booking: Booking) -> Answer:
        if booking.status == "refund-due":
            booking.status = "refunded"
            self.note("mark-refunded", "key", booking)
        return OK if booking.status == "refunded" else NOT_ALLOWED

    def reissued(self, booking: Booking, token: str) -> None:
        booking.token, booking.is_reissued = token, True
        self.note("reissue-link", "key", booking)

    def _reserve(self, booking: Booking) -> None:
        if self.status == "available":
            self.move("held", "unit.held")
        booking.status, self.claim = "reserved", booking
        self.move("reserved", "unit.reserved", booking.reference)

    def _close(self) -> Answer:
        assert self.claim is not None
        self.claim.status, self.claim.is_closed = "sold", True
        self.move("sold", "unit.sold", self.claim.reference)
        self.note("close-sale", "key", self.claim)
        return OK

    def _end_claim(self, target: str, event: str, action: str, actor: str, *, lapsed: bool = False) -> None:
        ended, self.claim = self.claim, None
        if ended is not None:
            ended.end(lapsed=lapsed)
        self.move(target, event)
        self.note(action, actor, ended)


def _again(earlier: Booking) -> Answer:
    """The answer of the first request, while it is still true."""
    if earlier.status == "lapsed":
        return Answer(409, "hold-lapsed")
    is_unchanged = earlier.status == "open" and not earlier.is_reissued
    return Answer(201) if is_unchanged else Answer(409, "idempotency-key-used")


def agreed(fields: dict[str, Any]) -> dict[str, Any]:
    """What a buyer pays, each amount half up to 0.01."""
    rate = Decimal(fields["vatRate"] or 0) if fields["vatIncluded"] is False else Decimal(0)
    total = (Decimal(fields["priceSar"]) * (100 + rate) / 100).quantize(HALALA, ROUND_HALF_UP)
    deposit = (total * Decimal(fields["depositPercent"] or 0) / 100).quantize(HALALA, ROUND_HALF_UP)
    return {**{name: fields[name] for name in TERMS}, "totalSar": total, "depositSar": deposit}
