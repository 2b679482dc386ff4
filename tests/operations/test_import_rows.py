"""Rows of a file, and the changes that they make to units."""

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from holdfast.domain.status import Status
from holdfast.operations.events import EventFeed
from holdfast.storage.database import Database
from tests.operations.import_runs import Importer, csv_of
from tests.support.inventory import SLUG, claim, new_project, replacement, store


@pytest.fixture
async def importer(database: Database) -> AsyncIterator[Importer]:
    await new_project(database)
    own = Importer(database)
    yield own
    await own.close()


async def test_new_units_are_created_and_no_event_is_told(importer: Importer, database: Database) -> None:
    file = await importer.bring_in(csv_of("A-1,Villa,300,100", "A-2,Villa,301.5,200.25"))
    assert (file.stage, await importer.counts(file, stored=True)) == ("imported", {"created": 2})
    unit, _ = await importer.inventory.find(SLUG, "A-2")
    assert (unit.fields.area_sqm, unit.fields.price_sar) == (Decimal("301.5"), Decimal("200.25"))
    assert unit.status is Status.AVAILABLE
    assert (await EventFeed(database).read(0, 10, None)).items == []


async def test_a_check_stores_nothing(importer: Importer) -> None:
    file = await importer.check(csv_of("A-1,Villa,300,100"))
    assert (file.stage, await importer.counts(file)) == ("checked", {"created": 1})
    assert (await importer.inventory.page(SLUG, "", 10, None, None))[0] == []


async def test_the_same_file_again_leaves_every_unit_as_it_is(importer: Importer) -> None:
    content = csv_of("A-1,Villa,300,100", heading="Code,Type,Area,Price")
    await importer.bring_in(content)
    before, _ = await importer.inventory.find(SLUG, "A-1")
    file = await importer.bring_in(content)
    assert await importer.counts(file, stored=True) == {"unchanged": 1}
    assert (await importer.inventory.find(SLUG, "A-1"))[0] == before


async def test_a_file_without_the_columns_of_new_units_changes_those_that_are_there(
    importer: Importer, database: Database
) -> None:
    project_id = await importer.inventory.project_id(SLUG)
    await store(database, replacement(project_id, "A-1", 100))
    file = await importer.check(csv_of("A-1,150", "A-2,150", heading="Code,Price"))
    assert await importer.counts(file) == {"replaced": 1, "refused": 1}
    message = "A new unit needs this, and the file has no column for it."
    assert await importer.reasons(file) == [(3, "type", "", message), (3, "area_sqm", "", message)]
    (changed,) = await importer.changed(file)
    assert (changed.before, changed.after) == ({"price_sar": "100"}, {"price_sar": "150"})


@pytest.mark.parametrize("status", [Status.HELD, Status.RESERVED])
async def test_terms_of_a_unit_that_a_buyer_has_are_locked(
    importer: Importer, database: Database, status: Status
) -> None:
    project_id = await importer.inventory.project_id(SLUG)
    await store(database, replacement(project_id, "A-1", 100))
    await claim(database, "A-1", status, 600)
    file = await importer.check(csv_of("A-1,150", heading="Code,Price"))
    assert await importer.reasons(file) == [
        (2, "price_sar", "150", "Price, deposit and VAT cannot change while a buyer is mid-booking.")
    ]
    same = await importer.check(csv_of(f"A-1,100,{status}", heading="Code,Price,Status"))
    assert await importer.counts(same) == {"unchanged": 1}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("available", "The status cannot be set while the unit is held."),
        ("sold", "The unit is held; a file cannot make it sold, only a booking can."),
    ],
)
async def test_the_status_of_a_unit_that_a_buyer_has_is_locked(
    importer: Importer, database: Database, said: str, message: str
) -> None:
    project_id = await importer.inventory.project_id(SLUG)
    await store(database, replacement(project_id, "A-1"))
    await claim(database, "A-1", Status.HELD, 600)
    file = await importer.check(csv_of(f"A-1,{said}", heading="Code,Status"))
    assert await importer.reasons(file) == [(2, "status", said, message)]


async def test_a_new_unit_cannot_be_sold_by_a_file(importer: Importer) -> None:
    heading = "Code,Type,Area,Price,Status"
    file = await importer.check(csv_of("A-1,Villa,1,1,مباعة", heading=heading))
    assert await importer.reasons(file) == [
        (2, "status", "مباعة", "A new unit cannot be sold: only a booking makes it so.")
    ]


async def test_a_status_is_set_and_an_empty_one_is_left_alone(importer: Importer, database: Database) -> None:
    project_id = await importer.inventory.project_id(SLUG)
    await store(database, *(replacement(project_id, code, 1, Status.UNAVAILABLE) for code in ("A-1", "A-2")))
    await importer.bring_in(csv_of("A-1,متاحة", "A-2,", heading="Code,Status"))
    units, _ = await importer.inventory.page(SLUG, "", 10, None, None)
    assert [unit.status for unit in units] == [Status.AVAILABLE, Status.UNAVAILABLE]


async def test_spaces_around_a_text_are_no_change(importer: Importer, database: Database) -> None:
    heading = "Code,Type,Area,Price,Notes"
    await importer.bring_in(csv_of(" A-1 , Villa ,1,1, by the park ", heading=heading))
    unit, _ = await importer.inventory.find(SLUG, "A-1")
    assert (unit.fields.type, unit.fields.description) == ("Villa", "by the park")
    file = await importer.check(csv_of("A-1,Villa  ,1,1,by the park", heading=heading))
    assert await importer.counts(file) == {"unchanged": 1}


async def test_a_unit_that_somebody_changed_after_the_check_is_decided_anew(
    importer: Importer, database: Database
) -> None:
    project_id = await importer.inventory.project_id(SLUG)
    await store(database, replacement(project_id, "A-1", 100))
    file = await importer.check(csv_of("A-1,150", heading="Code,Price"))
    await claim(database, "A-1", Status.HELD, 600)
    author = replacement(project_id, "A-1").author
    assert await importer.imports.start(SLUG, file, author)
    file = await importer.settled(file.id)
    assert await importer.counts(file, stored=True) == {"refused": 1}
    (finding,) = await importer.refused(file, stored=True)
    assert finding.reasons[0].field == "price_sar"
