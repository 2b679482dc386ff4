"""What the write path runs."""

from datetime import datetime
from typing import Protocol

from holdfast.domain.audit import Author
from holdfast.domain.decision import Decision, Standing, Wanted
from holdfast.storage.units import UnitKey

NOTHING = Wanted()


class Command(Protocol):
    """One write to one unit."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def author(self) -> Author: ...

    @property
    def wanted(self) -> Wanted:
        """What it must know beside the unit."""
        ...

    def decide(self, standing: Standing, now: datetime) -> Decision:
        """Pure; raises a Refusal."""
        ...
