"""A new secret signs the next request, whoever has claimed it and however long it has been queued."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import Schedule
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, replying, switch
from tests.support.name_server import name_server
from tests.support.receivers import receiving
from tests.support.sales import new_units
from tests.webhooks.test_retries import is_signed

KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


async def test_every_queued_retry_is_signed_with_the_new_secret(database: Database) -> None:
    answers = {"status": 500}
    async with (
        receiving(replying(lambda _: answers["status"])) as receiver,
        an_engine(database, schedule=Schedule(3600, 8), timeout_seconds=30, lease_seconds=60) as engine,
    ):
        issued = await engine.subscribe(receiver.url, max_in_flight=50)
        codes = [f"A-{number:03}" for number in range(200)]
        project_id = await new_units(database, *codes)
        for code in codes:
            await switch(database, project_id, code)
        await engine.send_all()
        assert len(receiver.requests) == 200
        assert all(is_signed(request, issued.text) for request in receiver.requests)
        rotated = await engine.subscribing.rotate(issued.endpoint.id, COMMAND)
        answers["status"] = 200
        await engine.make_due()
        await engine.send_all()
        after = receiver.requests[200:]
        by_secret = await engine.rows(
            "select secret_id, count(*) from attempt group by 1 order by min(number)"
        )
    assert len(after) == 200
    assert rotated.text != issued.text
    assert all(is_signed(request, rotated.text) for request in after)
    assert not any(is_signed(request, issued.text) for request in after)
    assert by_secret == [(issued.endpoint.secret_id, 200), (rotated.endpoint.secret_id, 200)]


async def test_a_claim_that_waits_for_its_connection_is_signed_with_the_secret_of_when_it_stands(
    database: Database,
) -> None:
    async with (
        name_server(slow=["127.0.0.1"]) as names,
        receiving(replying(lambda _: 200)) as receiver,
        an_engine(database, timeout_seconds=10, name_servers=[names.place]) as engine,
    ):
        issued = await engine.subscribe(receiver.url_at("slow.example"))
        await engine.ping(issued.endpoint)
        names.hanging.add("slow.example")
        names.asked.clear()
        await engine.dispatcher.run_once()
        await asyncio.wait_for(names.asked.wait(), 5)
        await asyncio.sleep(0.2)  # Until the claim's own secret counts as old.
        rotated = await engine.subscribing.rotate(issued.endpoint.id, COMMAND)
        names.hanging.clear()
        await engine.dispatcher.drain()
        (request,) = receiver.requests
    assert is_signed(request, rotated.text)


async def test_an_endpoint_that_is_removed_while_the_connection_is_made_gets_nothing(
    database: Database,
) -> None:
    async with (
        name_server(slow=["127.0.0.1"]) as names,
        receiving(replying(lambda _: 200)) as receiver,
        an_engine(database, timeout_seconds=10, name_servers=[names.place]) as engine,
    ):
        endpoint = (await engine.subscribe(receiver.url_at("slow.example"))).endpoint
        delivery_id = await engine.ping(endpoint)
        names.hanging.add("slow.example")
        names.asked.clear()
        await engine.dispatcher.run_once()
        await asyncio.wait_for(names.asked.wait(), 5)
        await asyncio.sleep(0.2)  # As above.
        await engine.subscribing.remove(endpoint.id, COMMAND)
        names.hanging.clear()
        await engine.dispatcher.drain()
        await engine.tidying.run()
        assert receiver.requests == []
        assert (await engine.find(delivery_id)).status == "cancelled"
        assert await engine.attempts(delivery_id) == []


@asynccontextmanager
async def another_worker(postgres_url: str) -> AsyncIterator[Engine]:
    async with Database(postgres_url) as database, an_engine(database, keys=[KEY]) as engine:
        yield engine


async def test_another_process_signs_with_the_new_secret_as_soon_as_rotating_has_returned(
    database: Database, postgres_url: str
) -> None:
    async with (
        receiving(replying(lambda _: 200)) as receiver,
        an_engine(database, keys=[KEY]) as office,
        another_worker(postgres_url) as worker,
    ):
        issued = await office.subscribe(receiver.url)
        for _ in range(10):
            rotated = await office.subscribing.rotate(issued.endpoint.id, COMMAND)
            await office.ping(issued.endpoint)
            await worker.send_all()
            assert is_signed(receiver.requests[-1], rotated.text)
        assert len(receiver.requests) == 10


async def test_rotating_keeps_the_old_secret_nowhere(engine: Engine) -> None:
    issued = await engine.subscribe()
    rotated = await engine.subscribing.rotate(issued.endpoint.id, COMMAND)
    assert rotated.endpoint.secret_id != issued.endpoint.secret_id
    sealed = await engine.value("select secret_sealed from endpoint")
    assert engine.box.open(sealed) == rotated.text
    noted = await engine.value("select string_agg(audit_entry::text, ' ') from audit_entry")
    assert issued.text not in noted
    assert rotated.text not in noted
    assert str(rotated.endpoint.secret_id) in noted


async def test_a_secret_that_is_sealed_anew_is_the_same_secret(database: Database) -> None:
    async with an_engine(database, keys=[KEY]) as old:
        issued = await old.subscribe()
    newer = "bmV3ZXIgbmV3ZXIgbmV3ZXIgbmV3ZXIgbmV3ZXIgbmU="
    async with an_engine(database, keys=[newer, KEY]) as both:
        assert await both.subscribing.reseal_secrets() == 1
    async with an_engine(database, keys=[newer]) as new:
        assert new.box.open(await new.value("select secret_sealed from endpoint")) == issued.text
