"""Faults of sessions of the database that hold locks and connections, and of clients that behave badly."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any

import asyncpg

from tests.chaos.calls import ANSWER_SECONDS, CONNECT_SECONDS, LOST, Caller, Reply, identified
from tests.chaos.clients import CODES
from tests.chaos.faults import Injection, Kind, Run
from tests.chaos.postgres import UNREACHABLE
from tests.chaos.scene import Scene
from tests.support.concurrent_requests import Request
from tests.support.sales_project import FIELDS, Market
from tests.support.server import HOLDFAST, environment

LANE = "sessions"
OVERTIME_SECONDS = 10.0
"""A fault is given up when it takes so much longer than it lasts."""
OBSERVE_SECONDS = 3.0
LOOK_SECONDS = 0.02
DRIP_SECONDS = 0.1
WAIT_FOR_US = """
    select distinct pid from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))
"""
HOLDFAST_SESSIONS = "application_name in ('holdfast', 'holdfast background') and datname = current_database()"
KEPT_ROWS = re.compile(r"(\d+) are dead but not yet removable")
"""What `vacuum (verbose)` tells of the rows that a snapshot keeps."""
SESSION = {
    "application_name": "a foreign program",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "3s",
    # The server ends it even while it waits for a lock.
    "client_connection_check_interval": "200ms",
}
LOCK_ROWS = "select from unit where code = any($1) order by code for update"
LOCK_LATE = "select from unit where code = any($1) order by id desc limit 1 for update"


def tolerant(run: Run) -> Run:
    """Bound the time of a fault, and let it have no effect while the database or a server is away."""

    @wraps(run)
    async def run_bounded(scene: Scene, injection: Injection) -> None:
        with suppress(*UNREACHABLE, *LOST):
            async with asyncio.timeout(injection.seconds + OVERTIME_SECONDS):
                await run(scene, injection)

    return run_bounded


@asynccontextmanager
async def session(scene: Scene, **settings: str) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's session of a foreign program. It is rolled back after the block."""
    connection = await connect(scene, settings)
    try:
        yield connection
    finally:
        connection.terminate()


async def connect(scene: Scene, settings: Mapping[str, str]) -> asyncpg.Connection:
    """Wait a little for a primary that is away."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + OBSERVE_SECONDS
    while True:
        try:
            return await asyncpg.connect(
                scene.pair.url(superuser=True),
                timeout=CONNECT_SECONDS,
                command_timeout=OVERTIME_SECONDS,
                server_settings={**SESSION, **settings},
            )
        except UNREACHABLE:
            if loop.time() > give_up_at:
                raise
        await asyncio.sleep(0.1)


async def observe(look: Callable[[], Awaitable[Any]], seconds: float = OBSERVE_SECONDS) -> Any:
    """Return the first true thing that ``look`` returns, or None."""
    give_up_at = asyncio.get_running_loop().time() + seconds
    while not (found := await look()):
        if asyncio.get_running_loop().time() > give_up_at:
            return None
        await asyncio.sleep(LOOK_SECONDS)
    return found


async def hold_locks(connection: asyncpg.Connection, injection: Injection) -> None:
    """Keep the transaction open for as long as the fault lasts; it counts if somebody waited."""
    ends_at = asyncio.get_running_loop().time() + injection.seconds
    waiting = await observe(lambda: connection.fetch(WAIT_FOR_US), injection.seconds)
    if waiting:
        injection.saw(f"{len(waiting)} sessions waited for the lock")
    await asyncio.sleep(max(0.0, ends_at - asyncio.get_running_loop().time()))


# Sessions of the database


@tolerant
async def terminate_sessions(scene: Scene, injection: Injection) -> None:
    async with session(scene) as connection:
        rows = await connection.fetch(f"select pid from pg_stat_activity where {HOLDFAST_SESSIONS}")
        pids = sorted(row["pid"] for row in rows)
        chosen = injection.chance.sample(pids, min(len(pids), injection.chance.randint(2, 6)))
        await connection.execute("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", chosen)
        still = "select count(*) = 0 from pg_stat_activity where pid = any($1)"
        if chosen and await observe(lambda: connection.fetchval(still, chosen)):
            injection.saw(f"{len(chosen)} sessions of Holdfast ended")


@tolerant
async def cancel_statements(scene: Scene, injection: Injection) -> None:
    """Those alone that wait for our lock: a commit whose wait for the standby is cancelled can be read,
    although the standby does not have it."""
    async with session(scene) as connection:
        await connection.execute("begin")
        await connection.execute(LOCK_ROWS, some_codes(injection, 12))
        waiting = await observe(lambda: connection.fetch(WAIT_FOR_US))
        pids = [row["pid"] for row in waiting or ()]
        await connection.execute("select pg_cancel_backend(pid) from unnest($1::int[]) as pid", pids)
        still = "select count(*) = 0 from pg_locks where not granted and pid = any($1)"
        if pids and await observe(lambda: connection.fetchval(still, pids)):
            injection.saw(f"{len(pids)} statements were cancelled")


@tolerant
async def lock_units(scene: Scene, injection: Injection) -> None:
    async with session(scene) as connection:
        await connection.execute("begin")
        await connection.execute(LOCK_ROWS, some_codes(injection, 8))
        await hold_locks(connection, injection)


@tolerant
async def lock_table(scene: Scene, injection: Injection) -> None:
    async with session(scene) as connection:
        await connection.execute("begin; lock table unit in access exclusive mode")
        await hold_locks(connection, injection)


@tolerant
async def idle_in_transaction(scene: Scene, injection: Injection) -> None:
    """With the locks that the worker needs, to number events and to claim deliveries."""
    async with session(scene) as connection:
        await connection.execute("begin; select from event_feed for update; select from endpoint for update")
        await hold_locks(connection, injection)


@tolerant
async def keep_snapshot(scene: Scene, injection: Injection) -> None:
    """Vacuum may not remove what this snapshot can still see."""
    async with session(scene) as connection, session(scene, synchronous_commit="off") as cleaner:
        await connection.execute("begin isolation level repeatable read; select count(*) from unit")
        await asyncio.sleep(injection.seconds)
        told: list[str] = []
        cleaner.add_log_listener(lambda _, message: told.append(str(message)))
        await cleaner.execute("vacuum (verbose) unit")
        left = sum(int(count) for count in KEPT_ROWS.findall("\n".join(told)))
        if left:
            injection.saw(f"vacuum left {left} dead rows")


@tolerant
async def deadlock(scene: Scene, injection: Injection) -> None:
    """We lock a unit, and then those that a bulk PUT has locked before it came to ours."""
    market, codes = scene.clients.markets["imports"], [f"lock-{number:02}" for number in range(20)]
    # Whose patience ends first is the victim.
    patience = injection.chance.choice(("200ms", "5s"))
    with callers(scene, injection, 1) as (caller,):
        await caller.call("put-bulk", bulk(market, codes, f"before {injection.number}"))
        async with session(scene, deadlock_timeout=patience) as connection, session(scene) as observer:
            count = "select deadlocks from pg_stat_database where datname = current_database()"
            before = await observer.fetchval(count)
            await connection.execute("begin")
            # The order of a bulk PUT is that of the codes or of the ids: in neither is this one the first.
            await connection.execute(LOCK_LATE, codes[1:])
            putting = asyncio.create_task(
                caller.call("put-bulk", bulk(market, codes, f"after {injection.number}"))
            )
            try:
                if not await observe(lambda: connection.fetch(WAIT_FOR_US)):
                    return
                await connection.execute(LOCK_ROWS, codes)
            except asyncpg.DeadlockDetectedError:
                injection.saw("our transaction was rolled back for a deadlock")
            else:
                if await observe(lambda: observer.fetchval(f"select ({count}) > $1", before)):
                    injection.saw("Holdfast's transaction was rolled back for a deadlock")
            finally:
                connection.terminate()
                await putting


@tolerant
async def use_up_connections(scene: Scene, injection: Injection) -> None:
    opened: list[asyncpg.Connection] = []
    (await connect(scene, {})).terminate()
    try:
        while len(opened) < 200:
            opened.append(await asyncpg.connect(scene.pair.url(), timeout=CONNECT_SECONDS))
    except asyncpg.TooManyConnectionsError:
        injection.saw(f"no connection after {len(opened)} (53300)")
        await asyncio.sleep(injection.seconds)
    finally:
        for connection in opened:
            connection.terminate()


@tolerant
async def analytic_query(scene: Scene, injection: Injection) -> None:
    """A sort of more than fits into memory, until its time or its space on the disk is up."""
    sort = """
        select md5(entry.id::text || number) as text
        from audit_entry as entry, generate_series(1, 1000) as number
        order by text offset 100000000
    """
    milliseconds = str(round(injection.seconds * 1000))
    async with (
        session(scene, work_mem="1MB", temp_file_limit="48MB", statement_timeout=milliseconds) as connection,
        session(scene) as observer,
    ):
        querying = asyncio.create_task(connection.execute(sort))
        try:
            size = "select sum(size)::bigint from pg_ls_tmpdir()"
            if found := await observe(lambda: observer.fetchval(size)):
                injection.saw(f"it sorted {found // 1024} KiB on the disk")
            await asyncio.wait([querying], timeout=injection.seconds)
        finally:
            connection.terminate()
            await asyncio.gather(querying, return_exceptions=True)


@tolerant
async def back_up(scene: Scene, injection: Injection) -> None:
    """Into ``backups`` in the folder of the run. The last that is whole is restored after it."""
    folder = scene.folder / "backups"
    folder.mkdir(exist_ok=True)
    target = folder / f"{injection.number}.backup"
    # The first may meet a database that is just away.
    if await backup_succeeds(scene, target) or await backup_succeeds(scene, target):
        injection.saw(f"a backup of {target.stat().st_size // 1024} KiB")


async def backup_succeeds(scene: Scene, target: Path) -> bool:
    (await connect(scene, {})).terminate()
    process = await asyncio.create_subprocess_exec(
        HOLDFAST, "backup", str(target), "--force",
        env=environment({"HOLDFAST_DATABASE_URL": scene.pair.url()}),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


# Clients


@tolerant
async def duplicate_requests(scene: Scene, injection: Injection) -> None:
    """The same keyed hold, and the same PUT, five times at once and over both servers."""
    market = scene.clients.markets["imports"]
    ends_at = asyncio.get_running_loop().time() + injection.seconds
    with callers(scene, injection, 5) as crowd:
        while asyncio.get_running_loop().time() < ends_at:
            new = f"{injection.chance.getrandbits(64):016x}"
            put = await ask_at_once(crowd, "put", market.put(f"twice-{new}"), f"twice-{new}")
            created = [reply.answer is not None and reply.answer.status == 201 for reply in put]
            if sum(reply.is_ok for reply in put) > 1:
                injection.saw(f"{len(put)} equal requests at once, by which {sum(created)} unit was made")
            code = injection.chance.choice(CODES)
            hold = scene.clients.markets["staff"].hold(code, new)
            held = [reply for reply in await ask_at_once(crowd, "hold", hold, code) if reply.is_ok]
            for reply in held[:1]:
                cancel = scene.clients.markets["staff"].cancel(reply.document)
                await crowd[0].call("cancel", cancel, code)
            await asyncio.sleep(0.1)


async def ask_at_once(crowd: list[Caller], op: str, request: Request, unit: str) -> list[Reply]:
    first = crowd[0].next_call
    repeats = [None, *[first] * (len(crowd) - 1)]
    calls = (
        caller.call(op, request, unit, repeats=repeated)
        for caller, repeated in zip(crowd, repeats, strict=True)
    )
    return list(await asyncio.gather(*calls))


@tolerant
async def retry_storm(scene: Scene, injection: Injection) -> None:
    """Sixty clients without a pause; what fails is sent again at once."""
    market, loop = scene.clients.markets["imports"], asyncio.get_running_loop()
    ends_at = loop.time() + injection.seconds

    async def storm(caller: Caller) -> int:
        """Return how many requests were answered. One in ten writes, so that there is less to check."""
        count = answered = 0
        while loop.time() < ends_at:
            is_write, name = count % 10 == 0, caller.name
            request = market.put(name, description=str(count)) if is_write else market.read(name)
            ask = partial(caller.call, "put" if is_write else "read", request, name, with_document=is_write)
            reply = await ask()
            first, count = reply.call, count + 1
            while reply.answer is None and loop.time() < ends_at:
                reply = await ask(repeats=first if is_write else None)
                count += 1
            answered += reply.answer is not None
        return answered

    with callers(scene, injection, 60) as crowd:
        answered = sum(await asyncio.gather(*(storm(caller) for caller in crowd)))
    if answered:
        injection.saw(f"{answered} requests of {len(crowd)} clients were answered")


@tolerant
async def interrupt_import(scene: Scene, injection: Injection) -> None:
    """The connection is closed within the body of a bulk PUT. Of a part nothing is stored."""
    market = scene.clients.markets["imports"]
    codes = [f"cut-{injection.number}-{number:03}" for number in range(200)]
    request = bulk(market, codes, "never stored")
    with callers(scene, injection, 1) as (caller,):
        line = await caller.new_line()
        call = caller.note_invoke("put-bulk", request, None, body=f"a part of {len(codes)} units")
        try:
            whole = identified(request, call).encoded()
            part = whole[: round(len(whole) * injection.chance.uniform(0.3, 0.95))]
            line.send_bytes(part)
            await asyncio.sleep(injection.seconds)
        finally:
            line.abort()
            caller.journal.note_unknown(call, ConnectionAbortedError("closed within the body"))
        path = f"/v1/integration/projects/{market.slug}/units?limit=1000"
        found = await caller.insist("read", lambda: Request("GET", path, market.key))
        if found.is_ok:
            stored = {unit["code"] for unit in found.document["units"]} & set(codes)
            for code in stored:
                caller.journal.history.note("stale", call=call, unit=code, read="stored", acknowledged=None)
            injection.saw(f"{len(part)} of {len(whole)} bytes were sent, {len(stored)} units stored")


@tolerant
async def hang_up_after_sending(scene: Scene, injection: Injection) -> None:
    """Nobody waits for the answer, but the request may be carried out all the same."""
    market, loop = scene.clients.markets["imports"], asyncio.get_running_loop()
    ends_at, codes = loop.time() + injection.seconds, list[str]()
    with callers(scene, injection, 1) as (caller,):
        while loop.time() < ends_at:
            codes.append(f"{caller.name}-{len(codes)}")
            request = market.put(codes[-1])
            line = await caller.new_line()
            call = caller.note_invoke("put", request, codes[-1])
            line.send(identified(request, call))
            await asyncio.sleep(injection.chance.choice((0, 0.005, 0.02, 0.05)))
            line.abort()
            caller.journal.note_unknown(call, ConnectionAbortedError("closed after the request"))
            await asyncio.sleep(0.1)
        found = [await caller.insist("read", partial(market.read, code), code) for code in codes]
    stored = sum(reply.is_ok for reply in found)
    if stored:
        injection.saw(f"{stored} of {len(codes)} requests were carried out without an answer")


@tolerant
async def slow_clients(scene: Scene, injection: Injection) -> None:
    """They send their requests in small parts, for as long as the fault lasts."""
    market = scene.clients.markets["imports"]

    async def drip(caller: Caller) -> int:
        code = f"{caller.name}-unit"
        request = market.put(code)
        line = await caller.new_line()
        call = caller.note_invoke("put", request, code)
        try:
            sent = identified(request, call).encoded()
            size = max(1, round(len(sent) * DRIP_SECONDS / max(injection.seconds, DRIP_SECONDS)))
            for start in range(0, len(sent), size):
                line.send_bytes(sent[start : start + size])
                await asyncio.sleep(DRIP_SECONDS)
            answer = await line.answer(ANSWER_SECONDS)
        except (*LOST, asyncio.CancelledError) as failure:
            caller.journal.note_unknown(call, failure)
            raise
        finally:
            line.abort()
        caller.journal.note_answer(call, "put", request.method, answer, with_document=True)
        return answer.status

    with callers(scene, injection, 10) as crowd:
        statuses = await asyncio.gather(*(drip(caller) for caller in crowd), return_exceptions=True)
    if answered := [status for status in statuses if isinstance(status, int)]:
        injection.saw(f"{len(answered)} of {len(crowd)} slow requests were answered")


# Parts


def some_codes(injection: Injection, count: int) -> list[str]:
    return injection.chance.sample(CODES, count)


@contextmanager
def callers(scene: Scene, injection: Injection, count: int) -> Iterator[list[Caller]]:
    """Clients of this fault alone, at both servers by turns. They do not pause."""
    name = f"{injection.kind.name.replace(' ', '-')}-{injection.number}"
    found = [scene.clients.caller(f"{name}-{number}", at=number, pace=(0, 0)) for number in range(count)]
    try:
        yield found
    finally:
        for caller in found:
            caller.close()


def bulk(market: Market, codes: list[str], description: str) -> Request:
    units = [{"code": code, **FIELDS, "description": description} for code in codes]
    return Request("PUT", f"/v1/integration/projects/{market.slug}/units", market.key, units)


KINDS = [
    Kind("sessions are terminated", LANE, terminate_sessions, weight=3),
    Kind("statements are cancelled", LANE, cancel_statements, weight=3),
    Kind("rows of units are locked", LANE, lock_units, (1.0, 4.0), weight=3),
    Kind("the table of units is locked", LANE, lock_table, (1.0, 2.0), weight=3),
    Kind("a foreign program idles in a transaction", LANE, idle_in_transaction, (1.0, 4.0), weight=3),
    Kind("a snapshot is kept", LANE, keep_snapshot, (2.0, 4.0), weight=3),
    Kind("a deadlock", LANE, deadlock, takes_seconds=3.0, weight=3),
    Kind("connections are used up", LANE, use_up_connections, (2.0, 2.0), weight=3),
    Kind("an analytic query", LANE, analytic_query, (1.0, 4.0)),
    Kind("a backup", LANE, back_up, takes_seconds=6.0),
    Kind("duplicate requests", LANE, duplicate_requests, (1.0, 2.0), weight=3),
    Kind("a retry storm", LANE, retry_storm, (2.0, 2.0)),
    Kind("an import is interrupted", LANE, interrupt_import, (0.2, 1.0)),
    Kind("clients hang up", LANE, hang_up_after_sending, (1.0, 2.0), weight=4),
    Kind("slow clients", LANE, slow_clients, (1.0, 4.0)),
]
