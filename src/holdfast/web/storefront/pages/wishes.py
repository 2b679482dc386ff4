"""Which units a buyer looks for, as the address of a page says. What makes no sense asks for nothing."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from holdfast.domain.listing import BY_FLOOR, NO_WISH, Mark, Order, Wish
from holdfast.web.cursors import cursor_text, read_cursor
from holdfast.web.html.amounts import amount_in
from holdfast.web.html.forms import Form
from holdfast.web.html.moments import whole_number

AMOUNTS = ("priceFrom", "priceTo", "areaFrom", "areaTo")
NAMES = ("free", "bedrooms", "type", *AMOUNTS, "order", "building")
MOST_BEDROOMS = 999
MOST_BUILDINGS = 100_000
LONGEST_TYPE = 100
FIRST_ORDER = Order.FLOOR_DOWN
"""What a page begins with: a bit of everything, and found without a look at every unit."""
_BETWEEN = "\n"


class AskedFor(NamedTuple):
    wish: Wish
    order: Order
    after: Mark | None
    building: int
    typed: Form
    wrong: frozenset[str]
    """Names of fields in which there is no amount."""

    @property
    def is_any(self) -> bool:
        return self.wish != NO_WISH

    @property
    def is_narrowed(self) -> bool:
        """By what stands behind "More filters"."""
        return any(self.typed.text(name) for name in ("type", *AMOUNTS))

    def query(self, **changes: str | None) -> str:
        """Of a page that shows the same but for the changes."""
        kept = {name: self.typed.text(name) for name in NAMES} | changes
        return urlencode([(name, value) for name, value in kept.items() if value])


def read_wish(sent: Form) -> AskedFor:
    amounts = {name: amount_in(sent.text(name)) for name in AMOUNTS}
    wish = Wish(
        free_only=bool(sent.text("free")),
        type=sent.raw("type")[:LONGEST_TYPE] or None,
        bedrooms=_up_to(MOST_BEDROOMS, sent.text("bedrooms")),
        price_from=amounts["priceFrom"],
        price_to=amounts["priceTo"],
        area_from=amounts["areaFrom"],
        area_to=amounts["areaTo"],
    )
    order = _order(sent.text("order"))
    wrong = frozenset(name for name in AMOUNTS if sent.text(name) and amounts[name] is None)
    building = _up_to(MOST_BUILDINGS, sent.text("building")) or 0
    return AskedFor(wish, order, read_mark(sent.text("after"), order), building, sent, wrong)


def mark_text(mark: Mark) -> str:
    return cursor_text(f"{'' if mark.value is None else mark.value}{_BETWEEN}{mark.code}")


def read_mark(text: str, order: Order) -> Mark | None:
    """One of another order is none."""
    try:
        value, _, code = read_cursor(text).partition(_BETWEEN)
    except ValueError:
        return None
    amount = amount_in(value)
    return None if not code or (amount is None) != (order in BY_FLOOR) else Mark(amount, code)


def _order(text: str) -> Order:
    return Order(text) if text in set(Order) else FIRST_ORDER


def _up_to(most: int, text: str) -> int | None:
    number = whole_number(text)
    return None if number is None or number > most else number
