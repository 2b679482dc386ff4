"""Listings for buyers: a project as a board and as a list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from datetime import datetime
from functools import partial, wraps
from itertools import chain, repeat
from time import monotonic
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

from holdfast.domain import listing
from holdfast.domain.board import BoardUnit, Building, Counts, arrange_buildings
from holdfast.domain.layout import Placement
from holdfast.domain.project import Project
from holdfast.domain.unit import Unit
from holdfast.operations.layouts import Layout, LayoutCache
from holdfast.operations.units import Units
from holdfast.storage import boards, layouts, listings, projects
from holdfast.storage.database import Connection, Database, current_time

T = TypeVar("T")
Arguments = ParamSpec("Arguments")

WHOLE_UP_TO = 400
"""A project with more units is shown one building at a time: pages for phones stay light."""
MAX_DRAWN = 1000
COUNTED_UP_TO = 1000
SIMILAR_UNITS = 3
_STRIDES = (25, 500, 5000)
"""How many codes are searched at a time for the next units by floor: mostly some are nearby."""
_FACTS_KEPT_FACTOR = 20
"""Facts are cached this many times as long as it took to find them, to save the database's time."""
_FACTS_KEPT_AT_MOST_SECONDS = 60.0


class ShopPicture(NamedTuple):
    project: Project
    seen_at: datetime
    """The database's time; what changed later is not in it."""
    layout_turn: int
    counts: Counts
    """Without the units that are not on sale."""
    facts: listing.ListingFacts
    buildings: Sequence[Building]
    listings: Sequence[listing.Listing]
    floors: Sequence[int]
    """Those in the buildings, from the lowest up."""
    sections: Sequence[str | None]
    """Buildings to choose from, where not all are shown; None stands for what is in no building."""
    section: int
    is_cut: bool
    """Some units are too many to be drawn."""


class ListingPage(NamedTuple):
    listings: Sequence[listing.PlacedListing]
    next: listing.ListingCursor | None
    total: int
    """How many match, up to ``COUNTED_UP_TO`` and one more."""


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
            # The callers get the exception; it is not logged where all of them have gone.
            joined.add_done_callback(lambda task: task.cancelled() or task.exception())
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


def _shared(
    method: Callable[Concatenate[Listings, Arguments], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Listings, Arguments], Coroutine[Any, Any, T]]:
    """Share one read among concurrent calls with the same arguments."""

    @wraps(method)
    async def read(self: Listings, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> T:
        key = (method.__name__, args, tuple(kwargs.items()))
        return await self.reads.read(key, partial(method, self, *args, **kwargs))

    return read


class Listings:
    """One for each process."""

    def __init__(self, database: Database, units: Units, layouts: LayoutCache) -> None:
        self._database = database
        self._units = units
        self._layouts = layouts
        self._facts: dict[UUID, tuple[float, listing.ListingFacts]] = {}
        self.reads = SharedReads()

    @_shared
    async def now(self) -> datetime:
        """Return the database's time: the stream sends what changes later."""
        return await self._database.read(current_time)

    async def similar(self, unit: Unit) -> list[BoardUnit]:
        """Return free units, the most alike first. All who look at a unit ask when it is taken."""
        read = partial(self._database.read, listings.find_similar, unit, SIMILAR_UNITS)
        return await self.reads.read(("similar", unit.id, unit.version), read)

    @_shared
    async def named(self, slug: str, codes: tuple[str, ...]) -> list[listing.PlacedListing]:
        """Return units in the order named; those that are no longer on sale are left out."""
        project_id = await self._units.project_id(slug)
        async with self._database.reading() as connection:
            found = await listings.find_matching(connection, project_id, listing.UnitFilter(), codes)
            return await _with_placements(
                connection, project_id, [found[code] for code in codes if code in found]
            )

    async def building_of(self, slug: str, code: str) -> tuple[Placement, Building | None]:
        """Return the position of the unit, and the building around it unless that is huge."""
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            layout = await self._layout(connection, project_id)
            place = (await layouts.find_units(connection, project_id, [code]))[0].placement
            section = next((one for one in layout.sections if one.name == place.building), None)
            if section is None or place.floor is None or len(section.placed) > WHOLE_UP_TO:
                return place, None
            found = await listings.find_by_codes(connection, project_id, [one.code for one in section.placed])
        drawn = arrange_buildings([one.unit for one in found], section.placed)
        return place, drawn[0] if drawn else None

    @_shared
    async def projects(self, after: str, limit: int) -> list[tuple[Project, Counts, listing.ListingFacts]]:
        """Return the projects that are listed; one more than ``limit``, if there is one."""
        async with self._database.reading_snapshot() as connection:
            listed = await projects.list_page(connection, None, after, limit + 1, listed=True)
            counts = await boards.counts(connection, [one.id for one in listed])
            return [(one, counts[one.id], await self._summarize(connection, one.id)) for one in listed]

    @_shared
    async def picture(self, slug: str, section: int) -> ShopPicture:
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            seen_at = await current_time(connection)
            project = await projects.get(connection, project_id)
            counts = (await boards.counts(connection, [project_id]))[project_id]
            layout = await self._layouts.find(connection, project_id, counts.total)
            facts = await self._summarize(connection, project_id)
            sections, section, placed = layout.choose(section, WHOLE_UP_TO)
            drawn = placed[:MAX_DRAWN]
            found = await listings.find_by_codes(connection, project_id, [one.code for one in drawn])
        buildings = arrange_buildings([one.unit for one in found], drawn)
        floors = sorted(
            {floor.number for one in buildings for floor in one.floors if floor.number is not None}
        )
        names, is_cut = [one.name for one in sections], len(placed) > len(drawn)
        on_sale = counts.on_sale
        return ShopPicture(
            project, seen_at, layout.turn, on_sale, facts, buildings, found, floors, names, section, is_cut
        )

    @_shared
    async def page(
        self,
        slug: str,
        filters: listing.UnitFilter,
        floor: int | None,
        order: listing.ListingOrder,
        after: listing.ListingCursor | None,
        limit: int,
    ) -> ListingPage:
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            on_floor: Sequence[str] | None = None
            if floor is not None:
                layout = await self._layout(connection, project_id)
                on_floor = (await layout.codes_by_floor()).get(floor, ())
            matching = await listings.list_codes(connection, project_id, filters, COUNTED_UP_TO + 1, on_floor)
            if order in listing.BY_FLOOR:
                # Few are soon put in order. Of many there are some nearby, wherever one looks.
                few = matching if len(matching) <= COUNTED_UP_TO else on_floor
                layout = await self._layout(connection, project_id)
                floors = await layout.by_floor(downward=order.is_downward)
                codes = floors.after(after and after.code, few)
                found = await _first_matching(connection, project_id, filters, codes, limit + 1)
            else:
                found = await listings.list_page(
                    connection, project_id, filters, order, after, limit + 1, on_floor
                )
            shown = await _with_placements(connection, project_id, found[:limit])
        last = listing.cursor_after(shown[-1].listing, order) if len(found) > limit else None
        return ListingPage(shown, last, len(matching))

    async def _layout(self, connection: Connection, project_id: UUID) -> Layout:
        counts = (await boards.counts(connection, [project_id]))[project_id]
        return await self._layouts.find(connection, project_id, counts.total)

    async def _summarize(self, connection: Connection, project_id: UUID) -> listing.ListingFacts:
        known, began_at = self._facts.get(project_id), monotonic()
        if known is None or known[0] < began_at:
            found = await listings.summarize(connection, project_id)
            took = monotonic() - began_at
            kept = min(took * _FACTS_KEPT_FACTOR, _FACTS_KEPT_AT_MOST_SECONDS)
            known = self._facts[project_id] = (began_at + kept, found)
        return known[1]


async def _with_placements(
    connection: Connection, project_id: UUID, found: Sequence[listing.Listing]
) -> list[listing.PlacedListing]:
    units = await layouts.find_units(connection, project_id, [one.unit.code for one in found])
    places = {unit.code: unit.placement for unit in units}
    return [listing.PlacedListing(one, places[one.unit.code]) for one in found]


async def _first_matching(
    connection: Connection, project_id: UUID, filters: listing.UnitFilter, codes: Sequence[str], limit: int
) -> list[listing.Listing]:
    """Return the first of the codes that match, in their order."""
    found: list[listing.Listing] = []
    at = 0
    for stride in chain(_STRIDES, repeat(_STRIDES[-1])):
        if len(found) >= limit or at >= len(codes):
            break
        some = codes[at : at + stride]
        matching = await listings.find_matching(connection, project_id, filters, some)
        found += [matching[code] for code in some if code in matching]
        at += stride
    return found[:limit]
