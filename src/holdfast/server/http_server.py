"""uvicorn as a child of the supervisor, and what its HTTP protocol needs: limits, responses, cycles."""

import asyncio
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from random import getrandbits
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from holdfast.domain.addresses import IPNetwork
from holdfast.observability.logging import log_request
from holdfast.server.sockets import BACKLOG
from holdfast.web.client_address import ClientAddresses
from holdfast.web.rate_limit import release
from holdfast.web.request import NO_ROUTE

_HEADERS = (
    b"content-type: text/plain\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"x-request-id: %b\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n"
)

_HAS_LENGTH = b"\r\ncontent-length: "


class WebServer(uvicorn.Server):
    def __init__(
        self,
        app: ASGIApp,
        on_stop: Callable[[], object],
        open_requests_seconds: int,
        http: type[asyncio.Protocol],
        on_start: Callable[[], object] = lambda: None,
    ) -> None:
        """Call ``on_stop`` when the server begins to stop, so that responses without an end can end."""
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                loop="uvloop",
                http=http,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=open_requests_seconds,
            )
        )
        self._on_start, self._on_stop = on_start, on_stop

    def stop(self, *_: object) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_start()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End with exit code 0 after SIGTERM, where uvicorn would end by the signal."""
        signal.signal(signal.SIGTERM, self.stop)
        yield


class ConnectionCounts:
    """Counts open connections by client address, and logs what the application does not get.

    The limit does not apply to this machine, nor to trusted proxies, which connect for many clients.
    """

    def __init__(self, per_address: int = 1000, trusted: Sequence[IPNetwork] = ()) -> None:
        """Allow any number if ``per_address`` is 0."""
        self._per_address = per_address
        self._addresses = ClientAddresses(trusted)
        self._counts: Counter[str] = Counter()

    def add(self, client: tuple[str, int] | None) -> bool:
        networks = self._networks(client)
        self._counts.update(networks.keys())
        return all(self._counts[network] <= self._per_address * times for network, times in networks.items())

    def remove(self, client: tuple[str, int] | None) -> None:
        release(self._counts, self._networks(client))

    def _networks(self, client: tuple[str, int] | None) -> dict[str, int]:
        if client is None or not self._per_address:
            return {}
        peer = self._addresses.find({"client": client, "headers": []})
        is_exempt = peer.address.is_loopback or self._addresses.is_trusted(peer.address)
        return {} if is_exempt else dict(peer.counted)

    def log_rejection(self, client: Any, headers: Any, status: int, reason: str | Exception) -> str:
        """Log what the application does not get, and return an id. A path may have a token: not logged."""
        scope = {"client": client, "headers": headers}
        if (cause := getattr(reason, "__context__", None)) is not None:
            reason = cause if type(cause) is ValueError else "the address is not valid"
        request_id, address = f"{getrandbits(128):032x}", self._addresses.find(scope).text
        fields = {"requestId": request_id, "route": NO_ROUTE, "client": address, "reason": str(reason)}
        log_request(f"{status} {HTTPStatus(status).phrase}: {reason}", fields)
        return request_id


def plain_response(status: int, request_id: str, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    text = HTTPStatus(status).phrase.encode()
    lines = b"".join(b"%b: %b\r\n" % header for header in default_headers)
    head = b"HTTP/1.1 %d %b\r\n" % (status, text) + lines + _HEADERS % (request_id.encode(), len(text))
    return head + b"\r\n" + text


class Trailers(list[tuple[bytes, bytes]]):
    """Takes the place of the headers once these are complete, and keeps nothing."""

    left = 100

    def append(self, _: tuple[bytes, bytes]) -> None:
        self.left -= 1
        if not self.left:
            raise ValueError("the body has too many trailers")


class RequestCycle(RequestResponseCycle):
    """A request that came in whole counts, though its client has gone since."""

    is_handed_over = False

    async def receive(self) -> Any:
        message = await super().receive()
        if self.more_body or self.is_handed_over:
            return message
        self.is_handed_over = True
        if message["type"] == "http.disconnect" and not self.response_complete:
            return {"type": "http.request", "body": bytes(self.body), "more_body": False}
        return message


class ResponseTransport(asyncio.Transport):
    """Sends the head of a response together with the beginning of its body: uvloop writes at once."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport, method: str) -> None:
        self._transport = transport
        # None: has yet to come. Empty: is sent, or need not wait, for no body follows.
        self._head: bytes | None = b"" if method == "HEAD" else None

    def write(self, data: Any) -> None:
        if self._head is None and data[:5] == b"HTTP/" and _HAS_LENGTH in data:
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


def extend_cycle(cycle: RequestResponseCycle) -> None:
    """Give a cycle these differences, before its task begins: uvicorn names the class of its cycles."""
    cycle.__class__ = RequestCycle
    cycle.transport = ResponseTransport(cycle.transport, cycle.scope["method"])
