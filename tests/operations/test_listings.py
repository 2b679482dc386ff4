"""Similar units for a buyer, and reads that many share."""

import asyncio
from decimal import Decimal

import pytest

from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import UnitFields
from holdfast.operations.bookings import Bookings, StaffAction
from holdfast.operations.layouts import LayoutCache
from holdfast.operations.listings import Listings, SharedReads
from holdfast.operations.units import ReplaceUnit, Units
from holdfast.storage.database import Database
from tests.operations.scene import STAFF
from tests.support.inventory import SLUG, claim, new_project, store
from tests.support.sales import new_units

ALIKE = {
    "B-1": ("apartment", 3, 1_000_000),
    "B-2": ("villa", 3, 1_000_000),
    "B-3": ("apartment", 3, 1_100_000),
    "B-4": ("apartment", 3, 950_000),
    "B-5": ("apartment", 2, 1_000_000),
    "B-6": ("apartment", None, 1_000_000),
}


async def similar(database: Database, code: str, slug: str = "palm-court-b") -> list[str]:
    inventory = Units(database)
    unit, _ = await inventory.find(slug, code)
    return [one.code for one in await Listings(database, inventory, LayoutCache()).similar(unit)]


async def test_similar_units_are_free_and_alike_in_bedrooms_type_and_price(database: Database) -> None:
    for slug in ("palm-court-b", "palm-court-c"):
        project_id = await new_project(database, slug)
        for code, (kind, bedrooms, price) in ALIKE.items():
            fields = UnitFields(kind, Decimal(100), Decimal(price), bedrooms=bedrooms)
            await store(database, ReplaceUnit((project_id, code), fields))
    assert await similar(database, "B-1") == ["B-4", "B-3", "B-2"]
    assert await similar(database, "B-2") == ["B-1", "B-4", "B-3"]
    assert await similar(database, "B-6") == ["B-1", "B-5", "B-4"]
    await claim(database, "B-4", Status.HELD, ends_in_seconds=300)
    await claim(database, "B-3", Status.HELD, ends_in_seconds=-1)
    assert await similar(database, "B-1") == ["B-3", "B-2", "B-5"]


async def test_what_staff_took_off_sale_is_like_nothing(selling: Bookings, database: Database) -> None:
    for code, action in (("A-2", Action.ARCHIVE), ("A-3", Action.TAKE_OFF_SALE)):
        await selling.act_on_unit(SLUG, code, StaffAction(action), Caller.STAFF, STAFF)
    assert await similar(database, "A-1", SLUG) == ["A-4", "A-5"]


async def test_a_building_is_shown_around_a_unit_that_has_a_floor(database: Database) -> None:
    await new_units(database, "A-101", "A-102", "Villa")
    shown = Listings(database, Units(database), LayoutCache())
    place, building = await shown.building_of(SLUG, "A-102")
    assert (place.floor, building and building.name) == (1, "A")
    assert (await shown.building_of(SLUG, "Villa"))[1] is None


class Source:
    """Is read as long as the test says."""

    def __init__(self) -> None:
        self.reads = 0
        self.go_on = asyncio.Event()

    async def read(self) -> int:
        self.reads += 1
        number = self.reads
        await self.go_on.wait()
        return number


async def arrive(count: int, reads: SharedReads, source: Source) -> list[asyncio.Task[int]]:
    tasks = [asyncio.ensure_future(reads.read("key", source.read)) for _ in range(count)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def test_those_who_come_while_it_is_read_share_the_next_read(anyio_backend: str) -> None:
    reads, source = SharedReads(), Source()
    first = await arrive(3, reads, source)
    later = await arrive(3, reads, source)
    # One who goes away takes nothing from the others.
    first.pop().cancel()
    source.go_on.set()
    assert [await asyncio.gather(*first), await asyncio.gather(*later)] == [[1, 1], [2, 2, 2]]


async def test_a_read_that_fails_is_no_hindrance_to_the_next(anyio_backend: str) -> None:
    reads, source = SharedReads(), Source()

    async def failing() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        await reads.read("key", failing)
    source.go_on.set()
    assert await reads.read("key", source.read) == 1
