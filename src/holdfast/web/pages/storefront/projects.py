"""The list of projects, and the page of one: its buildings as a drawing, its units as a list, both live."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.domain.board import BoardUnit
from holdfast.domain.listing import BY_FLOOR, NO_FILTER, ListingCursor, ListingOrder, UnitFilter
from holdfast.domain.status import Status
from holdfast.operations.listings import COUNTED_UP_TO, ShopPicture
from holdfast.operations.live_updates import BoardChanges
from holdfast.web.errors import UnknownRoute
from holdfast.web.pages import live
from holdfast.web.pages.forms import Form, parse_amount, parse_whole_number
from holdfast.web.pages.i18n import in_language
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.storefront.base import BuyerRequest, project_path
from holdfast.web.pages.storefront.units import draw_building, status_words, unit_cards
from holdfast.web.pagination import TEXT_CURSOR, paginate

pages = Pages(BuyerRequest, is_public=True)

CARDS_PER_PAGE = 9
PROJECTS_PER_PAGE = 24
AMOUNTS = ("priceFrom", "priceTo", "areaFrom", "areaTo")
FIELDS = ("free", "bedrooms", "floor", "type", *AMOUNTS, "order", "building")
DEFAULT_ORDER = ListingOrder.FLOOR_DOWN
"""It shows a bit of everything, and needs no read of every unit."""
_SEPARATOR = "\n"


@pages.get("")
async def list_projects(request: BuyerRequest) -> Response:
    after, public_url = request.query.text("after"), request.context.public_url
    rows = await request.services.listings.projects(after, PROJECTS_PER_PAGE)
    listed, last = paginate(rows, PROJECTS_PER_PAGE, lambda row: row[0].slug)
    return await request.render("projects.html", listed=listed, after=after, last=last, public_url=public_url)


@pages.get("/{slug}/live")
async def stream_updates(request: BuyerRequest, slug: str) -> Response:
    query, updates = request.query, request.services.live_updates
    project_id = await request.services.units.project_id(slug)
    release = request.context.live_limits.take(request.client_address)
    try:
        turn = parse_whole_number(query.text("turn"))
        watcher = await updates.watch(project_id, live.parse_last_seen(request, query), turn)
    except BaseException:
        release()
        raise
    return live.EventStream(
        live.ProjectUpdates(updates, watcher, render_events), _is_admitted, request.stopping, on_end=release
    )


async def _is_admitted() -> bool:
    return True


@pages.get("/logos/{token}")
async def show_logo(request: BuyerRequest, _: str) -> Response:
    """The path changes with the picture, so a browser keeps it for good."""
    content = await request.services.sellers.find_logo(request.path)
    if content is None:
        raise UnknownRoute
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, media_type=f"image/{request.path.rpartition('.')[2]}", headers=headers)


@pages.get("/{slug}")
async def show_project(request: BuyerRequest, slug: str) -> Response:
    search, listings = parse_search(request.query), request.services.listings
    picture = await listings.picture(slug, search.building)
    page = await listings.page(slug, search.filter, search.floor, search.order, search.after, CARDS_PER_PAGE)
    own = (request.visitor, request.buyer_secret, slug)
    holds = await request.services.bookings.live_holds(*own) if request.has_buyer_cookie else []
    own_codes = {hold.unit_code for hold in holds}
    path, language, public_url = project_path(slug), request.language, request.context.public_url
    after = page.next and format_cursor(page.next)
    matching = search.list_matching(picture) if search.is_filtered else None
    details = _details(picture)
    return await request.render(
        "project_part.html" if request.is_fragment else "project.html",
        project=picture.project,
        path=path,
        public_url=public_url,
        holds=holds,
        milliseconds=live.milliseconds,
        search=search,
        picture=picture,
        facts=picture.facts,
        shown_types=[in_language(name, language.code) for name in picture.facts.types],
        shop_summary=_summary(request, picture),
        buildings=[
            draw_building(building, slug, language, own_codes, matching=matching, details=details)
            for building in picture.buildings
        ],
        words=status_words(language),
        live=f"{path}/live?since={live.milliseconds(picture.seen_at)}&turn={picture.layout_turn}",
        cards=unit_cards(slug, page.listings, own_codes, public_url),
        total=page.total if search.is_filtered else picture.counts.total,
        counted_up_to=COUNTED_UP_TO,
        next=after and f"{path}?{search.query(after=after)}",
    )


def _details(picture: ShopPicture) -> dict[UUID, str]:
    """Return the type (as a number), area and price of each unit, in few bytes, for the script."""
    types = {name: str(at) for at, name in enumerate(picture.facts.types)}
    return {
        listing.unit.id: f"{types.get(listing.unit.type, '')}|{listing.unit.area_sqm}"
        f"|{listing.terms.total_sar.normalize():f}"
        for listing in picture.listings
    }


def _summary(request: BuyerRequest, picture: ShopPicture) -> str | None:
    """Return a line for previews of links."""
    free, least = picture.counts.by_status[Status.AVAILABLE], picture.facts.free_from_sar
    if least is None:
        return None
    price = request.language.money(least)
    return request.ngettext("%(num)s unit from %(price)s", "%(num)s units from %(price)s", free, price=price)


# The filter of the list, as the query of the address has it. Values that make no sense are ignored.


class UnitSearch(NamedTuple):
    filter: UnitFilter
    floor: int | None
    order: ListingOrder
    after: ListingCursor | None
    building: int
    form: Form
    invalid_fields: frozenset[str]

    @property
    def is_filtered(self) -> bool:
        return self.filter != NO_FILTER or self.floor is not None

    def list_matching(self, picture: ShopPicture) -> set[UUID]:
        on_floor = {
            unit.id
            for building in picture.buildings
            for floor in building.floors
            for unit in floor.units
            if unit is not None and self.floor in (None, floor.number)
        }
        return {listing.unit.id for listing in picture.listings if self.filter.match(listing)} & on_floor

    @property
    def has_more_filters(self) -> bool:
        """Return whether the part "More filters" of the form is used."""
        return any(self.form.text(name) for name in ("floor", "type", *AMOUNTS))

    def query(self, **changes: str | None) -> str:
        """Return the query of a page that shows the same but for the changes."""
        kept = {name: self.form.text(name) for name in FIELDS} | changes
        return urlencode([(name, value) for name, value in kept.items() if value])


def parse_search(form: Form) -> UnitSearch:
    amounts = {name: parse_amount(form.text(name)) for name in AMOUNTS}
    unit_filter = UnitFilter(
        free_only=bool(form.text("free")),
        type=form.raw("type")[:100] or None,
        bedrooms=parse_whole_number(form.text("bedrooms"), most=999),
        price_from=amounts["priceFrom"],
        price_to=amounts["priceTo"],
        area_from=amounts["areaFrom"],
        area_to=amounts["areaTo"],
    )
    order_text = form.text("order")
    order = ListingOrder(order_text) if order_text in set(ListingOrder) else DEFAULT_ORDER
    invalid = frozenset(name for name in AMOUNTS if form.text(name) and amounts[name] is None)
    building = parse_whole_number(form.text("building"), most=100_000) or 0
    floor_text = form.text("floor")
    floor = int(floor_text) if re.fullmatch(r"-?\d{1,3}", floor_text) else None
    after = parse_cursor(form.text("after"), order)
    return UnitSearch(unit_filter, floor, order, after, building, form, invalid)


def format_cursor(cursor: ListingCursor) -> str:
    return TEXT_CURSOR.encode(f"{'' if cursor.value is None else cursor.value}{_SEPARATOR}{cursor.code}")


def parse_cursor(text: str, order: ListingOrder) -> ListingCursor | None:
    """Return the cursor, or None for one of another order."""
    try:
        value, _, code = TEXT_CURSOR.decode(text).partition(_SEPARATOR)
    except ValueError:
        return None
    amount = parse_amount(value)
    return None if not code or (amount is None) != (order in BY_FLOOR) else ListingCursor(amount, code)


# Live updates for the pages of a project and of a unit; the same for all visitors, in any language.


def render_events(changes: BoardChanges) -> bytes:
    on_sale = [unit for unit in changes.units if unit.status is not Status.UNAVAILABLE]
    # Of units that are not on sale nothing is sent but that the page should be loaded anew.
    events = live.event("anew", b"{}") if changes.everything or len(on_sale) < len(changes.units) else b""
    if on_sale or changes.counts:
        units = b",".join(map(_unit_json, on_sale))
        counts = changes.counts and changes.counts.on_sale.by_status
        events += live.event("units", b'{"units":[%b],"counts":%b}' % (units, msgspec.json.encode(counts)))
    return events


@lru_cache(maxsize=2000)
def _unit_json(unit: BoardUnit) -> bytes:
    """Cached, since many visitors watch the same units."""
    held_until = unit.ends_at if unit.status is Status.HELD else None
    ends_at = held_until and live.milliseconds(held_until)
    return msgspec.json.encode(
        {"code": unit.code, "status": unit.status, "version": unit.version, "endsAt": ends_at}
    )
