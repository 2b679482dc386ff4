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


async def read_secret() -> Secret:
    return SECRET


def guard_for(networks: Sequence[str] = LOOPBACK) -> AddressGuard:
    return AddressGuard([ip_network(text) for text in networks])


def a_post(url: str, *, body: bytes = BODY, secret: Callable[[], Awaitable[Secret]] = read_secret) -> Post:
    return Post(url, "unit.held", uuid4(), body, secret, time.time)


@asynccontextmanager
async def a_sender(
    *, timeout_seconds: float = 60.0, allowed: Sequence[str] = LOOPBACK, name_servers: Sequence[str] = (),
    tls: SSLContext | None = TRUSTS_NOBODY,
) -> AsyncIterator[Sender]:  # fmt: skip
    resolver = Resolver(name_servers)
    sender = Sender(guard_for(allowed), resolver, timeout_seconds=timeout_seconds, tls=tls)
    try:
        yield sender
    finally:
        await sender.close()
        await resolver.close()


async def attempt(url: str) -> AttemptResult:
    async with a_sender() as sender:
        return await sender.send(a_post(url))


async def attempt_at(talk: Talk) -> AttemptResult:
    """One attempt, after which the sender closes the connection."""
    async with receiving(talk) as receiver, a_sender() as sender:
        attempted = await sender.send(a_post(receiver.url))
        await receiver.all_left()
        assert receiver.connections <= 1
    return attempted


def let_deadlines_pass(sender: Sender) -> None:
    for timeout in sender._timeouts:
        timeout.reschedule(asyncio.get_running_loop().time())


async def attempt_until(reached: Awaitable[object], sender: Sender, post: Post) -> AttemptResult:
    """An attempt whose deadline passes when ``reached`` has returned."""
    sending = asyncio.ensure_future(sender.send(post))
    await asyncio.sleep(0)
    (timeout,) = sender._timeouts
    deadline = timeout.when()
    await reached
    assert (sender._timeouts, timeout.when()) == ({timeout}, deadline), "the phases share one deadline"
    let_deadlines_pass(sender)
    return await sending
