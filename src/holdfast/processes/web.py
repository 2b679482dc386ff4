"""One web process: uvicorn on a listening socket that the supervisor has bound."""

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn

from holdfast.bootstrap.web import WebApplication
from holdfast.processes.child import child_settings, leave_with_parent
from holdfast.processes.garbage import collect_seldom
from holdfast.processes.listening import BACKLOG
from holdfast.settings import Settings
from holdfast.web.http.connection import HttpConnection
from holdfast.web.http.heads import KnownHeads

_OPEN_REQUESTS_SECONDS = 15


class WebServer(uvicorn.Server):
    def leave(self, *_: object) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would end by the signal it got; a process that was asked to leave and did ends well."""
        signal.signal(signal.SIGTERM, self.leave)
        yield


def run(settings: Settings, listener: socket.socket, lifeline: int) -> None:
    application = WebApplication(settings)
    connection = partial(HttpConnection, application.answer, KnownHeads())
    server = WebServer(
        uvicorn.Config(
            application.live,
            interface="asgi3",
            loop="uvloop",
            http=connection,  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=_OPEN_REQUESTS_SECONDS,
        )
    )
    leave_with_parent(lifeline, server.leave)
    collect_seldom()
    server.run(sockets=[listener])


if __name__ == "__main__":
    run(child_settings(), socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
