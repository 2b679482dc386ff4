"""From a host to a connection that stands: resolve, check, connect, check again, encrypt."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import partial

from holdfast.delivery import causes
from holdfast.delivery.address_guard import AddressGuard, NameLookup
from holdfast.delivery.causes import Phase
from holdfast.delivery.connection import Connection
from holdfast.delivery.course import Course
from holdfast.delivery.racing import first_open, interleaved
from holdfast.domain.addresses import IPAddress
from holdfast.domain.endpoint_url import EndpointUrl
from holdfast.domain.message import MessageError

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

    async def connect(self, url: EndpointUrl, course: Course) -> Connection:
        """Raises ``NotConnected``, ``AddressRefused`` or ``NameUnresolved``."""
        addresses = self._guard.check(url, await self._resolve(url, course))
        sock = await self._reach(interleaved(addresses)[:_MOST_ADDRESSES], url.port, course)
        return await self._set_up(sock, url, course)

    async def _resolve(self, url: EndpointUrl, course: Course) -> tuple[IPAddress, ...]:
        if url.address is not None:
            return (url.address,)
        course.enter(Phase.RESOLVING)
        try:
            return await self._resolver.addresses_of(url.host)
        finally:
            course.dns_ms = course.phase_ms()

    async def _reach(self, addresses: Sequence[IPAddress], port: int, course: Course) -> socket.socket:
        course.enter(Phase.CONNECTING)
        openers = [partial(self._open, address, port, course) for address in addresses]
        try:
            sock = await (openers[0]() if len(openers) == 1 else first_open(openers))
            course.address = sock.getpeername()[0]
            return sock
        except OSError as error:
            raise NotConnected(causes.of_connecting(error)) from None
        finally:
            course.connect_ms = course.phase_ms()

    async def _open(self, address: IPAddress, port: int, course: Course) -> socket.socket:
        course.address = str(address)
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

    async def _set_up(self, sock: socket.socket, url: EndpointUrl, course: Course) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(loop, course.address or "")
        if url.is_encrypted:
            await self._encrypt(loop, connection, sock, url.host, course)
        else:
            await loop.create_connection(lambda: connection, sock=sock)
        return connection

    async def _encrypt(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        sock: socket.socket,
        host: str,
        course: Course,
    ) -> None:
        course.enter(Phase.ENCRYPTING)
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
            course.tls_ms = course.phase_ms()
