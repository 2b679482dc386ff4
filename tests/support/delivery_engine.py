"""The parts of the delivery engine in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from holdfast.domain import delivery
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import ClaimedDelivery, DeliveryFilter, Schedule
from holdfast.domain.endpoint import Endpoint, EndpointConfig, IssuedSecret
from holdfast.domain.status import Status
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.delivery_queue import DeliveryQueue, QueueCleanup, ensure_log_partitions
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.events import EventFeed
from holdfast.storage.database import Database, connect_to_listen
from holdfast.storage.notifications import listen
from holdfast.storage.secrets import SecretBox, new_encryption_key
from holdfast.webhooks import causes
from holdfast.webhooks.address_guard import find_url_error
from holdfast.webhooks.dispatcher import Dispatcher
from holdfast.webhooks.sender import Sender
from tests.support import sql
from tests.support.inventory import replacement, store
from tests.support.receiver_posts import a_sender, guard_for
from tests.support.receivers import Peer, Received, Talk
from tests.support.sales import new_units
from tests.support.server import PATIENCE_SECONDS

NOWHERE = "http://127.0.0.1:9/hook"
"""Nobody listens there: a connection is refused."""
SCHEDULE = Schedule(first_gap_seconds=600, attempts=3)
"""What failed stays where it is until a test makes it due."""
LATEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
ALWAYS = DeliveryFilter(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
OFF, ON = Status.UNAVAILABLE, Status.AVAILABLE


class Engine:
    def __init__(
        self, database: Database, sender: Sender, timeout_seconds: float,
        schedule: Schedule = SCHEDULE, lease_seconds: float = 180.0, keys: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.database = database
        self.schedule = schedule
        self.box = SecretBox(keys or [new_encryption_key()])
        self.feed = EventFeed(database)
        self.deliveries = Deliveries(database, self.feed)
        self.dispatching = DeliveryQueue(database, schedule, lease_seconds)
        self.tidying = QueueCleanup(database)
        check = partial(find_url_error, guard=guard_for(), resolver=sender._resolver)
        self.subscribing = Endpoints(database, self.box, check)
        self.dispatcher = Dispatcher(self.dispatching, sender, self.box, timeout_seconds)

    async def subscribe(self, url: str = NOWHERE, **config: Any) -> IssuedSecret:
        return await self.subscribing.add(EndpointConfig(url, **config), COMMAND)

    async def endpoint(self, url: str = NOWHERE, **config: Any) -> Endpoint:
        return (await self.subscribe(url, **config)).endpoint

    async def load(self, endpoint: Endpoint) -> Endpoint:
        return await self.subscribing.find(endpoint.id)

    async def remove(self, endpoint: Endpoint) -> None:
        await self.subscribing.remove(endpoint.id, COMMAND)

    async def queue_events(self, *codes: str, times: int = 1) -> UUID:
        """A new project with these units, each of which is taken off sale and put on again; its id."""
        project_id = await new_units(self.database, *codes)
        for code in codes:
            await switch(self.database, project_id, code, times)
        return project_id

    async def change(self, endpoint: Endpoint, **changes: Any) -> Endpoint:
        return await self.subscribing.change(endpoint.id, changes, COMMAND)

    async def claim(self, budget: int = 1000) -> list[ClaimedDelivery]:
        return await self.dispatching.claim(budget)

    async def claim_one(self, times: int = 1, **config: Any) -> tuple[Endpoint, ClaimedDelivery]:
        """The first delivery to a new endpoint. Its unit is A-1, made here and switched ``times`` times."""
        endpoint = await self.endpoint(**config)
        await self.queue_events("A-1", times=times)
        (claimed,) = await self.claim()
        return endpoint, claimed

    async def answer(self, claimed: Iterable[ClaimedDelivery], status_code: int | None = 200) -> set[UUID]:
        """Record attempts that this test has not made; says which of them were still ours."""
        return await self.dispatching.record([made(one, self.schedule, status_code) for one in claimed])

    async def send_all(self) -> None:
        """Send what is due, until nothing is any more; what is to be tried again later is left."""
        attempts = -1
        while (latest := await self.value("select count(*) from attempt")) > attempts:
            attempts = latest
            await self.dispatcher.run_once()
            await self.drain()

    async def drain(self) -> None:
        """Wait for attempts under way, and record them."""
        while (own := self.dispatcher)._sending or own._records or own._unsent:
            if own._sending:
                await asyncio.wait(own._sending)
            await own._flush()

    @asynccontextmanager
    async def running(self, listening_to: str | None = None) -> AsyncIterator[asyncio.Event]:
        """The dispatcher at work, with hints if it is told where to listen; gives what stops it."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.dispatcher.run(stop))
            if listening_to is not None:
                connect = partial(connect_to_listen, listening_to)
                group.create_task(listen(connect, self.dispatcher.wake, stop))
            try:
                yield stop
            finally:
                stop.set()

    async def log(self, filters: DeliveryFilter = ALWAYS, limit: int = 1000) -> list[delivery.Delivery]:
        """The latest first."""
        return await self.deliveries.page(None, LATEST, filters, limit)

    async def find(self, delivery_id: UUID) -> delivery.Delivery:
        return (await self.deliveries.find(delivery_id))[0]

    async def attempts(self, delivery_id: UUID) -> list[delivery.Attempt]:
        return (await self.deliveries.find(delivery_id))[1]

    async def resend(self, delivery_id: UUID) -> delivery.Delivery:
        return (await self.deliveries.resend(delivery_id, COMMAND))[0]

    async def ping(self, endpoint: Endpoint) -> UUID:
        return (await self.subscribing.ping(endpoint.id, COMMAND)).id

    async def rows(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        return await sql.rows(self.database, statement, *arguments)

    async def value(self, statement: str, *arguments: object) -> Any:
        return await sql.value(self.database, statement, *arguments)

    async def execute(self, statement: str, *arguments: object) -> None:
        async with sql.owning(self.database) as connection:
            await connection.execute(statement, *arguments)

    async def make_due(self) -> None:
        """As if the time until the next attempt had passed. Who waits for an earlier event still does."""
        await self.execute("update pending_delivery set due_at = now() - interval '1 ms' where not postponed")

    async def let_leases_run_out(self) -> None:
        await self.execute("update in_flight set lease_until = now() - interval '1 ms'")


@asynccontextmanager
async def an_engine(
    database: Database, *, timeout_seconds: float = 60.0, name_servers: Sequence[str] = (), **settings: Any
) -> AsyncIterator[Engine]:
    """``settings``: ``schedule``, ``lease_seconds``, ``keys``."""
    await ensure_log_partitions(database)
    async with a_sender(timeout_seconds=timeout_seconds, name_servers=name_servers) as sender:
        yield Engine(database, sender, timeout_seconds, **settings)


def made(
    claimed: ClaimedDelivery, schedule: Schedule = SCHEDULE, status_code: int | None = 200
) -> delivery.AttemptRecord:
    """An attempt that was answered so; None is one that was refused."""
    succeeded = status_code is not None and 200 <= status_code < 300
    decided = delivery.decide_after_attempt(claimed.progress, succeeded, schedule)
    failure = causes.REFUSED if status_code is None else causes.explain_status(status_code)
    cause = None if succeeded else failure
    result = delivery.AttemptResult(
        1.0, secret_id=claimed.secret.id, address="127.0.0.1", status_code=status_code, cause=cause
    )
    return delivery.AttemptRecord(claimed, claimed.claimed_at, result, decided)


def replying(status_code_for: Callable[[Received], int | Awaitable[int]]) -> Talk:
    """A receiver that decides for each request how to answer it, and may take its time."""

    async def talk(peer: Peer) -> None:
        while True:
            decided = status_code_for(await peer.request())
            status_code = decided if isinstance(decided, int) else await decided
            await peer.send(f"HTTP/1.1 {status_code} Decided\r\nContent-Length: 0\r\n\r\n".encode())

    return talk


async def switch(database: Database, project_id: UUID, code: str, times: int = 1) -> None:
    """Take a unit off sale and put it on again: one event each time. It is on sale at first."""
    for turn in range(times):
        await store(database, replacement(project_id, code, status=ON if turn % 2 else OFF))


async def eventually(holds: Any) -> None:
    """``holds``: a function, or one that is awaited, of what is to become true."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = holds()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.005)
