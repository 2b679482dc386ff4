"""What knows the way to endpoints: the sender of deliveries, and whoever registers where they go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_network

from holdfast.delivery.address_guard import AddressGuard, url_fault
from holdfast.delivery.forwarding import Forwarder
from holdfast.delivery.resolver import Resolver
from holdfast.delivery.sender import Sender
from holdfast.demo import is_demo
from holdfast.operations.feed import EventFeed
from holdfast.operations.subscribing import Subscribing
from holdfast.settings import LOOPBACK, Settings
from holdfast.storage.database import Database
from holdfast.storage.encryption_keys import keys_of
from holdfast.storage.sealing import SecretBox


@asynccontextmanager
async def sending(settings: Settings) -> AsyncIterator[Sender]:
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
        settings = settings.model_copy(update={"allowed_networks": (*settings.allowed_networks, *LOOPBACK)})
    async with subscribing(database, settings) as own:
        yield own


@asynccontextmanager
async def subscribing(database: Database, settings: Settings) -> AsyncIterator[Subscribing]:
    guard = AddressGuard(settings.allowed_networks)
    async with _resolver() as resolver:
        check = partial(url_fault, guard=guard, resolver=resolver)
        yield Subscribing(database, SecretBox(keys_of(settings)), check)


@asynccontextmanager
async def forwarding(
    database: Database, settings: Settings, url: str, secret: str, events: Sequence[str]
) -> AsyncIterator[Forwarder]:
    """Whoever names the URL is at the console: any address will do."""
    anywhere = settings.model_copy(update={"allowed_networks": (ip_network("0.0.0.0/0"), ip_network("::/0"))})
    async with sending(anywhere) as sender:
        yield Forwarder(EventFeed(database), sender, url, secret, events)
