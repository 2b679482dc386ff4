"""The process of the demo's webhook receiver and payment page. It has no access to the database."""

import socket
import sys

from holdfast.demo.external.app import ExternalSettings, external_app
from holdfast.demo.external.receiver import WebhookReceiver
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import WebServer
from holdfast.server.process import read_settings, send_heartbeats, stop_with_parent

_OPEN_REQUESTS_SECONDS = 5

if __name__ == "__main__":
    settings = ExternalSettings(**read_settings())
    receiver = WebhookReceiver(settings.hook_secret)
    app = external_app(settings, receiver)
    server = WebServer(app, receiver.close, _OPEN_REQUESTS_SECONDS, HttpProtocol, send_heartbeats)
    stop_with_parent(server.stop)
    server.run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
