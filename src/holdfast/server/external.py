"""The process of the demo's webhook receiver and payment page. It has no access to the database."""

import json
import os
import socket
import sys

from holdfast.demo.external.app import ExternalSettings, external_app
from holdfast.demo.external.receiver import WebhookReceiver
from holdfast.observability.logging import set_up_logging
from holdfast.server.demo import SETTINGS
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import WebServer
from holdfast.server.process import stop_with_parent

_OPEN_REQUESTS_SECONDS = 5

if __name__ == "__main__":
    set_up_logging()
    settings = ExternalSettings(**json.loads(os.environ[SETTINGS]))
    receiver = WebhookReceiver(settings.hook_secret)
    server = WebServer(external_app(settings, receiver), receiver.close, _OPEN_REQUESTS_SECONDS, HttpProtocol)
    stop_with_parent(int(sys.argv[2]), server.stop)
    server.run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
