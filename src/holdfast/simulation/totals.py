"""What came of it all: for programs as one object, for people as a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# What is counted, by its name on the wire, as people read it.
COUNTED = {
    "holds": "holds",
    "racesLost": "races lost",
    "signed": "signed",
    "deposits": "deposits",
    "sales": "sales",
    "letGo": "let go",
    "lapsed": "lapsed",
    "givenBack": "given back at the end",
    "turnedAway": "left with nothing",
    "depositsRepeated": "deposits told twice",
    "depositsLate": "late deposits",
    "withdrawn": "withdrawn",
    "refunds": "refunds",
    "extended": "given more time",
    "offSale": "taken off sale",
    "priceChanges": "prices raised",
    "descriptions": "described anew",
    "sentAgain": "sent again",
}


@dataclass(frozen=True)
class Totals:
    url: str
    project: str
    buyers: int
    seed: int
    seconds: float
    ended: str
    """``finished``, ``stopped`` by whoever started it, ``too-long``, or ``failed``."""
    counts: dict[str, int]
    refusals: dict[str, int]
    bookings: dict[str, int]
    requests: int
    slowest_ms: float
    units_checked: int
    broken: list[str]
    failure: str | None = None

    @property
    def is_sound(self) -> bool:
        return not self.broken and self.failure is None

    def document(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "project": self.project,
            "buyers": self.buyers,
            "seed": self.seed,
            "ended": self.ended,
            "seconds": round(self.seconds, 1),
            **{name: self.counts.get(name, 0) for name in COUNTED},
            "refusals": self.refusals,
            "bookings": self.bookings,
            "requests": self.requests,
            "slowestMs": round(self.slowest_ms, 1),
            "unitsChecked": self.units_checked,
            "brokenPromises": self.broken,
            "failure": self.failure,
        }

    def sentences(self) -> list[str]:
        lines = [self._how_it_ended(), _listed("Counted", self._counted())]
        if self.refusals:
            lines.append(_listed("Refused", self.refusals))
        if self.bookings:
            lines.append(_listed("Bookings", self.bookings))
        return [*lines, self._speed(), *self._promises()]

    def _how_it_ended(self) -> str:
        took = f"after {self.seconds:.0f} s"
        return {
            "finished": f"All {self.buyers} buyers are through {took}.",
            "stopped": f"Stopped {took}; what was held is given back.",
            "too-long": f"Ended {took}: that is as long as it may take; what was held is given back.",
            "failed": f"Ended {took}, before the buyers were through.",
        }[self.ended]

    def _speed(self) -> str:
        per_second = self.requests / max(self.seconds, 0.001)
        return (
            f"{self.requests} requests, {per_second:.1f} a second; the slowest took {self.slowest_ms:.0f} ms."
        )

    def _promises(self) -> list[str]:
        if self.broken:
            return ["A promise was broken:", *self.broken]
        if not self.units_checked:
            return ["No unit was held, so there is no promise to check."]
        return [f"No unit was held twice: the histories of {self.units_checked} units agree."]

    def _counted(self) -> dict[str, int]:
        return {shown: self.counts[name] for name, shown in COUNTED.items() if self.counts.get(name)}


def _listed(title: str, counts: dict[str, int]) -> str:
    return f"{title}: " + (", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing") + "."
