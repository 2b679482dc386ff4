"""Fan-out: a change, its event and a delivery for each endpoint that selects it are stored together."""

import json
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from holdfast.domain.errors import InvalidInput
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import PatchUnit, Units
from holdfast.operations.write_path import WriteResult, write
from tests.operations.interference import InterferingDatabase
from tests.support.delivery_engine import OFF, ON, Engine, switch
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import cancellation, done, hold, make_lapse, new_units, reserve, sell

COUNTS = "select (select count(*) from event), (select count(*) from pending_delivery)"
FACTS = """
    select pending.id, pending.endpoint_id, event.id, event.type, event.created_at, unit.id::text, unit.code,
        project.slug, event.status, event.previous_status, event.booking_reference, pending.body
    from event join unit on unit.id = event.unit_id join project on project.id = event.project_id
    join pending_delivery as pending
        on pending.unit_id = event.unit_id and pending.unit_version = event.unit_version
    order by pending.created_at, pending.unit_version
"""
ODD_CODES = (
    'A "1"', "B\\2", "</script><script>", "C/3", "D'4 %s {}", "é 漢字 🏠 شقة", "E&amp;\u2028", "\\u0041\\n",
)  # fmt: skip


def delivery_id_of(event_id: UUID, endpoint_id: UUID) -> UUID:
    digest = bytearray(sha256(event_id.bytes + endpoint_id.bytes).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return UUID(bytes=bytes(digest))


def document(delivery_id: UUID, event: str, at: datetime, **data: object) -> str:
    created_at = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
    told = {"id": str(delivery_id), "type": event, "createdAt": created_at, "data": data}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


async def check_bodies(engine: Engine) -> list[Any]:
    """Compare every body with the JSON of its facts, made without the database, byte for byte."""
    bodies = []
    for delivery_id, endpoint_id, event_id, event, at, *told, reference, body in await engine.rows(FACTS):
        assert delivery_id == delivery_id_of(event_id, endpoint_id)
        unit = dict(zip(("id", "code", "projectSlug", "status", "previousStatus"), told, strict=True))
        booking = {"reference": reference} if event in ("unit.reserved", "unit.sold") else None
        assert body == document(delivery_id, event, at, unit=unit, booking=booking)
        assert booking is None or isinstance(reference, str)
        bodies.append(json.loads(body))
    return bodies


async def queued(engine: Engine) -> set[tuple[UUID, str, str]]:
    rows = await engine.rows("select endpoint_id, event, unit_code from pending_delivery")
    return {(row[0], row[1], row[2]) for row in rows}


async def test_a_change_is_queued_for_every_endpoint_with_the_ids_of_the_feed(engine: Engine) -> None:
    endpoints = [await engine.endpoint() for _ in range(3)]
    await engine.queue_events("A-1", times=2)
    for endpoint in endpoints:
        feed = await engine.feed.read(None, 10, None, endpoint.id)
        stored = await engine.rows(
            "select id, event, created_at from pending_delivery where endpoint_id = $1 order by created_at",
            endpoint.id,
        )
        assert [(item.id, item.type, item.created_at) for item in feed.items] == stored
        assert len(stored) == 2
    assert len(await check_bodies(engine)) == 6


async def test_the_body_is_the_json_of_the_facts_whatever_the_code_is(engine: Engine) -> None:
    await engine.endpoint()
    await engine.queue_events(*ODD_CODES)
    assert {body["data"]["unit"]["code"] for body in await check_bodies(engine)} == set(ODD_CODES)


async def test_a_booking_is_named_when_a_unit_is_reserved_or_sold_and_never_otherwise(engine: Engine) -> None:
    await engine.endpoint()
    database, project_id = engine.database, await new_units(engine.database, "A-1", "A-2", "A-3")
    booking = await sell(database, (project_id, "A-1"))
    await done(database, cancellation((project_id, "A-2"), await reserve(database, (project_id, "A-2"))))
    await done(database, cancellation((project_id, "A-3"), await hold(database, (project_id, "A-3"))))
    await switch(database, project_id, "A-3", 2)
    bodies = [body["data"] for body in await check_bodies(engine)]
    assert len(bodies) == 10
    named = [body["booking"] for body in bodies if body["unit"]["code"] == "A-1"]
    assert named == [None, {"reference": booking.reference}, {"reference": booking.reference}]


async def test_a_ping_has_a_body_of_its_own_and_no_event(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    found = await engine.find(delivery_id)
    assert found.body == document(delivery_id, "ping", found.created_at, unit=None, booking=None)
    assert await engine.rows(COUNTS) == [(0, 1)]


async def test_settings_of_the_database_session_do_not_change_the_body(engine: Engine) -> None:
    await engine.endpoint()
    project_id = await new_units(engine.database, "A-1")
    name = await engine.value("select current_database()")
    for setting in ("timezone = 'Asia/Riyadh'", "datestyle = 'German'", "intervalstyle = 'sql_standard'"):
        await engine.execute(f"alter database {name} set {setting}")
    await engine.database.replace_connections()
    await switch(engine.database, project_id, "A-1")
    assert len(await check_bodies(engine)) == 1


async def test_what_changes_no_status_queues_nothing(engine: Engine) -> None:
    await engine.endpoint()
    project_id = await new_units(engine.database, "A-1")
    await store(engine.database, replacement(project_id, "A-1", price=7))
    await store(engine.database, replacement(project_id, "A-1", price=7, status=ON))
    dry_run = await write(engine.database, [replacement(project_id, "A-1", status=OFF)], store=False)
    assert isinstance(dry_run[0], WriteResult)
    assert await engine.rows(COUNTS) == [(0, 0)]
    for _ in range(3):
        await store(engine.database, replacement(project_id, "A-1", status=OFF))
    assert await engine.rows(COUNTS) == [(1, 1)]


async def test_a_change_that_a_constraint_refuses_is_left_out(engine: Engine) -> None:
    await engine.endpoint()
    project_id = await new_units(engine.database, "A-1", "bad", "A-2")
    await engine.execute("alter table unit add constraint no check (code <> 'bad' or status = 'available')")
    changes = [replacement(project_id, code, status=OFF) for code in ("A-1", "bad", "A-2")]
    outcomes = await write(engine.database, changes)
    assert [type(outcome) for outcome in outcomes] == [WriteResult, InvalidInput, WriteResult]
    assert {row[2] for row in await queued(engine)} == {"A-1", "A-2"}
    assert await engine.rows(COUNTS) == [(2, 2)]


async def test_a_delivery_that_cannot_be_stored_undoes_the_change_itself(engine: Engine) -> None:
    await engine.endpoint()
    project_id = await new_units(engine.database, "A-1")
    await engine.execute("alter table pending_delivery add constraint no check (unit_code <> 'A-1')")
    (refused,) = await write(engine.database, [replacement(project_id, "A-1", status=OFF)])
    assert isinstance(refused, InvalidInput)
    assert await engine.rows(COUNTS) == [(0, 0)]
    assert await engine.value("select status from unit") == "available"


async def test_a_change_that_was_overtaken_is_sent_once_as_it_was_stored(engine: Engine) -> None:
    await engine.endpoint()
    database, project_id = engine.database, await new_units(engine.database, "A-1")
    interfering = InterferingDatabase(database, lambda: store(database, replacement(project_id, "A-1", 5)))
    interfering.notify_workers = database.notify_workers  # type: ignore[method-assign]
    (written,) = await write(interfering, [replacement(project_id, "A-1", price=5, status=OFF)])
    assert isinstance(written, WriteResult)
    assert await engine.rows("select unit_version from pending_delivery") == [(written.unit.version,)]
    assert len(await check_bodies(engine)) == 1


async def test_a_unit_that_is_created_and_changed_in_one_batch_queues_its_changes(engine: Engine) -> None:
    await engine.endpoint()
    key = (await new_project(engine.database), "A-1")
    await write(engine.database, [replacement(*key), PatchUnit(key, {}, OFF), PatchUnit(key, {}, ON)])
    assert [body["type"] for body in await check_bodies(engine)] == ["unit.unavailable", "unit.available"]


async def test_a_bulk_change_queues_each_unit(engine: Engine) -> None:
    await engine.endpoint()
    codes = [f"A-{number:04}" for number in range(300)]
    project_id = await new_units(engine.database, *codes)
    units = Units(engine.database)
    await units.write_many([replacement(project_id, code, status=OFF) for code in codes], store=True)
    await units.close()
    assert await engine.rows(COUNTS) == [(300, 300)]
    assert len(await check_bodies(engine)) == 300


async def test_a_hold_that_expires_is_released_by_the_clock_or_by_the_next_writer(engine: Engine) -> None:
    endpoint = await engine.endpoint(events=("unit.held", "unit.released"))
    database, project_id = engine.database, await new_units(engine.database, "A-1", "A-2")
    await make_lapse(database, *[await hold(database, (project_id, code)) for code in ("A-1", "A-2")])
    assert {event for _, event, _ in await queued(engine)} == {"unit.held"}
    await hold(database, (project_id, "A-1"))
    assert await expire_due_holds(database, 10) == 1
    assert (endpoint.id, "unit.released", "A-2") in await queued(engine)
    bodies = await check_bodies(engine)
    events = [body["type"] for body in bodies if body["data"]["unit"]["code"] == "A-1"]
    assert events == ["unit.held", "unit.released", "unit.held"]


async def test_an_endpoint_gets_the_events_and_projects_that_it_selects(engine: Engine) -> None:
    one, other = await new_project(engine.database), await new_project(engine.database, "other-court")
    some = await engine.endpoint(events=("unit.held", "unit.sold"), project_slugs=("other-court", SLUG))
    of_one = await engine.endpoint(project_slugs=(SLUG,), events=("unit.held", "unit.unavailable"))
    for project_id, code in ((one, "A-1"), (other, "B-1")):
        await store(engine.database, replacement(project_id, code))
        await sell(engine.database, (project_id, code))
    assert await queued(engine) == {
        *((some.id, event, code) for event in ("unit.held", "unit.sold") for code in ("A-1", "B-1")),
        (of_one.id, "unit.held", "A-1"),
    }
    await check_bodies(engine)


async def test_a_paused_endpoint_is_queued_for_and_neither_a_removed_nor_a_later_one(engine: Engine) -> None:
    paused, removed = await engine.endpoint(paused=True), await engine.endpoint()
    await engine.remove(removed)
    await engine.queue_events("A-1")
    later = await engine.endpoint()
    assert await queued(engine) == {(paused.id, "unit.unavailable", "A-1")}
    assert await engine.rows("select endpoint_ids from event") == [([paused.id],)]
    assert (await engine.feed.read(None, 10, None, later.id)).items == []
