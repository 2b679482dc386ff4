"""The world outside of the demo, in a process of its own that knows nothing of the database."""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping

import uvicorn

from holdfast.demo.outside.app import outside_app
from holdfast.demo.outside.receiver import Journal
from holdfast.demo.outside.told import Told
from holdfast.observability.logging import set_up_logging
from holdfast.server.child import leave_with_parent
from holdfast.server.demo_world import HOLDFAST_URL, HOOK_SECRET, PAYMENT_SECRET, TIME_ZONE
from holdfast.server.listening import BACKLOG
from holdfast.server.web_server import WebServer

_OPEN_REQUESTS_SECONDS = 5


class OutsideServer(WebServer):
    """Those who watch for news would keep it from leaving, so they are sent away first."""

    def __init__(self, config: uvicorn.Config, journal: Journal) -> None:
        super().__init__(config)
        self._journal = journal
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def leave(self, *_: object) -> None:
        super().leave()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._journal.close)


def run(told: Told, listener: socket.socket, lifeline: int) -> None:
    journal = Journal()
    config = uvicorn.Config(
        outside_app(told, journal),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=_OPEN_REQUESTS_SECONDS,
    )
    server = OutsideServer(config, journal)
    leave_with_parent(lifeline, server.leave)
    server.run(sockets=[listener])


def _told(given: Mapping[str, str]) -> Told:
    return Told(given[HOOK_SECRET], given[PAYMENT_SECRET], given[HOLDFAST_URL], given[TIME_ZONE])


if __name__ == "__main__":
    set_up_logging()
    run(_told(os.environ), socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
