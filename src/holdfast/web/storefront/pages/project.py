"""The page of a project: its buildings as a picture, its units as a list, both of them live."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.status import Status
from holdfast.operations.listings import COUNTED_UP_TO, OfferPage, Picture
from holdfast.web.context import WebContext
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.live import EventStream
from holdfast.web.html.moments import milliseconds, told_until, whole_number
from holdfast.web.storefront.pages.addressed import project_in_path
from holdfast.web.storefront.pages.door import Door
from holdfast.web.storefront.pages.known_again import is_known_again
from holdfast.web.storefront.pages.live_seats import LiveSeats
from holdfast.web.storefront.pages.offer_views import OwnHold, cards, own_holds
from holdfast.web.storefront.pages.shop_cells import WindowWriter
from holdfast.web.storefront.pages.shop_news import ShopNews
from holdfast.web.storefront.pages.visits import PREFIX, Visit, project_path
from holdfast.web.storefront.pages.wishes import AskedFor, mark_text, read_wish

CARDS = 9


class ProjectPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._seats = LiveSeats(context.addresses)

    async def show(self, visit: Visit) -> Response:
        slug, asked = project_in_path(visit), read_wish(visit.query)
        offering = self._context.services.offering
        picture = await offering.picture(slug, asked.building)
        page = await offering.page(slug, asked.wish, asked.order, asked.after, CARDS)
        holds = await self._own_holds(visit, slug)
        own = [hold.code for hold in holds]
        return visit.render(
            "project_part.html" if visit.is_fragment else "project.html",
            project=picture.project,
            path=project_path(slug),
            public_url=self._context.public_url,
            holds=holds,
            asked=asked,
            **self._drawn(visit, picture, asked, own),
            **self._listed(slug, page, asked, own),
        )

    async def live(self, visit: Visit) -> Response:
        slug, sent = project_in_path(visit), visit.query
        project_id = await self._context.services.inventory.project_id(slug)
        watching, turn = self._context.services.watching, whole_number(sent.text("turn"))
        give_back = self._seats.take(visit.request)
        try:
            watcher = await watching.watch(project_id, told_until(visit.request, sent), turn)
        except BaseException:
            give_back()
            raise
        news = ShopNews(watching, watcher)
        return EventStream(news, _everybody_may, visit.request.stopping, on_end=give_back)

    async def _own_holds(self, visit: Visit, slug: str) -> list[OwnHold]:
        if not is_known_again(visit):
            return []
        return own_holds(
            await self._context.services.buying.live_holds(slug, visit.visitor, visit.secret), slug
        )

    def _drawn(self, visit: Visit, picture: Picture, asked: AskedFor, own: list[str]) -> dict[str, Any]:
        slug = picture.project.slug
        writer = WindowWriter(visit.language, slug, own)
        met = {one.unit.id for one in picture.offers if asked.wish.is_met_by(one)} if asked.is_any else None
        details = _details(picture)
        since, turn = milliseconds(picture.seen_at), picture.layout_turn
        return {
            "picture": picture,
            "facts": picture.facts,
            "shown_types": [in_language(name, visit.language.code) for name in picture.facts.types],
            "shop_summary": _summary(visit, picture),
            "buildings": [writer.building(building, met, details) for building in picture.buildings],
            "words": writer.words,
            "live": f"{project_path(slug)}/live?since={since}&turn={turn}",
        }

    def _listed(self, slug: str, page: OfferPage, asked: AskedFor, own: list[str]) -> dict[str, Any]:
        after = page.next and mark_text(page.next)
        return {
            "cards": cards(slug, page.offers, own, self._context.public_url),
            "total": page.total,
            "counted_up_to": COUNTED_UP_TO,
            "next": after and f"{project_path(slug)}?{asked.query(after=after)}",
        }


def _details(picture: Picture) -> dict[UUID, str]:
    """Which type (by its number), what area and what price: for a script to tell, in few bytes."""
    kinds = {name: str(at) for at, name in enumerate(picture.facts.types)}
    return {
        one.unit.id: f"{kinds.get(one.unit.type, '')}|{one.unit.area_sqm}|{one.terms.total_sar.normalize():f}"
        for one in picture.offers
    }


def _summary(visit: Visit, picture: Picture) -> str | None:
    """For previews of links."""
    free, least = picture.counts.by_status[Status.AVAILABLE], picture.facts.free_from_sar
    if least is None:
        return None
    price = visit.language.money(least)
    return visit.ngettext("%(num)s unit from %(price)s", "%(num)s units from %(price)s", free, price=price)


async def _everybody_may() -> bool:
    return True


def project_routes(door: Door, context: WebContext) -> list[Route]:
    pages = ProjectPages(context)
    project = f"{PREFIX}/{{slug}}"
    return [door.page(f"{project}/live", GET=pages.live), door.page(project, GET=pages.show)]
