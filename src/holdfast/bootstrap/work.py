"""The background work: everything but the web, which is not even imported."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial

from holdfast.bootstrap.database import url_of
from holdfast.bootstrap.endpoints import sending
from holdfast.clockwork.event_numberer import EventNumberer
from holdfast.clockwork.event_summer import EventSummer
from holdfast.clockwork.event_trimmer import EventTrimmer
from holdfast.clockwork.expirer import Expirer
from holdfast.clockwork.hour_counter import HourCounter
from holdfast.clockwork.lease_rescuer import LeaseRescuer
from holdfast.clockwork.log_keeper import LogKeeper
from holdfast.clockwork.queue_keeper import QueueKeeper
from holdfast.clockwork.runner import Loop, run_loops
from holdfast.delivery.dispatcher import Dispatcher
from holdfast.domain.delivery import Schedule
from holdfast.operations.delivery_hours import DeliveryHours
from holdfast.operations.dispatching import Dispatching
from holdfast.operations.expiring import Expiry
from holdfast.operations.feed import EventFeed
from holdfast.operations.figures import Sums
from holdfast.operations.tidying import Tidying
from holdfast.settings import Settings
from holdfast.storage.database import BACKGROUND, OF_A_DISPATCHER, Database, connect_to_listen, open_database
from holdfast.storage.encryption_keys import keys_of
from holdfast.storage.hints import listen
from holdfast.storage.sealing import SecretBox

CLOCKWORK_CONNECTIONS = 4
LEASE_BEYOND_ATTEMPT_SECONDS = 25.0
"""A worker that stopped keeps what it had for so long: time enough to send and record, and below a minute."""


async def run_clockwork(settings: Settings, stop: asyncio.Event) -> None:
    """The loops, and the dispatcher with connections of its own: a long backlog of one waits for no other."""
    size = CLOCKWORK_CONNECTIONS
    async with (
        open_database(url_of(settings), writers=size, readers=size, name=BACKGROUND) as database,
        _dispatcher_database(settings) as own,
        sending(settings) as sender,
        asyncio.TaskGroup() as group,
    ):
        dispatching = _dispatching(own, settings)
        box, timeout = SecretBox(keys_of(settings)), settings.attempt_timeout_seconds
        dispatcher = Dispatcher(dispatching, sender, box, timeout)
        loops = [*_loops(database, settings), LeaseRescuer(dispatching), QueueKeeper(Tidying(own))]
        group.create_task(run_loops(loops, stop))
        group.create_task(dispatcher.run(stop))
        group.create_task(listen(partial(connect_to_listen, url_of(settings)), dispatcher.wake, stop))


def _dispatcher_database(settings: Settings) -> AbstractAsyncContextManager[Database]:
    return open_database(
        url_of(settings),
        writers=4,
        readers=3,
        name=BACKGROUND,
        more=OF_A_DISPATCHER,
    )


def _loops(database: Database, settings: Settings) -> list[Loop]:
    feed = EventFeed(database)
    return [
        Expirer(Expiry(database)),
        EventNumberer(feed),
        EventSummer(Sums(database)),
        EventTrimmer(feed, timedelta(days=settings.event_retention_days)),
        LogKeeper(database, timedelta(days=settings.delivery_retention_days)),
        HourCounter(DeliveryHours(database)),
    ]


def _dispatching(database: Database, settings: Settings) -> Dispatching:
    lease_seconds = settings.lease_seconds or settings.attempt_timeout_seconds + LEASE_BEYOND_ATTEMPT_SECONDS
    schedule = Schedule(settings.retry_first_gap_seconds, settings.attempts)
    return Dispatching(database, schedule, lease_seconds)
