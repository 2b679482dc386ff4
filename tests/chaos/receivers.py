"""Three receivers of webhooks, and the name server that knows where they are."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.history import History
from tests.support.name_server import NameServer
from tests.support.ports import bind_shared
from tests.support.receivers import Peer, Received, receiving

NAMES = ("ordered", "flaky", "hanging")
ELSEWHERE = "/elsewhere"
"""The path to which a receiver redirects, and no request may come."""
_DRIP_SECONDS = 0.3
_SLOW_SECONDS = 0.8


@dataclass
class Exchange:
    """One request, and what becomes of it."""

    peer: Peer
    status: int | None = None
    """None: not answered."""

    async def answer(self, status: int, headers: str = "Content-Length: 0\r\n", body: bytes = b"") -> None:
        self.status = status  # Before it is sent: nobody knows how much of it arrives.
        await self.peer.send(f"HTTP/1.1 {status} Status\r\n{headers}\r\n".encode() + body)


Behaviour = Callable[[Exchange], Awaitable[None]]


def answer_with(status: int) -> Behaviour:
    return lambda exchange: exchange.answer(status)


async def hang(exchange: Exchange) -> None:
    await exchange.peer.left()


async def drip(exchange: Exchange) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        await exchange.peer.send(bytes([byte]))
        await asyncio.sleep(_DRIP_SECONDS)
    exchange.status = 200


async def reset(exchange: Exchange) -> None:
    exchange.peer.reset()


async def close(exchange: Exchange) -> None:
    await exchange.peer.close()


async def send_garbage(exchange: Exchange) -> None:
    await exchange.peer.send(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    await exchange.peer.close()


async def answer_slowly(exchange: Exchange) -> None:
    await asyncio.sleep(_SLOW_SECONDS)
    await exchange.answer(200)


async def answer_without_end(exchange: Exchange) -> None:
    await exchange.answer(200, "Connection: close\r\n")
    while True:
        await exchange.peer.send(bytes(4096))


class WebhookReceiver:
    def __init__(self, name: str, usual: Behaviour) -> None:
        self.name = name
        self.behaviour = self._usual = usual
        self._keeping = bind_shared()
        self.port: int = self._keeping.getsockname()[1]
        self._listening = AsyncExitStack()

    @property
    def host(self) -> str:
        return f"{self.name}.receivers.test"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/hook"

    def behave_as_usual(self) -> None:
        self.behaviour = self._usual

    async def open(self, history: History) -> None:
        async def talk(peer: Peer) -> None:
            while True:
                await self._serve(peer, await peer.request(), history)

        await self._listening.enter_async_context(receiving(talk, port=self.port, reuse_port=True))

    async def close(self) -> None:
        """Refuse connections, and end those that there are."""
        await self._listening.aclose()

    def release_port(self) -> None:
        self._keeping.close()

    async def _serve(self, peer: Peer, received: Received, history: History) -> None:
        arrived_at, exchange = time.time(), Exchange(peer)
        headers = dict(received.headers)
        try:
            await self.behaviour(exchange)
        finally:
            history.note(
                "arrival",
                at=round(arrived_at, 4),
                receiver=self.name if received.line.split(" ")[1] == "/hook" else "elsewhere",
                delivery=headers.get("X-Service-Delivery"),
                event=headers.get("X-Service-Event"),
                timestamp=headers.get("X-Service-Timestamp"),
                signature=headers.get("X-Service-Signature"),
                body=received.body.decode(),
                status=exchange.status,
                answered_at=exchange.status and round(time.time(), 4),
            )


class Receivers:
    def __init__(self, folder: Path, chance: Random) -> None:
        """``folder`` gets the file by which ``serve_prefix`` lets a server ask our name server."""

        def one_third(behaviour: Behaviour) -> Behaviour:
            usual = answer_with(200)
            return lambda exchange: behaviour(exchange) if chance.random() < 1 / 3 else usual(exchange)

        usual = (answer_with(200), one_third(answer_with(500)), one_third(hang))
        self.receivers = {name: WebhookReceiver(name, does) for name, does in zip(NAMES, usual, strict=True)}
        self.hosts = [receiver.host for receiver in self.receivers.values()]
        self.name_server = NameServer({host: ["127.0.0.1"] for host in self.hosts})
        self._resolv_conf = folder / "resolv.conf"
        self._history: History | None = None

    def url(self, name: str) -> str:
        return self.receivers[name].url

    @property
    def serve_prefix(self) -> list[str]:
        """Start a command with these words before it, as root, and it asks our name server. It has the id of
        the process that was started: nothing forks."""
        mount = f"mount --bind '{self._resolv_conf}' /etc/resolv.conf && exec \"$@\""
        return ["unshare", "--mount", "sh", "-c", mount, "sh"]

    @asynccontextmanager
    async def running(self, history: History) -> AsyncIterator[Receivers]:
        self._history = history
        transport = await self._open_name_server()
        try:
            await self.open()
            yield self
        finally:
            transport.close()
            await self.close()
            for receiver in self.receivers.values():
                receiver.release_port()

    async def open(self) -> None:
        assert self._history is not None
        for receiver in self.receivers.values():
            await receiver.open(self._history)

    async def close(self) -> None:
        for receiver in self.receivers.values():
            await receiver.close()

    @contextmanager
    def behaving(self, behaviour: Behaviour, names: Sequence[str]) -> Iterator[Counter[str]]:
        """Let these receivers behave so; count the requests that met it."""
        met = Counter[str]()

        def counted(name: str) -> Behaviour:
            def behave(exchange: Exchange) -> Awaitable[None]:
                met[name] += 1
                return behaviour(exchange)

            return behave

        for name in names:
            self.receivers[name].behaviour = counted(name)
        try:
            yield met
        finally:
            for name in names:
                self.receivers[name].behave_as_usual()

    def redirect(self) -> Behaviour:
        elsewhere = self.url("ordered").removesuffix("/hook") + ELSEWHERE
        return lambda exchange: exchange.answer(302, f"Location: {elsewhere}\r\nContent-Length: 0\r\n")

    def questions(self) -> int:
        """How often anybody asked for the address of a receiver."""
        return self.name_server.questions.total()

    async def _open_name_server(self) -> asyncio.DatagramTransport:
        loop = asyncio.get_running_loop()
        for number in range(1, 255):
            # Another run on this machine may have taken the first ones.
            address = f"127.53.0.{number}"
            try:
                transport, _ = await loop.create_datagram_endpoint(
                    lambda: self.name_server, local_addr=(address, 53)
                )
            except OSError as error:
                failure = error
            else:
                self._resolv_conf.write_text(f"nameserver {address}\n")
                self._resolv_conf.chmod(0o644)
                return transport
        raise failure
