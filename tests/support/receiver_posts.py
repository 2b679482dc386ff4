"""Senders for the tests, and what they are to send."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from uuid import UUID, uuid4

from holdfast.domain.delivery import AttemptResult
from holdfast.webhooks.address_guard import AddressGuard
from holdfast.webhooks.attempt import Post, Secret
from holdfast.webhooks.resolver import Resolver
from holdfast.webhooks.sender import Sender
from tests.support.receivers import Talk, receiving

LOOPBACK = ("127.0.0.0/8", "::1/128")
SECRET = Secret(UUID("0191e5b0-0000-7000-8000-000000000001"), "whsec_0123456789")
BODY = b'{"id":"1","type":"unit.held"}'
# Reading the system's authorities takes longer than most of the tests.
TRUSTS_NOBODY = SSLContext(PROTOCOL_TLS_CLIENT)
GRACE_SECONDS = 1.5
"""How much later than its deadline an attempt may return."""


async def read_secret() -> Secret:
    return SECRET


def a_post(url: str, *, body: bytes = BODY, secret: Callable[[], Awaitable[Secret]] = read_secret) -> Post:
    return Post(url, "unit.held", uuid4(), body, secret, time.time)


@asynccontextmanager
async def a_sender(
    *,
    timeout_seconds: float = 1.0,
    allowed: Sequence[str] = LOOPBACK,
    name_servers: Sequence[str] = (),
    tls: SSLContext = TRUSTS_NOBODY,
) -> AsyncIterator[Sender]:
    resolver = Resolver(name_servers)
    guard = AddressGuard([ip_network(text) for text in allowed])
    sender = Sender(guard, resolver, timeout_seconds=timeout_seconds, tls=tls)
    try:
        yield sender
    finally:
        await sender.close()
        await resolver.close()


async def attempt(url: str) -> AttemptResult:
    """One attempt with a sender of its own, which must come back in time."""
    async with a_sender() as sender:
        return await in_time(sender, a_post(url))


async def attempt_at_and_leave(talk: Talk) -> AttemptResult:
    """For answers after which the connection is kept."""
    async with receiving(talk) as receiver:
        return await attempt(receiver.url)


async def attempt_at(talk: Talk) -> AttemptResult:
    """One attempt, after which the receiver's connection is gone."""
    async with receiving(talk) as receiver, a_sender() as sender:
        attempted = await in_time(sender, a_post(receiver.url))
        await receiver.all_left()
        assert receiver.connections == 1
    return attempted


async def in_time(sender: Sender, post: Post, timeout_seconds: float = 1.0) -> AttemptResult:
    started_at = time.perf_counter()
    attempted = await sender.send(post)
    assert time.perf_counter() - started_at < timeout_seconds + GRACE_SECONDS
    return attempted


async def eventually(holds: Callable[[], bool]) -> None:
    """For what the other side of a socket sees, which gives no signal on this side."""
    async with asyncio.timeout(2):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
