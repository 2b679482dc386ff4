"""Why there is no such paper, and whether there may be one later."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.booking import HOLDING, Booking, BookingStatus
from holdfast.web.html.language import Language
from holdfast.web.papers.sheets import Kind


class Lacking(NamedTuple):
    text: str
    may_come: bool


def lacking(kind: Kind, booking: Booking, language: Language) -> Lacking | None:
    """None: there is one."""
    _ = language.gettext
    at = booking.signed_at if kind is Kind.AGREEMENT else booking.deposit_confirmed_at
    if at is not None:
        return None
    if booking.hold_expires_at is None:
        text = _("The unit was sold at the sales office, without a reservation: its papers are there.")
        return Lacking(text, may_come=False)
    if booking.status not in HOLDING:
        return Lacking(_ended(kind, language), may_come=False)
    return Lacking(_awaited(booking.status, language), may_come=True)


def _ended(kind: Kind, language: Language) -> str:
    if kind is Kind.AGREEMENT:
        return language.gettext("The booking ended before it was signed.")
    return language.gettext("The booking ended before a deposit was confirmed.")


def _awaited(status: BookingStatus, language: Language) -> str:
    if status is BookingStatus.OPEN:
        return language.gettext("The booking is not signed yet.")
    return language.gettext("The deposit is not confirmed yet.")
