"""uvicorn, as a child of the supervisor."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.sockets import BACKLOG


class WebServer(uvicorn.Server):
    def __init__(
        self,
        app: ASGIApp,
        on_stop: Callable[[], object],
        open_requests_seconds: int,
        http: type[asyncio.Protocol] = HttpProtocol,
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
        self._on_stop = on_stop

    def leave(self, *_: object) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would end by the signal it got; a process that was asked to leave and did ends well."""
        signal.signal(signal.SIGTERM, self.leave)
        yield
