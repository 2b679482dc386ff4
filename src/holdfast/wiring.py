"""Build the services of the web, of the background work and of the commands. Nothing here knows HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple

from holdfast.background.emails import EmailLoop, RenderEmail
from holdfast.background.holds import HoldExpiryLoop
from holdfast.background.jobs import Loop, database_jobs, queue_jobs, run_loops
from holdfast.domain.delivery import Schedule
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.staff import SessionTimes
from holdfast.operations.api_keys import ApiKeyCache
from holdfast.operations.boards import Boards
from holdfast.operations.bookings import Bookings
from holdfast.operations.deliveries import Deliveries, DeliverySearch
from holdfast.operations.delivery_queue import DeliveryQueue, QueueCleanup
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.events import EventFeed
from holdfast.operations.imports import Imports, RowReader
from holdfast.operations.listings import Listings
from holdfast.operations.live_updates import LiveUpdates
from holdfast.operations.login import Login, Passwords
from holdfast.operations.payments import HostedPaymentPage, PaymentPage, Payments
from holdfast.operations.projects import Projects
from holdfast.operations.reports import Reports
from holdfast.operations.sellers import Sellers
from holdfast.operations.staff import Accounts, StaffAccounts
from holdfast.operations.units import Units
from holdfast.settings import Settings, WrongSetting
from holdfast.storage.database import BACKGROUND, DISPATCHER_SETTINGS, Database, connect_to_listen
from holdfast.storage.notifications import listen
from holdfast.storage.secrets import SecretBox, load_encryption_keys
from holdfast.webhooks.address_guard import AddressGuard, find_url_error
from holdfast.webhooks.dispatcher import Dispatcher
from holdfast.webhooks.resolver import Resolver
from holdfast.webhooks.sender import Sender

PAYMENT_CALLBACK_PATH = "/v1/payments/callback"
BACKGROUND_CONNECTIONS = 4
LEASE_BEYOND_ATTEMPT_SECONDS = 25.0
"""A worker that stopped keeps its deliveries for so long: enough to send and record, and below a minute."""


class Services(NamedTuple):
    units: Units
    bookings: Bookings
    payments: Payments
    projects: Projects
    sellers: Sellers
    boards: Boards
    listings: Listings
    reports: Reports
    imports: Imports
    live_updates: LiveUpdates
    endpoints: Endpoints
    deliveries: Deliveries
    delivery_search: DeliverySearch
    feed: EventFeed
    api_key_cache: ApiKeyCache
    login: Login
    staff: StaffAccounts
    accounts: Accounts
    database: Database
    resolver: Resolver

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the database, and close everything at the end: each before those that it uses."""
        async with AsyncExitStack() as stack:
            await self.database.open()
            services = self.api_key_cache, self.units, self.imports, self.live_updates
            for part in (self.database, self.resolver, *services):
                stack.push_async_callback(part.close)
            yield


def build_services(settings: Settings, row_reader: RowReader) -> Services:
    """``row_reader`` turns the rows of an imported file into commands. Nothing is connected yet."""
    database = Database(database_url(settings))
    resolver = Resolver()
    units = Units(database)
    periods = HoldPeriods(settings.hold_seconds, settings.reservation_days)
    limits = HoldLimits(
        settings.holds_per_visitor,
        settings.holds_per_address,
        settings.rehold_seconds,
        settings.holds_share_per_network,
    )
    box, passwords = SecretBox(load_encryption_keys(settings)), Passwords()
    bookings = Bookings(database, units, periods, limits, box if settings.smtp_url else None)
    idle, longest = timedelta(minutes=settings.session_idle_minutes), timedelta(hours=settings.session_hours)
    feed = EventFeed(database)
    boards = Boards(database, units)
    return Services(
        units=units,
        bookings=bookings,
        payments=Payments(database, units, bookings, _payment_page(settings)),
        projects=Projects(database, units),
        sellers=Sellers(database, units),
        boards=boards,
        listings=Listings(database, units, boards.layouts),
        reports=Reports(database, units),
        imports=Imports(database, units, row_reader),
        live_updates=LiveUpdates(database),
        endpoints=_build_endpoints(database, settings, resolver),
        deliveries=Deliveries(database, feed),
        delivery_search=DeliverySearch(database),
        feed=feed,
        api_key_cache=ApiKeyCache(database, monotonic),
        login=Login(database, box, SessionTimes(idle, longest), passwords),
        staff=StaffAccounts(database, passwords),
        accounts=Accounts(database, box, passwords, settings.second_factor_roles),
        database=database,
        resolver=resolver,
    )


EmailRenderer = Callable[[Settings, Database], RenderEmail]


async def run_background_work(
    settings: Settings, stop: asyncio.Event, email_renderer: EmailRenderer | None = None
) -> None:
    """Run the loops, and the dispatcher with connections of its own: neither waits for the other."""
    url, timeout, size = database_url(settings), settings.attempt_timeout_seconds, BACKGROUND_CONNECTIONS
    async with (
        Database(url, writers=size, readers=size, name=BACKGROUND) as database,
        Database(url, writers=4, readers=3, name=BACKGROUND, settings=DISPATCHER_SETTINGS) as queue_database,
        open_sender(settings) as sender,
        asyncio.TaskGroup() as group,
    ):
        schedule = Schedule(settings.retry_first_gap_seconds, settings.attempts)
        lease_seconds = settings.lease_seconds or timeout + LEASE_BEYOND_ATTEMPT_SECONDS
        queue = DeliveryQueue(queue_database, schedule, lease_seconds)
        box = SecretBox(load_encryption_keys(settings))
        dispatcher = Dispatcher(queue, sender, box, timeout)
        loops: list[Loop] = [
            HoldExpiryLoop(database),
            *database_jobs(database, settings),
            *queue_jobs(queue, QueueCleanup(queue_database)),
        ]
        if settings.smtp_url is not None and email_renderer is not None:
            render = email_renderer(settings, database)
            loops.append(EmailLoop(database, schedule, box, render, settings.smtp_url))
        group.create_task(run_loops(loops, stop))
        group.create_task(dispatcher.run(stop))
        group.create_task(listen(partial(connect_to_listen, url), dispatcher.wake, stop))


@asynccontextmanager
async def open_sender(settings: Settings) -> AsyncIterator[Sender]:
    guard, resolver = AddressGuard(settings.allowed_networks), Resolver()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(resolver.close)
        sender = Sender(guard, resolver, timeout_seconds=settings.attempt_timeout_seconds)
        stack.push_async_callback(sender.close)
        yield sender


@asynccontextmanager
async def open_endpoints(database: Database, settings: Settings) -> AsyncIterator[Endpoints]:
    resolver = Resolver()
    try:
        yield _build_endpoints(database, settings, resolver)
    finally:
        await resolver.close()


def database_url(settings: Settings) -> str:
    if settings.database_url is None:
        raise WrongSetting("HOLDFAST_DATABASE_URL is not set; name a migrated PostgreSQL database.")
    return settings.database_url


def _build_endpoints(database: Database, settings: Settings, resolver: Resolver) -> Endpoints:
    check = partial(find_url_error, guard=AddressGuard(settings.allowed_networks), resolver=resolver)
    return Endpoints(database, SecretBox(load_encryption_keys(settings)), check)


def _payment_page(settings: Settings) -> PaymentPage:
    url, secret = settings.payment_url, settings.payment_secret
    if url is None or secret is None:
        return PaymentPage()
    callback_url = f"{settings.public_url or ''}{PAYMENT_CALLBACK_PATH}"
    return PaymentPage(HostedPaymentPage(url, secret), secret, callback_url)
