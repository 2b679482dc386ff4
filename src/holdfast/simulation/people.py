"""Who the buyers are. Nobody of these exists: addresses are at example.com, and the telephone numbers are of
the ranges that are kept for films and books (Ofcom's 07700 900000 to 900999, and 555-0100 to 0199)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

_GIVEN = (
    ("Noura", "نورة"),
    ("Faisal", "فيصل"),
    ("Reem", "ريم"),
    ("Abdullah", "عبدالله"),
    ("Layla", "ليلى"),
    ("Sultan", "سلطان"),
    ("Huda", "هدى"),
    ("Khalid", "خالد"),
    ("Maha", "مها"),
    ("Turki", "تركي"),
    ("Sara", "سارة"),
    ("Yousef", "يوسف"),
)
_FAMILY = (
    ("Al-Otaibi", "العتيبي"),
    ("Al-Harbi", "الحربي"),
    ("Al-Qahtani", "القحطاني"),
    ("Al-Shehri", "الشهري"),
    ("Al-Ghamdi", "الغامدي"),
    ("Al-Dosari", "الدوسري"),
    ("Al-Zahrani", "الزهراني"),
    ("Al-Mutairi", "المطيري"),
    ("Al-Anazi", "العنزي"),
    ("Al-Subaie", "السبيعي"),
    ("Al-Rashid", "الراشد"),
)
_FROM_ELSEWHERE = ("Daniel Weber", "Maria Santos", "Thomas Wright", "Priya Nair", "Elena Rossi")
_PHONE_RANGES = ("+44 7700 900{:03}", "+1 202-555-01{:02}")
_SIGNS_IN_ARABIC = 0.6


class Person(NamedTuple):
    name: str
    """As it is signed, in Arabic or in Latin letters."""
    shown: str
    """In Latin letters: a terminal may not know how to write from right to left."""
    email: str
    phone: str

    def as_buyer(self) -> dict[str, str]:
        return {"buyerName": self.name, "buyerEmail": self.email, "buyerPhone": self.phone}


def make_people(random: Random, count: int) -> list[Person]:
    """No two are shown alike, however many there are."""
    names = [*_local_names(), *((name, name) for name in _FROM_ELSEWHERE)]
    random.shuffle(names)
    return [
        _person(random, number, *names[number % len(names)], number // len(names)) for number in range(count)
    ]


def _local_names() -> Iterator[tuple[str, str]]:
    for given, given_arabic in _GIVEN:
        for family, family_arabic in _FAMILY:
            yield f"{given_arabic} {family_arabic}", f"{given} {family}"


def _person(random: Random, number: int, own: str, latin: str, namesakes: int) -> Person:
    name = own if random.random() < _SIGNS_IN_ARABIC else latin
    local = latin.lower().replace("al-", "al").replace(" ", ".")
    shown = f"{latin} {namesakes + 1}" if namesakes else latin
    return Person(name, shown, f"{local}.{number + 1}@example.com", _phone(random))


def _phone(random: Random) -> str:
    british, american = _PHONE_RANGES
    if random.random() < 0.7:
        return british.format(random.randrange(1000))
    return american.format(random.randrange(100))
