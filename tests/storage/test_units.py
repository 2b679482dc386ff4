"""Units in the database: loaded in order, stored exactly, listed as seen, on boards too; and their places."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.board import NO_FILTERS, BoardFilter, BoardUnit
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.layout import Placement
from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields, as_seen, ends_at
from holdfast.operations.projects import Projects
from holdfast.operations.units import ReplaceUnit, Units
from holdfast.storage import boards, layouts, unit_lists, units
from holdfast.storage.boards import Sales
from holdfast.storage.database import ConstraintViolated, Database
from tests.support.inventory import SLUG, claim, new_project, replacement, store
from tests.support.sales import new_units, sell
from tests.support.sql import execute, owning


async def test_many_units_are_given_back_in_order_each_under_its_own_key(database: Database) -> None:
    project_id = await new_project(database)
    codes = sorted(f"A-{number}" for number in range(60))
    written = await store(database, *(replacement(project_id, code, int(code[2:])) for code in codes))
    assert len({one.unit.ref for one in written}) == len(codes)
    keys = [(project_id, code) for code in codes]
    # Few units, known to be few: a join by hash would look cheap, and give the rows in another order.
    unknown = sorted((project_id, f"Z-{number:04}") for number in range(1000))
    async with owning(database) as owner:
        await owner.execute("vacuum (analyze) unit")
    async with database.writing_autocommit() as connection:
        for locked in (False, True):
            async with connection.transaction():
                _, snapshots, _ = await units.load_for_update(connection, {}, keys + unknown, locked=locked)
            assert len(snapshots) == len(keys + unknown)
            for code, snapshot in zip(codes, snapshots, strict=False):
                assert snapshot.unit is not None
                assert (snapshot.unit.code, snapshot.unit.fields.price_sar) == (code, Decimal(code[2:]))


@pytest.mark.parametrize("changed", [{"price_sar": Decimal(7)}, {"description": "Quiet"}])
async def test_few_units_are_updated_in_the_order_of_their_keys(
    database: Database, changed: dict[str, Any]
) -> None:
    project_id = await new_project(database)
    codes = sorted(f"A-{number}" for number in range(60))
    await store(database, *(replacement(project_id, code) for code in codes))
    # The planner knows how few they are.
    async with owning(database) as owner:
        await owner.execute("vacuum (analyze) unit")
    async with database.writing_autocommit() as connection:
        keys = [(project_id, code) for code in codes]
        loaded = await units.load_for_update(connection, database.project_cache, keys, locked=False)
        changes = []
        for snapshot in loaded.snapshots:
            found = snapshot.unit
            assert found is not None
            unit = found._replace(fields=found.fields._replace(**changed), version=found.version + 1)
            changes.append(units.UnitWrite(unit, found, snapshot.turn))
        stored = units.store(connection, changes, units.SideEffects([], [], []), loaded.at)
        (refs,) = [one.refs async for one in stored]
    assert list(refs) == [change.unit.id for change in changes]


async def test_what_is_stored_is_read_back_exactly(database: Database) -> None:
    project_id = await new_project(database)
    images = ("https://example.com/a.jpg", {"url": "https://example.com/b.jpg", "name": "Plan"})
    files = ({"url": "https://example.com/c.pdf"},)
    area, price, vat_rate = Decimal("9999999.9999"), Decimal("999999999999.99"), Decimal("0.0001")
    wanted = UnitFields(
        "شقة", area, price, False, vat_rate, Decimal(100), 0, 999, 2200, -9, "line\nline", images, files
    )
    (written,) = await store(database, replacement(project_id, "A/1")._replace(fields=wanted))
    _, (snapshot,), _ = await database.read(units.load_for_update, {}, [(project_id, "A/1")], locked=False)
    assert snapshot.unit == written.unit
    assert snapshot.unit is not None
    assert repr(snapshot.unit.fields) == repr(wanted)


@pytest.mark.parametrize("status", [Status.HELD, Status.RESERVED])
@pytest.mark.parametrize("ends_in_seconds", [-5.0, 3000.0])
async def test_lists_agree_on_lapses(database: Database, status: Status, ends_in_seconds: float) -> None:
    project_id = await new_units(database, "A-1")
    await claim(database, "A-1", status, ends_in_seconds)
    async with database.reading() as connection:
        now, (snapshot,), _ = await units.load_for_update(connection, {}, [(project_id, "A-1")], locked=False)
        assert snapshot.unit is not None
        seen = as_seen(snapshot.unit, now)
        for asked in Status:
            page = await unit_lists.page(connection, project_id, "", 10, asked, None)
            assert page == ([seen] if asked is seen.status else [])
        just_after = seen.updated_at + timedelta(milliseconds=1)
        for since, expected in ((seen.updated_at, [seen]), (just_after, [])):
            assert await unit_lists.page(connection, project_id, "", 10, None, since) == expected


async def test_a_page_by_status_merges_lapsed_claims_in_the_order_of_codes(database: Database) -> None:
    project_id = await new_units(database, *(f"A-{number}" for number in range(6)))
    await claim(database, "A-1", Status.HELD, -5)
    await claim(database, "A-3", Status.RESERVED, -5)
    await claim(database, "A-4", Status.HELD, 3000)
    async with database.reading() as connection:
        first = await unit_lists.page(connection, project_id, "", 3, Status.AVAILABLE, None)
        rest = await unit_lists.page(connection, project_id, first[-1].code, 3, Status.AVAILABLE, None)
    assert [unit.code for unit in first + rest] == ["A-0", "A-1", "A-2", "A-3", "A-5"]


# Layouts

CHOSEN = {
    "A-1": Placement("Tower", -2, 1),
    "A-2": Placement(None, None, None),
    "شقة": Placement("ب", 200, 999),
}
CHOSEN_ANEW = {"A-2": Placement("B", 1, 1), "A-1": Placement("B", 1, 2)}
UNDO = """
    create function undo() returns trigger language plpgsql as $$
        begin raise exception 'for the sake of another' using errcode = 'deadlock_detected'; end
    $$;
    create trigger undo before insert on unit_place execute function undo()
"""


async def chosen_places(database: Database, project_id: UUID) -> dict[str, Placement]:
    found = await database.read(layouts.list_units, project_id)
    return {unit.code: unit.chosen for unit in found if unit.chosen}


async def arrange(database: Database) -> None:
    await Projects(database, Units(database)).arrange(SLUG, list(CHOSEN_ANEW.items()), COMMAND)


async def test_a_layout_replaces_the_one_before_it(database: Database) -> None:
    project_id, other_id = await new_units(database, *CHOSEN, "A-3"), await new_project(database, "other")
    await store(database, *(replacement(other_id, code) for code in CHOSEN))
    for one in (project_id, other_id):
        # A code of no unit is not kept.
        await database.write(layouts.replace, one, {**CHOSEN, "nowhere": Placement("A", 1, 1)})
        assert await chosen_places(database, one) == CHOSEN
    listed = await database.read(layouts.list_units, project_id)
    assert [unit.code for unit in listed] == sorted([*CHOSEN, "A-3"])
    for chosen in ({"A-2": Placement("B", 1, 1)}, {}):
        await database.write(layouts.replace, project_id, chosen)
        assert await chosen_places(database, project_id) == chosen
    assert await chosen_places(database, other_id) == CHOSEN
    for building in ("", "x" * 51):
        with pytest.raises(ConstraintViolated):
            await database.write(layouts.replace, project_id, {"A-1": Placement(building, 1, 1)})


async def test_a_layout_and_writers_do_not_wait_for_each_other(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    keys = [(project_id, code) for code in ("A-1", "A-2")]
    async with database.writing() as connection:
        await units.load_for_update(connection, database.project_cache, keys, locked=True)
        await connection.execute("update unit set turn = turn + 1 where code = 'A-2'")
        await arrange(database)
    assert await chosen_places(database, project_id) == CHOSEN_ANEW
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, {})
        async with database.writing() as other:
            await units.load_for_update(other, database.project_cache, keys, locked=True)
        await store(database, *(replacement(*key, 5) for key in keys))


async def test_a_layout_that_met_a_deadlock_may_be_sent_again(database: Database) -> None:
    await new_units(database, "A-1", "A-2")
    await execute(database, UNDO)
    with pytest.raises(DatabaseUnavailable):
        await arrange(database)
    await execute(database, "drop trigger undo on unit_place")
    await arrange(database)


# Boards

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
