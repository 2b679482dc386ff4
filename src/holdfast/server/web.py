"""One web process: uvicorn on a listening socket that the supervisor has bound."""

import socket
import sys

from holdfast.demo import project
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import ConnectionCounts, WebServer
from holdfast.server.process import read_settings, send_heartbeats, set_limits, stop_with_parent
from holdfast.settings import Settings
from holdfast.web.app import create_app
from holdfast.web.pages.tour import Tour

_OPEN_REQUESTS_SECONDS = 15


def run(settings: Settings, listeners: list[socket.socket]) -> None:
    app = create_app(settings, _tour(settings))
    HttpProtocol.counts = ConnectionCounts(settings.connections_per_address, settings.trusted_proxies)
    server = WebServer(app, app.state.stopping.set, _OPEN_REQUESTS_SECONDS, HttpProtocol, send_heartbeats)
    stop_with_parent(server.stop)
    set_limits()
    for listener in listeners:
        listener.set_inheritable(False)  # uvloop does not close it in a process that reads a file
    server.run(sockets=listeners)


def _tour(settings: Settings) -> Tour | None:
    if settings.demo_receiver is None:
        return None
    return Tour(
        public_url=settings.public_url or "",
        project_path=project.PROJECT_PATH,
        board_path=project.BOARD_PATH,
        email=project.EMAIL,
        receiver=settings.demo_receiver,
        price_path=project.EXAMPLE_PRICE_PATH,
        price_body=project.EXAMPLE_PRICE_BODY,
        picture=project.PICTURE,
    )


if __name__ == "__main__":
    listeners = [socket.socket(fileno=int(each)) for each in sys.argv[1:]]
    run(Settings.from_environment(read_settings()), listeners)
