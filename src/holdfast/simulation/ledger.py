"""Who has which unit, as far as the answers tell. Pure; it is here that a broken promise would show."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

HELD = frozenset({"open", "signed"})
LIVE = HELD | {"reserved", "sold"}


@dataclass
class Claim:
    """A booking of one of the buyers."""

    reference: str
    code: str
    token: str
    buyer: str
    status: str = "open"
    ends_at: float | None = None
    """When the hold ends, in seconds since the play began; an estimate for those who watch."""
    is_ending: bool = False
    """Its end was asked for. The unit may be another's before the answer is here."""

    has_money_coming: bool = False
    """It may come back to life: a deposit that arrives too late takes the unit again if it is free."""
    may_have_more_time: bool = True
    """Staff give it once, and to nobody who has walked away."""

    @property
    def is_held(self) -> bool:
        return self.status in HELD

    @property
    def is_live(self) -> bool:
        return self.status in LIVE


@dataclass
class Ledger:
    claims: dict[str, Claim] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """A sentence for each promise that was not kept."""

    def open(self, claim: Claim) -> Claim | None:
        """The claim that another buyer seems to have on the same unit still."""
        known = self.claims.setdefault(claim.reference, claim)
        return self._rival(known)

    def move(self, claim: Claim, status: str) -> Claim | None:
        """The booking is told to have this status. Again the rival, where that makes it live."""
        was_live, claim.status = claim.is_live, status
        claim.is_ending = False
        return self._rival(claim) if claim.is_live and not was_live else None

    def break_promise(self, sentence: str) -> None:
        if sentence not in self.broken:
            self.broken.append(sentence)

    def held(self) -> list[Claim]:
        return [claim for claim in self.claims.values() if claim.is_held]

    def with_status(self, status: str) -> list[Claim]:
        return [claim for claim in self.claims.values() if claim.status == status]

    def codes(self) -> list[str]:
        return sorted({claim.code for claim in self.claims.values()})

    def wanted_count(self) -> int:
        """Units that are taken, or may be taken again."""
        return sum(claim.is_live or claim.has_money_coming for claim in self.claims.values())

    def by_status(self) -> dict[str, int]:
        return dict(sorted(Counter(claim.status for claim in self.claims.values()).items()))

    def _rival(self, own: Claim) -> Claim | None:
        return next(
            (
                other
                for other in self.claims.values()
                if other is not own and other.code == own.code and other.is_live and not other.is_ending
            ),
            None,
        )
