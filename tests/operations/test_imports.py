"""Files of units: what their rows change, how far a run is, and what is left when it stops."""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.imports import Import, guess
from holdfast.domain.status import Status
from holdfast.operations import imports as operation
from holdfast.operations.events import EventFeed
from holdfast.operations.imports import KEPT_A_PERSON, Finding, Imports
from holdfast.operations.units import Units
from holdfast.storage import imports
from holdfast.storage.database import Database
from holdfast.web.spreadsheets import file_parser
from holdfast.web.spreadsheets.unit_rows import RowParser
from tests.operations.interference import InterferingDatabase
from tests.support.delivery_engine import eventually
from tests.support.inventory import SLUG, claim, replacement, store
from tests.support.sql import execute, rows, value

AUTHOR = Author(ActorKind.STAFF, "sales@example.com", "request-1")
HEADING = "Code,Type,Area (m²),Price (SAR)"
ROWS_A_PART = 10
ROWS = 24


def csv_of(*lines: str, heading: str = HEADING) -> bytes:
    return "\r\n".join([heading, *lines]).encode()


def many() -> bytes:
    return csv_of(*(f"A-{number:04},Villa,1,{1 if number % 2 else -1}" for number in range(ROWS)))


class Importer:
    """A member of staff with a file."""

    def __init__(self, database: Database) -> None:
        self.units = Units(database)
        self.imports = Imports(database, self.units, RowParser)
        self.staff_id = uuid4()

    async def upload(self, content: bytes) -> Import:
        reply = file_parser.parse_file(content)
        assert reply.fault == ""
        return await self.find(await self.imports.add_file(SLUG, self.staff_id, "units.csv", reply))

    async def find(self, import_id: UUID) -> Import:
        found = await self.imports.find(SLUG, import_id, self.staff_id)
        assert found is not None
        return found

    async def check(self, content: bytes) -> Import:
        file = await self.upload(content)
        assert await self.imports.start(SLUG, file, AUTHOR, guess(file.contents))
        return await self.settled(file.id)

    async def bring_in(self, content: bytes) -> Import:
        return await self.store(await self.check(content))

    async def store(self, file: Import) -> Import:
        assert await self.imports.start(SLUG, file, AUTHOR)
        return await self.settled(file.id)

    async def settled(self, import_id: UUID) -> Import:
        await self.imports.wait(import_id, 60)
        return await self.find(import_id)

    async def counts(self, file: Import, *, stored: bool = False) -> dict[str, int]:
        return await self.imports.counts(file.id, stored=stored)

    async def findings(self, file: Import, outcome: str, *, stored: bool = False) -> Sequence[Finding]:
        return await self.imports.findings(file.id, outcome, 0, 1000, stored=stored)

    async def reasons(self, file: Import) -> list[tuple[int, str | None, str, str]]:
        return [
            (finding.row, reason.field, reason.text, str(reason.message))
            for finding in await self.findings(file, "refused")
            for reason in finding.reasons
        ]


@pytest.fixture
async def importer(
    database: Database, project_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Importer]:
    monkeypatch.setattr(file_parser, "ROWS_A_PART", ROWS_A_PART)
    own = Importer(database)
    yield own
    await own.imports.close()


async def test_checked_units_are_created_without_events(importer: Importer, database: Database) -> None:
    content = csv_of("A-1,Villa,300,100", "A-2,Villa,301.5,200.25")
    file = await importer.upload(content)
    assert not await importer.imports.start(SLUG, file._replace(choice=guess(file.contents)), AUTHOR)
    file = await importer.check(content)
    assert (file.stage, await importer.counts(file)) == ("checked", {"created": 2})
    assert (await importer.units.page(SLUG, "", 10, None, None))[0] == []
    file = await importer.store(file)
    assert (file.stage, await importer.counts(file, stored=True)) == ("imported", {"created": 2})
    unit, _ = await importer.units.find(SLUG, "A-2")
    assert (unit.fields.area_sqm, unit.fields.price_sar) == (Decimal("301.5"), Decimal("200.25"))
    assert unit.status is Status.AVAILABLE
    assert (await EventFeed(database).read(0, 10, None)).items == []
    author = "select distinct actor_kind, actor_id, request_id from audit_entry where actor_kind = 'staff'"
    assert await rows(database, author) == [("staff", AUTHOR.id, AUTHOR.request_id)]
    for choice in (None, guess(file.contents)):
        assert not await importer.imports.start(SLUG, file, AUTHOR, choice)
    file = await importer.bring_in(content)
    assert await importer.counts(file, stored=True) == {"unchanged": 2}
    assert (await importer.units.find(SLUG, "A-2"))[0] == unit


async def test_a_file_may_lack_columns(importer: Importer, database: Database, project_id: UUID) -> None:
    await store(database, replacement(project_id, "A-1", 100))
    file = await importer.check(csv_of("A-1,150", "A-2,150", heading="Code,Price"))
    assert await importer.counts(file) == {"replaced": 1, "refused": 1}
    message = "New units need this field, and the file has no column for it."
    assert await importer.reasons(file) == [(3, "type", "", message), (3, "area_sqm", "", message)]
    (changed,) = await importer.findings(file, "replaced")
    assert (changed.before, changed.after) == ({"price_sar": "100"}, {"price_sar": "150"})


@pytest.mark.parametrize("status", [Status.HELD, Status.RESERVED])
async def test_terms_and_status_of_a_unit_that_a_buyer_has_are_locked(
    importer: Importer, database: Database, project_id: UUID, status: Status
) -> None:
    await store(database, replacement(project_id, "A-1", 100))
    early = await importer.check(csv_of("A-1,150", heading="Code,Price"))
    await claim(database, "A-1", status, 6000)
    price = "Price, deposit and VAT cannot change while a buyer is mid-booking."
    available = f"The status cannot be set while the unit is {status}."
    sold = f"The unit is {status}; a file cannot make it sold, only a booking can."
    for content, reason in (
        (csv_of("A-1,150", heading="Code,Price"), (2, "price_sar", "150", price)),
        (csv_of("A-1,available", heading="Code,Status"), (2, "status", "available", available)),
        (csv_of("A-1,sold", heading="Code,Status"), (2, "status", "sold", sold)),
    ):
        assert await importer.reasons(await importer.check(content)) == [reason]
    same = await importer.check(csv_of(f"A-1,100,{status}", heading="Code,Price,Status"))
    assert await importer.counts(same) == {"unchanged": 1}
    # What was checked before the buyer came is decided anew.
    early = await importer.store(await importer.find(early.id))
    (finding,) = await importer.findings(early, "refused", stored=True)
    assert finding.reasons[0].field == "price_sar"


async def test_a_status_is_set_an_empty_one_is_left_alone_and_no_file_sells_a_new_unit(
    importer: Importer, database: Database, project_id: UUID
) -> None:
    await store(database, *(replacement(project_id, code, 1, Status.UNAVAILABLE) for code in ("A-1", "A-2")))
    await importer.bring_in(csv_of("A-1,متاحة", "A-2,", heading="Code,Status"))
    units, _ = await importer.units.page(SLUG, "", 10, None, None)
    assert [unit.status for unit in units] == [Status.AVAILABLE, Status.UNAVAILABLE]
    file = await importer.check(csv_of("A-3,Villa,1,1,مباعة", heading="Code,Type,Area,Price,Status"))
    message = "A new unit cannot be sold: only a booking can make it so."
    assert await importer.reasons(file) == [(2, "status", "مباعة", message)]


async def test_spaces_around_a_text_are_no_change(importer: Importer) -> None:
    heading = "Code,Type,Area,Price,Description"
    await importer.bring_in(csv_of(" A-1 , Villa ,1,1, by the park ", heading=heading))
    unit, _ = await importer.units.find(SLUG, "A-1")
    assert (unit.fields.type, unit.fields.description) == ("Villa", "by the park")
    file = await importer.check(csv_of("A-1,Villa  ,1,1,by the park", heading=heading))
    assert await importer.counts(file) == {"unchanged": 1}


# Runs

STARTED = """
    update import_file set stage = 'importing', run_id = '{run}', beat_at = now() - interval '{seconds} s'
"""
FAIL_THE_FIRST_BEAT = """
    create sequence beats;
    create function fail_first() returns trigger language plpgsql as $$
    begin
        if nextval('beats') = 1 then raise exception 'not this one'; end if;
        return new;
    end $$;
    create trigger fail_first before update of beat_at on import_file
    for each row execute function fail_first()
"""


async def test_many_rows_are_brought_in_part_by_part_and_findings_are_paged(importer: Importer) -> None:
    file = await importer.check(many())
    found = [
        finding.row
        for start in range(0, ROWS, 5)
        for finding in await importer.imports.findings(file.id, "refused", start, 5, stored=False)
    ]
    assert found == list(range(2, ROWS + 2, 2))
    for outcome, offset in (("refused", ROWS), ("replaced", 0)):
        assert await importer.imports.findings(file.id, outcome, offset, 5, stored=False) == []
    file = await importer.store(file)
    assert (file.stage, file.rows) == ("imported", ROWS)
    assert await importer.counts(file, stored=True) == {"created": ROWS // 2, "refused": ROWS // 2}


async def test_a_run_that_is_cancelled_in_the_middle_says_so_and_is_begun_again(importer: Importer) -> None:
    file = await importer.check(many())
    assert await importer.imports.start(SLUG, file, AUTHOR)
    await importer.imports.close()
    file = await importer.find(file.id)
    assert (file.is_interrupted, file.is_running) == (True, False)
    file = await importer.store(file)
    assert file.stage == "imported"
    counts = await importer.counts(file, stored=True)
    assert counts["refused"] == ROWS // 2
    assert counts.get("created", 0) + counts.get("unchanged", 0) == ROWS // 2


async def test_a_dead_run_is_taken_over_after_its_last_part(importer: Importer, database: Database) -> None:
    lines = [f"A-{number},Villa,1,1" for number in range(ROWS)]
    file = await importer.check(csv_of(*lines, "A-0,Villa,1,1"))
    # A code is remembered over the whole file.
    again = (ROWS + 2, "code", "A-0", "This code is already in row 2.")
    assert await importer.reasons(file) == [again]
    first_part, dead = ROWS_A_PART - len(["the heading"]), uuid4()
    await execute(database, STARTED.format(run=dead, seconds=-600))
    file = await importer.find(file.id)
    assert file.is_running
    assert not await importer.imports.start(SLUG, file, AUTHOR)
    assert not await importer.imports.start(SLUG, file, AUTHOR, guess(file.contents))
    stored = imports.Result("created", first_part, None)
    assert await database.write(imports.record, file.id, dead, True, 0, [stored])
    await execute(database, STARTED.format(run=dead, seconds=600))
    file = await importer.find(file.id)
    assert file.is_interrupted
    file = await importer.store(file)
    assert file.stage == "imported"
    assert await importer.counts(file, stored=True) == {"created": ROWS, "refused": 1}
    assert await value(database, "select count(*) from unit") == ROWS - first_part


async def test_a_run_that_was_replaced_records_nothing(importer: Importer, database: Database) -> None:
    file = await importer.check(csv_of("A-1,Villa,1,1"))
    result = imports.Result("created", 1, None)
    assert not await database.write(imports.record, file.id, uuid4(), True, 0, [result])
    assert not await database.write(imports.record_heartbeat, file.id, uuid4())
    assert await importer.counts(file, stored=True) == {}
    for meanwhile in (f"update import_file set run_id = '{uuid4()}'", "delete from import_part"):
        async with database.writing() as slow:
            await slow.execute("lock table import_part")
            assert await importer.imports.start(SLUG, file, AUTHOR, guess(file.contents))
            await slow.execute(meanwhile)
        file = await importer.settled(file.id)
        assert file.stage == "checking"
        assert await importer.counts(file) == {}
        await execute(database, "update import_file set beat_at = now() - interval '10 minutes'")


async def test_a_run_ends_when_the_database_is_away_or_it_fails_and_is_begun_again(
    importer: Importer, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    file = await importer.check(csv_of("A-1,Villa,1,1"))
    for failure, message in (
        (DatabaseUnavailable(), "an import was interrupted"),
        (LookupError("a bug"), "an import failed"),
    ):

        async def fail(failure: Exception = failure) -> None:
            raise failure

        other = Importer(database)
        other.staff_id = importer.staff_id
        other.imports = Imports(database, Units(InterferingDatabase(database, fail)), RowParser)
        file = await other.store(file)
        assert (file.is_interrupted, caplog.messages[-1]) == (True, message)
    assert (await importer.store(file)).stage == "imported"


async def test_a_check_with_other_columns_forgets_what_the_first_found(importer: Importer) -> None:
    file = await importer.check(csv_of("A-1,Villa,1,x"))
    assert await importer.counts(file) == {"refused": 1}
    choice = guess(file.contents)._replace(fields=["code", "type", "area_sqm", None])
    assert await importer.imports.start(SLUG, file, AUTHOR, choice)
    file = await importer.settled(file.id)
    (reason,) = await importer.reasons(file)
    assert (reason[1], file.choice) == ("price_sar", choice)


async def test_a_file_is_kept_for_a_day_or_a_few_more(importer: Importer, database: Database) -> None:
    kept = [(await importer.upload(csv_of("A-1,Villa,1,1"))).id for _ in range(KEPT_A_PERSON + 2)]
    assert [file.id for file in await importer.imports.latest(SLUG, importer.staff_id)] == kept[:1:-1]
    await execute(database, "update import_file set created_at = created_at - interval '2 days'")
    await Importer(database).upload(csv_of("A-1,Villa,1,1"))
    counts = "select (select count(*) from import_file), (select count(*) from import_part)"
    assert await rows(database, counts) == [(1, 1)]


async def test_a_sign_of_life_that_fails_is_followed_by_others(
    importer: Importer, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(operation, "HEARTBEAT_SECONDS", 0.02)
    file = await importer.upload(csv_of("A-1,Villa,1,1"))
    async with database.writing() as slow:
        await slow.execute("lock table import_part")
        assert await importer.imports.start(SLUG, file, AUTHOR, guess(file.contents))
        await execute(database, FAIL_THE_FIRST_BEAT)
        await eventually(lambda: value(database, "select last_value >= 3 from beats"))
    assert (await importer.settled(file.id)).stage == "checked"
    assert "a heartbeat failed" in caplog.messages
