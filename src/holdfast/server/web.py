"""One web process: uvicorn on a listening socket that the supervisor has bound."""

import socket
import sys
from functools import partial

import uvicorn

from holdfast.bootstrap.web import WebApplication
from holdfast.server.child import child_settings, leave_with_parent
from holdfast.server.garbage import collect_seldom
from holdfast.server.listening import BACKLOG
from holdfast.server.web_server import WebServer
from holdfast.settings import Settings
from holdfast.web.http.connection import HttpConnection
from holdfast.web.http.heads import KnownHeads

_OPEN_REQUESTS_SECONDS = 15


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
