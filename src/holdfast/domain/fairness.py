"""Nobody may take a whole building hostage: how many units one visitor or address may hold. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.domain.refusals import HeldTooRecently, TooManyHolds


class HoldLimits(NamedTuple):
    """0 is no limit."""

    per_visitor: int = 3
    per_address: int = 20
    rehold_seconds: float = 60.0


class LiveHold(NamedTuple):
    """A hold that has its place among those of its holder."""

    slot: int
    expires_at: datetime


def free_slot(holds: Sequence[LiveHold], limit: int, who: str, now: datetime) -> int | None:
    """The lowest place that is free. Two that ask at once get the same, and the database takes one.

    There are as many places as holds are allowed, so no more holds than that can be stored.
    """
    if not limit:
        return None
    if not holds:
        return 1
    taken = {hold.slot for hold in holds}
    for slot in range(1, limit + 1):
        if slot not in taken:
            return slot
    raise TooManyHolds(
        f"{who} holds {len(holds)} units already, and {limit} is the most at a time.",
        (min(hold.expires_at for hold in holds) - now).total_seconds(),
    )


def refuse_rehold(lapsed_at: datetime | None, rehold_seconds: float, now: datetime) -> None:
    """``lapsed_at``: when the same visitor's last hold of the same unit lapsed."""
    if lapsed_at is None or not rehold_seconds:
        return
    wait = (lapsed_at + timedelta(seconds=rehold_seconds) - now).total_seconds()
    if wait > 0:
        raise HeldTooRecently(
            f"Your hold of this unit has just lapsed; others have their chance for {rehold_seconds:g} s.",
            wait,
        )
