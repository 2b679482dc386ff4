"""What boards read, held against what the domain says."""

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from holdfast.domain.board import NO_FILTERS, BoardFilter, BoardUnit
from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields, ends_at
from holdfast.operations.units import ReplaceUnit
from holdfast.storage import boards, unit_lists
from holdfast.storage.boards import Sales
from holdfast.storage.database import Database, current_time
from tests.support.inventory import claim, new_project, replacement, store
from tests.support.sales import new_units, sell

CODES = ("A-1", "A-2", "A-3", "A-4", "A-5", "A-6")


async def mixed(database: Database) -> UUID:
    """Units of every status; one hold and one reservation are over, and nobody has swept."""
    project_id = await new_units(database, *CODES)
    await store(database, replacement(project_id, "A-6", status=Status.UNAVAILABLE))
    await claim(database, "A-1", Status.HELD, 600)
    await claim(database, "A-2", Status.HELD, -1)
    await claim(database, "A-3", Status.RESERVED, 600)
    await claim(database, "A-4", Status.RESERVED, -1)
    return project_id


async def test_units_are_seen_as_every_other_reader_sees_them(database: Database) -> None:
    project_id = await mixed(database)
    async with database.reading() as connection:
        seen = await boards.all_units(connection, project_id, 100)
        units = await unit_lists.page(connection, project_id, "", 100, None, None)
        named = await boards.named_units(connection, project_id, ["A-2", "nowhere"])
    assert seen == [
        BoardUnit(
            unit.id, unit.code, unit.fields.type, unit.fields.area_sqm, unit.fields.price_sar,
            unit.fields.bedrooms, unit.status, unit.archived, ends_at(unit), unit.version,
        )
        for unit in units
    ]  # fmt: skip
    assert named == [seen[1]]


async def test_counts_do_not_count_what_is_over(database: Database) -> None:
    project_id, empty_id = await mixed(database), await new_project(database, "empty")
    async with database.reading() as connection:
        counts = await boards.counts(connection, [project_id, empty_id])
    assert counts[project_id].by_status == {
        Status.AVAILABLE: 3,
        Status.HELD: 1,
        Status.RESERVED: 1,
        Status.SOLD: 0,
        Status.UNAVAILABLE: 1,
    }
    assert counts[project_id].total == len(CODES)
    assert counts[empty_id].total == 0


async def one_of_each(database: Database) -> UUID:
    project_id = await new_project(database)
    kinds = [
        UnitFields(type_name, Decimal(area), Decimal(price), bedrooms=bedrooms)
        for type_name in ("villa", "studio")
        for area in ("50", "133.3333")
        for price in ("500000", "1000000.01")
        for bedrooms in (None, 0, 2)
    ]
    await store(database, *(ReplaceUnit((project_id, f"{at:02}"), kind) for at, kind in enumerate(kinds)))
    await claim(database, "03", Status.HELD, 600)
    await claim(database, "04", Status.HELD, -1)
    await store(database, replacement(project_id, "99", status=Status.UNAVAILABLE))
    return project_id


@pytest.mark.parametrize(
    "filters",
    [
        NO_FILTERS,
        BoardFilter(frozenset({Status.AVAILABLE})),
        BoardFilter(frozenset({Status.HELD})),
        BoardFilter(frozenset({Status.HELD, Status.UNAVAILABLE})),
        BoardFilter(frozenset(Status)),
        BoardFilter(type="villa"),
        BoardFilter(price_from=Decimal("1000000.01")),
        BoardFilter(price_to=Decimal(1000000)),
        BoardFilter(bedrooms=0),
        BoardFilter(sqm_price_from=Decimal("7500.00")),
        BoardFilter(sqm_price_to=Decimal("7500.01"), type="studio", bedrooms=2),
    ],
)
async def test_the_database_filters_as_the_domain_does(database: Database, filters: BoardFilter) -> None:
    project_id = await one_of_each(database)
    async with database.reading() as connection:
        everything = await boards.all_units(connection, project_id, 100)
        found = await boards.page(connection, project_id, filters, "", 100)
    assert found == [unit for unit in everything if filters.match(unit)]
    assert found


async def test_a_page_goes_on_after_a_code(database: Database) -> None:
    project_id = await new_units(database, *CODES)
    async with database.reading() as connection:
        page = await boards.page(connection, project_id, NO_FILTERS, "A-2", 2)
    assert [unit.code for unit in page] == ["A-3", "A-4"]


async def test_changes_are_told_of_each_project_from_a_moment_on(database: Database) -> None:
    project_id, other_id = await new_units(database, *CODES), await new_project(database, "other")
    async with database.reading() as connection:
        since = await current_time(connection)
    await store(database, replacement(project_id, "A-3", 5), replacement(other_id, "B-1"))
    async with database.reading() as connection:
        found = await boards.changes(connection, [project_id, other_id], since, 100)
        nothing = await boards.changes(connection, [project_id], since + timedelta(seconds=60), 100)
    assert {one: [unit.code for unit in units] for one, units in found.items()} == {
        project_id: ["A-3"],
        other_id: ["B-1"],
    }
    assert nothing == {}


async def test_what_comes_to_its_end_is_a_change_at_that_moment(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    await claim(database, "A-1", Status.HELD, -2)

    async def found(since: datetime) -> list[BoardUnit]:
        async with database.reading() as connection:
            return (await boards.changes(connection, [project_id], since, 9)).get(project_id, [])

    async with database.reading() as connection:
        now = await current_time(connection)
    (lapsed,) = await found(now - timedelta(seconds=2.5))
    assert (lapsed.status, lapsed.ends_at) == (Status.AVAILABLE, None)
    assert await found(now) == []


async def test_more_changes_than_are_wanted_show_that_there_are_more(database: Database) -> None:
    project_id = await new_units(database, *CODES)
    async with database.reading() as connection:
        now = await current_time(connection)
        found = await boards.changes(connection, [project_id], now - timedelta(hours=1), 3)
    assert len(found[project_id]) == 4


async def test_sales_are_counted_at_the_price_that_was_agreed(database: Database) -> None:
    project_id = await new_units(database, *CODES)
    for code in ("A-1", "A-2"):
        await sell(database, (project_id, code))
    await store(database, replacement(project_id, "A-1", 5))
    async with database.reading() as connection:
        assert await boards.sales(connection, [project_id]) == {project_id: Sales(2, Decimal(2_000_000))}
        assert await boards.types(connection, project_id, 10) == ["apartment"]
