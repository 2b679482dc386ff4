"""The link by which a buyer opens their booking on any device; it is their key to it."""

from __future__ import annotations


def buyer_link(public_url: str, slug: str, reference: str, token: str) -> str:
    return f"{public_url.rstrip('/')}/p/{slug}/bookings/{reference}/{token}"
