"""The pages of the storefront: which path shows what."""

from __future__ import annotations

from holdfast.web.parts import Parts
from holdfast.web.routing import Guard, Place
from holdfast.web.storefront.pages.door import Door, Elsewhere


def storefront_page_places(parts: Parts, guard: Guard) -> list[Place]:
    door = Door(parts.addresses, guard, parts.cookies, parts.time_zone)
    return [Elsewhere(door)]
