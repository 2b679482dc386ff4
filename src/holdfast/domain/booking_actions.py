"""What can be done to a booking at this moment, found by deciding it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from holdfast.domain import deposits, selling
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.periods import Periods
from holdfast.domain.refusals import Refusal
from holdfast.domain.status import Caller

_ANOTHER_TOKEN = b""


class BookingAction(StrEnum):
    CONFIRM_DEPOSIT = "confirm-deposit"
    CLOSE_SALE = "close-sale"
    EXTEND = "extend"
    MARK_REFUNDED = "mark-refunded"
    REISSUE_LINK = "reissue-link"
    CANCEL = "cancel"
    ERASE_BUYER = "erase-buyer"


def possible(
    standing: Standing, number: int, caller: Caller, periods: Periods, now: datetime
) -> dict[BookingAction, Decision]:
    """With what would come of each. What would change nothing is not among them."""
    steps: Mapping[BookingAction, Callable[[], Decision]] = {
        BookingAction.CONFIRM_DEPOSIT: lambda: deposits.confirm_deposit(
            standing, number, caller, periods, now
        ),
        BookingAction.CLOSE_SALE: lambda: selling.close_sale_of_booking(standing, number, caller, now),
        BookingAction.EXTEND: lambda: selling.extend_booking(standing, number, caller, None, periods, now),
        BookingAction.MARK_REFUNDED: lambda: deposits.mark_refunded(standing, number, now),
        BookingAction.REISSUE_LINK: lambda: selling.reissue_link(standing, number, _ANOTHER_TOKEN),
        BookingAction.CANCEL: lambda: selling.cancel(standing, number, caller, now),
        BookingAction.ERASE_BUYER: lambda: selling.erase_buyer(standing, number, now),
    }
    found = standing.booking_numbered(number)
    outcomes = {action: _outcome(decide) for action, decide in steps.items()}
    return {
        action: decision
        for action, decision in outcomes.items()
        if decision is not None and decision.booking is not found
    }


def _outcome(decide: Callable[[], Decision]) -> Decision | None:
    try:
        return decide()
    except Refusal:
        return None
