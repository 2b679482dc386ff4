"""The dispatcher sends what is due, signed with the secret of now, and stops without losing anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import CUT_OFF, SEALING_KEY_MISSING, DeliveryStatus, ExpiredLease, Schedule
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.signature import sign
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.operations.holds import expire_due_holds
from holdfast.storage import database as database_module
from holdfast.storage import delivery_queue, notifications
from holdfast.storage.database import Connection, Database
from holdfast.storage.secrets import new_encryption_key
from holdfast.webhooks import dispatcher
from tests.support.delivery_engine import NOWHERE, Engine, an_engine, eventually, replying, switch
from tests.support.delivery_journal import Gate
from tests.support.name_server import name_server
from tests.support.receivers import Received, answer_all, receiving
from tests.support.sales import hold, make_lapse, new_units
from tests.support.sql import REFUSE, connected, execute, with_database

PENDING, DELIVERED, FAILED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
LISTENERS = """
    select pid from pg_stat_activity
    where datname = current_database() and application_name = 'holdfast background' and state = 'idle'
"""
CANCEL_WHO_WAITS = """
    select pg_cancel_backend(pid) from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()
"""


def is_signed(request: Received, secret: IssuedSecret) -> bool:
    signature = sign(secret.text, int(request.header("X-Service-Timestamp")), request.body)
    return request.header("X-Service-Signature") == signature


async def test_retries_go_out_after_their_gap(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks when the next delivery is due, and does not wait for the next poll."""
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 3600.0)
    async with an_engine(database, schedule=Schedule(0.1, 3)) as engine:
        delivery_id = await engine.ping(await engine.endpoint())
        async with engine.running():
            await eventually(lambda: has_status(engine, FAILED))
        first, second, third = await engine.attempts(delivery_id)
    assert (second.started_at - first.ended_at).total_seconds() > 0.098
    assert (third.started_at - second.ended_at).total_seconds() > 0.198


async def has_status(engine: Engine, status: DeliveryStatus) -> bool:
    return {one.status for one in await engine.log()} == {status}


async def test_the_log_shows_what_was_sent_and_what_came_back(engine: Engine) -> None:
    async with receiving(replying(lambda _: 422)) as receiver:
        issued = await engine.subscribe(receiver.url)
        delivery_id = await engine.ping(issued.endpoint)
        await engine.send_all()
        (request,) = receiver.requests
        await engine.change(issued.endpoint, url=NOWHERE)
        await engine.make_due()
        await engine.send_all()
    found, (attempt, refused) = await engine.deliveries.find(delivery_id)
    assert found.body.encode() == request.body
    assert tuple(attempt.request_headers) == request.headers
    assert (attempt.status_code, attempt.secret_id) == (422, issued.endpoint.secret_id)
    assert attempt.response_headers == [("Content-Length", "0")]
    assert attempt.address == "127.0.0.1"
    assert attempt.duration_ms > 0
    assert (refused.cause, refused.status_code) == ("The connection was refused.", None)
    assert (refused.request_headers, refused.secret_id) == ([], None)
    assert found.status is PENDING


async def test_with_a_secret_that_cannot_be_decrypted_the_attempt_fails_unsent(engine: Engine) -> None:
    async with receiving(answer_all) as receiver:
        delivery_id = await engine.ping(await engine.endpoint(receiver.url))
        async with an_engine(engine.database, keys=[new_encryption_key()]) as stranger:
            await stranger.send_all()
        assert receiver.connections == 0
        (attempt,) = await engine.attempts(delivery_id)
        assert attempt.cause == SEALING_KEY_MISSING
        await engine.make_due()
        await engine.send_all()
        assert (await engine.find(delivery_id)).status is DELIVERED


@pytest.mark.parametrize("at_once", [dispatcher.AT_ONCE, 8])
async def test_endpoints_that_hang_leave_room_for_others(
    database: Database, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Each has a cap of its own, and some room is kept free for endpoints with few in flight.

    Nobody notifies the dispatcher: it polls.
    """
    monkeypatch.setattr(dispatcher, "AT_ONCE", at_once)
    gate = Gate()
    async with (
        an_engine(database) as engine,
        receiving(replying(gate)) as hung,
        receiving(answer_all) as healthy,
    ):
        for _ in range(2):
            await engine.endpoint(hung.url, max_in_flight=4)
        await engine.queue_events(*(f"A-{number}" for number in range(8)))
        async with engine.running():
            await eventually(lambda: len(hung.requests) == 8)
            endpoint = await engine.endpoint(healthy.url)
            for _ in range(10):
                await engine.ping(endpoint)
            await eventually(lambda: len(healthy.requests) == 10)
            assert len(hung.requests) == 8
            gate.open()
            await eventually(lambda: len(hung.requests) == 16)


async def test_a_full_dispatcher_claims_nothing_more(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "AT_ONCE", 1)
    monkeypatch.setattr(dispatcher, "KEPT_FREE", 1)
    gate = Gate()
    async with receiving(replying(gate)) as receiver:
        endpoint = await engine.endpoint(receiver.url)
        for _ in range(3):
            await engine.ping(endpoint)
        for _ in range(3):
            await engine.dispatcher.run_once()
        assert await engine.value("select count(*) from in_flight") == 2
        gate.open()
        await engine.drain()


async def test_a_retry_has_the_same_id_and_body_and_is_signed_with_the_new_secret(engine: Engine) -> None:
    codes = [500] * 10
    async with receiving(replying(lambda _: codes.pop() if codes else 200)) as receiver:
        issued = await engine.subscribe(receiver.url, max_in_flight=50)
        await engine.queue_events(*(f"A-{number}" for number in range(10)))
        await engine.send_all()
        rotated = await engine.subscribing.rotate(issued.endpoint.id, COMMAND)
        await engine.make_due()
        await engine.send_all()
    sent = sorted((request.header("X-Service-Delivery"), request.body) for request in receiver.requests)
    assert sent[::2] == sent[1::2]
    assert rotated.text != issued.text
    assert [is_signed(request, issued) for request in receiver.requests] == [True] * 10 + [False] * 10
    assert [is_signed(request, rotated) for request in receiver.requests] == [False] * 10 + [True] * 10
    by_secret = await engine.rows("select secret_id, count(*) from attempt group by 1 order by min(number)")
    assert by_secret == [(issued.endpoint.secret_id, 10), (rotated.endpoint.secret_id, 10)]


@pytest.mark.parametrize("becomes", ["fresh", "rotated", "removed", "late", "unreadable"])
async def test_a_claim_that_is_not_fresh_reads_its_secret_again_or_is_given_back(
    postgres_url: str, database: Database, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    monkeypatch.setattr(dispatcher, "SECRET_FRESH_SECONDS", 3600.0 if becomes == "fresh" else -1.0)
    async with (
        name_server(slow=["127.0.0.1"]) as names,
        receiving(answer_all) as receiver,
        an_engine(database, name_servers=[names.place]) as engine,
    ):
        issued = await engine.subscribe(receiver.url_at("slow.example"))
        delivery_id = await engine.ping(issued.endpoint)
        names.hanging.add("slow.example")
        names.asked.clear()
        await engine.dispatcher.run_once()
        await names.asked.wait()
        async with connected(postgres_url) as other, other.transaction():
            if becomes == "removed":
                await engine.remove(issued.endpoint)
            elif becomes == "late":
                engine.dispatching.lease_seconds = -10
            elif becomes == "unreadable":
                await other.execute("lock table endpoint")
            else:
                rotated = await engine.subscribing.rotate(issued.endpoint.id, COMMAND)
                issued = rotated if becomes == "rotated" else issued
            names.go_on()
            draining = asyncio.create_task(engine.drain())
            if becomes == "unreadable":
                await eventually(lambda: engine.rows(CANCEL_WHO_WAITS))
            await draining
        await engine.tidying.run()
        found, attempts = await engine.deliveries.find(delivery_id)
        not_sent = {"removed": "cancelled", "late": "pending", "unreadable": "pending"}
        assert found.status == not_sent.get(becomes, "delivered")
        assert len(attempts) == (found.status == "delivered")
        assert [is_signed(request, issued) for request in receiver.requests] == [True] * len(attempts)
        assert await engine.value("select count(*) from in_flight") == 0


async def test_rotating_keeps_the_old_secret_nowhere(engine: Engine) -> None:
    issued = await engine.subscribe()
    rotated = await engine.subscribing.rotate(issued.endpoint.id, COMMAND)
    assert rotated.endpoint.secret_id != issued.endpoint.secret_id
    assert engine.box.open(await engine.value("select secret_sealed from endpoint")) == rotated.text
    audited = await engine.value("select string_agg(audit_entry::text, ' ') from audit_entry")
    assert str(rotated.endpoint.secret_id) in audited
    for secret in (issued, rotated):
        assert secret.text not in audited


# Stopping, and a database that is not there.


@asynccontextmanager
async def stopping(
    database: Database, monkeypatch: pytest.MonkeyPatch, finish_seconds: float
) -> AsyncIterator[tuple[Engine, Gate]]:
    """A dispatcher that is told to stop while a ping is with its receiver; it has to stop by itself."""
    monkeypatch.setattr(dispatcher, "FINISH_SECONDS", finish_seconds)
    for name in ("LAST_ROUND_SECONDS", "CUT_OFF_SECONDS", "LAST_RECORD_SECONDS", "POLL_SECONDS"):
        monkeypatch.setattr(dispatcher, name, 60.0)
    gate, stop = Gate(), asyncio.Event()
    async with an_engine(database) as engine, receiving(replying(gate)) as receiver:
        await engine.ping(await engine.endpoint(receiver.url))
        running = asyncio.create_task(engine.dispatcher.run(stop))
        await gate.arrived.wait()
        stop.set()
        yield engine, gate
        await asyncio.wait_for(running, 60)
        assert len(receiver.requests) == 1
        gate.open()


async def test_what_is_in_flight_is_finished_and_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stopping(database, monkeypatch, 60.0) as (engine, gate):
        await engine.subscribing.ping((await engine.log())[0].endpoint_id, COMMAND)
        gate.open()
    assert {one.status for one in await engine.log()} == {DELIVERED, PENDING}
    assert await engine.value("select count(*) from in_flight") == 0


async def test_what_takes_too_long_is_cut_off(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stopping(database, monkeypatch, 0.1) as (engine, _):
        pass
    (found,) = await engine.log()
    assert (found.status, found.attempts, found.last_cause) == (PENDING, 1, CUT_OFF)
    assert await engine.value("select count(*) from in_flight") == 0


@pytest.mark.parametrize(
    ("state", "level"), [("cannot_connect_now", "WARNING"), ("insufficient_privilege", "ERROR")]
)
async def test_what_cannot_be_recorded_at_the_end_goes_out_again_after_its_lease(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    state: str,
    level: str,
) -> None:
    """Whether the database is unavailable or says something unexpected."""
    await execute(database, REFUSE.format(table="attempt", state=state, condition="true"))
    async with stopping(database, monkeypatch, 60.0) as (engine, gate):
        gate.open()
    logged = [one.levelname for one in caplog.records if "the last attempts could not" in one.message]
    assert {*logged} == {level}
    await engine.execute("drop trigger refuse on attempt")
    await engine.let_leases_run_out()
    assert await DeliveryQueue(database, engine.schedule, 60.0).rescue() == 1


REFUSE_AT_FIRST = """
    create sequence refusals;
    create function refuse_at_first() returns trigger language plpgsql as $$
    declare
        states text[] := '{cannot_connect_now, deadlock_detected, insufficient_privilege}';
        state text := states[nextval('refusals')];
    begin
        if state is not null then raise exception 'not now' using errcode = state; end if;
        return new;
    end $$;
    create trigger refuse_at_first before insert on attempt for each row execute function refuse_at_first()
"""


async def test_what_cannot_be_recorded_is_kept_until_the_database_is_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong, the dispatcher goes on."""
    monkeypatch.setattr(dispatcher, "PAUSE_AFTER_FAILURE_SECONDS", 0.01)
    await engine.execute(REFUSE_AT_FIRST)
    async with receiving(answer_all) as receiver:
        await engine.ping(await engine.endpoint(receiver.url))
        async with engine.running():
            await eventually(lambda: has_status(engine, DELIVERED))
        assert len(receiver.requests) == 1
    assert await engine.value("select last_value from refusals") == 4
    assert {"dispatcher: the database is unavailable", "dispatcher failed"} <= {*caplog.messages}
    assert await engine.value("select count(*) from attempt") == 1


async def test_a_result_that_outlasts_its_lease_while_the_database_is_away_is_not_lost(
    engine: Engine,
) -> None:
    """The rescuer of the same process leaves it alone; once it is recorded, nothing is held any more."""
    await engine.execute(REFUSE.format(table="attempt", state="cannot_connect_now", condition="true"))
    async with receiving(answer_all) as receiver:
        delivery_id = await engine.ping(await engine.endpoint(receiver.url))
        await engine.dispatcher.run_once()
        await eventually(lambda: not engine.dispatcher._sending)
    with pytest.raises(DatabaseUnavailable):
        await engine.dispatcher.run_once()
    await engine.execute("drop trigger refuse on attempt")
    await engine.let_leases_run_out()
    assert await engine.dispatching.rescue() == 0
    await engine.drain()
    (attempt,) = await engine.attempts(delivery_id)
    assert (attempt.status_code, attempt.cause) == (200, None)
    assert engine.dispatching.held == set()


CLOSE_APPLICATION = """
    select pg_terminate_backend(pid, 60000) from pg_stat_activity
    where datname = current_database() and application_name like 'holdfast%'
"""


async def test_a_database_that_is_away_until_the_lease_is_over_loses_no_result(
    engine: Engine, postgres_url: str
) -> None:
    """The rescuer and the dispatcher of the process find it again at the same time."""
    answering = asyncio.Event()

    async def answer(_: Received) -> int:
        await answering.wait()
        return 200

    server = with_database(postgres_url, "postgres")
    async with (
        receiving(replying(answer)) as receiver,
        connected(postgres_url) as look,
        connected(server) as admin,
    ):
        delivery_id = await engine.ping(await engine.endpoint(receiver.url))
        await engine.dispatcher.run_once()
        name = await look.fetchval("select current_database()")
        await admin.execute(f"alter database {name} allow_connections false")
        try:
            await look.execute(CLOSE_APPLICATION)
            answering.set()
            await eventually(lambda: not engine.dispatcher._sending)
            for work in (engine.dispatcher.run_once, engine.dispatching.rescue):
                with pytest.raises(DatabaseUnavailable):
                    await work()
            await look.execute("update in_flight set lease_until = now() - interval '1 ms'")
        finally:
            await admin.execute(f"alter database {name} allow_connections true")
        await asyncio.gather(engine.dispatching.rescue(), engine.drain())
        (attempt,) = await engine.attempts(delivery_id)
        assert (attempt.status_code, attempt.cause, len(receiver.requests)) == (200, None, 1)


async def test_a_result_that_is_recorded_while_the_rescuer_looks_is_not_reported_as_lost(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    list_expired_leases = delivery_queue.list_expired_leases

    async def list_and_record(connection: Connection, limit: int) -> list[ExpiredLease]:
        listed = await list_expired_leases(connection, limit)
        await engine.drain()
        return listed

    async with receiving(answer_all) as receiver:
        delivery_id = await engine.ping(await engine.endpoint(receiver.url))
        await engine.dispatcher.run_once()
        await engine.let_leases_run_out()
        monkeypatch.setattr(delivery_queue, "list_expired_leases", list_and_record)
        assert await engine.dispatching.rescue() == 0
        assert len(await engine.attempts(delivery_id)) == 1
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []


WAIT_AT_COMMIT = """
    create function wait_at_commit() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(1); return null; end $$;
    create constraint trigger wait_at_commit after insert on in_flight
    deferrable initially deferred for each row execute function wait_at_commit()
"""
WAITS_AT_COMMIT = """
    select from pg_stat_activity where wait_event = 'advisory' and datname = current_database()
"""


async def test_a_claim_that_is_committed_while_the_worker_stops_costs_no_attempt(
    engine: Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "LAST_ROUND_SECONDS", 0.0)
    for name in ("FINISH_SECONDS", "LAST_RECORD_SECONDS"):
        monkeypatch.setattr(dispatcher, name, 60.0)
    stop = asyncio.Event()
    delivery_id = await engine.ping(await engine.endpoint())
    await engine.execute(WAIT_AT_COMMIT)
    async with connected(postgres_url) as other:
        await other.execute("select pg_advisory_lock(1)")
        running = asyncio.create_task(engine.dispatcher.run(stop))
        await eventually(lambda: engine.rows(WAITS_AT_COMMIT))
        stop.set()
        await eventually(lambda: engine.dispatcher._sending or running.done())
        await other.execute("select pg_advisory_unlock(1)")
        await asyncio.wait_for(running, 60)
        while await engine.rows(WAITS_AT_COMMIT):
            continue
    assert await engine.value("select count(*) from in_flight") == 0
    (claim,) = await engine.claim()
    assert (claim.delivery_id, claim.progress.tried) == (delivery_id, 0)


async def test_what_is_too_late_for_its_lease_is_given_back(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    engine.dispatcher._timeout_seconds = engine.dispatching.lease_seconds + 1
    await engine.dispatcher.run_once()
    await engine.drain()
    assert await engine.attempts(delivery_id) == []
    assert len(await engine.claim()) == 1


async def test_a_dispatcher_that_waits_for_a_busy_database_stops_all_the_same(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "COMMAND_TIMEOUT_SECONDS", 3600.0)
    for name in ("LAST_ROUND_SECONDS", "FINISH_SECONDS", "CUT_OFF_SECONDS"):
        monkeypatch.setattr(dispatcher, name, 0.1)
    waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    stop = asyncio.Event()
    async with (
        Database(postgres_url, settings={"statement_timeout": "0"}) as database,
        an_engine(database) as engine,
        connected(postgres_url) as other,
        other.transaction(),
    ):
        await engine.endpoint()
        await other.execute("lock table in_flight")
        running = asyncio.create_task(engine.dispatcher.run(stop))
        await eventually(lambda: engine.rows(waiting))
        stop.set()
        await asyncio.wait_for(running, 60)


async def test_an_idle_dispatcher_stops_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 3600.0)
    assert await engine.dispatcher.run_once() == 3600.0
    engine.dispatcher.wake()
    assert await engine.dispatcher.run_once() == 0.0
    async with asyncio.timeout(60), engine.running():
        await eventually(lambda: engine.dispatcher._wake._waiters)


@pytest.fixture
def without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 3600.0)


@pytest.mark.usefixtures("without_polling")
async def test_whatever_makes_something_due_wakes_the_worker(engine: Engine, postgres_url: str) -> None:
    database, project_id = engine.database, await new_units(engine.database, "A-1", "A-2")
    async with receiving(answer_all) as receiver:
        endpoint = await engine.endpoint(receiver.url)

        async def arrived(count: int) -> None:
            await eventually(lambda: len(receiver.requests) == count)
            await eventually(lambda: has_status(engine, DELIVERED))

        async with engine.running(postgres_url):
            await eventually(lambda: engine.rows(LISTENERS))
            delivery_id = await engine.ping(endpoint)
            await arrived(1)
            await engine.resend(delivery_id)
            await arrived(2)
            await switch(database, project_id, "A-2")
            await arrived(3)
            await engine.change(endpoint, paused=True)
            booking = await hold(database, (project_id, "A-1"))
            await engine.change(endpoint, paused=False)
            await arrived(4)
            await make_lapse(database, booking)
            assert await expire_due_holds(database, 10) == 1
            await arrived(5)


@pytest.mark.usefixtures("without_polling")
async def test_a_killed_listener_is_replaced_and_finds_what_came_meanwhile(
    engine: Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(notifications, "PAUSE_AFTER_FAILURE_SECONDS", 0.1)
    async with receiving(answer_all) as receiver:
        endpoint = await engine.endpoint(receiver.url)
        async with engine.running(postgres_url):
            for turn in (1, 2):
                await eventually(lambda: engine.rows(LISTENERS))
                await engine.execute(f"select pg_terminate_backend(pid, 60_000) from ({LISTENERS})")
                await engine.ping(endpoint)
                await eventually(lambda: len(receiver.requests) == turn)  # noqa: B023


async def test_notifications_that_are_requested_while_one_is_sent_share_the_next() -> None:
    sent: list[int] = []

    async def send() -> None:
        sent.append(1)
        if len(sent) == 1:
            notifier.notify()
            notifier.notify()
        elif len(sent) == 3:
            raise ConnectionResetError

    notifier = notifications.Notifier(send)
    # The third one fails, which does not keep the next from being sent.
    for expected in (2, 3, 4):
        notifier.notify()
        notifier.notify()
        await notifier.close()
        assert len(sent) == expected
