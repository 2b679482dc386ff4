"""Runs through the rows of a file: how far they are, and what is left when they stop."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.domain.imports import guess
from holdfast.operations import imports as import_operations
from holdfast.operations.imports import KEPT_A_PERSON, ROWS_A_PART
from holdfast.storage import imports
from holdfast.storage.database import Database
from tests.operations.import_runs import AUTHOR, Importer, csv_of
from tests.support.inventory import SLUG, new_project

ROWS = 2500
BEATEN = """
    update import_file set stage = 'importing', run_id = $2, beat_at = now() - $3::interval where id = $1
    returning id
"""
FAIL_THE_FIRST_BEAT = (
    "create sequence beats",
    """
    create function fail_first() returns trigger language plpgsql as $$
    begin
        if nextval('beats') = 1 then raise exception 'not this one'; end if;
        return new;
    end $$
    """,
    """
    create trigger fail_first before update of beat_at on import_file
    for each row execute function fail_first()
    """,
)
BEAT_AS_USUAL = "drop trigger fail_first on import_file; drop function fail_first; drop sequence beats"


@pytest.fixture
async def importer(database: Database) -> AsyncIterator[Importer]:
    await new_project(database)
    own = Importer(database)
    yield own
    await own.close()


def many(price: int = 1, rows: int = ROWS) -> bytes:
    return csv_of(*(f"A-{number:04},Villa,1,{price if number % 2 else -1}" for number in range(rows)))


async def value(database: Database, statement: str, *arguments: Any) -> Any:
    async with database.writing() as connection:
        return await connection.fetchval(statement, *arguments)


async def test_many_rows_are_brought_in_part_by_part(importer: Importer) -> None:
    file = await importer.bring_in(many())
    assert (file.stage, file.rows) == ("imported", ROWS)
    assert await importer.counts(file, stored=True) == {"created": ROWS // 2, "refused": ROWS // 2}


async def test_findings_are_paged_in_the_order_of_the_rows(importer: Importer) -> None:
    file = await importer.check(many())
    found = [
        finding.row
        for start in range(0, ROWS, 300)
        for finding in await importer.imports.findings(file.id, "refused", start, 300, stored=False)
    ]
    assert found == list(range(2, ROWS + 2, 2))
    assert await importer.imports.findings(file.id, "refused", ROWS, 300, stored=False) == []
    assert await importer.imports.findings(file.id, "replaced", 0, 300, stored=False) == []


async def test_a_code_is_remembered_over_the_whole_file(importer: Importer) -> None:
    rows = [f"A-{number},Villa,1,1" for number in range(1500)]
    file = await importer.check(csv_of(*rows, "A-0,Villa,1,1"))
    assert await importer.reasons(file) == [(1502, "code", "A-0", "This code stands in row 2 already.")]


async def test_a_run_that_is_cancelled_in_the_middle_says_so_and_is_begun_again(importer: Importer) -> None:
    file = await importer.check(many())
    assert await importer.imports.start(SLUG, file, AUTHOR)
    await importer.imports.close()
    file = await importer.find(file.id)
    assert (file.is_interrupted, file.is_running) == (True, False)
    assert await importer.imports.start(SLUG, file, AUTHOR)
    file = await importer.settled(file.id)
    assert file.stage == "imported"
    counts = await importer.counts(file, stored=True)
    assert counts["refused"] == ROWS // 2
    assert counts.get("created", 0) + counts.get("unchanged", 0) == ROWS // 2


async def test_a_run_without_a_sign_of_life_is_taken_over_and_one_that_is_alive_is_not(
    importer: Importer, database: Database
) -> None:
    file = await importer.check(csv_of("A-1,Villa,1,1"))
    await value(database, BEATEN, file.id, uuid4(), timedelta(seconds=1))
    file = await importer.find(file.id)
    assert file.is_running
    assert not await importer.imports.start(SLUG, file, AUTHOR)
    assert not await importer.imports.start(SLUG, file, AUTHOR, guess(file.contents))
    await value(database, BEATEN, file.id, uuid4(), timedelta(minutes=1))
    file = await importer.find(file.id)
    assert file.is_interrupted
    assert await importer.imports.start(SLUG, file, AUTHOR)
    assert (await importer.settled(file.id)).stage == "imported"


async def test_a_run_that_is_taken_over_goes_on_after_the_last_part_that_was_recorded(
    importer: Importer, database: Database
) -> None:
    rows = [f"A-{number},Villa,1,1" for number in range(ROWS)]
    file = await importer.check(csv_of(*rows, "A-0,Villa,1,1"))
    first_part = ROWS_A_PART - len(["the heading"])
    dead, stored = uuid4(), imports.Result("created", first_part, None)
    await value(database, BEATEN, file.id, dead, timedelta())
    async with database.writing() as connection:
        assert await imports.record(connection, file.id, dead, True, 0, [stored])
    await value(database, BEATEN, file.id, dead, timedelta(minutes=1))
    assert await importer.imports.start(SLUG, await importer.find(file.id), AUTHOR)
    file = await importer.settled(file.id)
    assert await importer.counts(file, stored=True) == {"created": ROWS, "refused": 1}
    assert await value(database, "select count(*) from unit") == ROWS - first_part


async def test_what_was_not_checked_is_not_stored(importer: Importer) -> None:
    file = await importer.upload(csv_of("A-1,Villa,1,1"))
    file = file._replace(choice=guess(file.contents))
    assert not await importer.imports.start(SLUG, file, AUTHOR)
    done = await importer.bring_in(csv_of("A-1,Villa,1,1"))
    assert not await importer.imports.start(SLUG, done, AUTHOR)
    assert not await importer.imports.start(SLUG, done, AUTHOR, guess(done.contents))


async def test_a_run_that_was_replaced_records_nothing(importer: Importer, database: Database) -> None:
    file = await importer.check(csv_of("A-1,Villa,1,1"))
    result = imports.Result("created", 1, None)
    async with database.writing() as connection:
        assert not await imports.record(connection, file.id, uuid4(), True, 0, [result])
        assert not await imports.record_heartbeat(connection, file.id, uuid4())
    assert await importer.counts(file, stored=True) == {}


async def test_a_check_with_other_columns_forgets_what_the_first_found(importer: Importer) -> None:
    file = await importer.check(csv_of("A-1,Villa,1,x"))
    assert await importer.counts(file) == {"refused": 1}
    choice = guess(file.contents)._replace(fields=["code", "type", "area_sqm", None])
    assert await importer.imports.start(SLUG, file, AUTHOR, choice)
    file = await importer.settled(file.id)
    (reason,) = await importer.reasons(file)
    assert reason[1] == "price_sar"
    assert file.choice == choice


async def test_a_file_goes_when_its_owner_brings_many_more_or_after_a_day(
    importer: Importer, database: Database
) -> None:
    kept: list[UUID] = [(await importer.upload(csv_of("A-1,Villa,1,1"))).id for _ in range(KEPT_A_PERSON + 2)]
    assert [file.id for file in await importer.imports.latest(SLUG, importer.staff_id)] == kept[:1:-1]
    await value(database, "update import_file set created_at = created_at - interval '2 days' returning id")
    other = Importer(database)
    await other.upload(csv_of("A-1,Villa,1,1"))
    assert await value(database, "select count(*) from import_file") == 1
    assert await value(database, "select count(*) from import_part") == 1
    await other.close()


async def test_changes_are_put_down_to_the_member_of_staff(importer: Importer, database: Database) -> None:
    await importer.bring_in(csv_of("A-1,Villa,1,1"))
    entry = (
        "select actor_kind || ' ' || actor_id || ' ' || request_id from audit_entry where action = 'create' "
    )
    told = await value(database, entry + "and actor_kind = 'staff'")
    assert told == f"staff {AUTHOR.id} {AUTHOR.request_id}"


async def beaten_again(database: Database) -> None:
    async with asyncio.timeout(15):
        while await value(database, "select last_value from beats") < 3:  # noqa: ASYNC110 - a beat tells nobody
            await asyncio.sleep(0.01)


async def test_a_sign_of_life_that_fails_is_followed_by_others(
    importer: Importer,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(import_operations, "HEARTBEAT_SECONDS", 0.02)
    file = await importer.upload(csv_of("A-1,Villa,1,1"))
    async with database.writing() as slow:
        await slow.execute("lock table import_part")
        assert await importer.imports.start(SLUG, file, AUTHOR, guess(file.contents))
        async with database.writing() as connection:
            for statement in FAIL_THE_FIRST_BEAT:
                await connection.execute(statement)
        await beaten_again(database)
    assert (await importer.settled(file.id)).stage == "checked"
    assert "a heartbeat failed" in [record.message for record in caplog.records]
    async with database.writing() as connection:
        await connection.execute(BEAT_AS_USUAL)
