"""Fan-out: a change, its event and a delivery for each endpoint that wants it are stored together."""

import json
from uuid import UUID

from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import InvalidInput
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit, Units
from holdfast.operations.write_path import WriteResult, write
from holdfast.storage.database import Database
from tests.operations.interference import InterferingDatabase
from tests.support.delivery_bodies import FACTS, check_bodies
from tests.support.delivery_engine import OFF, ON, Engine, switch
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import hold, make_lapse, new_units, sell

QUEUED = "select endpoint_id, event, unit_code from pending_delivery order by created_at, unit_code, event"
COUNTS = "select (select count(*) from event), (select count(*) from pending_delivery)"


async def queued(engine: Engine) -> set[tuple[UUID, str, str]]:
    return {(row[0], row[1], row[2]) for row in await engine.rows(QUEUED)}


async def test_a_change_is_queued_for_every_endpoint_and_its_ids_are_those_of_the_feed(
    engine: Engine, database: Database
) -> None:
    endpoints = [(await engine.subscribe()).endpoint for _ in range(3)]
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    for endpoint in endpoints:
        feed = await engine.feed.read(None, 10, None, endpoint.id)
        stored = await engine.rows(
            "select id, event, created_at from pending_delivery where endpoint_id = $1 order by created_at",
            endpoint.id,
        )
        assert [(item.id, item.type, item.created_at) for item in feed.items] == stored
        assert len(stored) == 2
    assert await check_bodies(engine) == 6


async def test_creating_a_unit_and_changing_its_fields_queue_nothing(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    await store(database, replacement(project_id, "A-1", price=7))
    await store(database, replacement(project_id, "A-1", price=7, status=ON))
    assert await engine.rows(COUNTS) == [(0, 0)]


async def test_a_change_that_is_rolled_back_leaves_nothing(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    outcomes = await write(database, [replacement(project_id, "A-1", status=OFF)], store=False)
    assert isinstance(outcomes[0], WriteResult)
    assert await engine.rows(COUNTS) == [(0, 0)]


async def test_a_change_that_a_constraint_refuses_leaves_nothing_and_its_neighbours_are_told(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1", "bad", "A-2")
    await engine.execute("alter table unit add constraint no check (code <> 'bad' or status = 'available')")
    changes = [replacement(project_id, code, status=OFF) for code in ("A-1", "bad", "A-2")]
    first, refused, last = await write(database, changes)
    assert isinstance(refused, InvalidInput)
    assert isinstance(first, WriteResult)
    assert isinstance(last, WriteResult)
    assert {row[2] for row in await queued(engine)} == {"A-1", "A-2"}
    assert await engine.rows(COUNTS) == [(2, 2)]


async def test_a_delivery_that_cannot_be_stored_undoes_the_change_itself(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    await engine.execute("alter table pending_delivery add constraint no check (unit_code <> 'A-1')")
    (refused,) = await write(database, [replacement(project_id, "A-1", status=OFF)])
    assert isinstance(refused, InvalidInput)
    assert await engine.rows(COUNTS) == [(0, 0)]
    assert await engine.value("select status from unit") == "available"


async def test_a_change_that_was_overtaken_is_told_once_as_it_was_stored(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")

    async def overtake() -> None:
        await store(database, replacement(project_id, "A-1", price=5))

    interfering = InterferingDatabase(database, overtake)
    interfering.notify_workers = database.notify_workers  # type: ignore[method-assign]
    (written,) = await write(interfering, [replacement(project_id, "A-1", price=5, status=OFF)])
    assert isinstance(written, WriteResult)
    assert await engine.rows("select unit_version from pending_delivery") == [(written.unit.version,)]
    assert await check_bodies(engine) == 1


async def test_a_unit_that_is_created_and_changed_in_one_batch_is_told_of_its_change(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_project(database)
    await write(
        database,
        [
            replacement(project_id, "A-1"),
            PatchUnit((project_id, "A-1"), {}, OFF),
            PatchUnit((project_id, "A-1"), {}, ON),
        ],
    )
    bodies = [json.loads(row[-1]) for row in await engine.rows(FACTS)]
    assert [body["type"] for body in bodies] == ["unit.unavailable", "unit.available"]
    assert await check_bodies(engine) == 2


async def test_a_bulk_change_is_told_unit_by_unit(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    await engine.subscribe()
    codes = [f"A-{number:04}" for number in range(1000)]
    project_id = await new_units(database, *codes)
    changes = [replacement(project_id, code, status=OFF) for code in codes]
    inventory = Units(database)
    await inventory.write_many(changes, store=True)
    await inventory.close()
    assert await engine.rows(COUNTS) == [(1000, 2000)]
    assert await check_bodies(engine) == 2000


async def test_a_lapse_is_told_when_the_clock_writes_it(engine: Engine, database: Database) -> None:
    endpoint = (await engine.subscribe(events=("unit.released",))).endpoint
    project_id = await new_units(database, "A-1", "A-2")
    made = [await hold(database, (project_id, code)) for code in ("A-1", "A-2")]
    await make_lapse(database, *made)
    assert await queued(engine) == set()
    assert await expire_due_holds(database, 10) == 2
    assert await queued(engine) == {(endpoint.id, "unit.released", code) for code in ("A-1", "A-2")}
    assert await check_bodies(engine) == 2


async def test_a_writer_who_meets_a_lapsed_hold_tells_of_its_release_first(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    await make_lapse(database, await hold(database, (project_id, "A-1")))
    await hold(database, (project_id, "A-1"))
    events = [row[0] for row in await engine.rows("select event from pending_delivery order by unit_version")]
    assert events == ["unit.held", "unit.released", "unit.held"]
    sent = []
    while claimed := await engine.claim():
        sent += [one.event for one in claimed]
        await engine.answer(claimed)
        await engine.make_due()
    assert sent == events


async def test_an_endpoint_gets_the_events_that_it_chose(engine: Engine, database: Database) -> None:
    chosen = (await engine.subscribe(events=("unit.held", "unit.sold"))).endpoint
    await engine.subscribe(events=("unit.unavailable",))
    await sell(database, (await new_units(database, "A-1"), "A-1"))
    assert await queued(engine) == {(chosen.id, "unit.held", "A-1"), (chosen.id, "unit.sold", "A-1")}
    assert await check_bodies(engine) == 2


async def test_an_endpoint_that_is_limited_to_projects_gets_theirs(
    engine: Engine, database: Database
) -> None:
    one, other = await new_project(database), await new_project(database, "other-court")
    of_one = (await engine.subscribe(project_slugs=(SLUG,))).endpoint
    of_both = (await engine.subscribe(project_slugs=("other-court", SLUG))).endpoint
    of_all = (await engine.subscribe()).endpoint
    for project_id in (one, other):
        await store(database, replacement(project_id, f"A-{project_id}"[:20]))
        await switch(database, project_id, f"A-{project_id}"[:20])
    codes = {project_id: f"A-{project_id}"[:20] for project_id in (one, other)}
    wanted: dict[UUID, set[UUID]] = {of_one.id: {one}, of_both.id: {one, other}, of_all.id: {one, other}}
    assert {(endpoint, code) for endpoint, _, code in await queued(engine)} == {
        (endpoint, codes[project_id]) for endpoint, projects in wanted.items() for project_id in projects
    }


async def kept_for(engine: Engine, endpoint: Endpoint) -> list[str]:
    rows = await engine.rows("select event from pending_delivery where endpoint_id = $1", endpoint.id)
    return [row[0] for row in rows]


async def test_a_paused_endpoint_is_told_too_and_a_removed_one_is_not(
    engine: Engine, database: Database
) -> None:
    paused = (await engine.subscribe(paused=True)).endpoint
    removed = (await engine.subscribe()).endpoint
    await engine.subscribing.remove(removed.id, COMMAND)
    await switch(database, await new_units(database, "A-1"), "A-1")
    assert await kept_for(engine, paused) == ["unit.unavailable"]
    assert await kept_for(engine, removed) == []
    assert await engine.rows("select endpoint_ids from event") == [([paused.id],)]


async def test_who_comes_later_is_not_told_of_what_was_before(engine: Engine, database: Database) -> None:
    await switch(database, await new_units(database, "A-1"), "A-1")
    endpoint = (await engine.subscribe()).endpoint
    assert await engine.rows(COUNTS) == [(1, 0)]
    assert (await engine.feed.read(None, 10, None, endpoint.id)).items == []


async def test_a_repeated_call_queues_nothing_anew(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    for _ in range(3):
        await store(database, replacement(project_id, "A-1", status=OFF))
    assert await engine.rows(COUNTS) == [(1, 1)]
