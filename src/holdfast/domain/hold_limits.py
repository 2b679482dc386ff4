"""Nobody may take a whole building hostage: how many units one visitor or address may hold. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.domain.errors import HeldTooRecently, TooManyHolds, TooManyHoldsAtAddress
from holdfast.domain.message import Message


class HoldLimits(NamedTuple):
    """0 is no limit."""

    per_visitor: int = 3
    per_address: int = 20
    rehold_seconds: float = 60.0


class LiveHold(NamedTuple):
    """A hold that has its place among those of its holder."""

    slot: int
    expires_at: datetime


VISITOR = "This visitor"
ADDRESS = "Your network address"


def free_slot(holds: Sequence[LiveHold], limit: int, who: str, now: datetime) -> int | None:
    """The lowest place that is free. Two that ask at once get the same, and the database takes one.

    There are as many places as holds are allowed, so no more holds than that can be stored. The place of
    a hold that is over is the last to be taken: whoever is writing its end has it still, and is waited for.
    """
    if not limit:
        return None
    if not holds:
        return 1
    live = {hold.slot: hold.expires_at for hold in holds if hold.expires_at > now}
    if len(live) >= limit:
        refusal = TooManyHoldsAtAddress if who == ADDRESS else TooManyHolds
        message = "%(who)s holds %(count)s units already, and %(limit)s is the most at a time."
        raise refusal(
            Message(message, {"who": who, "count": len(live), "limit": limit}),
            (min(live.values()) - now).total_seconds(),
        )
    given = {hold.slot for hold in holds}
    places = range(1, limit + 1)
    return next((slot for slot in places if slot not in given), None) or next(
        slot for slot in places if slot not in live
    )


def refuse_rehold(lapsed_at: datetime | None, rehold_seconds: float, now: datetime) -> None:
    """``lapsed_at``: when the same visitor's last hold of the same unit lapsed."""
    if lapsed_at is None or not rehold_seconds:
        return
    wait = (lapsed_at + timedelta(seconds=rehold_seconds) - now).total_seconds()
    if wait > 0:
        message = "Your hold of this unit has just lapsed; others have their chance for %(seconds)s s."
        raise HeldTooRecently(Message(message, {"seconds": f"{rehold_seconds:g}"}), wait)
