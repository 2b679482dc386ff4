"""One web process: uvicorn on a listening socket that the supervisor has bound."""

import socket
import sys

from holdfast.server.connection_counts import ConnectionCounts
from holdfast.server.demo import tour_of
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.process import child_settings, collect_seldom, leave_with_parent
from holdfast.server.web_server import WebServer
from holdfast.settings import Settings
from holdfast.web.app import create_app

_OPEN_REQUESTS_SECONDS = 15


def run(settings: Settings, listener: socket.socket, lifeline: int) -> None:
    app = create_app(settings, tour_of(settings))
    HttpProtocol.counts = ConnectionCounts(settings.connections_per_address, settings.trusted_proxies)
    server = WebServer(app, app.state.stopping.set, _OPEN_REQUESTS_SECONDS)
    leave_with_parent(lifeline, server.leave)
    collect_seldom()
    server.run(sockets=[listener])


if __name__ == "__main__":
    run(child_settings(), socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
