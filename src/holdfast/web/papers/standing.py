"""Where a booking stands when a paper is made of it. It is no part of what was signed, and says so."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holdfast.domain.booking import Booking, BookingStatus
from holdfast.web.html.language import Language
from holdfast.web.papers.writing import amount, moment

_ENDED = frozenset(
    {BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED}
)


class Standing(NamedTuple):
    text: str
    is_over: bool
    """Whether the reservation is none any more."""


def standing_of(booking: Booking, language: Language) -> Standing:
    return Standing(_text(booking, language), booking.status in _ENDED)


def _text(booking: Booking, language: Language) -> str:
    _, status = language.gettext, booking.status
    if status is BookingStatus.RESERVED:
        return _("The unit is reserved until %(until)s.", until=_at(booking.reserved_until, language))
    if status is BookingStatus.SOLD:
        return _("The sale was closed on %(at)s.", at=_at(booking.closed_at, language))
    if status is BookingStatus.LAPSED:
        return _(
            "The hold ran out on %(at)s before the deposit was confirmed: this booking is over.",
            at=_at(booking.ended_at, language),
        )
    if status is BookingStatus.CANCELLED:
        return _("The booking was cancelled on %(at)s: it is over.", at=_at(booking.ended_at, language))
    if status in (BookingStatus.REFUND_DUE, BookingStatus.REFUNDED):
        return _money_back(booking, language)
    return _(
        "The unit is held until %(until)s; the deposit is not confirmed yet.",
        until=_at(booking.hold_expires_at, language),
    )


def _money_back(booking: Booking, language: Language) -> str:
    _, deposit = language.gettext, amount(booking.terms.deposit_sar, language)
    ended = _at(booking.ended_at, language)
    if booking.status is BookingStatus.REFUND_DUE:
        return _(
            "The booking ended unsold on %(at)s. The deposit of %(deposit)s is due back to the buyer.",
            at=ended,
            deposit=deposit,
        )
    return _(
        "The booking ended unsold on %(at)s. The deposit of %(deposit)s was paid back on %(back)s.",
        at=ended,
        deposit=deposit,
        back=_at(booking.refunded_at, language),
    )


def _at(at: datetime | None, language: Language) -> str:
    return "–" if at is None else moment(at, language)  # noqa: RUF001
