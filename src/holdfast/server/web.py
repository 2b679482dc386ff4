"""One web process: uvicorn on a listening socket that the supervisor has bound."""

import socket
import sys

from holdfast.demo import project
from holdfast.demo.seed import EMAIL
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import ConnectionCounts, WebServer
from holdfast.server.process import child_settings, collect_garbage_rarely, stop_with_parent
from holdfast.settings import Settings
from holdfast.web.app import create_app
from holdfast.web.pages.tour import Tour

_OPEN_REQUESTS_SECONDS = 15


def run(settings: Settings, lifeline: int, listeners: list[socket.socket]) -> None:
    app = create_app(settings, _tour(settings))
    HttpProtocol.counts = ConnectionCounts(settings.connections_per_address, settings.trusted_proxies)
    server = WebServer(app, app.state.stopping.set, _OPEN_REQUESTS_SECONDS, HttpProtocol)
    stop_with_parent(lifeline, server.stop)
    collect_garbage_rarely()
    server.run(sockets=listeners)


def _tour(settings: Settings) -> Tour | None:
    if settings.demo_receiver is None:
        return None
    return Tour(
        public_url=settings.public_url or "",
        project_path=project.PROJECT_PATH,
        board_path=project.BOARD_PATH,
        email=EMAIL,
        receiver=settings.demo_receiver,
        price_path=project.EXAMPLE_PRICE_PATH,
        price_body=project.EXAMPLE_PRICE_BODY,
        picture=project.PICTURE,
    )


if __name__ == "__main__":
    listener, lifeline, *metrics = map(int, sys.argv[1:])
    run(child_settings(), lifeline, [socket.socket(fileno=each) for each in (listener, *metrics)])
