"""The only place where the parts are wired together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from time import monotonic

from starlette.types import Receive, Scope, Send

from holdfast.clockwork.event_numberer import EventNumberer
from holdfast.clockwork.event_summer import EventSummer
from holdfast.clockwork.event_trimmer import EventTrimmer
from holdfast.clockwork.expirer import Expirer
from holdfast.clockwork.hour_counter import HourCounter
from holdfast.clockwork.lease_rescuer import LeaseRescuer
from holdfast.clockwork.log_keeper import LogKeeper
from holdfast.clockwork.queue_keeper import QueueKeeper
from holdfast.clockwork.runner import Loop, run_loops
from holdfast.delivery.address_guard import AddressGuard, url_fault
from holdfast.delivery.dispatcher import Dispatcher
from holdfast.delivery.forwarding import Forwarder
from holdfast.delivery.resolver import Resolver
from holdfast.delivery.sender import Sender
from holdfast.demo import is_demo
from holdfast.domain.delivery import Schedule
from holdfast.domain.fairness import HoldLimits
from holdfast.domain.periods import Periods
from holdfast.domain.staff import SessionTimes
from holdfast.observability.metrics import count_now
from holdfast.operations.accounts import Accounts
from holdfast.operations.announcing import Announcing
from holdfast.operations.auditing import Auditing
from holdfast.operations.boards import Boards
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.delivery_hours import DeliveryHours
from holdfast.operations.delivery_search import DeliverySearch
from holdfast.operations.dispatching import Dispatching
from holdfast.operations.expiring import Expiry
from holdfast.operations.feed import EventFeed
from holdfast.operations.figures import Figures, Sums
from holdfast.operations.health import Health
from holdfast.operations.importing.files import ImportFiles
from holdfast.operations.importing.runs import ImportRuns
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.operations.keys import Keys
from holdfast.operations.passwords import Passwords
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Rules, Selling
from holdfast.operations.setup_links import SetupLinks
from holdfast.operations.signing_in import SigningIn
from holdfast.operations.staffing import Staffing
from holdfast.operations.subscribing import Subscribing
from holdfast.operations.tidying import Tidying
from holdfast.operations.watching import Watching
from holdfast.settings import LOOPBACK, Settings
from holdfast.storage.database import BACKGROUND, OF_A_DISPATCHER, Database, connect_to_listen, open_database
from holdfast.storage.encryption_keys import keys_of
from holdfast.storage.hints import listen
from holdfast.storage.sealing import SecretBox
from holdfast.web.app import web_app
from holdfast.web.client_address import ClientAddresses
from holdfast.web.html.cookies import Cookies
from holdfast.web.http.connection import Application
from holdfast.web.http.exchange import Exchange
from holdfast.web.imported_rows import RowReading
from holdfast.web.parts import Parts
from holdfast.web.rate_limit import RateLimit

CLOCKWORK_CONNECTIONS = 4
LEASE_BEYOND_ATTEMPT_SECONDS = 25.0
"""A worker that stopped keeps what it had for so long: time enough to send and record, and below a minute."""


class WebApplication:
    """Opens the database with the server's lifespan, inside the loop that serves."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: Application | None = None

    async def answer(self, exchange: Exchange) -> None:
        assert self._app is not None
        await self._app(exchange)

    async def live(self, _: Scope, receive: Receive, send: Send) -> None:
        """From the start of the server to its end."""
        await receive()
        async with web_parts(self._settings) as parts:
            self._app = web_app(parts)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            count_now()
        await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def web_parts(settings: Settings) -> AsyncIterator[Parts]:
    async with open_database(_url(settings)) as database, subscribing(database, settings) as own:
        inventory = Inventory(database)
        key_ring = KeyRing(database, monotonic)
        box, passwords = SecretBox(keys_of(settings)), Passwords()
        feed = EventFeed(database)
        watching = Watching(database)
        import_runs = ImportRuns(database, inventory, RowReading)
        parts = Parts(
            inventory=inventory,
            selling=Selling(database, inventory, _rules(settings)),
            projects=Projects(database, inventory),
            boards=Boards(database, inventory),
            figures=Figures(database, inventory),
            import_files=ImportFiles(database, inventory),
            import_runs=import_runs,
            watching=watching,
            subscribing=own,
            deliveries=Deliveries(database, feed),
            delivery_search=DeliverySearch(database),
            keys=Keys(database),
            auditing=Auditing(database),
            feed=feed,
            key_ring=key_ring,
            health=Health(database),
            addresses=ClientAddresses(settings.trusted_proxies),
            rate_limit=RateLimit(settings.rate_limit / settings.processes, monotonic),
            public_rate_limit=RateLimit(settings.public_rate_limit / settings.processes, monotonic),
            signing_in=SigningIn(database, box, _session_times(settings), passwords),
            setup_links=SetupLinks(database, passwords),
            staffing=Staffing(database, passwords),
            accounts=Accounts(database, box, passwords),
            announcing=Announcing(database),
            cookies=Cookies.for_address(settings.public_url),
            cors_origins=settings.cors_origins,
            periods=_rules(settings).periods,
            public_url=settings.public_url or "",
            time_zone=settings.time_zone,
        )
        try:
            yield parts
        finally:
            await watching.close()
            await import_runs.close()
            await inventory.close()
            await key_ring.close()


@asynccontextmanager
async def forwarding(
    database: Database, settings: Settings, url: str, secret: str, events: Sequence[str]
) -> AsyncIterator[Forwarder]:
    """Whoever names the URL is at the console: any address will do."""
    anywhere = replace(settings, allowed_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")))
    async with _sender(anywhere) as sender:
        yield Forwarder(EventFeed(database), sender, url, secret, events)


async def run_clockwork(settings: Settings, stop: asyncio.Event) -> None:
    """The loops, and the dispatcher with connections of its own: a long backlog of one waits for no other."""
    size = CLOCKWORK_CONNECTIONS
    async with (
        open_database(_url(settings), writers=size, readers=size, name=BACKGROUND) as database,
        _dispatcher_database(settings) as own,
        _sender(settings) as sender,
        asyncio.TaskGroup() as group,
    ):
        dispatching = _dispatching(own, settings)
        box, timeout = SecretBox(keys_of(settings)), settings.attempt_timeout_seconds
        dispatcher = Dispatcher(dispatching, sender, box, timeout)
        loops = [*_loops(database, settings), LeaseRescuer(dispatching), QueueKeeper(Tidying(own))]
        group.create_task(run_loops(loops, stop))
        group.create_task(dispatcher.run(stop))
        group.create_task(listen(partial(connect_to_listen, _url(settings)), dispatcher.wake, stop))


def _dispatcher_database(settings: Settings) -> AbstractAsyncContextManager[Database]:
    return open_database(
        _url(settings),
        writers=4,
        readers=3,
        name=BACKGROUND,
        more=OF_A_DISPATCHER,
    )


@asynccontextmanager
async def _sender(settings: Settings) -> AsyncIterator[Sender]:
    guard = AddressGuard(settings.allowed_networks)
    async with _resolver() as resolver:
        sender = Sender(guard, resolver, timeout_seconds=settings.attempt_timeout_seconds)
        try:
            yield sender
        finally:
            await sender.close()


@asynccontextmanager
async def _resolver() -> AsyncIterator[Resolver]:
    resolver = Resolver()
    try:
        yield resolver
    finally:
        await resolver.close()


@asynccontextmanager
async def subscribing_by_command(database: Database, settings: Settings) -> AsyncIterator[Subscribing]:
    """Where the demo is served, this machine's own addresses are allowed, as they are to its processes."""
    if await is_demo(database):
        settings = replace(settings, allowed_networks=(*settings.allowed_networks, *LOOPBACK))
    async with subscribing(database, settings) as own:
        yield own


@asynccontextmanager
async def subscribing(database: Database, settings: Settings) -> AsyncIterator[Subscribing]:
    guard = AddressGuard(settings.allowed_networks)
    async with _resolver() as resolver:
        check = partial(url_fault, guard=guard, resolver=resolver)
        yield Subscribing(database, SecretBox(keys_of(settings)), check)


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


def _rules(settings: Settings) -> Rules:
    return Rules(
        Periods(settings.hold_seconds, settings.reservation_days),
        HoldLimits(settings.holds_per_visitor, settings.holds_per_address, settings.rehold_seconds),
    )


def _session_times(settings: Settings) -> SessionTimes:
    return SessionTimes(
        timedelta(minutes=settings.session_idle_minutes), timedelta(hours=settings.session_hours)
    )


def _url(settings: Settings) -> str:
    if settings.database_url is None:
        raise ValueError("The process that starts this one names the database.")
    return settings.database_url
