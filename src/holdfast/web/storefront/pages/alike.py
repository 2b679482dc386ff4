"""Units like one that is gone, as cards: somebody who comes too late is not left standing."""

from __future__ import annotations

from holdfast.domain.unit import Unit
from holdfast.web.context import WebContext
from holdfast.web.storefront.pages.offer_views import Card, cards


async def cards_alike(context: WebContext, slug: str, unit: Unit) -> list[Card]:
    found = await context.services.buying.similar(unit)
    offers = await context.services.offering.named(slug, [one.code for one in found])
    return cards(slug, offers, (), context.public_url)
