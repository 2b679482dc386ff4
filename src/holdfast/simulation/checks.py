"""The bookings of the simulation, and the checks that no unit is held or sold twice. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HELD = frozenset({"open", "signed"})
LIVE = HELD | {"reserved", "sold"}
_TAKEN = frozenset({"held", "reserved", "sold"})


@dataclass
class Booking:
    reference: str
    code: str
    token: str
    buyer: str
    status: str = "open"
    expires_at: float | None = None
    """Estimated end of the hold, in seconds since the simulation began."""
    is_ending: bool = False
    """Its end was requested. The unit may be another buyer's before the response is here."""
    has_late_payment: bool = False
    """It may become live again: a late deposit takes the unit if it is free."""
    may_be_extended: bool = True
    """Staff extend a hold once, and not that of a buyer who has walked away."""

    @property
    def is_held(self) -> bool:
        return self.status in HELD

    @property
    def is_live(self) -> bool:
        return self.status in LIVE


@dataclass
class BookingRegistry:
    """All bookings as the responses describe them, and the violations that were found."""

    bookings: dict[str, Booking] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def add(self, booking: Booking) -> Booking | None:
        """Add a booking; return another one that seems to have the same unit."""
        return self._find_conflict(self.bookings.setdefault(booking.reference, booking))

    def update_status(self, booking: Booking, status: str) -> Booking | None:
        """Set the status; if that makes the booking live, return one that seems to have the same unit."""
        was_live, booking.status = booking.is_live, status
        booking.is_ending = False
        return self._find_conflict(booking) if booking.is_live and not was_live else None

    def add_violation(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)

    def held(self) -> list[Booking]:
        return [booking for booking in self.bookings.values() if booking.is_held]

    def taken_count(self) -> int:
        """Count units that are taken or may be taken again by a late deposit."""
        return sum(booking.is_live or booking.has_late_payment for booking in self.bookings.values())

    def count_by_status(self) -> dict[str, int]:
        return dict(sorted(Counter(booking.status for booking in self.bookings.values()).items()))

    def _find_conflict(self, booking: Booking) -> Booking | None:
        for other in self.bookings.values():
            if other is not booking and other.code == booking.code and other.is_live and not other.is_ending:
                return other
        return None


def history_errors(
    code: str, entries: Sequence[Mapping[str, Any]], references: Collection[str] = ()
) -> list[str]:
    """Check the history of a unit, oldest entry first; the earliest entries may be missing.

    ``references``: bookings whose hold must be in it.
    """
    errors, holder, status = [], None, None
    opened = set()
    for entry in entries:
        after = (entry["after"] or {}).get("status")
        if after is None:
            continue
        before, reference = (entry["before"] or {}).get("status"), entry["bookingReference"]
        if status is not None and before != status:
            errors.append(f"{code} was {status}, and its next change began with {before}.")
        if after in _TAKEN and holder not in (None, reference):
            errors.append(f"{code} was {after} for {reference} while {holder} had it.")
        if after == "held":
            opened.add(reference)
        holder, status = (reference if after in _TAKEN else None), after
    lost = [reference for reference in references if reference not in opened]
    return [*errors, *(f"The hold {reference} of {code} is not in its history." for reference in lost)]
