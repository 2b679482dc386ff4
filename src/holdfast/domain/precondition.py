"""What a caller demands of a unit's revision before it changes (If-Match, If-None-Match)."""

from typing import NamedTuple

from holdfast.domain.refusals import PreconditionFailed

ANY = "*"


class Precondition(NamedTuple):
    match: frozenset[str] | None = None
    """The unit is in one of these revisions; ``*``: it exists."""
    none_match: frozenset[str] | None = None
    """The unit is in none of these revisions; ``*``: it does not exist."""

    def check(self, current: str | None) -> None:
        if self.match is not None and not _names(self.match, current):
            raise PreconditionFailed(current)
        if self.none_match is not None and _names(self.none_match, current):
            raise PreconditionFailed(current)


UNCONDITIONAL = Precondition()


def _names(revisions: frozenset[str], current: str | None) -> bool:
    return current is not None and (ANY in revisions or current in revisions)
