"""What pages show of offers beside the offers themselves."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from holdfast.domain.listing import PlacedOffer, vat_in
from holdfast.domain.unit import Media
from holdfast.operations.bookings import Found
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.media import Medium, media, on_this_host
from holdfast.web.html.moments import milliseconds
from holdfast.web.storefront.pages.visits import Visit, booking_path, unit_path

_SECONDS_UP_TO = 90


class Card(NamedTuple):
    """A unit of a list."""

    placed: PlacedOffer
    path: str
    image: Medium | None
    look: str
    """Its status; "mine" where the visitor has it."""
    vat: Decimal | None
    """How much of the total is VAT."""


class OwnHold(NamedTuple):
    code: str
    path: str
    ends: int | None
    now: int
    """In milliseconds, by the database's clock."""


def cards(slug: str, offers: Iterable[PlacedOffer], own: Iterable[str], public_url: str) -> list[Card]:
    mine = set(own)
    return [
        Card(
            one,
            unit_path(slug, one.offer.unit.code),
            _thumbnail(one.offer.image, public_url),
            "mine" if one.offer.unit.code in mine else one.offer.unit.status.value,
            vat_in(one.offer.terms),
        )
        for one in offers
    ]


def own_holds(found: Iterable[Found], slug: str) -> list[OwnHold]:
    return [
        OwnHold(
            one.unit_code,
            booking_path(slug, one.booking.reference),
            None if one.booking.ends_at is None else milliseconds(one.booking.ends_at),
            milliseconds(one.now),
        )
        for one in found
    ]


def shown_images(sent: Iterable[Media], public_url: str) -> list[Medium]:
    found = (on_this_host(one, public_url) for one in media(sent))
    return [one for one in found if one.is_shown]


def linked_files(sent: Iterable[Media], public_url: str) -> list[Medium]:
    found = (on_this_host(one, public_url) for one in media(sent))
    return [one for one in found if one.is_linked]


def absolute(path_or_url: str, public_url: str) -> str:
    return public_url.rstrip("/") + path_or_url if path_or_url.startswith("/") else path_or_url


def how_long(visit: Visit, seconds: float) -> str:
    """What happens when a unit is opened."""
    if seconds < _SECONDS_UP_TO:
        return visit.ngettext(
            "It is yours for %(num)s second. Nothing to pay yet.",
            "It is yours for %(num)s seconds. Nothing to pay yet.",
            max(1, round(seconds)),
        )
    return visit.ngettext(
        "It is yours for %(num)s minute. Nothing to pay yet.",
        "It is yours for %(num)s minutes. Nothing to pay yet.",
        round(seconds / 60),
    )


def summary(visit: Visit, description: str | None, longest: int = 200) -> str | None:
    """The beginning of a text, for previews of links."""
    if not description:
        return None
    own = " ".join(in_language(description, visit.language.code).split())
    return own if len(own) <= longest else own[: longest - 1].rstrip() + "…"


def _thumbnail(image: Media | None, public_url: str) -> Medium | None:
    return next(iter(shown_images([] if image is None else [image], public_url)), None)
