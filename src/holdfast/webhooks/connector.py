"""The first of several connects that succeeds (RFC 8305): a dead address costs a moment, not the attempt."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any

from holdfast.domain.addresses import IPAddress
from holdfast.domain.endpoint_url import EndpointUrl
from holdfast.domain.message import MessageError
from holdfast.webhooks import causes
from holdfast.webhooks.address_guard import AddressGuard, NameLookup
from holdfast.webhooks.attempt import AttemptTrace
from holdfast.webhooks.causes import Phase
from holdfast.webhooks.connection import Connection

Opener = Callable[[], Coroutine[Any, Any, socket.socket]]
_Task = asyncio.Task[socket.socket]

_STAGGER_SECONDS = 0.25
# They tell of this machine's networks more than of the receiver, so any other failure is worth more.
_UNREACHABLE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT))


def interleaved(addresses: Iterable[IPAddress]) -> list[IPAddress]:
    """IPv6 and IPv4 in turn, from the family that the resolver put first."""
    families: dict[int, list[IPAddress]] = {}
    for address in addresses:
        families.setdefault(address.version, []).append(address)
    return [address for address in chain(*zip_longest(*families.values())) if address is not None]


async def first_open(openers: Sequence[Opener]) -> socket.socket:
    """The next one starts when one before it failed, or after a moment; the losers are closed.

    Raises the most telling ``OSError`` if all fail, and anything else that one of them raises at once.
    """
    race = _Race(openers)
    try:
        return await race.run()
    finally:
        await race.close()


class _Race:
    def __init__(self, openers: Sequence[Opener]) -> None:
        self._waiting = deque(openers)
        self._tasks: list[_Task] = []
        self._failed: list[OSError] = []
        self._winner: socket.socket | None = None

    async def run(self) -> socket.socket:
        running: set[_Task] = set()
        while self._winner is None and (self._waiting or running):
            if self._waiting:
                running.add(self._start())
            pause = _STAGGER_SECONDS if self._waiting else None
            done, running = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            self._judge(done)
        if self._winner is None:
            raise next((e for e in self._failed if e.errno not in _UNREACHABLE), self._failed[0])
        return self._winner

    def _start(self) -> _Task:
        task = asyncio.create_task(self._waiting.popleft()())
        self._tasks.append(task)
        return task

    def _judge(self, done: set[_Task]) -> None:
        for task in done:
            error = task.exception()
            if error is None:
                self._winner = self._winner or task.result()
            elif isinstance(error, OSError):
                self._failed.append(error)
            else:
                raise error

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, socket.socket) and outcome is not self._winner:
                outcome.close()


# From a host to a connection that stands: resolve, check, connect, check again, encrypt.

# A name with hundreds of addresses must not turn us into a scanner of networks.
_MOST_ADDRESSES = 6
_GOODBYE_SECONDS = 1.0
# The attempt's own deadline comes first; without a figure the loop's of one minute would.
_HANDSHAKE_SECONDS = 86_400.0


class NotConnected(MessageError):
    """The message is the cause."""


class Connector:
    def __init__(self, guard: AddressGuard, resolver: NameLookup, tls: ssl.SSLContext) -> None:
        self._guard = guard
        self._resolver = resolver
        self._tls = tls

    async def connect(self, url: EndpointUrl, trace: AttemptTrace) -> Connection:
        """Raises ``NotConnected``, ``AddressRefused`` or ``NameUnresolved``."""
        addresses = self._guard.check(url, await self._resolve(url, trace))
        sock = await self._reach(interleaved(addresses)[:_MOST_ADDRESSES], url.port, trace)
        return await self._set_up(sock, url, trace)

    async def _resolve(self, url: EndpointUrl, trace: AttemptTrace) -> tuple[IPAddress, ...]:
        if url.address is not None:
            return (url.address,)
        trace.enter(Phase.RESOLVING)
        try:
            return await self._resolver.addresses_of(url.host)
        finally:
            trace.dns_ms = trace.phase_ms()

    async def _reach(self, addresses: Sequence[IPAddress], port: int, trace: AttemptTrace) -> socket.socket:
        trace.enter(Phase.CONNECTING)
        openers = [partial(self._open, address, port, trace) for address in addresses]
        try:
            sock = await (openers[0]() if len(openers) == 1 else first_open(openers))
            trace.address = sock.getpeername()[0]
            return sock
        except OSError as error:
            raise NotConnected(causes.of_connecting(error)) from None
        finally:
            trace.connect_ms = trace.phase_ms()

    async def _open(self, address: IPAddress, port: int, trace: AttemptTrace) -> socket.socket:
        trace.address = str(address)
        sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
            self._guard.check_peer(sock, address)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _set_up(self, sock: socket.socket, url: EndpointUrl, trace: AttemptTrace) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(loop, trace.address or "")
        if url.is_encrypted:
            await self._encrypt(loop, connection, sock, url.host, trace)
        else:
            await loop.create_connection(lambda: connection, sock=sock)
        return connection

    async def _encrypt(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        sock: socket.socket,
        host: str,
        trace: AttemptTrace,
    ) -> None:
        trace.enter(Phase.ENCRYPTING)
        try:
            await loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=self._tls,
                server_hostname=host,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except OSError as error:
            raise NotConnected(causes.of_tls(error)) from None
        finally:
            trace.tls_ms = trace.phase_ms()
