"""A real uvicorn server with our protocol in the loop of the test, and a client of one connection."""

import asyncio
import socket
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import ConnectionCounts, WebServer
from tests.support.delivery_engine import eventually
from tests.support.server import PATIENCE_SECONDS

SHORT_SECONDS = 0.1
LIMITS = ("head_seconds", "body_seconds", "stalled_seconds", "drain_seconds", "idle_seconds")
LONG_SECONDS = 3600.0
GET = b"GET /echo HTTP/1.1\r\nHost: holdfast.example\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class InLoopServer(WebServer):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the test run."""
        yield


class Serving:
    def __init__(self, server: InLoopServer, address: tuple[str, int]) -> None:
        self.server = server
        self._address = address
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> Streams:
        reader, writer = await asyncio.open_connection(*self._address)
        self._writers.append(writer)
        return reader, writer

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def serving(
    app: ASGIApp, *, idle_seconds: float = 30, stopping: asyncio.Event | None = None, **limits: Any
) -> AsyncIterator[Serving]:
    attributes = {"check_seconds": SHORT_SECONDS / 10, "counts": ConnectionCounts(), **limits}
    protocol = type("LimitedProtocol", (HttpProtocol,), attributes)
    on_stop = (stopping or asyncio.Event()).set
    server = InLoopServer(app, on_stop, 15, http=protocol)
    server.config.timeout_keep_alive = idle_seconds  # type: ignore[assignment]
    listener = socket.create_server(("127.0.0.1", 0))
    running = asyncio.create_task(server.serve([listener]))
    served = Serving(server, listener.getsockname())
    try:
        await eventually(lambda: server.started)
        yield served
    finally:
        served.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        for task in list(server.server_state.tasks):
            task.cancel()
        server.stop()
        await running


@asynccontextmanager
async def connected(app: ASGIApp, **limits: Any) -> AsyncIterator[Streams]:
    async with serving(app, **limits) as served:
        yield await served.connect()


@asynccontextmanager
async def connected_without_time(
    app: ASGIApp, passed: Collection[str] = LIMITS
) -> AsyncIterator[tuple[*Streams, HttpProtocol]]:
    """These limits have passed at the second look at what is waited for. Nobody looks but the test."""
    limits: dict[str, Any] = {limit: 0.0 if limit in passed else LONG_SECONDS for limit in LIMITS}
    async with serving(app, check_seconds=LONG_SECONDS, **limits) as served:
        reader, writer = await served.connect()
        connections = served.server.server_state.connections
        await eventually(lambda: connections)
        (connection,) = connections
        assert isinstance(connection, HttpProtocol)
        yield reader, writer, connection


def look_twice(connection: HttpProtocol) -> None:
    for _ in range(2):
        connection.check_deadline()


async def response_to(sent: bytes, **limits: Any) -> bytes:
    """All that comes until the server closes the connection."""
    async with connected(ECHO, **limits) as (reader, writer):
        writer.write(sent)
        return await rest_of(reader)


async def head_of(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await reader.readuntil(b"\r\n\r\n")


async def body_of(reader: asyncio.StreamReader) -> bytes:
    head = await head_of(reader)
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await reader.readexactly(int(length.partition(b":")[2]))


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Read until the server closes the connection."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await reader.read()


def put(body: bytes, path: bytes = b"/echo", *lines: bytes) -> bytes:
    head = b"PUT %b HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: %d\r\n" % (path, len(body))
    return head + b"".join(b"%b\r\n" % line for line in lines) + b"\r\n" + body


async def echo(request: Request) -> Response:
    try:
        body = await request.body()
    except ClientDisconnect:
        return Response()
    headers = [f"{name}: {value}" for name, value in request.headers.items()]
    return JSONResponse([request.method, request.url.path, request.url.query, body.decode(), headers])


def starlette(**handlers: Any) -> Starlette:
    methods = ["GET", "PUT"]
    return Starlette(
        routes=[Route(f"/{name}", handler, methods=methods) for name, handler in handlers.items()]
    )


ECHO = Starlette(routes=[Route("/", echo), Route("/echo", echo, methods=["GET", "PUT"])])


class Slow:
    """A handler that waits until it is told to go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def answer(self, _: Request) -> JSONResponse:
        self.begun.set()
        await self.go_on.wait()
        return JSONResponse("served")
