"""The pages of the storefront: which path shows what."""

from __future__ import annotations

from holdfast.web.parts import Parts
from holdfast.web.routing import Guard, Place
from holdfast.web.storefront.pages.door import Door, Elsewhere
from holdfast.web.storefront.pages.journey import booking_places, hold_places
from holdfast.web.storefront.pages.papers import paper_places
from holdfast.web.storefront.pages.project import project_places
from holdfast.web.storefront.pages.unit import unit_places


def storefront_page_places(parts: Parts, guard: Guard) -> list[Place]:
    door = Door(parts.addresses, guard, parts.cookies, parts.time_zone, parts.payment_url, parts.public_url)
    return [
        *hold_places(door, parts),
        *paper_places(door, parts),
        *booking_places(door, parts),
        *unit_places(door, parts),
        *project_places(door, parts),
        Elsewhere(door),
    ]
