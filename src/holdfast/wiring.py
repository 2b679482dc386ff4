"""Build the services of the web, of the background work and of the commands. Nothing here knows HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from time import monotonic
from typing import NamedTuple

from holdfast.background.holds import HoldExpiryLoop
from holdfast.background.jobs import database_jobs, queue_jobs
from holdfast.background.runner import Loop, run_loops
from holdfast.domain.delivery import Schedule
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.staff import SessionTimes
from holdfast.operations.api_keys import ApiKeyCache, ApiKeys
from holdfast.operations.audit import Audit
from holdfast.operations.boards import Boards
from holdfast.operations.bookings import BookingRules, Bookings, BuyerBookings, HoldExpiry
from holdfast.operations.deliveries import Deliveries, DeliverySearch, FailureNotices
from holdfast.operations.delivery_queue import DeliveryQueue, QueueCleanup
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.events import EventFeed
from holdfast.operations.health import Health
from holdfast.operations.imports import ImportFiles, ImportRuns, RowReader
from holdfast.operations.listings import Listings
from holdfast.operations.live_updates import LiveUpdates
from holdfast.operations.login import Login, Passwords
from holdfast.operations.payments import HostedPaymentPage, PaymentPage, Payments
from holdfast.operations.projects import Projects
from holdfast.operations.reports import Reports
from holdfast.operations.staff import Accounts, SetupLinks, StaffAccounts
from holdfast.operations.units import Units
from holdfast.settings import Settings, WrongSetting
from holdfast.storage.database import (
    BACKGROUND,
    DISPATCHER_SETTINGS,
    Database,
    build_database,
    connect_to_listen,
    open_database,
)
from holdfast.storage.notifications import listen
from holdfast.storage.secrets import SecretBox, load_encryption_keys
from holdfast.webhooks.address_guard import AddressGuard, find_url_error
from holdfast.webhooks.dispatcher import Dispatcher
from holdfast.webhooks.forwarder import Forwarder
from holdfast.webhooks.resolver import Resolver
from holdfast.webhooks.sender import Sender

PAYMENT_CALLBACK_PATH = "/v1/payments/callback"
BACKGROUND_CONNECTIONS = 4
LEASE_BEYOND_ATTEMPT_SECONDS = 25.0
"""A worker that stopped keeps its deliveries for so long: enough to send and record, and below a minute."""


class Services(NamedTuple):
    """The operations that routes and pages call."""

    units: Units
    bookings: Bookings
    buyer_bookings: BuyerBookings
    payments: Payments
    projects: Projects
    boards: Boards
    listings: Listings
    reports: Reports
    import_files: ImportFiles
    import_runs: ImportRuns
    live_updates: LiveUpdates
    endpoints: Endpoints
    deliveries: Deliveries
    delivery_search: DeliverySearch
    api_keys: ApiKeys
    audit: Audit
    feed: EventFeed
    api_key_cache: ApiKeyCache
    health: Health
    login: Login
    setup_links: SetupLinks
    staff: StaffAccounts
    accounts: Accounts
    announcing: FailureNotices
    periods: HoldPeriods
    database: Database
    resolver: Resolver

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the database, and close everything at the end: each before those that it uses."""
        async with AsyncExitStack() as stack:
            await self.database.open()
            closed = (
                self.database,
                self.resolver,
                self.api_key_cache,
                self.units,
                self.import_runs,
                self.live_updates,
            )
            for part in closed:
                stack.push_async_callback(part.close)
            yield


def build_services(settings: Settings, row_reader: RowReader) -> Services:
    """``row_reader`` turns the rows of an imported file into commands. Nothing is connected yet."""
    database = build_database(database_url(settings))
    resolver = Resolver()
    units = Units(database)
    rules = _booking_rules(settings)
    bookings = Bookings(database, units, rules)
    box, passwords = SecretBox(load_encryption_keys(settings)), Passwords()
    feed = EventFeed(database)
    boards = Boards(database, units)
    return Services(
        units=units,
        bookings=bookings,
        buyer_bookings=BuyerBookings(database, units, bookings),
        payments=Payments(database, units, bookings, _payment_page(settings)),
        projects=Projects(database, units),
        boards=boards,
        listings=Listings(database, units, boards.layouts),
        reports=Reports(database, units),
        import_files=ImportFiles(database, units),
        import_runs=ImportRuns(database, units, row_reader),
        live_updates=LiveUpdates(database),
        endpoints=_build_endpoints(database, settings, resolver),
        deliveries=Deliveries(database, feed),
        delivery_search=DeliverySearch(database),
        api_keys=ApiKeys(database),
        audit=Audit(database),
        feed=feed,
        api_key_cache=ApiKeyCache(database, monotonic),
        health=Health(database),
        login=Login(database, box, _session_times(settings), passwords),
        setup_links=SetupLinks(database, passwords),
        staff=StaffAccounts(database, passwords),
        accounts=Accounts(database, box, passwords),
        announcing=FailureNotices(database),
        periods=rules.periods,
        database=database,
        resolver=resolver,
    )


async def run_background_work(settings: Settings, stop: asyncio.Event) -> None:
    """Run the loops, and the dispatcher with connections of its own: neither waits for the other."""
    size = BACKGROUND_CONNECTIONS
    async with (
        open_database(database_url(settings), writers=size, readers=size, name=BACKGROUND) as database,
        _dispatcher_database(settings) as own,
        open_sender(settings) as sender,
        asyncio.TaskGroup() as group,
    ):
        queue = _delivery_queue(own, settings)
        box, timeout = SecretBox(load_encryption_keys(settings)), settings.attempt_timeout_seconds
        dispatcher = Dispatcher(queue, sender, box, timeout)
        loops = [*_background_loops(database, settings), *queue_jobs(queue, QueueCleanup(own))]
        group.create_task(run_loops(loops, stop))
        group.create_task(dispatcher.run(stop))
        group.create_task(listen(partial(connect_to_listen, database_url(settings)), dispatcher.wake, stop))


@asynccontextmanager
async def open_sender(settings: Settings) -> AsyncIterator[Sender]:
    guard = AddressGuard(settings.allowed_networks)
    async with _resolver() as resolver:
        sender = Sender(guard, resolver, timeout_seconds=settings.attempt_timeout_seconds)
        try:
            yield sender
        finally:
            await sender.close()


@asynccontextmanager
async def open_endpoints(database: Database, settings: Settings) -> AsyncIterator[Endpoints]:
    async with _resolver() as resolver:
        yield _build_endpoints(database, settings, resolver)


@asynccontextmanager
async def open_forwarder(
    database: Database, settings: Settings, url: str, secret: str, events: Sequence[str]
) -> AsyncIterator[Forwarder]:
    """Allow any address: whoever names the URL is at the console."""
    anywhere = settings.model_copy(update={"allowed_networks": (ip_network("0.0.0.0/0"), ip_network("::/0"))})
    async with open_sender(anywhere) as sender:
        yield Forwarder(EventFeed(database), sender, url, secret, events)


def database_url(settings: Settings) -> str:
    if settings.database_url is None:
        raise WrongSetting("HOLDFAST_DATABASE_URL is not set; name a migrated PostgreSQL database.")
    return settings.database_url


def _build_endpoints(database: Database, settings: Settings, resolver: Resolver) -> Endpoints:
    check = partial(find_url_error, guard=AddressGuard(settings.allowed_networks), resolver=resolver)
    return Endpoints(database, SecretBox(load_encryption_keys(settings)), check)


@asynccontextmanager
async def _resolver() -> AsyncIterator[Resolver]:
    resolver = Resolver()
    try:
        yield resolver
    finally:
        await resolver.close()


def _dispatcher_database(settings: Settings) -> AbstractAsyncContextManager[Database]:
    return open_database(
        database_url(settings), writers=4, readers=3, name=BACKGROUND, more=DISPATCHER_SETTINGS
    )


def _background_loops(database: Database, settings: Settings) -> list[Loop]:
    keep_events = timedelta(days=settings.event_retention_days)
    keep_log = timedelta(days=settings.delivery_retention_days)
    return [HoldExpiryLoop(HoldExpiry(database)), *database_jobs(database, keep_events, keep_log)]


def _delivery_queue(database: Database, settings: Settings) -> DeliveryQueue:
    lease_seconds = settings.lease_seconds or settings.attempt_timeout_seconds + LEASE_BEYOND_ATTEMPT_SECONDS
    schedule = Schedule(settings.retry_first_gap_seconds, settings.attempts)
    return DeliveryQueue(database, schedule, lease_seconds)


def _payment_page(settings: Settings) -> PaymentPage:
    url, secret = settings.payment_url, settings.payment_secret
    if url is None or secret is None:
        return PaymentPage()
    return PaymentPage(
        HostedPaymentPage(url, secret), secret, f"{settings.public_url or ''}{PAYMENT_CALLBACK_PATH}"
    )


def _booking_rules(settings: Settings) -> BookingRules:
    return BookingRules(
        HoldPeriods(settings.hold_seconds, settings.reservation_days),
        HoldLimits(settings.holds_per_visitor, settings.holds_per_address, settings.rehold_seconds),
    )


def _session_times(settings: Settings) -> SessionTimes:
    return SessionTimes(
        timedelta(minutes=settings.session_idle_minutes), timedelta(hours=settings.session_hours)
    )
