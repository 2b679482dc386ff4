"""What boards read, held against what the domain and every other reader says."""

from decimal import Decimal

from holdfast.domain.board import NO_FILTERS, BoardFilter, BoardUnit
from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields, ends_at
from holdfast.operations.units import ReplaceUnit
from holdfast.storage import boards, unit_lists
from holdfast.storage.boards import Sales
from holdfast.storage.database import Database
from tests.support.inventory import claim, new_project, replacement, store
from tests.support.sales import new_units, sell

AVAILABLE, HELD, RESERVED, SOLD, UNAVAILABLE = Status
FILTERS = [
    NO_FILTERS,
    BoardFilter(frozenset({AVAILABLE})),
    BoardFilter(frozenset({HELD})),
    BoardFilter(frozenset({HELD, UNAVAILABLE})),
    BoardFilter(frozenset(Status)),
    BoardFilter(type="villa"),
    BoardFilter(price_from=Decimal("1000000.01")),
    BoardFilter(price_to=Decimal(1000000)),
    BoardFilter(bedrooms=0),
    BoardFilter(sqm_price_from=Decimal("7500.00")),
    BoardFilter(sqm_price_to=Decimal("7500.01"), type="studio", bedrooms=2),
]


async def test_units_are_seen_as_every_other_reader_sees_them_and_counted_so(database: Database) -> None:
    """One hold and one reservation are over, and nobody has written it."""
    project_id = await new_units(database, "A-1", "A-2", "A-3", "A-4", "A-5", "A-6")
    empty_id = await new_project(database, "empty")
    await store(database, replacement(project_id, "A-6", status=UNAVAILABLE))
    for code, status, seconds in (("A-1", HELD, 6000), ("A-2", HELD, -1), ("A-4", RESERVED, -1)):
        await claim(database, code, status, seconds)
    await sell(database, (project_id, "A-3"))
    await store(database, replacement(project_id, "A-3", 5))
    async with database.reading() as connection:
        seen = await boards.all_units(connection, project_id, 100)
        units = await unit_lists.page(connection, project_id, "", 100, None, None)
        named = await boards.named_units(connection, project_id, ["A-2", "nowhere"])
        counts = await boards.counts(connection, [project_id, empty_id])
        sales = await boards.sales(connection, [project_id, empty_id])
    assert seen == [
        BoardUnit(
            unit.id, unit.code, unit.fields.type, unit.fields.area_sqm, unit.fields.price_sar,
            unit.fields.bedrooms, unit.status, unit.archived, ends_at(unit), unit.version,
        )
        for unit in units
    ]  # fmt: skip
    assert named == [seen[1]]
    assert counts[project_id].by_status == {AVAILABLE: 3, HELD: 1, RESERVED: 0, SOLD: 1, UNAVAILABLE: 1}
    assert (counts[project_id].total, counts[empty_id].total) == (6, 0)
    # At the price that was agreed.
    assert sales == {project_id: Sales(1, Decimal(1_000_000))}


async def test_the_database_filters_as_the_domain_does_page_by_page(database: Database) -> None:
    project_id = await new_project(database)
    kinds = [
        UnitFields(type_name, Decimal(area), Decimal(price), bedrooms=bedrooms)
        for type_name in ("villa", "studio")
        for area in ("50", "133.3333")
        for price in ("500000", "1000000.01")
        for bedrooms in (None, 0, 2)
    ]
    await store(database, *(ReplaceUnit((project_id, f"{at:02}"), kind) for at, kind in enumerate(kinds)))
    await claim(database, "03", HELD, 6000)
    await claim(database, "04", HELD, -1)
    await store(database, replacement(project_id, "99", status=UNAVAILABLE))
    everything = await database.read(boards.all_units, project_id, 100)
    for filters in FILTERS:
        found = await database.read(boards.page, project_id, filters, "", 100)
        assert found == [unit for unit in everything if filters.match(unit)]
        assert found
    assert await database.read(boards.page, project_id, NO_FILTERS, "02", 2) == everything[3:5]
    assert await database.read(boards.types, project_id, 10) == ["apartment", "studio", "villa"]
