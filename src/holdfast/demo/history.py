"""The demo's past: who held, bought and cancelled which unit when, over 90 days. The same for each start."""

from datetime import datetime, timedelta
from operator import itemgetter
from random import Random
from typing import NamedTuple

from holdfast.domain.booking import BookingStatus, Buyer

DAYS = 89
"""The units were created so many days ago."""

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
LAPSED_TODAY = ("A-0905", "B-0802", "A-0701")
LAPSED = 52

# How many days ago.
OFF_SALE = {"A-0105": 33, "B-0101": 12}
WALK_IN = {"A-0101": 61, "B-0302": 9}
"""Sold to buyers who were at the sales office."""
_CANCELLED = {
    BookingStatus.CANCELLED: {"A-0403": 52, "A-0703": 27, "B-0303": 11, "B-0701": 0},
    BookingStatus.REFUND_DUE: {"B-0602": 6},
    BookingStatus.REFUNDED: {"A-0304": 70, "B-0401": 40, "A-0904": 22},
}

PRICE_CHANGES = ((45, "A", range(6, 12), 25_000), (16, "B", range(8, 12), -20_000))
"""How many days ago, the tower, its floors, and by how much in SAR."""

_GIVEN_NAMES = (
    ["Nora", "Abdullah", "Layla", "Fahad", "Sarah", "Omar", "Reem", "Yousef", "Munira", "Majed", "Hana"],
    ["نورة", "عبدالله", "ليلى", "فهد", "سارة", "عمر", "ريم", "يوسف", "منيرة", "ماجد", "هناء"],
)
_FAMILY_NAMES = (
    ["Al-Harbi", "Al-Qahtani", "Haddad", "Al-Otaibi", "Al-Dosari", "Mansour", "Al-Shammari"],
    ["الحربي", "القحطاني", "حداد", "العتيبي", "الدوسري", "منصور", "الشمري"],
)

UNPAID = (BookingStatus.LAPSED, BookingStatus.CANCELLED)


class Visit(NamedTuple):
    """A buyer at a unit: the status of their booking, and when the seller closed or cancelled it."""

    at: datetime
    code: str
    status: BookingStatus
    ended_at: datetime
    number: int

    @property
    def is_walk_in(self) -> bool:
        return self.code in WALK_IN and self.status is BookingStatus.SOLD

    @property
    def language(self) -> str:
        return "ar" if self.number % 2 else "en"

    @property
    def buyer(self) -> Buyer:
        given, family = (names[self.number % 2] for names in (_GIVEN_NAMES, _FAMILY_NAMES))
        name = f"{given[self.number % len(given)]} {family[self.number % len(family)]}"
        return Buyer(name, f"buyer.{self.number}@example.com", f"+966 50 555 {self.number:04}")


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

    # The unit, the status, how many days ago, and after how many days it ended.
    plan = [(code, BookingStatus.SOLD, float(days), 0) for code, days in WALK_IN.items()]
    for place, code in enumerate(random.sample(SOLD, len(SOLD))):
        days = 86 - 80 * place / (len(SOLD) - 1)
        plan.append((code, BookingStatus.SOLD, days, min(int(days), random.randint(6, 13))))
    for place, code in enumerate(random.sample(RESERVED, len(RESERVED))):
        plan.append((code, BookingStatus.RESERVED, place * 1.1, 0))
    for status, ages in _CANCELLED.items():
        plan += [(code, status, days, random.randint(3, 5)) for code, days in ages.items()]
    latest = {code: days for code, _, days, _ in plan}
    for _ in range(LAPSED):
        code = f"{random.choice('AAB')}-{random.randint(1, 11):02}0{random.randint(1, 5)}"
        if code not in OFF_SALE:
            plan.append((code, BookingStatus.LAPSED, random.uniform(latest.get(code, 0) + 1, DAYS), 0))
    plan += [(code, BookingStatus.LAPSED, 0, 0) for code in LAPSED_TODAY]
    found = [(ago(days), code, status, ago(days - ended_after)) for code, status, days, ended_after in plan]
    return [Visit(*visit, number) for number, visit in enumerate(sorted(found, key=itemgetter(0)))]
