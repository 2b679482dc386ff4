"""The status machine: one table that decides, and that buttons, docs and the database follow."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.errors import Message, TransitionNotAllowed
from holdfast.domain.event import EventName
from holdfast.domain.status import LOCKED, Status


class Action(StrEnum):
    OPEN = "open"
    EXTEND = "extend"
    LAPSE_HOLD = "lapse-hold"
    CANCEL_HOLD = "cancel-hold"
    CONFIRM_DEPOSIT = "confirm-deposit"
    LAPSE_RESERVATION = "lapse-reservation"
    CANCEL_RESERVATION = "cancel-reservation"
    CLOSE_SALE = "close-sale"
    PUT_ON_SALE = "put-on-sale"
    TAKE_OFF_SALE = "take-off-sale"
    ARCHIVE = "archive"
    REVOKE_SALE = "revoke-sale"


class Caller(StrEnum):
    BUYER = "buyer"
    STAFF = "staff"
    ADMIN = "admin"
    PAYMENT_SYSTEM = "payment system"
    CLOCK = "clock"
    API = "API"


class Transition(NamedTuple):
    action: Action
    callers: frozenset[Caller]
    source: Status
    target: Status
    event: EventName | None
    from_archived: bool = False

    @property
    def ends(self) -> Status | None:
        """What its buyer loses by it: the hold, the reservation or the sale; None where nobody does."""
        return self.source if self.source in LOCKED and self.target not in LOCKED else None


AVAILABLE, HELD, RESERVED, SOLD, UNAVAILABLE = Status
BUYER, STAFF, ADMIN, PAYMENT_SYSTEM, CLOCK, API = ({caller} for caller in Caller)

# What staff may do, an admin may do too.
_TABLE: tuple[tuple[Action, set[Caller], tuple[Status, ...], Status | None, EventName | None], ...] = (
    (Action.OPEN, BUYER | STAFF, (AVAILABLE,), HELD, EventName.HELD),
    (Action.EXTEND, STAFF, (HELD, RESERVED), None, None),
    (Action.LAPSE_HOLD, CLOCK, (HELD,), AVAILABLE, EventName.RELEASED),
    (Action.CANCEL_HOLD, BUYER | STAFF, (HELD,), AVAILABLE, EventName.RELEASED),
    (Action.CONFIRM_DEPOSIT, STAFF | PAYMENT_SYSTEM, (HELD,), RESERVED, EventName.RESERVED),
    (Action.LAPSE_RESERVATION, CLOCK, (RESERVED,), AVAILABLE, EventName.RELEASED),
    (Action.CANCEL_RESERVATION, STAFF, (RESERVED,), AVAILABLE, EventName.RELEASED),
    (Action.CLOSE_SALE, STAFF, (RESERVED, AVAILABLE), SOLD, EventName.SOLD),
    (Action.PUT_ON_SALE, STAFF, (UNAVAILABLE,), AVAILABLE, EventName.AVAILABLE),
    (Action.PUT_ON_SALE, API, (UNAVAILABLE,), AVAILABLE, EventName.AVAILABLE),
    (Action.TAKE_OFF_SALE, STAFF, (AVAILABLE, HELD, RESERVED), UNAVAILABLE, EventName.UNAVAILABLE),
    (Action.TAKE_OFF_SALE, API, (AVAILABLE,), UNAVAILABLE, EventName.UNAVAILABLE),
    (Action.ARCHIVE, STAFF, (AVAILABLE, HELD, RESERVED, UNAVAILABLE), UNAVAILABLE, EventName.UNAVAILABLE),
    (Action.REVOKE_SALE, ADMIN, (SOLD,), UNAVAILABLE, EventName.UNAVAILABLE),
)

TRANSITIONS: tuple[Transition, ...] = tuple(
    Transition(
        action,
        frozenset(callers | ADMIN if callers >= STAFF else callers),
        source,
        target or source,
        event,
        # Only staff put an archived unit on sale again.
        from_archived=action is Action.PUT_ON_SALE and callers >= STAFF,
    )
    for action, callers, sources, target, event in _TABLE
    for source in sources
)


def find_transition(action: Action, caller: Caller, status: Status, archived: bool) -> Transition | None:
    rows = (row for row in TRANSITIONS if row.action is action and row.source is status)
    return next((row for row in rows if caller in row.callers and (row.from_archived or not archived)), None)


def transition(
    action: Action,
    caller: Caller,
    status: Status,
    archived: bool,
    hold_expires_at: datetime | None = None,
    now: datetime | None = None,
) -> Transition:
    found = find_transition(action, caller, status, archived)
    if found is not None:
        return found
    rows = [row for row in TRANSITIONS if row.action is action]
    template = (
        "`%(action)s` is not possible for this caller while the unit is %(unit_status)s."
        if any(row.source is status and (row.from_archived or not archived) for row in rows)
        else "`%(action)s` is not possible while the unit is %(unit_status)s."
    )
    message = Message(template, {"action": action, "unit_status": "archived" if archived else status})
    # A hold that ends leaves the unit available, so waiting helps where the action starts from there.
    waiting_helps = any(caller in row.callers and row.source is Status.AVAILABLE for row in rows)
    raise TransitionNotAllowed(message, status, (), hold_expires_at if waiting_helps else None, now)


def transitions_for(caller: Caller, status: Status, archived: bool) -> tuple[Transition, ...]:
    """Return what the caller may do to such a unit, in the order of the table."""
    return tuple(
        row
        for row in TRANSITIONS
        if caller in row.callers and row.source is status and (row.from_archived or not archived)
    )
