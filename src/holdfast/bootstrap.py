"""The only place where the parts are wired together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from time import monotonic

from starlette.types import Receive, Scope, Send

from holdfast.clockwork.event_numberer import EventNumberer
from holdfast.clockwork.event_trimmer import EventTrimmer
from holdfast.clockwork.expirer import Expirer
from holdfast.clockwork.runner import Loop, run_loops
from holdfast.domain.fairness import HoldLimits
from holdfast.domain.periods import Periods
from holdfast.observability.metrics import count_now
from holdfast.operations.expiring import Expiry
from holdfast.operations.feed import EventFeed
from holdfast.operations.health import Health
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Rules, Selling
from holdfast.settings import Settings
from holdfast.storage.database import BACKGROUND, Database, open_database
from holdfast.web.app import Parts, web_app
from holdfast.web.client_address import ClientAddresses
from holdfast.web.http.connection import Application
from holdfast.web.http.exchange import Exchange
from holdfast.web.rate_limit import RateLimit

CLOCKWORK_CONNECTIONS = 4


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
    async with open_database(_url(settings)) as database:
        inventory = Inventory(database)
        key_ring = KeyRing(database, monotonic)
        parts = Parts(
            inventory=inventory,
            selling=Selling(database, inventory, _rules(settings)),
            projects=Projects(database, inventory),
            feed=EventFeed(database),
            key_ring=key_ring,
            health=Health(database),
            addresses=ClientAddresses(settings.trusted_proxies),
            rate_limit=RateLimit(settings.rate_limit / settings.processes, monotonic),
            public_rate_limit=RateLimit(settings.public_rate_limit / settings.processes, monotonic),
        )
        try:
            yield parts
        finally:
            await inventory.close()
            await key_ring.close()


async def run_clockwork(settings: Settings, stop: asyncio.Event) -> None:
    async with open_database(
        _url(settings), writers=CLOCKWORK_CONNECTIONS, readers=CLOCKWORK_CONNECTIONS, name=BACKGROUND
    ) as database:
        await run_loops(_loops(database, settings), stop)


def _loops(database: Database, settings: Settings) -> list[Loop]:
    feed = EventFeed(database)
    return [
        Expirer(Expiry(database)),
        EventNumberer(feed),
        EventTrimmer(feed, timedelta(days=settings.event_retention_days)),
    ]


def _rules(settings: Settings) -> Rules:
    return Rules(
        Periods(settings.hold_seconds, settings.reservation_days),
        HoldLimits(settings.holds_per_visitor, settings.holds_per_address, settings.rehold_seconds),
    )


def _url(settings: Settings) -> str:
    if settings.database_url is None:
        raise ValueError("The process that starts this one names the database.")
    return settings.database_url
