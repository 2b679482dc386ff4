"""Which units a board is asked for. A wrong filter filters nothing, and says so beside its field."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from holdfast.domain.layout import Filters
from holdfast.domain.status import Status
from holdfast.web.backoffice.visits import Visit
from holdfast.web.html.amounts import amount_in
from holdfast.web.html.forms import Form

AMOUNTS = ("priceFrom", "priceTo", "sqmFrom", "sqmTo")
NAMES = ("status", "type", *AMOUNTS, "bedrooms")
MOST_BEDROOMS = 999
LONGEST_TYPE = 100

_WHOLE = re.compile(r"\d{1,3}")


class AskedFor(NamedTuple):
    filters: Filters
    typed: Form
    faults: dict[str, str]

    @property
    def is_any(self) -> bool:
        return any(self.typed.text(name) for name in NAMES)

    @property
    def is_narrowed(self) -> bool:
        """By more than the status, which is seen at once."""
        return any(self.typed.text(name) for name in NAMES if name != "status")


def read_filters(visit: Visit, sent: Form) -> AskedFor:
    faults: dict[str, str] = {}
    amounts = {name: _amount(visit, sent, name, faults) for name in AMOUNTS}
    filters = Filters(
        statuses=frozenset(Status(value) for value in sent.all("status") if value in set(Status)),
        type=sent.raw("type")[:LONGEST_TYPE] or None,
        price_from=amounts["priceFrom"],
        price_to=amounts["priceTo"],
        bedrooms=_bedrooms(visit, sent, faults),
        sqm_price_from=amounts["sqmFrom"],
        sqm_price_to=amounts["sqmTo"],
    )
    return AskedFor(filters, sent, faults)


def _amount(visit: Visit, sent: Form, name: str, faults: dict[str, str]) -> Decimal | None:
    text = sent.text(name)
    amount = amount_in(text)
    if text and amount is None:
        faults[name] = visit._("This must be an amount.")
    return amount


def _bedrooms(visit: Visit, sent: Form, faults: dict[str, str]) -> int | None:
    text = sent.text("bedrooms")
    if not text:
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    faults["bedrooms"] = visit._("This must be a whole number.")
    return None
