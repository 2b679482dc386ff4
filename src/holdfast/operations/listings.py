"""Listings for buyers: a project as a board and as a list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import chain, repeat
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from holdfast.domain.layout import Building, Counts, PlacedUnit, Position, arrange, picture
from holdfast.domain.listing import (
    BY_FLOOR,
    Listing,
    ListingCursor,
    ListingFacts,
    ListingOrder,
    PlacedListing,
    UnitFilter,
    cursor_after,
)
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.operations.layouts import FloorOrders, KnownLayouts, Layout
from holdfast.operations.units import Units
from holdfast.storage import boards, layouts, listings, projects
from holdfast.storage.database import Connection, Database

T = TypeVar("T")

WHOLE_UP_TO = 400
"""A project with more units is shown one building at a time: pages for phones stay light."""
DRAWN_AT_MOST = 1000
COUNTED_UP_TO = 1000
_STRIDES = (25, 500, 5000)
"""How far it is looked for the next units by floor: first there are some nearby, mostly."""
_FACTS_KEPT_FACTOR = 20
"""Facts are kept that many times as long as it took to find them: it is never much of the database's time."""
_FACTS_KEPT_AT_MOST_SECONDS = 60.0


class ShopPicture(NamedTuple):
    project: Project
    seen_at: datetime
    """The database's time; what changed later is not in it."""
    layout_turn: int
    counts: Counts
    """Of what is on sale."""
    facts: ListingFacts
    buildings: Sequence[Building]
    offers: Sequence[Listing]
    """Those in the buildings."""
    sections: Sequence[str | None]
    """Buildings to choose from, where not all are shown; None stands for what is in no building."""
    section: int
    is_cut: bool
    """Whether there are too many units to be drawn."""


class ListingPage(NamedTuple):
    offers: Sequence[PlacedListing]
    next: ListingCursor | None
    total: int
    """How many match, up to ``COUNTED_UP_TO`` and one more."""


class Listings:
    """One for each process."""

    def __init__(self, database: Database, units: Units, layouts: KnownLayouts) -> None:
        self._database = database
        self._units = units
        self._layouts = layouts
        self._floors = FloorOrders()
        self._reads = SharedReads()
        self._facts: dict[UUID, tuple[float, ListingFacts]] = {}

    async def picture(self, slug: str, section: int) -> ShopPicture:
        project_id = await self._units.project_id(slug)
        return await self._reads.read((project_id, section), partial(self._picture, project_id, section))

    async def page(
        self, slug: str, filters: UnitFilter, order: ListingOrder, after: ListingCursor | None, limit: int
    ) -> ListingPage:
        project_id = await self._units.project_id(slug)
        key = (project_id, filters, order, after, limit)
        return await self._reads.read(key, partial(self._page, *key))

    async def now(self) -> datetime:
        """The database's time: what changes later is told by the stream."""
        return await self._reads.read("now", self._now)

    async def building_of(self, slug: str, code: str) -> tuple[Position, Building | None]:
        """Where the unit stands, and the building around it unless that is huge."""
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            layout = await self._layout(connection, project_id)
            place = (await self._places(connection, project_id, [code]))[0]
            section = next((one for one in layout.sections if one.name == place.building), None)
            if section is None or place.floor is None or len(section.placed) > WHOLE_UP_TO:
                return place, None
            found = await listings.find_by_codes(connection, project_id, [one.code for one in section.placed])
        drawn = picture([offer.unit for offer in found], section.placed)
        return place, drawn[0] if drawn else None

    async def named(self, slug: str, codes: Sequence[str]) -> list[PlacedListing]:
        """In the order named; those that are no longer on sale are left out."""
        project_id = await self._units.project_id(slug)
        key = (project_id, tuple(codes))
        return await self._reads.read(key, partial(self._named, *key))

    async def _now(self) -> datetime:
        async with self._database.reading() as connection:
            return await boards.now(connection)

    async def _named(self, project_id: UUID, codes: Sequence[str]) -> list[PlacedListing]:
        async with self._database.reading() as connection:
            found = await listings.find_matching(connection, project_id, UnitFilter(), codes)
            known = [found[code] for code in codes if code in found]
            return await self._placed(connection, project_id, known)

    async def _picture(self, project_id: UUID, section: int) -> ShopPicture:
        async with self._database.reading_snapshot() as connection:
            seen_at = await boards.now(connection)
            project = await projects.get(connection, project_id)
            counts = (await boards.counts(connection, [project_id]))[project_id]
            layout = await self._layouts.find(connection, project_id, counts.total)
            facts = await self._facts_of(connection, project_id)
            is_whole = counts.total <= WHOLE_UP_TO
            names = [] if is_whole else [one.name for one in layout.sections]
            section = section if section < len(names) else 0
            placed = _all(layout) if is_whole else layout.sections[section].placed
            drawn = placed[:DRAWN_AT_MOST]
            found = await listings.find_by_codes(connection, project_id, [one.code for one in drawn])
        buildings, is_cut = picture([offer.unit for offer in found], drawn), len(placed) > len(drawn)
        return ShopPicture(
            project, seen_at, layout.turn, _on_sale(counts), facts, buildings, found, names, section, is_cut
        )

    async def _page(
        self,
        project_id: UUID,
        filters: UnitFilter,
        order: ListingOrder,
        after: ListingCursor | None,
        limit: int,
    ) -> ListingPage:
        async with self._database.reading_snapshot() as connection:
            meeting = await listings.list_codes(connection, project_id, filters, COUNTED_UP_TO + 1)
            if order in BY_FLOOR:
                # Few are soon put in order. Of many there are some nearby, wherever one looks.
                few = meeting if len(meeting) <= COUNTED_UP_TO else None
                codes = await self._codes_by_floor(connection, project_id, order, after, few)
                found = await _first_among(connection, project_id, filters, codes, limit + 1)
            else:
                found = await listings.list_page(connection, project_id, filters, order, after, limit + 1)
            shown = await self._placed(connection, project_id, found[:limit])
        last = cursor_after(shown[-1].offer, order) if len(found) > limit else None
        return ListingPage(shown, last, len(meeting))

    async def _codes_by_floor(
        self,
        connection: Connection,
        project_id: UUID,
        order: ListingOrder,
        after: ListingCursor | None,
        few: Sequence[str] | None,
    ) -> Sequence[str]:
        floors = await self._floors.find(project_id, await self._layout(connection, project_id))
        return floors.after(after and after.code, downward=order.is_downward, among=few)

    async def _layout(self, connection: Connection, project_id: UUID) -> Layout:
        counts = (await boards.counts(connection, [project_id]))[project_id]
        return await self._layouts.find(connection, project_id, counts.total)

    async def _placed(
        self, connection: Connection, project_id: UUID, found: Sequence[Listing]
    ) -> list[PlacedListing]:
        places = await self._places(connection, project_id, [offer.unit.code for offer in found])
        return [PlacedListing(offer, place) for offer, place in zip(found, places, strict=True)]

    async def _places(self, connection: Connection, project_id: UUID, codes: Sequence[str]) -> list[Position]:
        chosen = await layouts.places_among(connection, project_id, codes)
        by_code = {one.code: one.place for one in arrange(codes, chosen)}
        return [by_code[code] for code in codes]

    async def _facts_of(self, connection: Connection, project_id: UUID) -> ListingFacts:
        known, began_at = self._facts.get(project_id), monotonic()
        if known is None or known[0] < began_at:
            found = await listings.summarize(connection, project_id)
            took = monotonic() - began_at
            kept = min(took * _FACTS_KEPT_FACTOR, _FACTS_KEPT_AT_MOST_SECONDS)
            known = self._facts[project_id] = (began_at + kept, found)
        return known[1]


async def _first_among(
    connection: Connection, project_id: UUID, filters: UnitFilter, codes: Sequence[str], wanted: int
) -> list[Listing]:
    """Return the first of the codes that match, in their order."""
    found: list[Listing] = []
    at = 0
    for stride in chain(_STRIDES, repeat(_STRIDES[-1])):
        if len(found) >= wanted or at >= len(codes):
            break
        some = codes[at : at + stride]
        meeting = await listings.find_matching(connection, project_id, filters, some)
        found += [meeting[code] for code in some if code in meeting]
        at += stride
    return found[:wanted]


def _all(layout: Layout) -> list[PlacedUnit]:
    return [one for section in layout.sections for one in section.placed]


def _on_sale(counts: Counts) -> Counts:
    return Counts({status: n for status, n in counts.by_status.items() if status is not Status.UNAVAILABLE})


class SharedReads:
    """Share one read among concurrent callers.

    A caller never gets data that was read before they asked: callers that come during a read share the next
    one, so there is one read at a time for each key.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def read(self, key: Hashable, reading: Callable[[], Awaitable[T]]) -> T:
        joined: asyncio.Task[T] | None = self._next.get(key)
        if joined is None:
            joined = asyncio.get_running_loop().create_task(self._in_turn(key, reading))
            joined.add_done_callback(_ignore_failure)
            self._next[key] = joined
        # A caller that is cancelled does not cancel the read of the others.
        return await asyncio.shield(joined)

    async def _in_turn(self, key: Hashable, reading: Callable[[], Awaitable[T]]) -> T:
        earlier = self._running.get(key)
        if earlier is not None:
            await asyncio.wait([earlier])
        own = self._running[key] = self._next.pop(key)
        try:
            return await reading()
        finally:
            if self._running.get(key) is own:
                del self._running[key]


def _ignore_failure(task: asyncio.Task[Any]) -> None:
    """The callers have got the exception; it is not logged where all of them have gone."""
    with suppress(asyncio.CancelledError):
        task.exception()
