"""What pages show of offers beside the offers themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from markupsafe import Markup, escape
from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.booking import unit_terms
from holdfast.domain.errors import UnknownUnit
from holdfast.domain.layout import BoardUnit, Building
from holdfast.domain.listing import PlacedListing, vat_amount
from holdfast.domain.project import Project
from holdfast.domain.status import ON_SALE, Status
from holdfast.domain.unit import Media, Unit
from holdfast.operations.bookings import FoundBooking, OpenedBooking
from holdfast.web.context import WebContext
from holdfast.web.pages.i18n import Language, in_language
from holdfast.web.pages.live import milliseconds
from holdfast.web.pages.storefront.base import (
    PREFIX,
    Door,
    Visit,
    booking_path,
    has_buyer_cookie,
    project_path,
    unit_in_path,
    unit_path,
)
from holdfast.web.pages.templates import Medium, media, on_this_host

_SECONDS_UP_TO = 90


class Card(NamedTuple):
    """A unit of a list."""

    placed: PlacedListing
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


def cards(slug: str, offers: Iterable[PlacedListing], own: Iterable[str], public_url: str) -> list[Card]:
    mine = set(own)
    return [
        Card(
            one,
            unit_path(slug, one.offer.unit.code),
            _thumbnail(one.offer.image, public_url),
            "mine" if one.offer.unit.code in mine else one.offer.unit.status.value,
            vat_amount(one.offer.terms),
        )
        for one in offers
    ]


def own_holds(found: Iterable[FoundBooking], slug: str) -> list[OwnHold]:
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


# Units like one that is gone, as cards: somebody who comes too late is not left standing.


async def similar_units(context: WebContext, slug: str, unit: Unit) -> list[Card]:
    found = await context.services.buyer_bookings.similar(unit)
    offers = await context.services.listings.named(slug, [one.code for one in found])
    return cards(slug, offers, (), context.public_url)


# Units as the windows of a drawn building.
#
# There are hundreds on a page, so their HTML is written here and not in a template. What somebody typed is
# escaped.

_GAP = "<i></i>"


class FloorOfWindows(NamedTuple):
    number: int | None
    windows: Markup


class BuildingOfWindows(NamedTuple):
    name: str | None
    units: int
    free: int
    columns: int
    """How wide it is drawn."""
    floors: Sequence[FloorOfWindows]


class WindowWriter:
    """For one visitor: what is theirs is shown as theirs."""

    def __init__(self, language: Language, slug: str, own: Collection[str]) -> None:
        self._base = f"{project_path(slug)}/units/"
        self._own = own
        self.words = status_words(language)

    def building(
        self,
        building: Building,
        fitting: Collection[UUID] | None = None,
        details: Mapping[UUID, str] | None = None,
        here: str | None = None,
    ) -> BuildingOfWindows:
        """``fitting``: others are dimmed. ``details``: told beside a window. ``here``: its own unit."""
        floors = [
            FloorOfWindows(
                floor.number,
                Markup("".join(self._window(unit, fitting, details or {}, here) for unit in floor.units)),  # noqa: S704
            )
            for floor in building.floors
        ]
        units = [unit for floor in building.floors for unit in floor.units if unit is not None]
        free = sum(unit.status is Status.AVAILABLE for unit in units)
        columns = max((len(floor.units) for floor in building.floors if floor.number is not None), default=0)
        return BuildingOfWindows(building.name, len(units), free, columns, floors)

    def _window(
        self,
        unit: BoardUnit | None,
        fitting: Collection[UUID] | None,
        details: Mapping[UUID, str],
        here: str | None,
    ) -> str:
        if unit is None:
            return _GAP
        look = "mine" if unit.code in self._own else unit.status.value
        code = escape(unit.code)
        dim = "" if fitting is None or unit.id in fitting else " dim"
        current = ' aria-current="page"' if unit.code == here else ""
        data = f' data-d="{details[unit.id]}"' if unit.id in details else ""
        return (
            f'<a class="u is-{look}{dim}" href="{self._base}{quote(unit.code, safe="")}"'
            f' aria-label="{code}, {self.words[look]}"{current}{data}></a>'
        )


def status_words(language: Language) -> dict[str, str]:
    return {
        "available": language.gettext("Available"),
        "held": language.gettext("Held"),
        "reserved": language.gettext("Reserved"),
        "sold": language.gettext("Sold"),
        "mine": language.gettext("Held for you"),
    }


# The page of a unit: what it is, what it costs, where it stands, and whether it can be had now.


class UnitPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context

    async def show(self, visit: Visit) -> Response:
        slug, code = unit_in_path(visit)
        seen_at = await self._context.services.listings.now()
        unit, project = await self._context.services.units.find(slug, code)
        if unit.status not in ON_SALE:
            raise UnknownUnit(slug, code)
        own = await self._own(visit, unit, slug)
        values = await self._state(visit, unit, project, own)
        values["now"] = since = milliseconds(seen_at)
        values["live"] = f"{project_path(slug)}/live?since={since}"
        if visit.is_fragment:
            return visit.render("unit_state.html", **values)
        rest = await self._rest(visit, unit, slug, is_mine=values["look"] == "mine")
        return visit.render("unit.html", **values, **rest)

    async def _own(self, visit: Visit, unit: Unit, slug: str) -> OpenedBooking | None:
        if unit.status is Status.AVAILABLE or not has_buyer_cookie(visit):
            return None
        return await self._context.services.buyer_bookings.own_claim(slug, unit.code, visit.secret)

    async def _state(
        self, visit: Visit, unit: Unit, project: Project, own: OpenedBooking | None
    ) -> dict[str, Any]:
        """What is different once somebody has taken the unit, or let it go."""
        slug, is_taken = project.slug, unit.status is not Status.AVAILABLE and own is None
        similar = await similar_units(self._context, slug, unit) if is_taken else []
        ends_at = unit.hold_expires_at if unit.status is Status.HELD else None
        return {
            "project": project,
            "unit": unit,
            "look": "mine" if own and unit.status is Status.HELD else unit.status.value,
            "words": WindowWriter(visit.language, slug, ()).words,
            "booking_path": own and booking_path(slug, own.reference),
            "hold_path": unit_path(slug, unit.code) + "/hold",
            "held_for": how_long(visit, self._context.services.periods.hold(project).total_seconds()),
            "ends_at": ends_at,
            "ends": ends_at and milliseconds(ends_at),
            "similar": similar,
        }

    async def _rest(self, visit: Visit, unit: Unit, slug: str, *, is_mine: bool) -> dict[str, Any]:
        public_url, fields = self._context.public_url, unit.fields
        terms, path = unit_terms(fields), unit_path(slug, unit.code)
        place, building = await self._context.services.listings.building_of(slug, unit.code)
        writer = WindowWriter(visit.language, slug, (unit.code,) if is_mine else ())
        images = shown_images(fields.images, public_url)
        return {
            "path": path,
            "project_path": project_path(slug),
            "public_url": public_url,
            "fields": fields,
            "images": images,
            "preview": absolute(images[0].url, public_url) if images else None,
            "summary": summary(visit, fields.description),
            "files": linked_files(fields.files, public_url),
            "terms": terms,
            "vat": vat_amount(terms),
            "place": place,
            "building": building and writer.building(building, here=unit.code),
        }


def unit_routes(door: Door, context: WebContext) -> list[Route]:
    pages = UnitPages(context)
    return [door.page(f"{PREFIX}/{{slug}}/units/{{code}}", GET=pages.show)]
