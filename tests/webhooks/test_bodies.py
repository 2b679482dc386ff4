"""Bodies: exactly what the receiver was promised, byte for byte."""

import json

from holdfast.storage.database import Database
from tests.support.delivery_bodies import FACTS, check_bodies
from tests.support.delivery_engine import Engine, switch
from tests.support.sales import cancellation, done, hold, new_units, reserve, sell

COUNTS = "select (select count(*) from event), (select count(*) from pending_delivery)"
ODD_CODES = (
    'A "1"', "B\\2", "</script><script>", "C/3", "D'4 %s {}", "é 漢字 🏠 شقة", "E&amp;\u2028", "\\u0041\\n",
)  # fmt: skip


async def test_the_body_is_the_json_of_the_facts_whatever_the_code_is(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, *ODD_CODES)
    for code in ODD_CODES:
        await switch(database, project_id, code)
    assert await check_bodies(engine) == len(ODD_CODES)
    claimed = await engine.claim()
    assert {json.loads(one.body)["data"]["unit"]["code"] for one in claimed} == set(ODD_CODES)


async def test_a_booking_is_named_when_a_unit_is_reserved_or_sold_and_never_otherwise(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    booking = await sell(database, (project_id, "A-1"))
    reserved = await reserve(database, (project_id, "A-2"))
    await done(database, cancellation((project_id, "A-2"), reserved))
    await done(database, cancellation((project_id, "A-3"), await hold(database, (project_id, "A-3"))))
    await switch(database, project_id, "A-3", 2)
    assert await check_bodies(engine) == 10
    of_first = [json.loads(row[-1])["data"]["booking"] for row in await engine.rows(FACTS) if row[6] == "A-1"]
    assert of_first == [None, {"reference": booking.reference}, {"reference": booking.reference}]


async def test_a_ping_has_a_body_of_its_own_and_no_event(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    found = await engine.find(delivery_id)
    at = found.created_at
    expected = {
        "id": str(delivery_id),
        "type": "ping",
        "createdAt": at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z",
        "data": {"unit": None, "booking": None},
    }
    assert found.body == json.dumps(expected, separators=(",", ":"))
    assert await engine.rows(COUNTS) == [(0, 1)]


async def test_the_session_of_the_database_has_no_say_in_the_body(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    name = await engine.value("select current_database()")
    await engine.execute(f"alter database {name} set timezone = 'Asia/Riyadh'")
    await engine.execute(f"alter database {name} set datestyle = 'German, DMY'")
    await engine.execute(f"alter database {name} set intervalstyle = 'sql_standard'")
    await engine.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
        " and datname = current_database()"
    )
    await switch(database, project_id, "A-1")
    assert await check_bodies(engine) == 1
