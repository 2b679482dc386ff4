"""The units that every contestant is loaded with, and the body that an ERP would send for one."""

import itertools
import random
import time
from collections.abc import Iterator

SLUG = "bench-tower"
DESCRIPTION = (
    "South-west corner apartment with a covered balcony, a maid room and a laundry. Central cooling, "
    "double glazing, fitted kitchen. Two parking places in the basement. Handover in the fourth quarter."
)
# Written once for all loads: the Lua script, the Python clients and the seed fill the same three holes.
BODY = (
    '{"type":"Apartment","areaSqm":142.75,"priceSar":<PRICE>,"vatIncluded":false,"vatRate":15,'
    '"depositPercent":5,"bedrooms":3,"bathrooms":2,"deliveryYear":2027,'
    f'"description":"{DESCRIPTION}","images":["https://cdn.example.com/units/<CODE>.jpg"]<STATUS>}}'
)
FIRST_PRICE = 400_000
PRICES = 900_000


def code(number: int) -> str:
    return f"A-{number}"


def unit_path(slug: str, number: int) -> str:
    return f"{units_path(slug)}{code(number)}"


def units_path(slug: str) -> str:
    return f"/v1/integration/projects/{slug}/units/"


def offer_path(number: int | str) -> str:
    """Where buyers find a unit; with nothing for its number, what stands before it."""
    return f"/v1/storefront/projects/{SLUG}/units/A-{number}"


def body(number: int, price: str, status: str | None = None) -> str:
    carried = f',"status":"{status}"' if status else ""
    return BODY.replace("<PRICE>", price).replace("<CODE>", code(number)).replace("<STATUS>", carried)


def first_sequence() -> int:
    """Where prices go on from, so that no run repeats what the one before it stored."""
    return time.time_ns() // 1_000_000 % PRICES


def changes(count: int, seed: int) -> Iterator[tuple[int, str]]:
    """Endless PUTs over existing units: each changes the price, one in five the status too."""
    chance = random.Random(seed)
    unavailable: set[int] = set()
    for step in itertools.count(first_sequence()):
        number = chance.randint(1, count)
        status = None
        if step % 5 == 0:
            status = "available" if number in unavailable else "unavailable"
            unavailable ^= {number}
        yield number, body(number, f"{FIRST_PRICE + step % PRICES}.50", status)
