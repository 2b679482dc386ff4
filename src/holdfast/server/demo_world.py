"""The process of the demo's webhook receiver and payment page. It has no access to the database."""

import os
import socket
import sys
from collections.abc import Mapping

from holdfast.demo.external.app import ExternalSettings, external_app
from holdfast.demo.external.receiver import WebhookReceiver
from holdfast.observability.logging import set_up_logging
from holdfast.server.demo import HOLDFAST_URL, HOOK_SECRET, PAYMENT_SECRET, TIME_ZONE
from holdfast.server.http_protocol import HttpProtocol
from holdfast.server.http_server import WebServer
from holdfast.server.process import leave_with_parent

_OPEN_REQUESTS_SECONDS = 5


def run(settings: ExternalSettings, listener: socket.socket, lifeline: int) -> None:
    receiver = WebhookReceiver(settings.hook_secret)
    server = WebServer(external_app(settings, receiver), receiver.close, _OPEN_REQUESTS_SECONDS, HttpProtocol)
    leave_with_parent(lifeline, server.leave)
    server.run(sockets=[listener])


def _settings(environment: Mapping[str, str]) -> ExternalSettings:
    return ExternalSettings(
        environment[HOOK_SECRET],
        environment[PAYMENT_SECRET],
        environment[HOLDFAST_URL],
        environment[TIME_ZONE],
    )


if __name__ == "__main__":
    set_up_logging()
    run(_settings(os.environ), socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
