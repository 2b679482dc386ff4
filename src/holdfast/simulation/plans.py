"""The plan of each buyer, made before the simulation starts. Pure: the same seed gives the same plans.

No buyer exists: email addresses are at example.com, and telephone numbers are from ranges that are reserved
for fiction (Ofcom's 07700 900000 to 900999, and 555-0100 to 0199).
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

SECONDS_BETWEEN_ARRIVALS = 2.5
_PAIR_EVERY = 4
_BEDROOMS = (0, 1, 2, 2, 3, 3, 4)
_BUDGETS = (0.15, 0.35, 0.6)
_DEFAULT_BEDROOMS = 2
_ARABIC_SHARE = 0.6
_BRITISH_SHARE = 0.7
_GIVEN_NAMES = (
    ("Noura", "نورة"), ("Faisal", "فيصل"), ("Reem", "ريم"), ("Abdullah", "عبدالله"),
    ("Layla", "ليلى"), ("Sultan", "سلطان"), ("Huda", "هدى"), ("Khalid", "خالد"),
    ("Maha", "مها"), ("Turki", "تركي"), ("Sara", "سارة"), ("Yousef", "يوسف"),
)  # fmt: skip
_FAMILY_NAMES = (
    ("Al-Otaibi", "العتيبي"), ("Al-Harbi", "الحربي"), ("Al-Qahtani", "القحطاني"), ("Al-Shehri", "الشهري"),
    ("Al-Ghamdi", "الغامدي"), ("Al-Dosari", "الدوسري"), ("Al-Zahrani", "الزهراني"), ("Al-Mutairi", "المطيري"),
    ("Al-Anazi", "العنزي"), ("Al-Subaie", "السبيعي"), ("Al-Rashid", "الراشد"),
)  # fmt: skip
_FOREIGN_NAMES = ("Daniel Weber", "Maria Santos", "Thomas Wright", "Priya Nair", "Elena Rossi")


class Person(NamedTuple):
    name: str
    """As signed, in Arabic or Latin letters."""
    latin_name: str
    """For terminals, which may not support right-to-left text."""
    email: str
    phone: str


class Behavior(StrEnum):
    BUYS = "buys"
    PAYS_TWICE = "pays-twice"
    PAYS_LATE = "pays-late"
    """Signs and cancels while the payment is under way."""
    WITHDRAWS = "withdraws"
    """Cancels after the deposit and gets a refund."""
    CANCELS = "cancels"
    WALKS_AWAY = "walks-away"
    """Lets the hold expire if it is short, otherwise cancels late."""


# The behaviors of twenty buyers; fewer buyers get a random part of these.
BEHAVIORS = (
    *[Behavior.BUYS] * 10,
    *[Behavior.PAYS_TWICE] * 2,
    *[Behavior.PAYS_LATE] * 2,
    Behavior.WITHDRAWS,
    *[Behavior.CANCELS] * 3,
    *[Behavior.WALKS_AWAY] * 2,
)


class BuyerPlan(NamedTuple):
    """Seconds are at pace 1; each step counts from the end of the one before."""

    number: int
    person: Person
    behavior: Behavior
    bedrooms: int
    budget: float
    """From 0, the cheapest unit, to 1, the most expensive one."""
    arrives_after: float
    searches_for: float
    signs_after: float
    pays_after: float
    closes_after: float

    @property
    def seconds(self) -> float:
        steps = self.searches_for, self.signs_after, self.pays_after, self.closes_after
        return self.arrives_after + sum(steps)


def plan_buyers(count: int, seed: int) -> list[BuyerPlan]:
    random = Random(seed)  # noqa: S311
    people = _make_people(random, count)
    behaviors: list[Behavior] = []
    while len(behaviors) < count:
        behaviors += random.sample(BEHAVIORS, len(BEHAVIORS))
    plans: list[BuyerPlan] = []
    for number, person in enumerate(people, start=1):
        plan = BuyerPlan(
            number,
            person,
            behaviors[number - 1],
            random.choice(_BEDROOMS),
            random.choice(_BUDGETS),
            arrives_after=random.uniform(0, SECONDS_BETWEEN_ARRIVALS * count),
            searches_for=random.uniform(2, 6),
            signs_after=random.uniform(3, 9),
            pays_after=random.uniform(3, 8),
            closes_after=random.uniform(3, 8),
        )
        if plans and number % _PAIR_EVERY == 0:
            # Both want the same unit at the same time, so that one of them is too late.
            shared = ("bedrooms", "budget", "arrives_after", "searches_for")
            plan = plan._replace(**{name: getattr(plans[-1], name) for name in shared})
        plans.append(plan)
    return plans


def choose_unit(
    units: Sequence[Mapping[str, Any]], bedrooms: int, budget: float, excluded: Collection[str] = ()
) -> str | None:
    """Return the code of the unit that fits best: by bedrooms first, then by price."""
    prices = {unit["code"]: float(unit["priceSar"]) for unit in units if unit["code"] not in excluded}
    if not prices:
        return None
    low, high = min(prices.values()), max(prices.values())
    target = low + budget * (high - low)

    def distance(unit: Mapping[str, Any]) -> tuple[int, float, str]:
        has = _DEFAULT_BEDROOMS if unit["bedrooms"] is None else unit["bedrooms"]
        return abs(has - bedrooms), abs(prices[unit["code"]] - target), unit["code"]

    best: str = min((unit for unit in units if unit["code"] in prices), key=distance)["code"]
    return best


def _make_people(random: Random, count: int) -> list[Person]:
    names = [
        (f"{given_arabic} {family_arabic}", f"{given} {family}")
        for given, given_arabic in _GIVEN_NAMES
        for family, family_arabic in _FAMILY_NAMES
    ]
    names += [(name, name) for name in _FOREIGN_NAMES]
    random.shuffle(names)
    people = []
    for number in range(count):
        repetition, index = divmod(number, len(names))
        arabic_name, latin_name = names[index]
        name = arabic_name if random.random() < _ARABIC_SHARE else latin_name
        mailbox = latin_name.lower().replace("al-", "al").replace(" ", ".")
        if random.random() < _BRITISH_SHARE:
            phone = f"+44 7700 900{random.randrange(1000):03}"
        else:
            phone = f"+1 202-555-01{random.randrange(100):02}"
        unique_name = f"{latin_name} {repetition + 1}" if repetition else latin_name
        people.append(Person(name, unique_name, f"{mailbox}.{number + 1}@example.com", phone))
    return people
