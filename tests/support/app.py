"""The application in this process: a synchronous client for it, with no socket in between."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import logging
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import httpx
import uvloop
from starlette.applications import Starlette

from holdfast.observability.logging import set_up_logging
from holdfast.settings import Settings
from holdfast.web.app import create_app
from holdfast.web.emails import email_renderer
from holdfast.wiring import run_background_work
from tests.support.server import PATIENCE_SECONDS, WEBHOOKS

_LOOPBACK = "127.0.0.1"
_ports = itertools.count(61_000)
"""Above those that the kernel gives to real servers."""
_running: dict[str, InProcessApp] = {}
"""By address: clients find the application of this process behind it."""


class InProcessApp:
    """The application with its lifespan running in the loop of this process."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.address = f"http://{_LOOPBACK}:{next(_ports)}"
        self.log = _log()
        self._settings = Settings.from_environment(
            {"HOLDFAST_PUBLIC_URL": self.address, **WEBHOOKS, **settings}
        )
        self._app: Starlette
        self._stop = asyncio.Event()
        self._served: Future[None]
        self._background: BackgroundWork | None = None

    def start(self) -> None:
        ready: Future[Starlette] = Future()
        self._served = asyncio.run_coroutine_threadsafe(self._serve(ready), _loop())
        self._served.add_done_callback(lambda served: _pass_on_failure(served, ready))
        self._app = ready.result(PATIENCE_SECONDS)
        _running[self.address] = self

    def stop(self) -> None:
        del _running[self.address]
        try:
            self.stop_background_work()
        finally:
            _loop().call_soon_threadsafe(self._stop.set)
            self._served.result(PATIENCE_SECONDS)

    def start_background_work(self) -> None:
        """Lapse holds, number events and send deliveries, as the worker process of ``serve`` does."""
        if self._background is None:
            self._background = BackgroundWork(self._settings)

    def stop_background_work(self) -> None:
        background, self._background = self._background, None
        if background is not None:
            background.stop()

    def respond(self, request: httpx.Request, peer: str) -> httpx.Response:
        timeout = request.extensions.get("timeout", {}).get("read")
        answer = asyncio.run_coroutine_threadsafe(self._respond(request, peer), _loop())
        try:
            return answer.result(timeout)
        except TimeoutError:
            answer.cancel()
            raise httpx.ReadTimeout("The application has not answered in time.", request=request) from None

    async def _respond(self, request: httpx.Request, peer: str) -> httpx.Response:
        request = _as_a_server_reads_it(request)
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False, client=(peer, 50_000))
        response = await transport.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        # As it was sent: the client decompresses it.
        content = b"".join([part async for part in response.stream])
        return httpx.Response(
            response.status_code, headers=response.headers, stream=httpx.ByteStream(content)
        )

    async def _serve(self, ready: Future[Starlette]) -> None:
        app = create_app(self._settings)
        async with app.router.lifespan_context(app):
            ready.set_result(app)
            await self._stop.wait()


class BackgroundWork:
    """The background work of an application, in the loop of this process."""

    def __init__(self, settings: Settings) -> None:
        self._stop = asyncio.Event()
        work = run_background_work(settings, self._stop, email_renderer)
        self._done = asyncio.run_coroutine_threadsafe(work, _loop())

    def stop(self) -> None:
        """After the round that it is in."""
        _loop().call_soon_threadsafe(self._stop.set)
        self._done.result(PATIENCE_SECONDS)


class AppTransport(httpx.BaseTransport):
    """Hands requests to the application in this process."""

    def __init__(self, app: InProcessApp, peer: str = _LOOPBACK) -> None:
        self._app = app
        self._peer = peer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert request.url.copy_with(raw_path=b"/") == httpx.URL(f"{self._app.address}/"), "another server"
        return self._app.respond(request, self._peer)


def transport_to(address: str, peer: str | None = None) -> httpx.BaseTransport | None:
    """A transport to the application at this address, if it is in this process; as if ``peer`` called."""
    app = _running.get(address)
    if app is not None:
        return AppTransport(app, peer or _LOOPBACK)
    return None if peer is None else httpx.HTTPTransport(local_address=peer)


@contextmanager
def running_app(settings: Mapping[str, str], *, background_work: bool = True) -> Iterator[InProcessApp]:
    app = InProcessApp(settings)
    app.start()
    try:
        if background_work:
            app.start_background_work()
        yield app
    finally:
        app.stop()


class _Chunks(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._stream:
            yield chunk


def _as_a_server_reads_it(request: httpx.Request) -> httpx.Request:
    headers = [(name, value.strip(b" \t")) for name, value in request.headers.raw]
    stream = request.stream
    if isinstance(stream, httpx.SyncByteStream) and not isinstance(stream, httpx.AsyncByteStream):
        stream = _Chunks(stream)
    return httpx.Request(request.method, request.url, headers=headers, stream=stream)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """All applications of this process share it, as they share its log and its metrics."""
    loop = uvloop.new_event_loop()
    threading.Thread(target=loop.run_forever, name="applications", daemon=True).start()
    return loop


@cache
def _log() -> Path:
    """Where the applications of this process log to, as a server does to its stderr."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    path = Path(tempfile.mkdtemp(prefix="holdfast-")) / "applications.log"
    atexit.register(shutil.rmtree, path.parent)
    set_up_logging(path.open("w"))
    # Those of pytest stay, and the other tests of this process see the records that they always saw.
    root.handlers[:] = [*handlers, *root.handlers]
    root.setLevel(level)
    return path


def _pass_on_failure(served: Future[None], ready: Future[Starlette]) -> None:
    if not ready.done() and (failure := served.exception()) is not None:
        ready.set_exception(failure)
