"""The web: what routes need, and the application that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from time import monotonic

from starlette.types import Receive, Scope, Send

from holdfast.bootstrap.database import url_of
from holdfast.bootstrap.endpoints import subscribing
from holdfast.bootstrap.tour import tour_of
from holdfast.domain.fairness import HoldLimits
from holdfast.domain.periods import Periods
from holdfast.domain.staff import SessionTimes
from holdfast.observability.metrics import count_now
from holdfast.operations.accounts import Accounts
from holdfast.operations.announcing import Announcing
from holdfast.operations.auditing import Auditing
from holdfast.operations.boards import Boards
from holdfast.operations.buying import Buying
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.delivery_search import DeliverySearch
from holdfast.operations.feed import EventFeed
from holdfast.operations.figures import Figures
from holdfast.operations.health import Health
from holdfast.operations.importing.files import ImportFiles
from holdfast.operations.importing.runs import ImportRuns
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.operations.keys import Keys
from holdfast.operations.offering import Offering
from holdfast.operations.passwords import Passwords
from holdfast.operations.paying import HostedPaymentPage, Paying, Till
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Rules, Selling
from holdfast.operations.setup_links import SetupLinks
from holdfast.operations.signing_in import SigningIn
from holdfast.operations.staffing import Staffing
from holdfast.operations.watching import Watching
from holdfast.settings import Settings
from holdfast.storage.database import open_database
from holdfast.storage.encryption_keys import keys_of
from holdfast.storage.sealing import SecretBox
from holdfast.web.app import web_app
from holdfast.web.client_address import ClientAddresses
from holdfast.web.html.cookies import Cookies
from holdfast.web.http.connection import Application
from holdfast.web.http.exchange import Exchange
from holdfast.web.imported_rows import RowReading
from holdfast.web.papers.making import Papers
from holdfast.web.parts import Parts
from holdfast.web.payments.routes import CALLBACK
from holdfast.web.rate_limit import RateLimit


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
    async with open_database(url_of(settings)) as database, subscribing(database, settings) as own:
        inventory = Inventory(database)
        selling = Selling(database, inventory, _rules(settings))
        key_ring = KeyRing(database, monotonic)
        box, passwords = SecretBox(keys_of(settings)), Passwords()
        feed = EventFeed(database)
        boards, watching = Boards(database, inventory), Watching(database)
        import_runs = ImportRuns(database, inventory, RowReading)
        parts = Parts(
            inventory=inventory,
            selling=selling,
            buying=Buying(database, inventory, selling),
            paying=Paying(database, inventory, selling, _till(settings)),
            payment_url=settings.payment_url,
            projects=Projects(database, inventory),
            boards=boards,
            offering=Offering(database, inventory, boards.layouts),
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
            papers=Papers(inventory, settings.public_url or "", settings.time_zone),
            public_url=settings.public_url or "",
            tour=tour_of(settings),
            time_zone=settings.time_zone,
        )
        async with _closing(watching, import_runs, inventory, key_ring):
            yield parts


@asynccontextmanager
async def _closing(*parts: Watching | ImportRuns | Inventory | KeyRing) -> AsyncIterator[None]:
    """In this order: those that use another one before it."""
    try:
        yield
    finally:
        for part in parts:
            await part.close()


def _till(settings: Settings) -> Till:
    url, secret = settings.payment_url, settings.payment_secret
    if url is None or secret is None:
        return Till()
    return Till(HostedPaymentPage(url, secret), secret, f"{settings.public_url or ''}{CALLBACK}")


def _rules(settings: Settings) -> Rules:
    return Rules(
        Periods(settings.hold_seconds, settings.reservation_days),
        HoldLimits(settings.holds_per_visitor, settings.holds_per_address, settings.rehold_seconds),
    )


def _session_times(settings: Settings) -> SessionTimes:
    return SessionTimes(
        timedelta(minutes=settings.session_idle_minutes), timedelta(hours=settings.session_hours)
    )
