"""Who has been here before: nobody else can have something of their own."""

from __future__ import annotations

from holdfast.web.storefront.pages.door import BUYER_COOKIE
from holdfast.web.storefront.pages.visits import Visit


def is_known_again(visit: Visit) -> bool:
    """Of whoever brings no cookie nothing need be looked for: theirs is made for this very answer."""
    return visit.door.cookies.read(visit.request, BUYER_COOKIE) is not None
