"""The demo's past: who held, bought and cancelled which unit when, over 90 days. The same for each start."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum, auto
from operator import itemgetter
from random import Random
from typing import NamedTuple

from holdfast.domain.booking import Buyer

DAYS = 89
"""The units were created so many days ago: the log of deliveries is kept for 90."""

# The first tower is well under way, the second has just been opened.
SOLD = (
    "A-0102", "A-0103", "A-0104", "A-0106", "A-0201", "A-0203", "A-0204", "A-0302", "A-0305", "A-0306",
    "A-0404", "A-0503", "A-0506", "A-0602", "A-0704", "A-0806", "A-0903", "A-1004", "A-1106", "A-1102",
    "B-0103", "B-0105", "B-0204", "B-0405",
)  # fmt: skip
RESERVED = (
    "A-0205", "A-0303", "A-0402", "A-0504", "A-0606", "A-0803", "A-1006",
    "B-0102", "B-0203", "B-0305", "B-0503", "B-0904",
)  # fmt: skip
OFF_SALE = {"A-0105": 33, "B-0101": 12}
LAPSED_TODAY = ("A-0905", "B-0802", "A-0701")
LAPSED = 52

PRICE_CHANGES = ((45, "A", range(6, 12), Decimal("0.975")), (16, "B", range(8, 12), Decimal("1.02")))
"""How many days ago, the tower, its floors, and their price before as a share of the present one."""

_GIVEN_NAMES = (
    ["Nora", "Abdullah", "Layla", "Fahad", "Sarah", "Omar", "Reem", "Yousef", "Munira", "Majed", "Hana"],
    ["نورة", "عبدالله", "ليلى", "فهد", "سارة", "عمر", "ريم", "يوسف", "منيرة", "ماجد", "هناء"],
)
_FAMILY_NAMES = (
    ["Al-Harbi", "Al-Qahtani", "Haddad", "Al-Otaibi", "Al-Dosari", "Mansour", "Al-Shammari"],
    ["الحربي", "القحطاني", "حداد", "العتيبي", "الدوسري", "منصور", "الشمري"],
)


class Outcome(Enum):
    LAPSED = auto()
    CANCELLED = auto()
    RESERVED = auto()
    SOLD = auto()
    REFUND_DUE = auto()
    REFUNDED = auto()
    WALK_IN = auto()


_OTHERS: dict[Outcome, dict[str, int]] = {
    Outcome.CANCELLED: {"A-0403": 52, "A-0703": 27, "B-0303": 11, "B-0701": 0},
    Outcome.WALK_IN: {"A-0101": 61, "B-0302": 9},
    Outcome.REFUND_DUE: {"B-0602": 6},
    Outcome.REFUNDED: {"A-0304": 70, "B-0401": 40, "A-0904": 22},
}
"""How many days ago they were there."""

UNPAID = (Outcome.LAPSED, Outcome.CANCELLED)


class Visit(NamedTuple):
    """A buyer at a unit: the outcome, and when the seller closed or cancelled the booking."""

    at: datetime
    code: str
    outcome: Outcome
    ended_at: datetime
    number: int

    @property
    def language(self) -> str:
        return "ar" if self.number % 2 else "en"

    @property
    def buyer(self) -> Buyer:
        spoken, given = self.number % 2, self.number % len(_GIVEN_NAMES[0])
        family = _FAMILY_NAMES[spoken][self.number % len(_FAMILY_NAMES[0])]
        email = f"{_GIVEN_NAMES[0][given].lower()}.{self.number}@example.com"
        return Buyer(f"{_GIVEN_NAMES[spoken][given]} {family}", email, f"+966 50 555 {self.number:04}")


def early(now: datetime, days_ago: int = DAYS) -> datetime:
    """In the morning, before units are held. Without days: when the units were created."""
    return (now - timedelta(days=days_ago)).replace(hour=5, minute=30, second=0, microsecond=0)


def visits(now: datetime) -> list[Visit]:
    """In the order of time. Only units that nobody has taken are held."""
    random = Random(2026)  # noqa: S311 - the same for each start

    def ago(days: float) -> datetime:
        """In the hours in which people look for a home in Riyadh; of today a moment ago, at any hour."""
        if days < 1:
            return now.replace(microsecond=0) - timedelta(minutes=random.randint(90, 150))
        return early(now, int(days)) + timedelta(seconds=random.randint(1800, 45_000))

    found = [
        (ago(days), code, outcome, ago(days - ended_after))
        for code, outcome, days, ended_after in _plan(random)
    ]
    return [Visit(*visit, number) for number, visit in enumerate(sorted(found, key=itemgetter(0)))]


def _plan(random: Random) -> list[tuple[str, Outcome, float, int]]:
    """Return the unit of each visit, its outcome, how many days ago it was, and after how many it ended."""
    last = len(SOLD) - 1
    # The last one was reserved six days ago and closed today.
    found: list[tuple[str, Outcome, float, int]] = [
        (code, Outcome.SOLD, 86 - 80 * (place / last) ** 1.2, random.randint(5, 13) if place < last else 6)
        for place, code in enumerate(random.sample(SOLD, len(SOLD)))
    ]
    for place, code in enumerate(random.sample(RESERVED, len(RESERVED))):
        found.append((code, Outcome.RESERVED, place * 1.1, 0))
    for outcome, ages in _OTHERS.items():
        found += [(code, outcome, days_ago, random.randint(3, 5)) for code, days_ago in ages.items()]
    latest = {visit[0]: visit[2] for visit in found}
    for _ in range(LAPSED):
        code = f"{random.choice('AAB')}-{random.randint(1, 11):02}0{random.randint(1, 5)}"
        if code not in OFF_SALE:
            found.append((code, Outcome.LAPSED, random.uniform(latest.get(code, 0) + 1, DAYS), 0))
    return [*found, *((code, Outcome.LAPSED, 0, 0) for code in LAPSED_TODAY)]


def price_changes(now: datetime, codes: Iterable[str]) -> Iterator[tuple[datetime, str, Decimal]]:
    """Yield when units got their present price, and the price before, as a share of the present one."""
    for days_ago, tower, floors, share in PRICE_CHANGES:
        for code in codes:
            if code[0] == tower and int(code[2:4]) in floors:
                yield early(now, days_ago), code, share
