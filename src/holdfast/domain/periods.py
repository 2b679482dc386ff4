"""How long holds and reservations last."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from holdfast.domain.message import Message
from holdfast.domain.project import Project
from holdfast.domain.refusals import InvalidInput

LONGEST_HOLD_SECONDS = 604_800
LONGEST_RESERVATION_DAYS = 3_650
_LONGEST_EXTENSION = timedelta(days=LONGEST_RESERVATION_DAYS)
_A_DAY = 86_400
_TOO_EARLY = "This must not be before the present end."
_TOO_LATE = Message("An end lies at most %(days)s days ahead.", {"days": LONGEST_RESERVATION_DAYS})


class Periods(NamedTuple):
    """The server's own, for projects that have none."""

    hold_seconds: float = 300.0
    reservation_days: float = 14.0

    def hold(self, project: Project) -> timedelta:
        return _whole_milliseconds(
            self.hold_seconds if project.hold_seconds is None else project.hold_seconds
        )

    def reservation(self, project: Project) -> timedelta:
        own = project.reservation_days
        return _whole_milliseconds((self.reservation_days if own is None else own) * _A_DAY)


def refuse_impossible_end(asked: datetime | None, now: datetime) -> None:
    """What is no end for any unit, so that it can be told before the unit is looked at."""
    if asked is not None and asked <= now:
        raise InvalidInput.at("/until", _TOO_EARLY)
    if asked is not None and asked - now > _LONGEST_EXTENSION:
        raise InvalidInput.at("/until", _TOO_LATE)


def later_end(ends_at: datetime, asked: datetime | None, period: timedelta, now: datetime) -> datetime:
    """An extension never moves the end closer."""
    if asked is not None and asked < ends_at:
        raise InvalidInput.at("/until", _TOO_EARLY)
    further = period if asked is None else asked - ends_at
    if further > now + _LONGEST_EXTENSION - ends_at:
        raise InvalidInput.at("/until", _TOO_LATE)
    return ends_at + further


@lru_cache(maxsize=1024)
def _whole_milliseconds(seconds: float) -> timedelta:
    return timedelta(milliseconds=max(1, round(seconds * 1000)))
