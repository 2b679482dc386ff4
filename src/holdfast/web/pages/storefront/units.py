"""The page of a unit, the hold of one, and units in lists and in drawn buildings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from markupsafe import Markup, escape
from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.board import BoardUnit, Building
from holdfast.domain.booking import unit_terms
from holdfast.domain.listing import PlacedListing, vat_amount
from holdfast.domain.project import Project
from holdfast.domain.status import ON_SALE, Status
from holdfast.domain.unit import Media, Unit
from holdfast.operations.bookings import OpenedBooking
from holdfast.web.pages.i18n import Language, in_language
from holdfast.web.pages.live import milliseconds
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.storefront.base import BuyerRequest, booking_path, project_path, unit_path
from holdfast.web.pages.templates import Medium, list_media
from holdfast.web.visitors import requester_of

pages = Pages(BuyerRequest, is_public=True)

_SUMMARY_LENGTH = 200


@pages.get("/{slug}/units/{code}")
async def show_unit(request: BuyerRequest, slug: str, code: str) -> Response:
    services = request.services
    seen_at = await services.listings.now()
    unit, project = await services.units.find(slug, code)
    if unit.status not in ON_SALE:
        raise errors.UnknownUnit(slug, code)
    booking = None
    if unit.status is not Status.AVAILABLE and request.has_buyer_cookie:
        booking = await services.bookings.own_claim(slug, unit.code, request.buyer_secret)
    now = milliseconds(seen_at)
    values = await _state_values(request, unit, project, booking)
    values |= {"now": now, "live": f"{project_path(slug)}/live?since={now}"}
    if request.is_fragment:
        return await request.render("unit_state.html", **values)
    values |= await _page_values(request, unit, slug, is_own=values["state"] == "mine")
    return await request.render("unit.html", **values)


async def _state_values(
    request: BuyerRequest, unit: Unit, project: Project, booking: OpenedBooking | None
) -> dict[str, Any]:
    """Return what changes when somebody takes the unit or lets it go."""
    slug, is_taken = project.slug, unit.status is not Status.AVAILABLE and booking is None
    ends_at = unit.hold_expires_at if unit.status is Status.HELD else None
    return {
        "project": project,
        "unit": unit,
        "state": "mine" if booking and unit.status is Status.HELD else unit.status.value,
        "words": status_words(request.language),
        "booking_path": booking and booking_path(slug, booking.reference),
        "hold_path": unit_path(slug, unit.code) + "/hold",
        "hold_label": _hold_label(request, request.services.bookings.periods.hold(project).total_seconds()),
        "ends_at": ends_at,
        "ends": ends_at and milliseconds(ends_at),
        "similar": await similar_units(request, slug, unit) if is_taken else [],
    }


async def _page_values(request: BuyerRequest, unit: Unit, slug: str, *, is_own: bool) -> dict[str, Any]:
    public_url, fields, language = request.context.public_url, unit.fields, request.language
    terms = unit_terms(fields)
    place, building = await request.services.listings.building_of(slug, unit.code)
    own_codes = (unit.code,) if is_own else ()
    images = _local_media(fields.images, public_url, shown=True)
    preview = images[0].url if images else None
    if preview and preview.startswith("/"):
        preview = public_url.rstrip("/") + preview
    return {
        "path": unit_path(slug, unit.code),
        "project_path": project_path(slug),
        "public_url": public_url,
        "fields": fields,
        "images": images,
        "preview": preview,
        "summary": _summary(fields.description, language),
        "files": _local_media(fields.files, public_url, shown=False),
        "terms": terms,
        "vat": vat_amount(terms),
        "place": place,
        "building": building and draw_building(building, slug, language, own_codes, current=unit.code),
    }


def _hold_label(request: BuyerRequest, seconds: float) -> str:
    if seconds % 60:
        return request.ngettext(
            "Hold this unit for %(num)s second", "Hold this unit for %(num)s seconds", max(1, round(seconds))
        )
    return request.ngettext(
        "Hold this unit for %(num)s minute", "Hold this unit for %(num)s minutes", round(seconds / 60)
    )


def _summary(description: str | None, language: Language) -> str | None:
    """Return the beginning of a description, for previews of links."""
    if not description:
        return None
    text = " ".join(in_language(description, language.code).split())
    return text if len(text) <= _SUMMARY_LENGTH else text[: _SUMMARY_LENGTH - 1].rstrip() + "…"


def _local_media(sent: Iterable[Media], public_url: str, *, shown: bool) -> list[Medium]:
    """Return the images that a page may show, or the files that it may link to."""
    local = list_media(sent, public_url)
    return [medium for medium in local if (medium.is_shown if shown else medium.is_linked)]


def status_words(language: Language) -> dict[str, str]:
    return {
        "available": language.gettext("Available"),
        "held": language.gettext("On hold"),
        "reserved": language.gettext("Reserved"),
        "sold": language.gettext("Sold"),
        "mine": language.gettext("On hold for you"),
    }


# Holding a unit: the buyer's booking begins, or a page says why not and what else there is.


@pages.post("/{slug}/units/{code}/hold")
async def hold_unit(request: BuyerRequest, slug: str, code: str) -> Response:
    # Browsers mark what they fetch before anybody has clicked. None sends a form so.
    if "prefetch" in request.header(b"sec-purpose").lower():
        return request.redirect(request.path)
    requester = requester_of(request, request.visitor, secret=request.buyer_secret)
    try:
        opened = await request.services.bookings.open(slug, code, requester, request.request_id)
    except (errors.NotAvailable, errors.TooManyHolds):
        return request.redirect(request.path)
    path = booking_path(slug, opened.reference)
    # Typed before an earlier hold lapsed. Without the consent the form comes back, filled in.
    is_typed = any(request.form.text(name) for name in ("buyerName", "buyerEmail", "buyerPhone"))
    return request.redirect(f"{path}/sign", 307) if is_typed else request.redirect(path)


@pages.get("/{slug}/units/{code}/hold")
async def show_hold(request: BuyerRequest, slug: str, code: str) -> Response:
    """Say why the buyer cannot hold the unit now, or show the button. A link or a preview holds nothing."""
    services = request.services
    own = await services.bookings.own_claim(slug, code, request.buyer_secret)
    if own is not None:
        return request.redirect(booking_path(slug, own.reference))
    requester = requester_of(request, request.visitor, secret=request.buyer_secret)
    error = await services.bookings.hold_error(slug, code, requester, request.request_id)
    unit, project = await services.units.find(slug, code)
    if unit.status not in ON_SALE:
        raise errors.UnknownUnit(slug, code)
    values: dict[str, Any] = {"unit": unit, "project": project, "unit_path": unit_path(slug, unit.code)}
    if unit.status is not Status.AVAILABLE:
        values |= {
            "similar": await similar_units(request, slug, unit),
            "words": status_words(request.language),
        }
        return await request.render("hold_taken.html", 409, **values)
    if not isinstance(error, errors.TooManyHolds):
        return await request.render("hold_by_button.html", **values)
    now = await services.listings.now()
    retry_at = now + timedelta(seconds=error.retry_after_seconds)
    values |= {"now": now, "retry_at": retry_at, "milliseconds": milliseconds}
    if isinstance(error, errors.HeldTooRecently):
        return await request.render_for(error, "hold_too_soon.html", **values)
    if isinstance(error, errors.TooManyHoldsAtAddress):
        return await request.render_for(error, "hold_too_many_here.html", **values)
    values["holds"] = await services.bookings.live_holds(request.visitor, request.buyer_secret)
    values["limit"] = services.bookings.limits.per_visitor
    return await request.render_for(error, "hold_too_many.html", **values)


# Units as cards of a list.


class UnitCard(NamedTuple):
    placed: PlacedListing
    path: str
    image: Medium | None
    state: str
    """Its status; "mine" where the visitor has it."""
    vat: Decimal | None
    """The part of the total that is VAT."""


def unit_cards(
    slug: str, listings: Iterable[PlacedListing], own_codes: Collection[str], public_url: str
) -> list[UnitCard]:
    cards = []
    for placed in listings:
        listing = placed.listing
        code, image = listing.unit.code, [] if listing.image is None else [listing.image]
        thumbnail = next(iter(_local_media(image, public_url, shown=True)), None)
        state = "mine" if code in own_codes else listing.unit.status.value
        cards.append(UnitCard(placed, unit_path(slug, code), thumbnail, state, vat_amount(listing.terms)))
    return cards


async def similar_units(request: BuyerRequest, slug: str, unit: Unit) -> list[UnitCard]:
    """Return cards of available units like one that is taken."""
    similar = await request.services.listings.similar(unit)
    listings = await request.services.listings.named(slug, tuple(one.code for one in similar))
    return unit_cards(slug, listings, (), request.context.public_url)


# Units as windows of a drawn building. There are hundreds on a page, so their HTML is written here and not in
# a template.


class DrawnFloor(NamedTuple):
    number: int | None
    windows: Markup


class DrawnBuilding(NamedTuple):
    name: str | None
    units: int
    free: int
    columns: int
    floors: Sequence[DrawnFloor]


def draw_building(
    building: Building,
    slug: str,
    language: Language,
    own_codes: Collection[str],
    *,
    matching: Collection[UUID] | None = None,
    details: Mapping[UUID, str] | None = None,
    current: str | None = None,
) -> DrawnBuilding:
    """Units not ``matching`` are dimmed, ``current`` is the page's own, ``details`` are for scripts."""
    base, words, details = f"{project_path(slug)}/units/", status_words(language), details or {}

    def draw_window(unit: BoardUnit | None) -> str:
        if unit is None:
            return "<i></i>"
        state = "mine" if unit.code in own_codes else unit.status.value
        dim = "" if matching is None or unit.id in matching else " dim"
        aria_current = ' aria-current="page"' if unit.code == current else ""
        data = f' data-d="{details[unit.id]}"' if unit.id in details else ""
        return (
            f'<a class="u is-{state}{dim}" href="{base}{quote(unit.code, safe="")}"'
            f' aria-label="{escape(unit.code)}, {words[state]}"{aria_current}{data}></a>'
        )

    floors = [
        DrawnFloor(floor.number, Markup("".join(map(draw_window, floor.units))))  # noqa: S704
        for floor in building.floors
    ]
    units = [unit for floor in building.floors for unit in floor.units if unit is not None]
    free = sum(unit.status is Status.AVAILABLE for unit in units)
    columns = max((len(floor.units) for floor in building.floors if floor.number is not None), default=0)
    return DrawnBuilding(building.name, len(units), free, columns, floors)
