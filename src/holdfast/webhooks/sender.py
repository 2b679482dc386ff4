"""Sends one POST for each attempt, within its deadline, over a new or an idle connection."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain, zip_longest
from typing import Any

from holdfast.domain.addresses import IPAddress
from holdfast.domain.delivery import CUT_OFF, AttemptResult
from holdfast.domain.endpoint_url import EndpointUrl, InvalidEndpointUrl, parse_endpoint_url
from holdfast.domain.errors import MessageError
from holdfast.webhooks import causes
from holdfast.webhooks.address_guard import AddressGuard, AddressNotAllowed
from holdfast.webhooks.attempt import AttemptTrace, Post, Secret, build_request
from holdfast.webhooks.causes import Phase
from holdfast.webhooks.connection import Connection, IdleConnections
from holdfast.webhooks.resolver import NameUnresolved, Resolver

# A name with hundreds of addresses must not turn the sender into a scanner of networks.
_MOST_ADDRESSES = 6
_STAGGER_SECONDS = 0.25
_TLS_SHUTDOWN_SECONDS = 1.0
# Longer than any attempt; without it the loop's limit of one minute applies.
_TLS_HANDSHAKE_SECONDS = 86_400.0
# Errors that are about this machine's networks. An error that is about the receiver is reported instead.
_UNREACHABLE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT))
# Parsing costs more than an exchange.
_parse_url = lru_cache(4096)(parse_endpoint_url)


class NotConnected(MessageError):
    """The message is the cause."""


class Sender:
    """Never raises for anything that a receiver, a name server or a URL does.

    The environment's proxies are not used.
    """

    def __init__(
        self,
        guard: AddressGuard,
        resolver: Resolver,
        *,
        timeout_seconds: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if tls is None:
            tls = ssl.create_default_context()
            tls.set_alpn_protocols(["http/1.1"])
        self._guard = guard
        self._resolver = resolver
        self._tls = tls
        self._timeout_seconds = timeout_seconds
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_cut_off = False
        self._idle = IdleConnections()

    async def send(self, post: Post) -> AttemptResult:
        trace = AttemptTrace()
        timeout = asyncio.timeout(self._timeout_seconds)
        self._timeouts.add(timeout)
        try:
            url = _parse_url(post.url)
            async with timeout:
                await self._send_request(url, post, trace)
            return self._finish(url, trace)
        except (InvalidEndpointUrl, AddressNotAllowed, NameUnresolved, NotConnected) as error:
            return trace.result(error.message)
        except TimeoutError:
            if not timeout.expired():
                raise
            if trace.response is not None and trace.response.has_outcome:
                return trace.response_result(trace.response)
            cause = causes.explain_timeout(trace.phase, self._timeout_seconds)
            return trace.result(CUT_OFF if self._is_cut_off else cause)
        finally:
            self._timeouts.discard(timeout)
            # An exchange that was cancelled or is overdue leaves no connection behind.
            if trace.connection is not None:
                trace.connection.abort()

    def cut_off(self) -> None:
        """End all attempts now, as if their deadlines had passed."""
        self._is_cut_off = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(now)

    async def close(self) -> None:
        """Close idle connections. Running attempts are cancelled by their callers."""
        await self._idle.close()

    async def _send_request(self, url: EndpointUrl, post: Post, trace: AttemptTrace) -> None:
        connection, secret = await self._prepare(url, post, trace)
        if connection.is_writable():
            sent = (post.event, post.delivery_id, post.body, secret.text, int(post.unix_time()))
            request, trace.request_headers = build_request(url, *sent)
            trace.secret_id = secret.id
            trace.response = connection.send(request)
            trace.enter(Phase.WAITING)
            await connection.wait_for_response()

    async def _prepare(self, url: EndpointUrl, post: Post, trace: AttemptTrace) -> tuple[Connection, Secret]:
        """Return an open connection, and the secret as it was read after that."""
        idle = self._idle.take(url[:3])
        if idle is not None:
            secret = await self._read_secret(idle, post, trace)
            if idle.is_quiet():
                return idle, secret
            # The receiver has closed it. Nothing was sent on it, so no attempt is lost.
            idle.abort()
        opened = await self._connect(url, trace)
        return opened, await self._read_secret(opened, post, trace)

    async def _read_secret(self, connection: Connection, post: Post, trace: AttemptTrace) -> Secret:
        trace.connection, trace.address = connection, connection.address
        trace.enter(Phase.SIGNING)
        return await post.read_secret()

    def _finish(self, url: EndpointUrl, trace: AttemptTrace) -> AttemptResult:
        connection, response = trace.connection, trace.response
        assert connection is not None
        if response is None:
            return trace.result(causes.SPOKE_FIRST if connection.spoke_first else causes.CLOSED_EARLY)
        result = trace.response_result(response)
        if response.idle_seconds:
            trace.connection = None
            connection.reset()
            self._idle.put(url[:3], connection, response.idle_seconds)
        return result

    async def _connect(self, url: EndpointUrl, trace: AttemptTrace) -> Connection:
        """Raise ``NotConnected``, ``AddressNotAllowed`` or ``NameUnresolved``."""
        addresses: tuple[IPAddress, ...]
        if url.address is not None:
            addresses = (url.address,)
        else:
            with trace.measure(Phase.RESOLVING):
                addresses = await self._resolver.resolve(url.host)
        allowed = interleave_families(self._guard.check(url, addresses))[:_MOST_ADDRESSES]
        openers = [partial(self._open_socket, address, url.port, trace) for address in allowed]
        try:
            with trace.measure(Phase.CONNECTING):
                sock = await (openers[0]() if len(openers) == 1 else connect_first(openers))
                trace.address = sock.getpeername()[0]
        except OSError as error:
            raise NotConnected(causes.explain_connect_error(error)) from None
        return await self._open_connection(sock, url, trace)

    async def _open_socket(self, address: IPAddress, port: int, trace: AttemptTrace) -> socket.socket:
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

    async def _open_connection(
        self, sock: socket.socket, url: EndpointUrl, trace: AttemptTrace
    ) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(loop, trace.address or "")
        if not url.is_encrypted:
            await loop.create_connection(lambda: connection, sock=sock)
            return connection
        try:
            with trace.measure(Phase.ENCRYPTING):
                await loop.create_connection(
                    lambda: connection,
                    sock=sock,
                    ssl=self._tls,
                    server_hostname=url.host,
                    ssl_handshake_timeout=_TLS_HANDSHAKE_SECONDS,
                    ssl_shutdown_timeout=_TLS_SHUTDOWN_SECONDS,
                )
        except OSError as error:
            raise NotConnected(causes.explain_tls_error(error)) from None
        return connection


def interleave_families(addresses: Iterable[IPAddress]) -> list[IPAddress]:
    """Return IPv6 and IPv4 in turn, from the family that the resolver put first."""
    families: dict[int, list[IPAddress]] = {}
    for address in addresses:
        families.setdefault(address.version, []).append(address)
    return [address for address in chain(*zip_longest(*families.values())) if address is not None]


async def connect_first(openers: Sequence[Callable[[], Coroutine[Any, Any, socket.socket]]]) -> socket.socket:
    """Return the first socket that connects, as in RFC 8305, and close the others.

    The next opener starts when one has failed, or after a short time. If all fail, raise the most telling
    ``OSError``. Any other error is raised at once.
    """
    waiting, tasks = deque(openers), list[asyncio.Task[socket.socket]]()
    running: set[asyncio.Task[socket.socket]] = set()
    failures: list[OSError] = []
    winner: socket.socket | None = None
    try:
        while winner is None and (waiting or running):
            if waiting:
                tasks.append(asyncio.create_task(waiting.popleft()()))
                running.add(tasks[-1])
            timeout = _STAGGER_SECONDS if waiting else None
            done, running = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is None:
                    winner = winner or task.result()
                elif isinstance(error, OSError):
                    failures.append(error)
                else:
                    winner = None
                    raise error
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, socket.socket) and outcome is not winner:
                outcome.close()
    if winner is None:
        raise next((error for error in failures if error.errno not in _UNREACHABLE), failures[0])
    return winner
