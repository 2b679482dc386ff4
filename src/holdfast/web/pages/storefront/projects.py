"""Which units a buyer looks for, as the address of a page says. What makes no sense asks for nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.layout import BoardUnit, Counts
from holdfast.domain.listing import BY_FLOOR, NO_FILTER, ListingCursor, ListingOrder, UnitFilter
from holdfast.domain.status import Status
from holdfast.operations.listings import COUNTED_UP_TO, ListingPage, ShopPicture
from holdfast.operations.live_updates import BoardChanges
from holdfast.web.context import WebContext
from holdfast.web.pages.forms import Form, parse_amount
from holdfast.web.pages.i18n import in_language
from holdfast.web.pages.live import (
    EventStream,
    ProjectUpdates,
    event,
    milliseconds,
    parse_last_seen,
    parse_whole_number,
)
from holdfast.web.pages.storefront.base import (
    PREFIX,
    Door,
    Visit,
    has_buyer_cookie,
    project_in_path,
    project_path,
)
from holdfast.web.pages.storefront.live_limits import LiveLimits
from holdfast.web.pages.storefront.units import OwnHold, WindowWriter, cards, own_holds
from holdfast.web.pagination import TEXT_CURSOR

AMOUNTS = ("priceFrom", "priceTo", "areaFrom", "areaTo")
NAMES = ("free", "bedrooms", "type", *AMOUNTS, "order", "building")
MOST_BEDROOMS = 999
MOST_BUILDINGS = 100_000
LONGEST_TYPE = 100
FIRST_ORDER = ListingOrder.FLOOR_DOWN
"""What a page begins with: a bit of everything, and found without a look at every unit."""
_BETWEEN = "\n"


class AskedFor(NamedTuple):
    wish: UnitFilter
    order: ListingOrder
    after: ListingCursor | None
    building: int
    typed: Form
    wrong: frozenset[str]
    """Names of fields in which there is no amount."""

    @property
    def is_any(self) -> bool:
        return self.wish != NO_FILTER

    @property
    def is_narrowed(self) -> bool:
        """By what stands behind "More filters"."""
        return any(self.typed.text(name) for name in ("type", *AMOUNTS))

    def query(self, **changes: str | None) -> str:
        """Of a page that shows the same but for the changes."""
        kept = {name: self.typed.text(name) for name in NAMES} | changes
        return urlencode([(name, value) for name, value in kept.items() if value])


def read_filter(sent: Form) -> AskedFor:
    amounts = {name: parse_amount(sent.text(name)) for name in AMOUNTS}
    wish = UnitFilter(
        free_only=bool(sent.text("free")),
        type=sent.raw("type")[:LONGEST_TYPE] or None,
        bedrooms=_up_to(MOST_BEDROOMS, sent.text("bedrooms")),
        price_from=amounts["priceFrom"],
        price_to=amounts["priceTo"],
        area_from=amounts["areaFrom"],
        area_to=amounts["areaTo"],
    )
    order = _order(sent.text("order"))
    wrong = frozenset(name for name in AMOUNTS if sent.text(name) and amounts[name] is None)
    building = _up_to(MOST_BUILDINGS, sent.text("building")) or 0
    return AskedFor(wish, order, read_mark(sent.text("after"), order), building, sent, wrong)


def mark_text(mark: ListingCursor) -> str:
    return TEXT_CURSOR.encode(f"{'' if mark.value is None else mark.value}{_BETWEEN}{mark.code}")


def read_mark(text: str, order: ListingOrder) -> ListingCursor | None:
    """One of another order is none."""
    try:
        value, _, code = TEXT_CURSOR.decode(text).partition(_BETWEEN)
    except ValueError:
        return None
    amount = parse_amount(value)
    return None if not code or (amount is None) != (order in BY_FLOOR) else ListingCursor(amount, code)


def _order(text: str) -> ListingOrder:
    return ListingOrder(text) if text in set(ListingOrder) else FIRST_ORDER


def _up_to(most: int, text: str) -> int | None:
    number = parse_whole_number(text)
    return None if number is None or number > most else number


# What a browser that shows a project or a unit is told. The same for all, in any language.


class ShopNews(ProjectUpdates):
    def render_events(self, news: BoardChanges) -> bytes:
        on_sale = [unit for unit in news.units if unit.status is not Status.UNAVAILABLE]
        # Of what is not on sale nothing is told, but that there is something to look at anew.
        told = event("anew", b"{}") if news.everything or len(on_sale) < len(news.units) else b""
        if on_sale or news.counts:
            told += event("units", _document(on_sale, news.counts))
        return told


def _document(units: list[BoardUnit], counts: Counts | None) -> bytes:
    return b'{"units":[%b],"counts":%b}' % (b",".join(map(_told, units)), _counted(counts))


def _counted(counts: Counts | None) -> bytes:
    if counts is None:
        return b"null"
    shown = {str(status): n for status, n in counts.by_status.items() if status is not Status.UNAVAILABLE}
    return msgspec.json.encode(shown)


@lru_cache(maxsize=2000)
def _told(unit: BoardUnit) -> bytes:
    """Many watch the same."""
    ends_at = None if unit.status is not Status.HELD or unit.ends_at is None else milliseconds(unit.ends_at)
    return msgspec.json.encode(
        {"code": unit.code, "status": unit.status, "version": unit.version, "endsAt": ends_at}
    )


# The page of a project: its buildings as a picture, its units as a list, both of them live.

CARDS = 9


class ProjectPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._seats = LiveLimits(context.addresses)

    async def show(self, visit: Visit) -> Response:
        slug, asked = project_in_path(visit), read_filter(visit.query)
        offering = self._context.services.listings
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
        project_id = await self._context.services.units.project_id(slug)
        watching, turn = self._context.services.live_updates, parse_whole_number(sent.text("turn"))
        give_back = self._seats.take(visit.request)
        try:
            watcher = await watching.watch(project_id, parse_last_seen(visit.request, sent), turn)
        except BaseException:
            give_back()
            raise
        news = ShopNews(watching, watcher)
        return EventStream(news, _everybody_may, visit.request.stopping, on_end=give_back)

    async def _own_holds(self, visit: Visit, slug: str) -> list[OwnHold]:
        if not has_buyer_cookie(visit):
            return []
        return own_holds(
            await self._context.services.buyer_bookings.live_holds(slug, visit.visitor, visit.secret), slug
        )

    def _drawn(self, visit: Visit, picture: ShopPicture, asked: AskedFor, own: list[str]) -> dict[str, Any]:
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

    def _listed(self, slug: str, page: ListingPage, asked: AskedFor, own: list[str]) -> dict[str, Any]:
        after = page.next and mark_text(page.next)
        return {
            "cards": cards(slug, page.offers, own, self._context.public_url),
            "total": page.total,
            "counted_up_to": COUNTED_UP_TO,
            "next": after and f"{project_path(slug)}?{asked.query(after=after)}",
        }


def _details(picture: ShopPicture) -> dict[UUID, str]:
    """Which type (by its number), what area and what price: for a script to tell, in few bytes."""
    kinds = {name: str(at) for at, name in enumerate(picture.facts.types)}
    return {
        one.unit.id: f"{kinds.get(one.unit.type, '')}|{one.unit.area_sqm}|{one.terms.total_sar.normalize():f}"
        for one in picture.offers
    }


def _summary(visit: Visit, picture: ShopPicture) -> str | None:
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
