"""The page of a unit: what it is, what it costs, where it stands, and whether it can be had now."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.booking import terms_of
from holdfast.domain.errors import UnknownUnit
from holdfast.domain.listing import vat_in
from holdfast.domain.project import Project
from holdfast.domain.status import ON_SALE, Status
from holdfast.domain.unit import Unit
from holdfast.operations.bookings import Entered
from holdfast.web.context import WebContext
from holdfast.web.html.moments import milliseconds
from holdfast.web.storefront.pages.addressed import unit_in_path
from holdfast.web.storefront.pages.alike import cards_alike
from holdfast.web.storefront.pages.door import Door
from holdfast.web.storefront.pages.known_again import is_known_again
from holdfast.web.storefront.pages.offer_views import (
    absolute,
    how_long,
    linked_files,
    shown_images,
    summary,
)
from holdfast.web.storefront.pages.shop_cells import WindowWriter
from holdfast.web.storefront.pages.visits import PREFIX, Visit, booking_path, project_path, unit_path


class UnitPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context

    async def show(self, visit: Visit) -> Response:
        slug, code = unit_in_path(visit)
        seen_at = await self._context.services.offering.now()
        unit, project = await self._context.services.inventory.find(slug, code)
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

    async def _own(self, visit: Visit, unit: Unit, slug: str) -> Entered | None:
        if unit.status is Status.AVAILABLE or not is_known_again(visit):
            return None
        return await self._context.services.buying.own_claim(slug, unit.code, visit.secret)

    async def _state(self, visit: Visit, unit: Unit, project: Project, own: Entered | None) -> dict[str, Any]:
        """What is different once somebody has taken the unit, or let it go."""
        slug, is_taken = project.slug, unit.status is not Status.AVAILABLE and own is None
        similar = await cards_alike(self._context, slug, unit) if is_taken else []
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
        terms, path = terms_of(fields), unit_path(slug, unit.code)
        place, building = await self._context.services.offering.building_of(slug, unit.code)
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
            "vat": vat_in(terms),
            "place": place,
            "building": building and writer.building(building, here=unit.code),
        }


def unit_routes(door: Door, context: WebContext) -> list[Route]:
    pages = UnitPages(context)
    return [door.page(f"{PREFIX}/{{slug}}/units/{{code}}", GET=pages.show)]
