"""The status machine: one table that decides, and that buttons, docs and the database follow."""

from enum import StrEnum
from typing import Literal, NamedTuple

from holdfast.domain.errors import TransitionNotAllowed
from holdfast.domain.event import EventName


class Status(StrEnum):
    AVAILABLE = "available"
    HELD = "held"
    RESERVED = "reserved"
    SOLD = "sold"
    UNAVAILABLE = "unavailable"


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
    """Whether the transition also starts from an archived unit."""

    @property
    def ends(self) -> Status | None:
        """What its buyer loses by it: the hold, the reservation or the sale; None where nobody does."""
        return self.source if self.source in LOCKED and self.target not in LOCKED else None


AVAILABLE, HELD, RESERVED, SOLD, UNAVAILABLE = Status
BUYER, STAFF, ADMIN, PAYMENT_SYSTEM, CLOCK, API = ({caller} for caller in Caller)

# What staff may do, an admin may do too.
_TABLE: tuple[tuple[Action, set[Caller], tuple[Status, ...], Status | None, EventName | None, bool], ...] = (
    (Action.OPEN, BUYER | STAFF, (AVAILABLE,), HELD, EventName.HELD, False),
    (Action.EXTEND, STAFF, (HELD, RESERVED), None, None, False),
    (Action.LAPSE_HOLD, CLOCK, (HELD,), AVAILABLE, EventName.RELEASED, False),
    (Action.CANCEL_HOLD, BUYER | STAFF, (HELD,), AVAILABLE, EventName.RELEASED, False),
    (Action.CONFIRM_DEPOSIT, STAFF | PAYMENT_SYSTEM, (HELD,), RESERVED, EventName.RESERVED, False),
    (Action.LAPSE_RESERVATION, CLOCK, (RESERVED,), AVAILABLE, EventName.RELEASED, False),
    (Action.CANCEL_RESERVATION, STAFF, (RESERVED,), AVAILABLE, EventName.RELEASED, False),
    (Action.CLOSE_SALE, STAFF, (RESERVED, AVAILABLE), SOLD, EventName.SOLD, False),
    (Action.PUT_ON_SALE, STAFF, (UNAVAILABLE,), AVAILABLE, EventName.AVAILABLE, True),
    (Action.PUT_ON_SALE, API, (UNAVAILABLE,), AVAILABLE, EventName.AVAILABLE, False),
    (Action.TAKE_OFF_SALE, STAFF, (AVAILABLE, HELD, RESERVED), UNAVAILABLE, EventName.UNAVAILABLE, False),
    (Action.TAKE_OFF_SALE, API, (AVAILABLE,), UNAVAILABLE, EventName.UNAVAILABLE, False),
    (
        Action.ARCHIVE,
        STAFF,
        (AVAILABLE, HELD, RESERVED, UNAVAILABLE),
        UNAVAILABLE,
        EventName.UNAVAILABLE,
        False,
    ),
    (Action.REVOKE_SALE, ADMIN, (SOLD,), UNAVAILABLE, EventName.UNAVAILABLE, False),
)

TRANSITIONS: tuple[Transition, ...] = tuple(
    Transition(
        action,
        frozenset(callers | ADMIN if callers >= STAFF else callers),
        source,
        target or source,
        event,
        from_archived,
    )
    for action, callers, sources, target, event, from_archived in _TABLE
    for source in sources
)

LOCKED = frozenset({HELD, RESERVED, SOLD})
"""Statuses that the integration API may not touch."""

SettableStatus = Literal["available", "unavailable"]
"""Statuses that the integration API may set."""

ON_SALE = tuple(status for status in Status if status is not Status.UNAVAILABLE)
"""Statuses of the units that buyers see."""

MID_BOOKING = frozenset({HELD, RESERVED})
"""Statuses in which a buyer is between opening the unit and owning it."""


def transition(action: Action, caller: Caller, status: Status, archived: bool) -> Transition:
    for row in TRANSITIONS:
        if row.action is action and caller in row.callers and row.source is status:
            if archived and not row.from_archived:
                break
            return row
    raise TransitionNotAllowed(action, status, archived)


def transitions_for(caller: Caller, status: Status, archived: bool) -> tuple[Transition, ...]:
    """What the caller may do to such a unit, in the order of the table."""
    return tuple(
        row
        for row in TRANSITIONS
        if caller in row.callers and row.source is status and (row.from_archived or not archived)
    )


def actions_for(caller: Caller, status: Status, archived: bool) -> tuple[Action, ...]:
    return tuple(row.action for row in transitions_for(caller, status, archived))
