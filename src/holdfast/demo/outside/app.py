"""What the world outside is told when it starts: the two secrets it shares with Holdfast, and little more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from holdfast.demo.outside.pages import OutsidePages, PaymentRoutes, ReceiverRoutes
from holdfast.demo.outside.payments import Cashier
from holdfast.demo.outside.receiver import Journal, Receiver
from holdfast.web.pages.templates import STATIC


class OutsideSettings(NamedTuple):
    hook_secret: str
    """Of the endpoint that is registered for the receiver."""
    payment_secret: str
    """Signs the way to the payment page, and what that answers. Empty: payments are made elsewhere."""
    holdfast_url: str
    time_zone: str


# The world outside as one application.

_CALLBACK_SECONDS = 10.0


def outside_app(told: OutsideSettings, journal: Journal) -> Starlette:
    """``journal``: what has come; once it is closed, nobody is told of more."""
    pages = OutsidePages(told.holdfast_url, told.time_zone)
    client = httpx.AsyncClient(timeout=_CALLBACK_SECONDS, trust_env=False)
    receiver = ReceiverRoutes(Receiver(told.hook_secret, journal), journal, pages)
    payments = PaymentRoutes(told.payment_secret, Cashier(told.payment_secret, client), pages)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(
        routes=[
            *receiver.routes(),
            *payments.routes(),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        lifespan=lifespan,
    )
