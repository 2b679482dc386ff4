"""Units like one that is gone, as cards: somebody who comes too late is not left standing."""

from __future__ import annotations

from holdfast.domain.unit import Unit
from holdfast.web.parts import Parts
from holdfast.web.storefront.pages.offer_views import Card, cards


async def cards_alike(parts: Parts, slug: str, unit: Unit) -> list[Card]:
    found = await parts.buying.similar(unit)
    offers = await parts.offering.named(slug, [one.code for one in found])
    return cards(slug, offers, (), parts.public_url)
