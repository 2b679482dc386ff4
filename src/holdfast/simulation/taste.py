"""Which unit somebody likes best. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self

_BEDROOMS_IF_UNTOLD = 2


class Taste(NamedTuple):
    bedrooms: int
    budget: float
    """Where between the cheapest and the dearest unit, from 0 to 1."""


class Offer(NamedTuple):
    code: str
    price: float
    bedrooms: int

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        bedrooms = document["bedrooms"]
        return cls(
            document["code"],
            float(document["priceSar"]),
            _BEDROOMS_IF_UNTOLD if bedrooms is None else bedrooms,
        )


def favourite(offers: Sequence[Offer], taste: Taste, passed_over: Collection[str] = ()) -> Offer | None:
    """Two people of the same taste like the same unit best, which is how races come about."""
    left = [offer for offer in offers if offer.code not in passed_over]
    if not left:
        return None
    low, high = min(offer.price for offer in left), max(offer.price for offer in left)
    budget = low + taste.budget * (high - low)
    return min(left, key=lambda offer: (*_distance(offer, taste.bedrooms, budget), offer.code))


def _distance(offer: Offer, bedrooms: int, budget: float) -> tuple[int, float]:
    return abs(offer.bedrooms - bedrooms), abs(offer.price - budget)
